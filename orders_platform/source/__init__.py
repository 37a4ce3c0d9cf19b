"""The mutable source. Belongs here: reading it once an interval, and a deterministic sample. Not here: landed files."""
