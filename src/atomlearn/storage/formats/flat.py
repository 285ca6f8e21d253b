"""Arrays that are read by ranges of rows or columns: .npy, .npz, .h5ad, dense or sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.format import About, ColumnSource, RowPiece, RowSource
from atomlearn.storage.formats.held import understood
from atomlearn.storage.formats.numpy_files import (
    SPARSE_KEYS,
    Archive,
    FlatArray,
    sparse_form,
    stored_names,
    stored_target,
    target_from_file,
)
from atomlearn.storage.formats.table import Request, sparse_size

#: Names of columns, or None.
Names = Sequence[str] | None


class DenseLines:
    """A dense matrix in a file, read by ranges of lines: rows in C order, columns in Fortran order.

    Parameters
    ----------
    shape : (int, int)
        Number of lines, and number of entries in each line.
    dtype : dtype
        Type of the entries.
    read : callable
        ``read(start, stop)`` returns these lines.
    """

    sparse = False

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], read: Callable[[int, int], NDArray[Any]]
    ) -> None:
        """Store shape and type of the matrix, and the function ``read`` of (start, stop)."""
        self.shape = shape
        self.dtype = dtype
        self._read = read

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return the lines start, ..., stop - 1 as the rows of an array."""
        return self._read(start, stop)

    def cuts(self, first: int, piece_bytes: int) -> NDArray[np.int64]:
        """Return the boundaries of pieces of about ``piece_bytes``, from line ``first`` on."""
        # An entry counts as 8 bytes, because it may become a float64.
        step = max(1, piece_bytes // (8 * self.shape[1]))
        return np.append(np.arange(first, self.shape[0], step), self.shape[0])


class SparseLines:
    """A sparse matrix in a file, read by ranges of lines: rows of CSR, columns of CSC.

    Parameters
    ----------
    path : Path
        The file, for messages.
    data, indices : array with ``read``
        Values and positions in the line of the stored entries, as in SciPy; ``read(start, stop)``
        returns a range of them. If ``data`` has length 1, all entries have this value.
    indptr : (n_lines + 1,) array
        First entry of each line, and the end.
    shape : (int, int)
        Number of lines, and length of each line.
    """

    sparse = True

    def __init__(
        self, path: Path, data: Any, indices: Any, indptr: NDArray[Any], shape: tuple[int, int]
    ) -> None:
        """Check the arrays of a CSR or CSC matrix: shapes and types, but not all indices yet.

        ``path`` is the file, for messages, and ``shape`` has the number of lines and their length.
        """
        # A wrong shape or length could take all memory, or read outside of the arrays.
        stored = int(indices.size)
        sparse_size(path, shape, stored, max(shape))
        has_integers = indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
        if (
            not has_integers
            or indptr.shape != (shape[0] + 1,)
            or indptr[0]
            or data.size not in (1, stored)
        ):
            raise ValueError(
                f"{path} is a broken sparse matrix of shape {shape}: {data.size} values, {stored} "
                f"indices ({indices.dtype}) and {indptr.size} pointers ({indptr.dtype}) from 0 on"
            )
        self.path = path
        self.data = data
        self.indices = indices
        self.indptr = indptr.astype(np.int64)
        self.shape = shape
        self.dtype = data.dtype
        self._is_constant = data.size == 1 and stored != 1

    def part(self, start: int, stop: int) -> Any:
        """Return the lines start, ..., stop - 1 as the rows of a CSR array, checked by SciPy."""
        pointers = self.indptr[start : stop + 1]
        begin = int(pointers[0])
        end = int(pointers[-1])
        indices = self.indices.read(begin, end).astype(np.int64)
        if self._is_constant:
            data = self.data.read(0, 1).repeat(indices.size)
        else:
            data = self.data.read(begin, end)
        # SciPy checks the indices of every part, because kernels index memory with them.
        with understood(self.path, "sparse matrix"):
            shape = stop - start, self.shape[1]
            matrix = sp.csr_array((data, indices, pointers - begin), shape=shape)
            matrix.check_format(full_check=True)
        matrix.sum_duplicates()
        return matrix

    def cuts(self, first: int, piece_bytes: int) -> NDArray[np.int64]:
        """Return the boundaries of pieces of about ``piece_bytes``, from line ``first`` on."""
        # An entry takes up to 32 bytes while it is read: value and index, and a copy of both.
        return cuts_of_entries(self.indptr, first, max(1, piece_bytes // 32))


def cuts_of_entries(starts: NDArray[np.int64], first: int, n_entries: int) -> NDArray[np.int64]:
    """Divide lines into groups of about ``n_entries`` stored entries, starting at line ``first``.

    ``starts`` is the indptr of CSR or CSC. Returns the first line of each group, and the end.
    """
    edges = [first]
    last = starts.size - 1
    while edges[-1] < last:
        end = int(np.searchsorted(starts, starts[edges[-1]] + n_entries, side="right")) - 1
        edges.append(max(end, edges[-1] + 1))
    return np.array(edges, dtype=np.int64)


#: Rows or columns of a matrix in a file.
Lines = DenseLines | SparseLines


class RowsOfFile(RowSource):
    """A matrix in a file that is stored by rows; positions are row numbers.

    Parameters
    ----------
    lines : DenseLines or SparseLines
        The rows.
    names : sequence of str, optional
        Names of the columns.
    y : array, optional
        The target.
    """

    def __init__(self, lines: Lines, names: Names, y: NDArray[Any] | None) -> None:
        """Store the rows ``lines``, the names of the columns, and the target y, or None."""
        self._lines = lines
        self.y = y
        self.about = About(names, lines.sparse, lines.dtype)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        """Yield the rows from number ``position`` on, in pieces of about ``piece_bytes``."""
        for start, stop in pairwise(self._lines.cuts(position, piece_bytes).tolist()):
            yield RowPiece(self._lines.part(start, stop), None, stop)


class ColumnsOfFile(ColumnSource):
    """A matrix in a file that is stored by columns.

    Parameters
    ----------
    lines : DenseLines or SparseLines
        The columns.
    names : sequence of str, optional
        Names of the columns.
    y : array, optional
        The target.
    """

    def __init__(self, lines: Lines, names: Names, y: NDArray[Any] | None) -> None:
        """Store the columns ``lines``, their names, and the target y, if there are any."""
        self._lines = lines
        self.y = y
        self.shape = lines.shape[::-1]
        self.about = About(names, lines.sparse, lines.dtype)

    def columns(self, start: int, stop: int) -> Any:
        """Return columns ``start``, ..., ``stop`` - 1."""
        return self._lines.part(start, stop).T

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        """Return the boundaries of groups of columns of about ``piece_bytes``."""
        return self._lines.cuts(0, piece_bytes)


#: A matrix in a file that is read in pieces, by rows or by columns.
Stored = RowsOfFile | ColumnsOfFile


def dense_source(array: FlatArray, names: Names, y: NDArray[Any] | None) -> Stored:
    """Return the source (data that are read in pieces) of a dense array in a file.

    It is read by rows in C order, and by columns in Fortran order. ``names`` are the names of its
    columns, and ``y`` is the target.
    """
    if len(array.shape) != 2 or min(array.shape) < 1:
        raise ValueError(f"{array.name} has shape {array.shape}; expected (n_samples, n_features)")
    shape = array.shape[::-1] if array.fortran else array.shape
    width = shape[1]

    def read(start: int, stop: int) -> NDArray[Any]:
        """Return the lines start, ..., stop - 1 in stored order, one in each row."""
        return array.read(start * width, stop * width).reshape(stop - start, width)

    lines = DenseLines(shape, array.dtype, read)
    return ColumnsOfFile(lines, names, y) if array.fortran else RowsOfFile(lines, names, y)


def sparse_source(
    path: Path,
    parts: tuple[Any, Any, NDArray[Any]],
    shape: tuple[int, int],
    form: str,
    names: Names,
    y: NDArray[Any] | None,
) -> Stored:
    """Return the source (data that are read in pieces) of a sparse matrix in a file.

    Parameters
    ----------
    path : Path
        The file, for messages.
    parts : (data, indices, indptr)
        Arrays of CSR or CSC; the first two are read by ranges.
    shape : (int, int)
        (n_samples, n_features).
    form : {"csr", "csc"}
        Layout of the parts.
    names : sequence of str, optional
        Names of the columns.
    y : array, optional
        The target.
    """
    if form == "csr":
        return RowsOfFile(SparseLines(path, *parts, shape), names, y)
    return ColumnsOfFile(SparseLines(path, *parts, shape[::-1]), names, y)


def open_npy(path: Path, request: Request) -> Stored:
    """Return the source (data that are read in pieces) of an .npy file.

    The target of the ``request`` is another .npy file, or None.
    """
    y = None if request.target is None else target_from_file(request.target, path)
    return dense_source(FlatArray(path), None, y)


def open_npz(path: Path, request: Request) -> Stored:
    """Return the source (data that are read in pieces) of an .npz file.

    A dense X has the key ``X``. A sparse X has the keys ``data, indices, indptr, shape`` of a CSR
    matrix, or of the layout under the key ``format``, as ``scipy.sparse.save_npz`` writes it. A
    ``data`` of length 1 is the value of every stored entry. The target has the key that the
    ``request`` names (default: ``y``, if present) or is in another .npy file. If there is a key
    ``classes``, its entries are the names of the classes 0, 1, ... of y.
    """
    archive = Archive(path)
    y = stored_target(archive, request, path)
    if "X" in archive:
        array = FlatArray(path, "X")
        array_names = stored_names(archive, array.shape[-1]) if array.shape else None
        return dense_source(array, array_names, y)
    if not all(key in archive for key in SPARSE_KEYS):
        raise ValueError(
            f"{path} holds {', '.join(sorted(archive)) or 'nothing'}; expected X (dense) or "
            f"{', '.join(SPARSE_KEYS)} (sparse)"
        )
    sides = archive["shape"]
    if sides.shape != (2,) or sides.dtype.kind not in "iu":
        raise ValueError(f"{path} is a broken sparse matrix: shape must be two whole numbers")
    n_rows, n_columns = (int(number) for number in sides)
    # The pointers are read now; values and indices are read by ranges later.
    arrays = FlatArray(path, "data"), FlatArray(path, "indices"), archive["indptr"]
    names = stored_names(archive, n_columns)
    return sparse_source(path, arrays, (n_rows, n_columns), sparse_form(archive, path), names, y)
