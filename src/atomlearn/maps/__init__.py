"""Feature maps of one or two inputs: curves, surfaces and kernels as columns."""
