"""Norms: gauges of atoms, known by value, polar, best columns and (if it exists) prox."""
