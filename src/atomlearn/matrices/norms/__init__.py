"""Norms of matrices: gauges of rank-one atoms u v', dense or sparse, symmetric or not."""
