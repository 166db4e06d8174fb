"""Fourth room: the page, the tables and the file of numbers."""
