"""Products of two inputs: columns that are searched and never stored."""
