"""X on disk: column stores and genotype files, read by memory map."""
