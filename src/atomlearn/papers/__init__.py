"""The papers' own algorithms and their rivals."""
