"""Matrices: norms, designs, solver and functions for low rank and its sums."""
