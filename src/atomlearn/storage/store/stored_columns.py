"""Out-of-core columns: each thread reads, checks and multiplies one chunk of columns at a time."""

from __future__ import annotations

import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core import LIMITS, Array, Block, Columns, DenseBlock, block_of_entries
from atomlearn.storage.store.genotype_block import GenotypeBlock, PackedColumns
from atomlearn.storage.store.store_file import READING, ByteFile, StoreError, as_bytes

#: Columns found in a chunk, numbered within the chunk, and their scores (found, m).
Found = tuple[Columns, Array]
#: A function from the number of a chunk to the columns found in it.
Search = Callable[[int], Found]


@dataclass(slots=True)
class Checks:
    """CRC-32 checksums of chunks of columns; a chunk is verified when it is first read.

    Attributes
    ----------
    sums : (n_files, n_chunks) uint32, optional
        Checksum of each chunk in each file (values, and row numbers if sparse); None if unknown.
    done : (n_chunks,) bool
        Chunks that have been verified.
    """

    sums: NDArray[np.uint32] | None
    done: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        """Mark all chunks as not verified."""
        self.done = np.zeros(0 if self.sums is None else self.sums.shape[1], dtype=bool)

    def check(self, chunk: int, arrays: list[NDArray[Any]], where: object) -> None:
        """Verify the checksum of a chunk once; raise StoreError if it does not match.

        ``arrays`` has the content of the chunk in each file; ``where`` is the path for messages.
        """
        if self.sums is None or self.done[chunk]:
            return
        for sums, array in zip(self.sums, arrays, strict=True):
            if zlib.crc32(as_bytes(array)) != sums[chunk]:
                raise StoreError(
                    f"{where} is damaged: chunk {chunk} does not match its checksum; copy it "
                    "afresh, or convert its source again"
                )
        self.done[chunk] = True


class ColumnsOnDisk(ABC):
    """The matrix X in one or two files, divided into chunks of consecutive columns.

    One read request covers one chunk. All methods are thread-safe.

    Parameters
    ----------
    file : ByteFile
        File of the values.
    n_samples : int
        Number of rows.
    chunks : (n_chunks + 1,) int64
        First column of each chunk, and the end.
    checks : Checks
        Checksums of the chunks.

    Attributes
    ----------
    dtype : dtype
        Type of gathered columns.
    offset : int
        Byte at which the first column begins.
    """

    dtype: np.dtype[Any]
    offset: int = 0
    #: Bytes of a column, if all columns have the same length.
    _column_bytes: int

    def __init__(self, file: ByteFile, n_samples: int, chunks: Columns, checks: Checks) -> None:
        """Store the open file of values, the number of rows, the chunks, and their checksums."""
        self.file = file
        self.n_samples = n_samples
        self.chunks = chunks
        self._checks = checks
        self._buffers = threading.local()

    def look(self, file: ByteFile, start: int, end: int, dtype: Any = np.uint8) -> NDArray[Any]:
        """Return bytes ``start`` to ``end`` of a file as an array of ``dtype``.

        The array is a view of a buffer that this thread overwrites when it reads the file again.
        """
        # Each thread reuses one buffer for each file, so that a pass allocates no memory.
        buffers = vars(self._buffers)
        name = file.path.name
        n_bytes = end - start
        if name not in buffers or buffers[name].size < n_bytes:
            buffers[name] = np.empty(n_bytes, dtype=np.uint8)
        content: NDArray[np.uint8] = buffers[name][:n_bytes]
        file.read_into(start, content)
        entries: NDArray[Any] = content.view(dtype)
        return entries

    def part(self, chunk: int) -> slice:
        """Return the columns of a chunk, numbered in X."""
        return slice(int(self.chunks[chunk]), int(self.chunks[chunk + 1]))

    def byte_range(self, chunk: int) -> tuple[int, int]:
        """Return the byte range (start, end) of a chunk in the file of values."""
        part = self.part(chunk)
        offset = self.offset
        return offset + part.start * self._column_bytes, offset + part.stop * self._column_bytes

    @abstractmethod
    def scores(self, chunk: int, v: Array, squared: bool) -> Array:
        """Return sum_i v_i x_ij, or sum_i v_i x_ij^2 if ``squared``, for the columns j of a chunk.

        ``chunk`` is the number of the chunk. ``v`` is a vector over the samples, as ``vector``
        returns it.
        """

    def vectors(self, V: Array) -> Array:
        """Return V (n_samples, m) by rows, filled up with columns of zeros to whole registers.

        Kernels that compute X'V in one reading of X take it in this form.
        """
        return _kernels.in_lanes(V)[0]

    @abstractmethod
    def many(self, chunk: int, V: Array) -> Array:
        """Return V'x_j for the columns x_j of a chunk, one column per j.

        ``V`` is the result of ``vectors``, which may pad its m vectors; rows beyond m are padding.
        """

    def search(self, V: Array, bounds: Array, affine: tuple[Array, Array] | None) -> Search:
        """Return a function that finds the columns of a chunk whose scores reach a bound.

        The function takes the number of a chunk, and returns the columns j with
        abs(x_j'v_k) >= bounds_k for any k, numbered within the chunk, and their scores (found, m).

        Parameters
        ----------
        V : (n_samples, m) array
            The vectors v_k.
        bounds : (m,) array
            Smallest absolute scores to find, one for each vector.
        affine : (means, factors), optional
            Arrays (n_features,), to search the scores of (x_j - means_j) factors_j instead.
        """
        n_columns = int(self.chunks[-1])
        totals = V.sum(axis=0)
        means, factors = affine or (np.zeros(n_columns), np.ones(n_columns))
        vectors = self.vectors(V)
        count = V.shape[1]

        def found(chunk: int) -> Found:
            """Return the columns of a chunk whose |score| reaches a bound, and their scores."""
            columns = self.part(chunk)
            # ((x_j - means_j) factors_j)'v = (x_j'v - means_j sum_i v_i) factors_j
            Z = self.many(chunk, vectors)[:count].T - np.outer(means[columns], totals)
            Z *= factors[columns, None]
            # The comparison is negated so that scores that are NaN are found.
            keep = np.flatnonzero(~(np.abs(Z) < bounds).all(axis=1))
            return keep, Z[keep]

        return found

    @abstractmethod
    def add(self, chunk: int, weights: Array, out: Array) -> None:
        """Add sum_j w_j x_j over the columns j of a chunk to ``out`` (n_samples,), in place.

        ``weights`` are the coefficients w_j of these columns. ``out`` is an array from ``vector``.
        """

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in memory), in this order."""
        result = np.empty((self.n_samples, columns.size), self.block_type(columns), order="F")
        content = np.empty((1, self._column_bytes), dtype=np.uint8)
        # One column is read and decoded at a time.
        for position, column in enumerate(columns.tolist()):
            self.file.read_into(self.offset + column * self._column_bytes, content)
            single = slice(position, position + 1)
            result[:, single] = self.decoded(content, columns[single], result.dtype)
        return DenseBlock(result)

    def block_type(self, columns: Columns) -> np.dtype[Any]:
        """Return the type of an array that holds the entries of these columns exactly."""
        return self.dtype

    def decoded(self, stored: NDArray[np.uint8], columns: Columns, dtype: Any) -> NDArray[Any]:
        """Return m stored columns, decoded, as an array (n_samples, m) of type ``dtype``.

        ``stored`` has the bytes of one column in each row; ``columns`` are the numbers of the
        columns. Classes that have their own ``gather`` do not need it.
        """
        raise NotImplementedError(type(self).__name__)

    def vector(self, v: Array) -> Array:
        """Return v (n_samples,) in the memory layout that ``scores`` and ``add`` need."""
        return np.array(v, dtype=np.float64)

    @property
    def n_bytes(self) -> int:
        """Bytes of values that one pass reads."""
        return self.byte_range(self.chunks.size - 2)[1] - self.byte_range(0)[0]


class DenseColumns(ColumnsOnDisk):
    """Dense columns of n_samples entries, of any type in ``_kernels.STORED_TYPES``.

    Parameters
    ----------
    file : ByteFile
        File of the values, one column after the other.
    n_samples : int
        Number of rows.
    dtype : dtype
        Type of the values in the file.
    chunks : (n_chunks + 1,) int64
        First column of each chunk, and the end.
    checks : Checks
        Checksums of the chunks.
    """

    def __init__(
        self, file: ByteFile, n_samples: int, dtype: np.dtype[Any], chunks: Columns, checks: Checks
    ) -> None:
        """Store an open file of dense values of type ``dtype``, its chunks, and their checksums."""
        super().__init__(file, n_samples, chunks, checks)
        self.stored = dtype
        self.dtype = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        self._column_bytes = n_samples * dtype.itemsize

    def _read(self, chunk: int) -> NDArray[Any]:
        """Return the values of a chunk, (n_samples, width), after its checksum is verified."""
        start, end = self.byte_range(chunk)
        values = self.look(self.file, start, end, self.stored)
        self._checks.check(chunk, [values], self.file.path)
        return values.reshape(self.n_samples, -1, order="F")

    def scores(self, chunk: int, v: Array, squared: bool) -> Array:
        """Return x_j'v, or (x_j * x_j)'v if ``squared``, of the columns of a chunk."""
        tiles = self._parts(chunk)
        return np.concatenate([_kernels.scores_dense(X, v, squared=squared) for _, X in tiles])

    def _parts(self, chunk: int, width: int = 0) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield (columns within the chunk, their entries) in parts of ``width`` columns.

        With ``width`` 0, parts are so small that a kernel does not start threads: chunks are
        already distributed over threads.
        """
        X = self._read(chunk)
        width = width or max(1, READING.one_thread // self.n_samples)
        for first in range(0, X.shape[1], width):
            part = slice(first, first + width)
            yield part, X[:, part]

    def many(self, chunk: int, V: Array) -> Array:
        """Return V'x_j for the columns x_j of a chunk, one column per j."""
        # The parts are so small that a kernel uses only this thread. A kernel multiplies 8 vectors
        # at once, so that m vectors cost m / 8 times as much as one.
        width = max(1, READING.one_thread // (self.n_samples * max(1, V.shape[1] // 8)))
        tiles = (X.astype(self.dtype, copy=False) for _, X in self._parts(chunk, width))
        return np.hstack([_kernels.many_dense(X, V) for X in tiles])

    def add(self, chunk: int, weights: Array, out: Array) -> None:
        """Add sum_j w_j x_j over the columns j of a chunk, w = ``weights``, to ``out`` in place."""
        for columns, X in self._parts(chunk):
            out += _kernels.predict_dense(X, weights[columns])

    def decoded(self, stored: NDArray[np.uint8], columns: Columns, dtype: Any) -> NDArray[Any]:
        """Return m columns as an array (n_samples, m); ``stored`` has the bytes of one in a row.

        The type is the stored one; the caller converts it. ``columns`` and ``dtype`` are not used.
        """
        return stored.view(self.stored).T


class SparseColumns(ColumnsOnDisk):
    """Sparse columns in CSC layout: values in one file, row numbers in another.

    ``_is_full`` says that most entries are stored, so that gathered columns are dense arrays.

    Parameters
    ----------
    files : (ByteFile, ByteFile)
        Files of the values and of the row numbers.
    n_samples : int
        Number of rows.
    types : (dtype, dtype)
        Types of the values and of the row numbers in the files.
    starts : (n_features + 1,) int64
        The entries of column j are at positions starts[j], ..., starts[j + 1] - 1 of both files.
    chunks : (n_chunks + 1,) int64
        First column of each chunk, and the end.
    checks : Checks
        Checksums of the chunks.
    """

    def __init__(
        self,
        files: tuple[ByteFile, ByteFile],
        n_samples: int,
        types: tuple[np.dtype[Any], np.dtype[Any]],
        starts: Columns,
        chunks: Columns,
        checks: Checks,
    ) -> None:
        """Store the open files of values and of row numbers, with their types and column pointers.

        ``chunks`` has the first column of each chunk and the end; ``checks`` has the checksums.
        """
        super().__init__(files[0], n_samples, chunks, checks)
        self.rows = files[1]
        self.stored, self.row_dtype = types
        self.starts = starts
        self.dtype = np.dtype(np.float64 if self.stored == np.float64 else np.float32)
        entries = n_samples * (starts.size - 1)
        self._is_full = int(starts[-1]) >= LIMITS.dense_from * entries

    def byte_range(self, chunk: int) -> tuple[int, int]:
        """Return the byte range (start, end) of a chunk in the file of values."""
        itemsize = self.stored.itemsize
        columns = self.part(chunk)
        return int(self.starts[columns.start]) * itemsize, int(self.starts[columns.stop]) * itemsize

    def _read(
        self, part: slice, chunk: int | None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the values, row numbers and column pointers (CSC) of the columns ``part``.

        Row numbers are always checked. The checksum is checked only if ``part`` has the columns of
        a whole chunk, whose number is ``chunk``; else ``chunk`` is None.
        """
        first = part.start
        end = part.stop
        # The range of entries, and the bytes of an entry in each file.
        begin = int(self.starts[first])
        stop = int(self.starts[end])
        value_bytes = self.stored.itemsize
        row_bytes = self.row_dtype.itemsize
        values = self.look(self.file, begin * value_bytes, stop * value_bytes, self.stored)
        rows = self.look(self.rows, begin * row_bytes, stop * row_bytes, self.row_dtype)
        if chunk is not None:
            self._checks.check(chunk, [values, rows], self.file.path.parent)
        pointers = (self.starts[first : end + 1] - begin).astype(self.row_dtype)
        # Row numbers are checked in every pass, because the kernels index memory with them.
        fault = _kernels.sparse_fault(rows, pointers, self.n_samples)
        if fault:
            raise StoreError(
                f"{self.rows.path} is broken: {fault} in columns {first} "
                f"to {end - 1}; copy it afresh, or convert its source again"
            )
        if self.stored != self.dtype:
            values = values.astype(self.dtype)
        return values, rows, pointers

    def scores(self, chunk: int, v: Array, squared: bool) -> Array:
        """Return x_j'v, or (x_j * x_j)'v if ``squared``, of the columns of a chunk."""
        arrays = self._read(self.part(chunk), chunk)
        return _kernels.sparse_dots(*arrays, v, squared)

    def many(self, chunk: int, V: Array) -> Array:
        """Return V'x_j for the columns x_j of a chunk."""
        arrays = self._read(self.part(chunk), chunk)
        return _kernels.many_csc(*arrays, V)

    def add(self, chunk: int, weights: Array, out: Array) -> None:
        """Add sum_j w_j x_j over the columns j of a chunk, w = ``weights``, to ``out`` in place."""
        arrays = self._read(self.part(chunk), chunk)
        out += _kernels.sparse_sums(*arrays, weights, self.n_samples)

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in memory), in this order.

        They are read in the order of the file, which is faster.
        """
        # Where the entries of each column go in the block.
        lengths = np.diff(self.starts)[columns] if columns.size else columns
        pointers = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        total = int(pointers[-1])
        data = np.empty(total)
        indices = np.empty(total, dtype=self.row_dtype)
        order = np.argsort(columns, kind="stable")
        for position in order.tolist():
            column = int(columns[position])
            # None: a single column is no whole chunk, so it has no checksum.
            values, rows, _ = self._read(slice(column, column + 1), None)
            target = slice(int(pointers[position]), int(pointers[position + 1]))
            data[target] = values
            indices[target] = rows
        return block_of_entries((data, indices, pointers), self.n_samples, self._is_full)


class GenotypeColumns(ColumnsOnDisk):
    """Genotypes in PLINK's two-bit code; missing entries are imputed with the mean of their column.

    A column without any known genotype has mean 0.

    Parameters
    ----------
    file : ByteFile
        File of the packed genotypes, one column after the other.
    offset : int
        Number of bytes before the first column.
    n_samples : int
        Number of rows.
    chunks : (n_chunks + 1,) int64
        First column of each chunk, and the end.
    checks : Checks
        Checksums of the chunks.

    Attributes
    ----------
    counts : (n_features, 2) int64
        Copies of the counted allele and number of missing genotypes of each column.
    means : (n_features,) array
        Mean of the known genotypes of each column.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self, file: ByteFile, offset: int, n_samples: int, chunks: Columns, checks: Checks
    ) -> None:
        """Store an open file of packed genotypes, of which the first ``offset`` bytes are a header.

        The counts and means are 0 until ``set_counts`` sets them.
        """
        super().__init__(file, n_samples, chunks, checks)
        self.offset = offset
        self._column_bytes = (n_samples + 3) // 4
        self.counts: NDArray[np.int64] = np.zeros((int(chunks[-1]), 2), dtype=np.int64)
        self.means: Array = np.zeros(int(chunks[-1]))

    def set_counts(self, counts: NDArray[np.int64]) -> None:
        """Set the allele counts and the means of all columns.

        ``counts`` (n_features, 2) has, for each column, the sum of allele copies over known
        genotypes, and the number of missing genotypes.
        """
        self.counts = counts
        present = self.n_samples - counts[:, 1]
        self.means = np.divide(counts[:, 0], present, out=np.zeros(present.size), where=present > 0)

    def vector(self, v: Array) -> Array:
        """Return v (n_samples,) padded with zeros to whole bytes of four genotypes."""
        return _kernels.padded(v)

    def _read(self, chunk: int) -> tuple[NDArray[np.uint8], Array]:
        """Return the packed genotypes of a chunk, with a verified checksum, and its means."""
        start, end = self.byte_range(chunk)
        packed = self.look(self.file, start, end)
        self._checks.check(chunk, [packed], self.file.path)
        return packed, self.means[self.part(chunk)]

    def count(self, chunk: int) -> None:
        """Write the allele counts of the columns of a chunk to ``counts``; see ``set_counts``."""
        packed, means = self._read(chunk)
        columns = self.part(chunk)
        self.counts[columns] = _kernels.count_genotypes(packed, self.n_samples, means.size)

    def scores(self, chunk: int, v: Array, squared: bool) -> Array:
        """Return x_j'v, or (x_j * x_j)'v if ``squared``, of the columns of a chunk."""
        packed, means = self._read(chunk)
        return _kernels.scores_genotypes(packed, self.n_samples, means, v, squared)

    def vectors(self, V: Array) -> Array:
        """Return V (n_samples, m) as m padded rows, see ``vector``."""
        return np.array([self.vector(v) for v in V.T])

    def many(self, chunk: int, V: Array) -> Array:
        """Return V'x_j for the columns x_j of a chunk, multiplied one vector after the other.

        The packed bytes stay in the processor's cache; as float64 they would be 32 times larger.
        """
        packed, means = self._read(chunk)
        arguments = packed, self.n_samples, means
        return np.array([_kernels.scores_genotypes(*arguments, v, False) for v in V])

    def search(self, V: Array, bounds: Array, affine: tuple[Array, Array] | None) -> Search:
        """Return a function that finds the columns of a chunk whose scores reach a bound.

        The function takes the number of a chunk. It returns the columns j with
        abs(x_j'v_k) >= bounds_k for any column v_k of V (n_samples, m), and their scores
        (found, m). ``bounds`` is (m,). ``affine`` is (means, factors), to search the scores of
        (x_j - means_j) factors_j instead. A kernel for packed genotypes does the work.
        """
        n_columns = self.means.size
        centers, factors = affine or (np.zeros(n_columns), np.ones(n_columns))
        search = _kernels.genotype_search(V, bounds)

        def found(chunk: int) -> Found:
            """Return the columns of a chunk whose |score| reaches a bound, and their scores.

            ``search`` computes them from the packed genotypes and their means, and from the copies
            of the allele, the center and the factor of each column.
            """
            packed, means = self._read(chunk)
            columns = self.part(chunk)
            return search(
                packed, means, self.counts[columns, 0], centers[columns], factors[columns]
            )

        return found

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in memory), in this order.

        They stay packed, two bits for a genotype, if there are many samples.
        """
        if self.n_samples < READING.packed_from:
            return super().gather(columns)
        packed = np.empty((columns.size, self._column_bytes), dtype=np.uint8)
        for position, column in enumerate(columns.tolist()):
            self.file.read_into(self.offset + column * self._column_bytes, packed[position])
        means = self.means[columns]
        ones = np.ones(columns.size)
        return GenotypeBlock(
            PackedColumns(packed), self.n_samples, means, ones, np.zeros(columns.size)
        )

    def add(self, chunk: int, weights: Array, out: Array) -> None:
        """Add sum_j w_j x_j over the columns j of a chunk, w = ``weights``, to ``out`` in place."""
        packed, means = self._read(chunk)
        _kernels.add_genotypes(packed, self.n_samples, means, weights, out)

    def block_type(self, columns: Columns) -> np.dtype[Any]:
        """Return float32 if it is exact, that is, if none of the columns has a missing entry."""
        return np.dtype(np.float64 if self.counts[columns, 1].any() else np.float32)

    def decoded(self, stored: NDArray[np.uint8], columns: Columns, dtype: Any) -> NDArray[Any]:
        """Return m columns as an array (n_samples, m) of type ``dtype``.

        ``stored`` has the bytes of one column in each row. Missing genotypes become the means of
        the columns numbered ``columns``.
        """
        packed = stored.ravel()
        return _kernels.gather_genotypes(packed, self.n_samples, self.means[columns], dtype)


def cut(n_features: int, column_bytes: int, chunk_bytes: int) -> Columns:
    """Divide columns into chunks of at most ``chunk_bytes`` bytes, but at least one column each.

    ``column_bytes`` is the size of a column. Returns the first column of each chunk, followed by
    ``n_features``.
    """
    width = max(1, chunk_bytes // max(column_bytes, 1))
    return np.append(np.arange(0, n_features, width, dtype=np.int64), n_features)
