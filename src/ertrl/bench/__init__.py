"""Speed on this machine: of training updates, and of the parts of a collection."""
