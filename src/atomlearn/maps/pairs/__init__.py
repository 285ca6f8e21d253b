"""Products of two inputs as columns that are never stored, and the exact search among them."""
