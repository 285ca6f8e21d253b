"""Names that NumPy saved as objects: text is read, by a reader that can make nothing else."""

from __future__ import annotations

import pickle
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

#: What a pickled array of text is made with: all that the reader may call.
_MAKERS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _TextOnly(pickle.Unpickler):
    """Makes arrays and text; whatever else a file asks for is refused before it is found."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _MAKERS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no text needs")
        return super().find_class(module, name)


def read_text_objects(stream: BinaryIO, what: str) -> NDArray[np.str_] | None:
    """Return an array of objects as text where all of them are; None where it holds no objects.

    Raises ValueError where an object is no text.
    """
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None or not read(stream)[2].hasobject:
        return None
    try:
        held = _TextOnly(stream).load()
    except Exception as error:  # a broken pickle raises whatever its bytes lead to
        raise ValueError(f"{what} holds objects that are no text: {error}") from error
    if not isinstance(held, np.ndarray) or held.dtype != object:
        raise ValueError(f"{what} holds objects that are no text; save numbers or text")
    if not all(isinstance(item, str) for item in held.ravel().tolist()):
        raise ValueError(f"{what} holds objects that are no text; save numbers or text")
    return held.astype(np.str_)
