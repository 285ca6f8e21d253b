"""Problem: what is solved, how close to optimal a point is proved to be, and the result."""
