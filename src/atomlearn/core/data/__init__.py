"""Designs: the data matrix X in any storage, which gives scores z = X'v and columns."""
