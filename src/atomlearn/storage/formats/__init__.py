"""File formats: readers that turn a file into a table or a stream of pieces."""
