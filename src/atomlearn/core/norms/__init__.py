"""Norms: gauges of atoms, known by value, polar, best columns and (where it exists) prox."""
