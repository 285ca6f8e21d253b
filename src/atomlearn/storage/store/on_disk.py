"""Out-of-core designs, which stream X from files at the speed of the disk or the page cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    Design,
    FoundScores,
    Scores,
    Traits,
)
from atomlearn.storage.checks import existing_columns, one_weight_each
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.store_file import READING
from atomlearn.storage.store.stored_columns import (
    Checks,
    ColumnsOnDisk,
    DenseColumns,
    GenotypeColumns,
    SparseColumns,
)


class StreamedDesign(Design):
    """Base class of out-of-core designs: column stores and PLINK files.

    Each thread reads a chunk of columns into a buffer, multiplies it, and continues with the next
    chunk. A pass over X therefore needs only a few MB in addition to the vectors. Every second pass
    visits the chunks in reverse order, because those read last may still be in the page cache.

    Parameters
    ----------
    columns : ColumnsOnDisk
        The columns, which reads and multiplies one chunk at a time.
    n_features : int
        Number of columns.
    path : Path
        The file or folder with the data.
    """

    def __init__(self, columns: ColumnsOnDisk, n_features: int, path: Path) -> None:
        """Store the ``columns`` of the file or folder ``path``, ``n_features`` in number."""
        self.path = path
        self._columns = columns
        self.shape = (columns.n_samples, n_features)
        self._backwards = False
        self.dtype = columns.dtype

    @property
    def n_bytes(self) -> int:
        """Bytes of values that one pass over X reads."""
        return self._columns.n_bytes

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns, or None; the same as ``names``."""
        return self.names

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns."""
        return ArrayScores(self._scores(v, squared=False))

    traits = Traits(reads_at_once=True)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_samples, m), by one read of the file."""
        columns = self._columns
        Z = np.empty((V.shape[1], self.shape[1]))
        vectors = columns.vectors(V)

        def work(chunk: int) -> None:
            """Write the scores of the columns of one chunk to Z, without the rows of padding."""
            Z[:, columns.part(chunk)] = columns.many(chunk, vectors)[: V.shape[1]]

        self._pass(work)
        return [ArrayScores(z) for z in Z]

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Return the large scores of each column of V, by one read of the file.

        Parameters
        ----------
        V : (n_samples, m) array
            The vectors v_k.
        bounds : (m,) array
            A column j is found if abs(x_j'v_k) >= bounds_k for any k.
        affine : (means, factors), optional
            Arrays (n_features,), to search the columns (x_j - means_j) factors_j instead.

        Returns
        -------
        list of m FoundScores
            The scores of the found columns for each v_k.
        """
        # Each chunk has its own place in ``answers``, because threads work at the same time.
        columns = self._columns
        search = columns.search(V, bounds, affine)
        answers: list[Any] = [None] * (columns.chunks.size - 1)

        def work(chunk: int) -> None:
            """Store the columns found in one chunk, numbered in X, and their scores."""
            positions, values = search(chunk)
            answers[chunk] = positions + columns.chunks[chunk], values

        self._pass(work)
        found_columns, values = (np.concatenate(arrays) for arrays in zip(*answers, strict=True))
        return [
            FoundScores(found_columns, np.ascontiguousarray(z), float(bound), self.shape[1])
            for z, bound in zip(values.T, bounds, strict=True)
        ]

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights``."""
        return self._scores(weights, squared=True)

    def _scores(self, v: Array, squared: bool) -> Array:
        """Return X'v, or (X * X)'v with squared entries if ``squared``, chunk by chunk."""
        z = np.empty(self.shape[1])
        columns = self._columns
        vector = columns.vector(v)

        def work(chunk: int) -> None:
            """Write the scores of the columns of one chunk to z."""
            z[columns.part(chunk)] = columns.scores(chunk, vector, squared)

        self._pass(work)
        return z

    def _pass(self, work: Any) -> None:
        """Call ``work(chunk)`` for the number of every chunk, on several threads.

        Each call visits the chunks in the order opposite to the last one.
        """
        columns = self._columns
        n_chunks = columns.chunks.size - 1
        order = range(n_chunks - 1, -1, -1) if self._backwards else range(n_chunks)
        self._backwards = not self._backwards
        operations = READING.operations_per_byte * columns.n_bytes
        _kernels.share_out(lambda place: work(order[place]), n_chunks, operations)

    def predict(self, weights: Array) -> Array:
        """Return the product X w (n_samples,) for the coefficients w = ``weights`` (n_features,).

        Chunks of columns whose coefficients are all zero are not read. The other chunks are divided
        into fixed groups, one for each thread, and each group is summed in order. The result is
        therefore reproducible for a given number of threads.
        """
        columns = self._columns
        weights = one_weight_each(weights, self.shape[1])
        # Chunks with a nonzero coefficient.
        chunks = np.unique(
            np.searchsorted(columns.chunks, np.flatnonzero(weights), side="right") - 1
        )
        n_pieces = min(_kernels.max_threads(), max(chunks.size, 1))
        totals = [columns.vector(np.zeros(self.shape[0])) for _ in range(n_pieces)]
        pieces = np.array_split(chunks, n_pieces)

        def work(piece: int) -> None:
            """Add the products of the chunks of one piece to the piece's total."""
            for chunk in pieces[piece].tolist():
                chunk_weights = np.ascontiguousarray(weights[columns.part(chunk)])
                columns.add(chunk, chunk_weights, totals[piece])

        _kernels.share_out(work, n_pieces, READING.operations_per_byte * columns.n_bytes)
        result: Array = np.sum([total[: self.shape[0]] for total in totals], axis=0)
        return result

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in memory)."""
        columns = existing_columns(columns, self.shape[1])
        return self._columns.gather(columns)


class OnDisk(StreamedDesign):
    """An out-of-core design: X is a column store written by ``atomlearn convert``.

    X may be larger than memory. Scores z = X'v are computed chunk by chunk.

    Parameters
    ----------
    path : folder
        The store. Values are float64, float32, float16 or int8, dense or only those that are not
        zero, or genotypes of two bits (missing ones count as the mean of their column).

    Attributes
    ----------
    names : list of str, or None
        Names of the columns.
    target : (n_samples,) ndarray, or None
        The target in the source of the store.

    Raises
    ------
    StoreError
        If the store is broken or of another version. Sizes and checksums of the small files are
        checked at once, the checksum of a chunk of columns when it is first read, and row numbers
        in every pass. ``verify`` reads and checks everything.

    Notes
    -----
    A pass reads all values once, on as many threads as OMP_NUM_THREADS allows, and keeps none of
    them: it takes a few MB in addition to vectors over samples and columns (one column for each
    thread, if columns are longer). Sums are float64. ``gather`` reads columns one by one.

    Examples
    --------
    >>> from atomlearn.designs import OnDisk
    >>> design = OnDisk("study.store")  # doctest: +SKIP
    >>> design.shape, design.names  # doctest: +SKIP
    ((500, 10000000), None)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the store ``path`` and check its small files; no column is read yet."""
        folder = Path(path)
        self.manifest = manifest = store.read_manifest(folder)
        LIMITS.check_columns(manifest.n_features)
        chunks, sums = store.read_chunks(folder, manifest)
        checks = Checks(sums)
        # The layout decides how chunks are read and multiplied.
        values = store.ByteFile(folder / store.VALUES)
        n_samples = manifest.n_samples
        columns: ColumnsOnDisk
        if manifest.layout == "genotypes":
            genotypes = GenotypeColumns(values, 0, n_samples, chunks, checks)
            genotypes.set_counts(store.read_counts(folder, manifest))
            columns = genotypes
        elif manifest.layout == "dense":
            columns = DenseColumns(values, n_samples, np.dtype(manifest.dtype), chunks, checks)
        else:
            columns = SparseColumns(
                (values, store.ByteFile(folder / store.ROWS)),
                n_samples,
                (np.dtype(manifest.dtype), np.dtype(manifest.row_dtype)),
                store.read_starts(folder, manifest),
                chunks,
                checks,
            )
        super().__init__(columns, manifest.n_features, folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to open the store again: a pickle has the path, not the data."""
        return OnDisk, (os.path.abspath(self.path),)

    def __repr__(self) -> str:
        """Return a text with path, shape, layout and type."""
        manifest = self.manifest
        return f"OnDisk({str(self.path)!r}: {self.shape}, {manifest.layout} {manifest.dtype})"

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, or None."""
        return store.read_names(self.path, self.manifest)

    @property
    def plans(self) -> list[Any]:
        """How the columns of a table were encoded (plans), as JSON objects; else empty."""
        return store.read_plans(self.path, self.manifest)

    @property
    def symbols(self) -> dict[str, str]:
        """The gene symbols by names of columns, without columns that have none."""
        symbols = store.read_symbols(self.path, self.manifest)
        pairs = zip(self.names or (), symbols, strict=False)
        return {name: symbol for name, symbol in pairs if symbol}

    @property
    def target(self) -> NDArray[Any] | None:
        """The target in the source, or None."""
        return store.read_target(self.path, self.manifest)

    def verify(self) -> None:
        """Read all files and verify their checksums; raise StoreError if one does not match."""
        # A pass checks every chunk that is not marked as checked; the properties check their files.
        self._columns._checks.done[:] = False
        self._scores(np.zeros(self.shape[0]), squared=False)
        _ = self.names, self.plans, self.symbols, self.target
