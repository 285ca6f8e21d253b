"""The core: losses, norms of vectors, data in memory, masters, solvers, paths. It knows no wing."""
