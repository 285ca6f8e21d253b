"""Masters: the re-fit over the active columns."""
