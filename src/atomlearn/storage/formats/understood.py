"""understood: what others' parsers raise over damaged files, as one line that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from atomlearn.storage.formats.held import capped, enough
from atomlearn.storage.formats.messages import short


@contextmanager
def understood(path: object, what: str, remedy: str = "") -> Iterator[None]:
    """Raise ValueError "PATH is not a readable WHAT: ..." where a parser in this block fails.

    Only calls of others' parsers belong in such a block: faults of our own must not pass for
    faults of the file. They may raise anything, and take no more memory than there is.
    """
    try:
        with enough(path), capped():
            yield
    except Exception as error:
        # An OSError with the name of a file is the system's, and goes through as it is.
        known = isinstance(error, OSError) and error.filename is not None
        if known or isinstance(error.__cause__, MemoryError):
            raise
        raise ValueError(f"{path} is not a readable {what}: {short(error)}{remedy}") from error
