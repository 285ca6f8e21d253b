"""Storage: files, column stores, clusters and devices."""
