"""Data outside of NumPy's memory: files and stores, clusters and sites, devices."""
