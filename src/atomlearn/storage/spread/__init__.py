"""Data that is spread: chunks of a Dask cluster, and sites that answer with sums."""
