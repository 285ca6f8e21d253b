"""X in the chunks of a Dask collection: products are formed where each chunk lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.convert import existing_columns, one_weight_each
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores
from atomlearn.core.problem.problem import Problem
from atomlearn.storage.spread import chunks as pieces
from atomlearn.storage.spread.asked import Asked
from atomlearn.storage.spread.rows import Rows, Sums, size_of
from atomlearn.storage.spread.rows import added as added_sums
from atomlearn.storage.spread.summed import problem_of_sums
from atomlearn.storage.spread.waiting import LostDataError, awaited, current_client, guarded

#: Sums are put together from so many at a time.
FAN_IN = 8


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
    of each column of chunks up in a tree of fixed order, and sends 8 n_features bytes back. Sums
    are float64. Workers need atomlearn installed. A worker that is lost costs the time to make its
    chunks again.

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
    ) -> None:
        if not pieces.is_dask(X):
            raise TypeError(
                f"Dask needs a dask.array or dask.dataframe, got {type(X).__name__}; "
                "dask.array.from_array(X, chunks=...) makes one"
            )
        self._client, self._persist = client, bool(persist)
        grid = guarded(lambda: pieces.grid_of(X))
        self._shape: tuple[int, int] = grid.shape
        self._dtype: np.dtype[Any] = grid.dtype
        self._names = grid.names
        self._rows, self._columns = _parts(grid.rows), _parts(grid.columns)
        # (n_row_chunks, n_column_chunks) tasks that make and check a chunk each.
        self._chunks = np.empty_like(grid.chunks)
        for i, row in enumerate(self._rows):
            for j, column in enumerate(self._columns):
                shape = row.stop - row.start, column.stop - column.start
                given = grid.chunks[i, j], grid.dtype, shape, row.start, column.start
                self._chunks[i, j] = task(pieces.held_chunk, *given)

        self._sent = [0, 0]

    def __getstate__(self) -> dict[str, Any]:
        # A connection does not travel; where a copy arrives, the current scheduler is asked.
        return self.__dict__ | {"_client": None}

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
    def rows_of_chunks(self) -> list[slice]:
        """The rows of each row of chunks."""
        return self._rows

    @property
    def n_chunks(self) -> tuple[int, int]:
        """How many chunks there are along rows and along columns."""
        return len(self._rows), len(self._columns)

    @property
    def sent(self) -> tuple[int, int]:
        return self._sent[0], self._sent[1]

    def summed(self, problem: Problem) -> Problem | None:
        """Return the problem over sums, where rows are cut; over columns alone none are needed."""
        if len(self._rows) == 1:
            return None
        heaviest = float(problem.weight.max())
        return problem_of_sums(problem, lambda: AskedChunks(self, problem), heaviest)

    def scores(self, v: Array) -> Scores:
        return self.scores_many(v[:, None])[0]

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of all vectors in one round: V travels as a whole."""
        return [ArrayScores(z) for z in self._summed(pieces.scores_of, V)]

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column: one pass."""
        weights = np.ones(self._shape[0]) if curvature is None else curvature
        return self._summed(pieces.norms_of_chunk, weights)

    def _summed(self, call: Any, v: Array) -> Array:
        """Return the sums over rows of call(chunk, its part of v), column after column."""
        sent = [sent_once(v[part]) for part in self._rows]
        sums = [
            added([task(call, *pair) for pair in zip(column, sent, strict=True)])
            for column in self.chunks_for_a_pass().T
        ]
        return np.concatenate(self.compute(sums, v.nbytes // len(self._rows)), axis=-1)

    def predict(self, weights: Array) -> Array:
        """Return X w: one pass, which leaves out the chunks where w is zero."""
        weights = one_weight_each(weights, self._shape[1])
        used = [j for j, part in enumerate(self._columns) if weights[part].any()]
        if not used:
            return np.zeros(self._shape[0])
        sent = [sent_once(weights[self._columns[j]]) for j in used]
        sums = [
            added([task(pieces.prediction_of, *pair) for pair in zip(row, sent, strict=True)])
            for row in self.chunks_for_a_pass()[:, used]
        ]
        return np.concatenate(self.compute(sums, weights.nbytes))

    def gather(self, columns: Columns) -> Block:
        columns = existing_columns(columns, self._shape[1])
        if not columns.size:
            return DenseBlock(np.zeros((self._shape[0], 0), dtype=self._dtype))
        tasks, order = self.columns_of(columns)
        found = self.compute(tasks.ravel().tolist(), columns.nbytes)
        stacks = [found[j :: tasks.shape[1]] for j in range(tasks.shape[1])]
        if any(is_sparse(piece) for piece in found):
            whole = sp.hstack([sp.vstack(stack, "csc") for stack in stacks], "csc")
            return SparseDesign(whole.astype(np.float64)).gather(order)
        array = np.hstack([np.vstack(stack) for stack in stacks])
        return DenseBlock(np.asfortranarray(array[:, order]))

    def columns_of(self, columns: Columns) -> tuple[NDArray[Any], Columns]:
        """Return tasks for the columns in use, chunk by chunk, and where each one stands there."""
        starts = np.array([part.start for part in self._columns])
        owner = np.searchsorted(starts, columns, side="right") - 1
        used = np.unique(owner)
        tasks = np.empty((len(self._rows), used.size), dtype=object)
        for place, j in enumerate(used):
            within = sent_once(columns[owner == j] - starts[j])
            tasks[:, place] = [
                task(pieces.chunk_columns, chunk, within) for chunk in self._chunks[:, j]
            ]
        return tasks, np.argsort(np.argsort(owner, kind="stable"), kind="stable")

    def chunks_for_a_pass(self) -> NDArray[Any]:
        """Return the chunks, from the first call on in the workers' memory if they are to stay."""
        if self._persist:
            self._chunks.ravel()[:] = self.kept(self._chunks.ravel().tolist())
            self._persist = False
        return self._chunks

    def kept(self, tasks: list[Any]) -> list[Any]:
        """Return the tasks with their results in the workers' memory, where they stay."""
        import dask

        if self._client is None:
            return guarded(lambda: list(dask.persist(*tasks)))
        return guarded(lambda: list(self._client.persist(tasks)))

    def _missing(self, client: Any) -> str:
        """Return which chunks of X no worker has."""
        holders = client.who_has()
        lost = [
            f"rows {row.start} to {row.stop}, columns {column.start} to {column.stop}"
            for i, row in enumerate(self._rows)
            for j, column in enumerate(self._columns)
            if not holders.get(self._chunks[i, j].key)
        ]
        return f"Of {self._chunks.size} chunks of X {len(lost)} are on no worker: {lost[:3]}"

    def compute(self, tasks: list[Any], sent: int) -> list[Any]:
        """Return the results of tasks, in their order; ``sent`` : bytes that go to each chunk."""
        import dask

        client = self._client or current_client()
        if client is None:
            found = guarded(lambda: list(dask.compute(*tasks)))
        else:
            try:
                found = guarded(lambda: awaited(client, client.compute(tasks)))
            except LostDataError as error:
                raise LostDataError(f"{error}. {self._missing(client)}") from error
        self._sent[0] += 1
        # A partial sum of each row of chunks is as large as the whole.
        self._sent[1] += len(self._rows) * (sent + sum(map(size_of, found)))
        return found


def _parts(ends: Columns) -> list[slice]:
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def task(call: Callable[..., Any], *given: Any) -> Any:
    """Return a call to be made by a worker, of other tasks among what is given."""
    from dask import delayed

    return delayed(call, pure=False)(*given)


def sent_once(array: object) -> Any:
    """Return it as a task, so that it is not sent for each of the tasks that use it."""
    from dask import delayed

    return delayed(array, pure=False, traverse=False)


def added(tasks: list[Any], add: Callable[[Any], Any] = sum) -> Any:
    """Return the sum of results, some at a time in this order: the same wherever it is formed."""
    while len(tasks) > 1:
        groups = [tasks[start : start + FAN_IN] for start in range(0, len(tasks), FAN_IN)]
        tasks = [task(add, group) for group in groups]
    return tasks[0]


class AskedChunks(Asked):
    """Rows of chunks, asked where they are; targets and weights are sent there once."""

    def __init__(self, design: Dask, problem: Problem) -> None:
        super().__init__()
        self.design = design
        self.shape, self.dtype, self.names = design.shape, design.dtype, design.names
        loss, y, s = problem.loss, problem.y, problem.weight
        self._rows = design.kept(
            [
                task(Rows, *map(sent_once, (loss.part(at), y[at], s[at])))
                for at in design.rows_of_chunks
            ]
        )
        self._active: tuple[Columns, list[Any]] | None = None

    @property
    def sent(self) -> tuple[int, int]:
        return self.design.sent

    def ask(self, kind: str, columns: Columns, **given: Any) -> Sums:
        blocks = self._blocks(columns)
        pairs = list(zip(self._rows, blocks, strict=True))
        size = size_of(columns) + size_of(given)
        if kind != "price":
            answers = [task(pieces.answer, kind, *pair, given) for pair in pairs]
            found: Sums = self.design.compute([added(answers, added_sums)], size)[0]
            return found
        priced = [task(pieces.answer, "priced", *pair, given) for pair in pairs]
        duals, answers = [one[0] for one in priced], [one[1] for one in priced]
        scores = [
            added([task(pieces.scores_of_one, *pair) for pair in zip(column, duals, strict=True)])
            for column in self.design.chunks_for_a_pass().T
        ]
        found, *parts = self.design.compute([added(answers, added_sums), *scores], size)
        return found | {"scores": np.concatenate(parts)}

    def _blocks(self, columns: Columns) -> list[Any]:
        """Return the columns of each row of chunks, together where they will be used again."""
        if self._active is None or not np.array_equal(self._active[0], columns):
            self.design.chunks_for_a_pass()
            tasks, order = self.design.columns_of(columns)
            sizes = [part.stop - part.start for part in self.design.rows_of_chunks]
            joined = [
                task(pieces.joined, list(row), order, size)
                for row, size in zip(tasks, sizes, strict=True)
            ]
            self._active = columns, self.design.kept(joined)
        return self._active[1]
