"""Mutated files: each is read right, or refused in one line. ``python -m tests.fuzz --help``."""
