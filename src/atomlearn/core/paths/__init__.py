"""Paths: grids of levels, warm-started solutions along them, and cross-validation."""
