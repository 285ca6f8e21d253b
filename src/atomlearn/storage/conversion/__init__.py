"""Any data file to a column store, in one pass over it and in the memory allowed."""
