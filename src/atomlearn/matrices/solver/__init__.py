"""The solver over factors, and the coordinates of its terms."""
