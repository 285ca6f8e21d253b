"""Feature maps: curves, surfaces, products and kernels as columns that are never stored."""
