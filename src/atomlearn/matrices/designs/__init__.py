"""Designs whose columns are the entries of a matrix: tasks, all entries, or some entries."""
