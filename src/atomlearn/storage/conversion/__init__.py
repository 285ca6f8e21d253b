"""convert: any data file to a column store, in one pass over it and in the memory allowed."""

from atomlearn.storage.conversion.to_store import Conversion, convert

__all__ = ["Conversion", "convert"]
