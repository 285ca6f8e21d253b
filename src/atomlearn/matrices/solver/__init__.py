"""Generation over matrices: iterates kept as factors, rays and entries."""
