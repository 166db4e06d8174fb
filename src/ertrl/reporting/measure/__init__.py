"""Second room: numbers made from what was read. No text, no pictures."""
