"""X in the chunks of a Dask collection: products are formed where each chunk lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.entries import existing_columns, one_weight_each
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores
from atomlearn.storage.spread import chunks as pieces
from atomlearn.storage.spread.cluster import Cluster, Tasks, named, parts_of, tree


class Dask(Design):
    """z = X'v for a dask.array or dask.dataframe: v travels to the chunks, sums come back.

    Parameters
    ----------
    X : dask.array (n_samples, n_features) or dask.dataframe
        In chunks of rows, of columns or of both; chunks are NumPy arrays, SciPy sparse arrays or
        tables. float32 and float64 stay as they are; integers and booleans become float32 where
        that is exact, else float64.
    client : distributed.Client, optional
        The cluster. Default: Dask's current scheduler, which is that of the last Client made, or
        threads of this process where there is none.
    persist : bool, default=True
        Keep the chunks in the workers' memory from the first pass on. False makes them again
        for each pass: for data larger than all workers' memory.
    whole : int, default=2**20
        Scores of up to so many columns are sent here after each pass (8 bytes each). Of more
        columns the scores stay on the workers, and only those that are asked for travel: the
        best ones, and those of the active columns.

    Attributes
    ----------
    feature_names : list of str, or None
        The columns of a table.

    Raises
    ------
    ValueError, TypeError
        At once for what is not a table of numbers; in the first pass for entries that are not
        finite, with their row and column.
    LostDataError
        In a pass, where a worker was lost with chunks that cannot be made again (data put there by
        ``client.scatter``), or too many workers were lost over the same chunk.

    Notes
    -----
    A pass sends v to the chunks (8 n_samples bytes for each column of chunks), adds partial sums
    of each column of chunks up in a tree of fixed order, and sends 8 n_features bytes back, or
    next to nothing beyond ``whole``. Sums are float64. Workers need atomlearn installed. A worker
    that is lost costs the time to make its chunks again.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from atomlearn.designs import Dask
    >>> design = Dask(da.from_array(np.eye(4), chunks=(2, 4)))
    >>> design.scores(np.array([1.0, 2.0, 3.0, 4.0])).top(1)
    (array([3]), array([4.]))
    """

    def __init__(
        self,
        X: Any,
        *,
        client: Any = None,
        persist: bool = True,
        whole: int = 2**20,
    ) -> None:
        if not pieces.is_dask(X):
            raise TypeError(
                f"Dask needs a dask.array or dask.dataframe, got {type(X).__name__}; "
                "dask.array.from_array(X, chunks=...) makes one"
            )
        self._cluster = Cluster(client)
        self._persist, self._whole = bool(persist), int(whole)
        grid = self._cluster.guard(lambda: pieces.grid_of(X), None)
        self._shape: tuple[int, int] = grid.shape
        self._dtype: np.dtype[Any] = grid.dtype
        self._names = grid.names
        self._rows, self._columns = grid.rows, grid.columns
        self._chunks = self._cluster.chunks(grid)

    def __repr__(self) -> str:
        rows, columns = self.n_chunks
        return f"Dask({self._shape}, {self._dtype}, {rows} x {columns} chunks)"

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def names(self) -> list[str] | None:
        """The columns of a table, None for arrays."""
        return self._names

    @property
    def feature_names(self) -> list[str] | None:
        """The same as ``names``."""
        return self._names

    @property
    def n_chunks(self) -> tuple[int, int]:
        """How many chunks there are along rows and along columns."""
        return self._rows.size - 1, self._columns.size - 1

    def scores(self, v: Array) -> Scores:
        return self.scores_many(v[:, None])[0]

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column: one pass."""
        weights = np.ones(self._shape[0]) if curvature is None else curvature
        return self._scores(weights[:, None], True)[0].full()

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of all vectors in one round: V travels as a whole."""
        return self._scores(V, False)

    def _scores(self, V: Array, squared: bool) -> Sequence[Scores]:
        sent = {i: V[part] for i, part in enumerate(parts_of(self._rows))}
        tasks, sums = self._over_chunks(pieces.scores_of, sent, 0, squared)
        held = self._chunks_for_a_pass()
        if self._shape[1] <= self._whole:
            Z = np.concatenate(self._cluster.compute(tasks, sums, held), axis=1)
            return [ArrayScores(z) for z in Z]
        name, count = named("row"), len(sums)
        each = [(name, k, j) for k in range(V.shape[1]) for j in range(count)]
        tasks |= {key: (pieces.row_of, sums[key[2]], key[1]) for key in each}
        kept = self._cluster.keep(tasks, each, held)
        by_vector = [kept[start : start + count] for start in range(0, len(kept), count)]
        return [ChunkScores(self._cluster, parts, self._columns) for parts in by_vector]

    def _over_chunks(
        self, call: Any, sent: dict[int, Any], axis: int, *more: Any
    ) -> tuple[Tasks, list[Any]]:
        """Return tasks call(chunk, what is sent to it, *more), and the keys of their sums.

        sent : one entry a row of chunks (axis 0) or column of chunks (axis 1) in use; sums run
        over these.
        """
        name, grid = named(call.__name__), self.n_chunks
        tasks: Tasks = {(f"send-{name}", place): part for place, part in sent.items()}
        ends: list[Any] = []
        for other in range(grid[1 - axis]):
            keys: list[Any] = []
            for place in sent:
                i, j = (other, place) if axis else (place, other)
                keys.append((f"part-{name}", i, j))
                chunk = self._chunks[i * grid[1] + j].key
                tasks[keys[-1]] = (call, chunk, (f"send-{name}", place), *more)
            ends.append(tree(tasks, f"sum-{name}", (other,), keys, pieces.add_up))
        return tasks, ends

    def predict(self, weights: Array) -> Array:
        """Return X w: one pass, which leaves out the chunks where w is zero."""
        weights = one_weight_each(weights, self._shape[1])
        parts = enumerate(parts_of(self._columns))
        used = {j: weights[part] for j, part in parts if weights[part].any()}
        if not used:
            return np.zeros(self._shape[0])
        tasks, ends = self._over_chunks(pieces.prediction_of, used, 1)
        return np.concatenate(self._cluster.compute(tasks, ends, self._chunks_for_a_pass()))

    def gather(self, columns: Columns) -> Block:
        columns = existing_columns(columns, self._shape[1])
        if not columns.size:
            return DenseBlock(np.zeros((self._shape[0], 0), dtype=self._dtype))
        owner = np.searchsorted(self._columns, columns, side="right") - 1
        owners = np.unique(owner).tolist()
        tasks: Tasks = {}
        ends: list[Any] = []
        for j in owners:
            # One column of chunks after the other: nothing is added up.
            own = {j: columns[owner == j] - self._columns[j]}
            some, keys = self._over_chunks(pieces.columns_of, own, 1)
            tasks, ends = tasks | some, ends + keys
        blocks, n_rows = self._cluster.compute(tasks, ends, self._chunks), self.n_chunks[0]
        stacks = [blocks[start : start + n_rows] for start in range(0, len(blocks), n_rows)]
        places = [np.flatnonzero(owner == j) for j in owners]
        return _put_together(stacks, places, self._shape[0], self._dtype)

    def _chunks_for_a_pass(self) -> list[Any]:
        """Return the chunks, from the first call on in the workers' memory if they are to stay."""
        chunks = self._chunks
        if self._persist:
            self._chunks = self._cluster.guard(lambda: self._cluster.persist(chunks), chunks)
            self._persist = False
        return self._chunks


class ChunkScores(Scores):
    """z in pieces on the workers, of which only what is asked for travels."""

    def __init__(self, cluster: Cluster, parts: list[Any], starts: Columns) -> None:
        self._cluster, self._parts, self._starts = cluster, parts, starts
        self._best: tuple[Columns, Array] = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._z: Array | None = None

    @property
    def n_columns(self) -> int:
        return int(self._starts[-1])

    def top(self, count: int) -> tuple[Columns, Array]:
        count = max(0, min(int(count), self.n_columns))
        if self._z is not None:
            return ArrayScores(self._z).top(count)
        if count > self._best[0].size:
            name = named("best")
            tasks: Tasks = {}
            firsts: list[Any] = []
            for part, first in zip(self._parts, self._starts[:-1].tolist(), strict=True):
                key = (f"part-{name}", first)
                tasks[key] = (pieces.best_of, part.key, first, count)
                firsts.append(key)
            end = tree(tasks, name, (), firsts, pieces.best_of_all, count)
            columns, values = self._cluster.compute(tasks, [end], self._parts)[0]
            self._best = pieces.aligned(columns), pieces.aligned(values)
        return self._best[0][:count], self._best[1][:count]

    def at(self, columns: Columns) -> Array:
        columns = np.asarray(columns, dtype=np.int64)
        if self._z is not None:
            return self._z[columns]
        name = named("at")
        owner = np.searchsorted(self._starts, columns, side="right") - 1
        owners = np.unique(owner).tolist()
        within = columns - self._starts[owner]
        tasks: Tasks = {
            (name, j): (pieces.entries_of, self._parts[j].key, within[owner == j]) for j in owners
        }
        values = np.empty(columns.size)
        found = self._cluster.compute(tasks, list(tasks), self._parts)
        for j, part in zip(owners, found, strict=True):
            values[owner == j] = part
        return values

    def full(self) -> Array:
        """Return all of z, which is sent here once and kept; read-only use."""
        if self._z is None:
            ends = [part.key for part in self._parts]
            self._z = np.concatenate(self._cluster.compute({}, ends, self._parts))
        return self._z


def _put_together(
    stacks: list[list[Block]], places: list[Columns], n_samples: int, dtype: np.dtype[Any]
) -> Block:
    """Return columns whose pieces came from chunks: stacks[k] are those of places[k], by rows."""
    size = sum(place.size for place in places)
    blocks = [block for stack in stacks for block in stack]
    if all(isinstance(block, DenseBlock) and block.nonzeros is None for block in blocks):
        result = np.empty((n_samples, size), dtype=dtype, order="F")
        for stack, place in zip(stacks, places, strict=True):
            start = 0
            for block in stack:
                stop = start + block.shape[0]
                result[start:stop, place] = block.dense()
                start = stop
        return DenseBlock(result)
    joined = [sp.vstack([_as_sparse(block) for block in stack], "csc") for stack in stacks]
    order = np.argsort(np.concatenate(places), kind="stable")
    whole = SparseDesign(sp.hstack(joined, "csc").astype(np.float64))
    return whole.gather(order.astype(np.int64))


def _as_sparse(block: Block) -> Any:
    X = block.stored_sparse()
    if X is None:
        return sp.csc_array(block.dense())
    parts = [pieces.aligned(part) for part in (X.data, X.indices, X.indptr)]
    return sp.csc_array((parts[0], parts[1], parts[2]), shape=X.shape)
