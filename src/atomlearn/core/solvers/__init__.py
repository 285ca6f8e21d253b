"""Solvers, the one loop that runs them, stopping rules and observers."""
