"""understood: what others' parsers raise over damaged files, as one line that names the file."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from atomlearn.storage.formats.held import short

#: What NumPy, zipfile, zlib, lzma, h5py, Arrow and scikit-learn have been seen to raise over files
#: that somebody changed. OSError with a file name is the system's, and goes through as it is.
FAULTS = (
    ValueError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    SystemError,
    TypeError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def understood(path: object, what: str, remedy: str = "") -> Iterator[None]:
    """Raise ValueError "PATH is not a readable WHAT: ..." where a parser in this block fails.

    Only calls of others' parsers belong in such a block: faults of our own must not pass for
    faults of the file.
    """
    try:
        yield
    except FAULTS as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{path} is not a readable {what}: {short(error)}{remedy}") from error
