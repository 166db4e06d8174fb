"""First room: what runs, datasets and the paper say, sorted into what may be compared."""
