"""Designs whose columns are the entries of a matrix: tasks, the matrix itself, some entries."""
