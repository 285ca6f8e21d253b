"""File formats: readers of tables, and what they give."""
