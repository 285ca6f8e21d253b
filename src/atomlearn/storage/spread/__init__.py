"""X in chunks on the workers of a Dask cluster."""
