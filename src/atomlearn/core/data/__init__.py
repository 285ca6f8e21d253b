"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""
