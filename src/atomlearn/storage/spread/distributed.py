"""X in the chunks of a Dask collection: products are formed where each chunk lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.convert import existing_columns, one_weight_each
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores
from atomlearn.core.problem.problem import Problem, over_sums
from atomlearn.storage.spread import chunks as pieces
from atomlearn.storage.spread.rows import Rows, Sums, summed
from atomlearn.storage.spread.summed import problem_of_sums, splits
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
        made, self._rows, self._columns, self._dtype, self._names = grid
        self._shape = self._rows[-1].stop, self._columns[-1].stop
        # (n_row_chunks, n_column_chunks) tasks that make and check a chunk each.
        self._chunks = np.empty_like(made)
        for i, row in enumerate(self._rows):
            for j, column in enumerate(self._columns):
                shape = row.stop - row.start, column.stop - column.start
                given = made[i, j], self._dtype, shape, row.start, column.start
                self._chunks[i, j] = task(pieces.held_chunk, *given)
        tallest = max(part.stop - part.start for part in self._rows)
        if len(self._rows) > 1 < len(self._columns) and (
            tallest * self._shape[1] <= LIMITS.most_dense
        ):  # Whole rows answer with sums over them.
            together = [task(pieces.beside, list(row)) for row in self._chunks]
            self._chunks = np.array([*together, None], dtype=object)[:-1, None]
            self._columns = [slice(0, self._shape[1])]

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

    def scores(self, v: Array) -> Scores:
        return self.scores_many(v[:, None])[0]

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of all vectors in one round: V travels as a whole."""
        return [ArrayScores(z) for z in self._summed(pieces.scores_of, V)]

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column: one pass."""
        weights = np.ones(self._shape[0]) if curvature is None else curvature
        return self._summed(partial(pieces.of_design, "squared_norms"), weights)

    def _summed(self, call: Any, v: Array) -> Array:
        """Return the sums over rows of call(chunk, its part of v), column after column."""
        sent = [sent_once(v[part]) for part in self._rows]
        sums = [
            added([task(call, *pair) for pair in zip(column, sent, strict=True)])
            for column in self.chunks_for_a_pass().T
        ]
        return np.concatenate(self.compute(sums), axis=-1)

    def predict(self, weights: Array) -> Array:
        """Return X w: one pass, which leaves out the chunks where w is zero."""
        weights = one_weight_each(weights, self._shape[1])
        used = [j for j, part in enumerate(self._columns) if weights[part].any()]
        if not used:
            return np.zeros(self._shape[0])
        sent = [sent_once(weights[self._columns[j]]) for j in used]
        sums = [
            added(
                [task(pieces.of_design, "predict", *pair) for pair in zip(row, sent, strict=True)]
            )
            for row in self.chunks_for_a_pass()[:, used]
        ]
        return np.concatenate(self.compute(sums))

    def gather(self, columns: Columns) -> Block:
        columns = existing_columns(columns, self._shape[1])
        if not columns.size:
            return DenseBlock(np.zeros((self._shape[0], 0), dtype=self._dtype))
        starts = np.array([part.start for part in self._columns])
        owner = np.searchsorted(starts, columns, side="right") - 1
        tasks = []
        for j in np.unique(owner):
            within = sent_once(columns[owner == j] - starts[j])
            tasks += [task(pieces.chunk_columns, chunk, within) for chunk in self._chunks[:, j]]
        found, n_rows = self.compute(tasks), len(self._rows)
        stacks = [found[start : start + n_rows] for start in range(0, len(found), n_rows)]
        # Where each column stands among those that came, chunk after chunk.
        order = np.argsort(np.argsort(owner, kind="stable"), kind="stable")
        if any(is_sparse(piece) for piece in found):
            whole = sp.hstack([sp.vstack(stack, "csc") for stack in stacks], "csc")
            return SparseDesign(whole.astype(np.float64)).gather(order)
        array = np.hstack([np.vstack(stack) for stack in stacks])
        return DenseBlock(np.asfortranarray(array[:, order]))

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

    def compute(self, tasks: list[Any]) -> list[Any]:
        """Return the results of tasks, in their order."""
        import dask

        client = self._client or current_client()
        if client is None:
            return guarded(lambda: list(dask.compute(*tasks)))
        try:
            return guarded(lambda: awaited(client, client.compute(tasks)))
        except LostDataError as error:
            raise LostDataError(f"{error}. {self._missing(client)}") from error


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


@over_sums.register
def _of_chunks(design: Dask, problem: Problem) -> Problem:
    """Return the problem over sums, where rows alone are cut."""
    (n_rows, n_columns), y, s = design.n_chunks, problem.y, problem.weight
    if n_rows == 1 or n_columns > 1 or not (y.size and splits(problem)):
        return problem
    loss, parts = problem.loss, design.rows_of_chunks

    @cache
    def rows() -> list[Any]:
        """Targets and weights, which travel once, with the first question."""
        made = [task(Rows, *map(sent_once, (loss.part(i), y[i], s[i]))) for i in parts]
        return design.kept(made)

    def asked(question: Sums) -> Sums:
        chunks, sent = design.chunks_for_a_pass()[:, 0], sent_once(question)
        pairs = zip(chunks, rows(), strict=True)
        return dict(
            design.compute([added([task(pieces.answer, *p, sent) for p in pairs], summed)])[0]
        )

    return problem_of_sums(problem, n_rows, asked)
