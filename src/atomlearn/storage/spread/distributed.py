"""X as a chunked Dask collection: products are computed on the worker that has each chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn._support import is_dask
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    DenseBlock,
    Design,
    Problem,
    RowAccess,
    Rows,
    Scores,
    SparseDesign,
    Traits,
    is_sparse,
    loss_of_rows,
    unwrapped,
)
from atomlearn.storage.checks import existing_columns
from atomlearn.storage.spread import chunks as pieces
from atomlearn.storage.spread.rows import Sums, summed
from atomlearn.storage.spread.summed import problem_of_sums, sums_suffice
from atomlearn.storage.spread.waiting import LostDataError, awaited, current_client, guarded

#: Number of partial sums that one task of the tree reduction adds up.
FAN_IN = 8


class Dask(Design, RowAccess):
    """A design whose X is a dask.array or dask.dataframe; its chunks compute the scores z = X'v.

    The vector v (n_samples,) is sent to the workers, and sums over rows come back.

    Parameters
    ----------
    X : dask.array (n_samples, n_features) or dask.dataframe
        In chunks of rows, of columns or of both; chunks are NumPy arrays, SciPy sparse arrays or
        tables. float32 and float64 are kept; integers and booleans become float32 if that is exact,
        else float64.
    client : distributed.Client, optional
        The cluster. Default: Dask's current scheduler, which is that of the last Client made, or
        threads of this process if there is none.
    persist : bool, default=True
        Keep the chunks in the workers' memory after the first pass. False computes them again in
        each pass: for data larger than all workers' memory.

    Attributes
    ----------
    feature_names : list of str, or None
        The columns of a table.
    sent : (int, int)
        Number of messages with vectors over samples or columns, and their bytes; ``sent`` of a
        result counts sums over rows, too.

    Raises
    ------
    ValueError, TypeError
        At once if X is not a table of numbers; in the first pass for entries that are not finite,
        with their row and column.
    LostDataError
        In a pass, if a worker was lost with chunks that cannot be computed again. This includes
        data that ``client.scatter`` put there, and a chunk over which too many workers were lost.

    Notes
    -----
    If chunks have whole rows and sums over rows determine the solution (see the page on distributed
    data), solves, paths and cross-validations request such sums. Otherwise a pass over X sends v to
    the chunks (8 n_samples bytes for each column of chunks). Partial sums are added up by a tree
    reduction in fixed order, and 8 n_features bytes come back. Columns with nonzero coefficients
    are sent to this process. Sums are float64. Workers need atomlearn installed. After the loss of
    a worker, its chunks are computed again.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from atomlearn.designs import Dask
    >>> design = Dask(da.from_array(np.eye(4), chunks=(2, 4)))
    >>> design.scores(np.array([1.0, 2.0, 3.0, 4.0])).top(1)
    (array([3]), array([4.]))
    """

    def __init__(self, X: Any, *, client: Any = None, persist: bool = True) -> None:
        """Divide X into chunks, which are checked when they are computed.

        ``client`` is the cluster, and ``persist`` keeps the chunks in the workers' memory. No chunk
        is computed yet, unless Dask does not know its size.
        """
        if not is_dask(X):
            raise TypeError(
                f"Dask needs a dask.array or dask.dataframe, got {type(X).__name__}; "
                "dask.array.from_array(X, chunks=...) makes one"
            )
        self._client, self._persist = client, bool(persist)
        #: Number of messages and bytes so far; designs of row subsets share this counter.
        self._sent = [0, 0]
        grid = guarded(lambda: pieces.grid_of(X))
        loaded, self._rows, self._columns, self.dtype, self._names = grid
        self.shape = self._rows[-1].stop, self._columns[-1].stop
        # An array (n_row_chunks, n_column_chunks) of tasks, each of which loads and checks a chunk.
        self._chunks = np.empty_like(loaded)
        for i, row in enumerate(self._rows):
            for j, column in enumerate(self._columns):
                shape = row.stop - row.start, column.stop - column.start
                arguments = loaded[i, j], self.dtype, shape, row.start, column.start
                self._chunks[i, j] = task(pieces.held_chunk, *arguments)
        # Only chunks of whole rows can return sums over rows. So chunks side by side are joined if
        # the joined ones are not too large.
        tallest = max(part.stop - part.start for part in self._rows)
        if len(self._rows) > 1 < len(self._columns) and (
            tallest * self.shape[1] <= LIMITS.most_dense
        ):
            whole_rows = [task(pieces.beside, list(row)) for row in self._chunks]
            # The None makes NumPy keep the tasks as objects.
            self._chunks = np.array([*whole_rows, None], dtype=object)[:-1, None]
            self._columns = [slice(0, self.shape[1])]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the client."""
        # A connection cannot be pickled; a copy uses the current scheduler.
        return self.__dict__ | {"_client": None}

    def __repr__(self) -> str:
        """Return a text with shape, type and numbers of chunks."""
        rows, columns = self.n_chunks
        return f"Dask({self.shape}, {self.dtype}, {rows} x {columns} chunks)"

    @property
    def names(self) -> list[str] | None:
        """The columns of a table; None for arrays."""
        return self._names

    @property
    def feature_names(self) -> list[str] | None:
        """The columns of a table, or None; the same as ``names``."""
        return self._names

    @property
    def rows_of_chunks(self) -> list[slice]:
        """The range of rows of X in each row of chunks."""
        return self._rows

    @property
    def n_chunks(self) -> tuple[int, int]:
        """Number of chunks along rows and along columns."""
        return len(self._rows), len(self._columns)

    def scores(self, v: Array) -> Scores:
        """Return the scores X'v of all columns, for v (n_samples,), in one pass over X."""
        return self.scores_many(v[:, None])[0]

    traits = Traits(reads_at_once=True)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_samples, m), in one pass over X."""
        return [ArrayScores(z) for z in self._summed(pieces.scores_of, V)]

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return self._summed(partial(pieces.of_design, "squared_norms"), weights)

    def _summed(self, call: Any, v: Array) -> Array:
        """Return, for all columns, the sums over row chunks of ``call(chunk, v[rows of chunk])``.

        Parameters
        ----------
        call : callable
            Computes the sums of one chunk, (columns of chunk,) or (m, columns of chunk).
        v : (n_samples,) or (n_samples, m) array
            One or m vectors over the samples.

        Returns
        -------
        (n_features,) or (m, n_features) array
        """
        n_rows, n_columns = self.n_chunks
        n_vectors = v.size // self.shape[0]
        self.travelled(n_vectors * (n_columns * self.shape[0] + n_rows * self.shape[1]))
        # One tree of sums for each column of chunks.
        vectors = [sent_once(v[rows]) for rows in self._rows]
        sums = [
            added(
                [task(call, *pair) for pair in zip(column, vectors, strict=True)],
                partial(task, sum),
            )[0]
            for column in self.chunks_for_a_pass().T
        ]
        return np.concatenate(self.compute(sums), axis=-1)

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return X[:, columns] @ W, (n_samples, m), computed on the workers.

        W is (number of columns, m); ``columns`` None means all columns.
        """
        if columns is None or not columns.size:
            return super().product(W, columns)
        self.travelled(self.n_chunks[0] * W.size + self.shape[0] * W.shape[1])
        call = partial(pieces.of_design, "product")
        # For each column of chunks, its rows of W and the numbers of its columns.
        sent = [
            (j, sent_once(W[positions]), sent_once(numbers))
            for j, positions, numbers in self._owned(columns)
        ]
        # For each row of chunks, the sum of the products of its chunks.
        sums = [
            added([task(call, row[j], *arrays) for j, *arrays in sent], partial(task, sum))[0]
            for row in self.chunks_for_a_pass()
        ]
        return np.concatenate(self.compute(sums))

    def travelled(self, numbers: int) -> None:
        """Count one message of ``numbers`` numbers (8 bytes each), those of its answer included."""
        self._sent[:] = self._sent[0] + 1, self._sent[1] + 8 * numbers

    @property
    def sent(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of messages with vectors so far, and their bytes."""
        return self._sent[0], self._sent[1]

    @property
    def row_access(self) -> RowAccess:  # type: ignore[override]
        """This design itself, through which solvers request sums over rows."""
        return self

    def summed(self, problem: Problem) -> Problem:
        """Return an equivalent problem over sums of rows, or ``problem`` if there is none.

        It exists if X has several chunks, all of whole rows, and ``sums_suffice(problem)``. Its
        loss is a function of the coefficients, and requests sums from the workers.
        """
        n_rows, n_columns = self.n_chunks
        y = problem.y
        weight = problem.weight
        is_self = unwrapped(problem.design) is self
        if not is_self or n_rows == 1 or n_columns > 1 or not (y.size and sums_suffice(problem)):
            return problem
        loss = problem.loss
        row_ranges = self.rows_of_chunks

        # The rows are sent to the workers at the first request, and only once.
        @cache
        def rows() -> list[Any]:
            """Return tasks that keep the targets and weights of each chunk on its worker."""
            return self.kept(
                [
                    task(
                        pieces.rows_beside,
                        chunk,
                        *map(
                            sent_once,
                            (loss_of_rows(loss, row_range), y[row_range], weight[row_range]),
                        ),
                    )
                    for chunk, row_range in zip(
                        self.chunks_for_a_pass()[:, 0], row_ranges, strict=True
                    )
                ]
            )

        def total_answer(question: Sums) -> Sums:
            """Send the request ``question`` to all chunks, and return the sum of their answers."""
            chunks = self.chunks_for_a_pass()[:, 0]
            return self.answered(list(zip(chunks, rows(), strict=True)), question)

        return problem_of_sums(problem, n_rows, total_answer)

    def _owned(self, columns: Columns) -> list[tuple[int, Columns, Columns]]:
        """Assign columns of X to the columns of chunks that have them.

        Returns one tuple per column of chunks that has any: its number, the positions of its
        columns in ``columns``, and their column numbers within the chunk.
        """
        starts = np.array([part.start for part in self._columns])
        owner = np.searchsorted(starts, columns, side="right") - 1
        return [
            (j, np.flatnonzero(owner == j), columns[owner == j] - starts[j])
            for j in np.unique(owner).tolist()
        ]

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block (columns in this process's memory).

        It is sparse if any chunk is sparse, else dense.
        """
        columns = existing_columns(columns, self.shape[1])
        if not columns.size:
            return DenseBlock(np.zeros((self.shape[0], 0), dtype=self.dtype))
        self.travelled(self.shape[0] * columns.size)
        # One task for each chunk that has any of the columns, in order of columns of chunks j.
        # ``numbers`` are their numbers in the chunk, ``positions`` are those in ``columns``.
        tasks = []
        all_positions = []
        for j, positions, numbers in self._owned(columns):
            sent = sent_once(numbers)
            all_positions.append(positions)
            tasks += [task(pieces.chunk_columns, chunk, sent) for chunk in self._chunks[:, j]]
        submatrices = self.compute(tasks)
        # ``n_rows`` successive submatrices have the same columns and all rows together.
        n_rows = len(self._rows)
        stacks = [submatrices[k : k + n_rows] for k in range(0, len(submatrices), n_rows)]
        # The columns arrive chunk by chunk; this permutation restores the requested order.
        order = np.argsort(np.concatenate(all_positions))
        if any(is_sparse(submatrix) for submatrix in submatrices):
            whole = sp.hstack([sp.vstack(stack, "csc") for stack in stacks], "csc")
            return SparseDesign(whole.astype(np.float64)).gather(order)
        array = np.hstack([np.vstack(stack) for stack in stacks])
        return DenseBlock(np.asfortranarray(array[:, order]))

    def with_rows(self, rows: Rows) -> Dask | None:
        """Return the design of the rows with these numbers, selected on the workers.

        The result is None if the row numbers are not strictly increasing. Chunks without any of the
        rows are left out.
        """
        if (rows[1:] <= rows[:-1]).any():
            return None
        design = copy(self)
        sizes = list[int]()  # number of rows of each row of chunks that remains
        design._chunks = np.empty_like(self._chunks)
        for part, row in zip(self._rows, self.chunks_for_a_pass(), strict=True):
            # The rows of this row of chunks, counted within it.
            numbers = rows[slice(*np.searchsorted(rows, [part.start, part.stop]))] - part.start
            if numbers.size:
                sent = sent_once(numbers)
                design._chunks[len(sizes)] = [
                    task(pieces.rows_of_chunk, chunk, sent) for chunk in row
                ]
                sizes.append(numbers.size)
        design._chunks = design._chunks[: len(sizes)]
        design._rows = [slice(*pair) for pair in pairwise(accumulate(sizes, initial=0))]
        design.shape = rows.size, self.shape[1]
        return design

    def chunks_for_a_pass(self) -> NDArray[Any]:
        """Return the chunks; with ``persist``, the first call keeps them in the workers' memory."""
        if self._persist:
            self._chunks.ravel()[:] = self.kept(self._chunks.ravel().tolist())
            self._persist = False
        return self._chunks

    def kept(self, tasks: list[Any]) -> list[Any]:
        """Start computing the tasks, and return tasks whose results stay in the workers' memory.

        Dask calls this "persist".
        """
        import dask

        if self._client is None:
            return guarded(lambda: list(dask.persist(*tasks)))
        return guarded(lambda: list(self._client.persist(tasks)))

    def _missing(self, client: Any) -> str:
        """Return a sentence for an error message: the chunks of X that no worker has.

        ``client`` is Dask's client of the cluster.
        """
        holders = client.who_has()
        lost = [
            f"rows {row.start} to {row.stop}, columns {column.start} to {column.stop}"
            for i, row in enumerate(self._rows)
            for j, column in enumerate(self._columns)
            if not holders.get(self._chunks[i, j].key)
        ]
        return f"Of {self._chunks.size} chunks of X {len(lost)} are on no worker: {lost[:3]}"

    def compute(self, tasks: list[Any]) -> list[Any]:
        """Return the results of tasks, in order, computed on the cluster or in this process."""
        import dask

        client = self._client or current_client()
        if client is None:
            return guarded(lambda: list(dask.compute(*tasks)))
        # Vectors are embedded in the task graph, so that Dask sends them again after the loss of a
        # worker. Dask warns about large graphs; the threshold suppresses this warning.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self._awaited(client, lambda: client.compute(tasks))

    def answered(self, pairs: list[tuple[Any, Any]], question: Sums) -> Sums:
        """Send a request to all chunks, and return the sum of their answers.

        Each thread of a worker gets one task for all of its chunks, because the latency of a
        request depends on the number of tasks rather than on bytes. If chunks are not in the
        workers' memory, each chunk gets a separate task that computes it.

        Parameters
        ----------
        pairs : list of (task, task)
            For each chunk of rows, the task of the chunk and that of its targets and weights.
        question : dict
            The request, see ``HeldRows.answer``.
        """
        client = self._client or current_client()
        chunks = [chunk for chunk, _ in pairs]
        rows = [held_rows for _, held_rows in pairs]
        # Futures of the results that are in the workers' memory, by the key of their task.
        futures = client.futures_of(chunks + rows) if client else []
        future_of = {future.key: future for future in futures}
        if not all(needed.key in future_of for needed in chunks + rows):
            sent = sent_once(question)
            tasks = [task(pieces.answer, [chunk], [part], sent) for chunk, part in pairs]
            return summed(self.compute(added(tasks, partial(task, summed), FAN_IN)))

        def submit() -> list[Any]:
            """Submit the tasks of all workers, and return the futures of a few partial sums."""
            answers = [
                client.submit(
                    pieces.answer,
                    *([future_of[part[i].key] for i in positions] for part in (chunks, rows)),
                    question,
                    workers=address or None,
                    allow_other_workers=bool(address),
                    pure=False,
                )
                for address, positions in _chunks_of_threads(client, chunks)
            ]
            return added(answers, partial(client.submit, summed, pure=False), FAN_IN)

        return summed(self._awaited(client, submit))

    def _awaited(self, client: Any, submit: Callable[[], list[Any]]) -> list[Any]:
        """Return the results of the futures that ``submit()`` returns; errors name lost chunks.

        ``client`` is Dask's client of the cluster.
        """
        try:
            return guarded(lambda: awaited(client, submit()))
        except LostDataError as error:
            raise LostDataError(f"{error}. {self._missing(client)}") from error


def _chunks_of_threads(client: Any, chunks: list[Any]) -> list[tuple[str, list[int]]]:
    """Assign the chunks to the threads of the workers that hold them in memory.

    ``chunks`` are tasks, and ``client`` is Dask's client. Returns one pair per thread: the address
    of its worker ("" if no worker has the chunks), and the positions of its chunks in ``chunks``.
    """
    holders = client.who_has(chunks)
    threads = client.nthreads()
    # Positions of the chunks of each worker, by its address.
    numbers_of = dict[str, list[int]]()
    for number, chunk in enumerate(chunks):
        numbers_of.setdefault(next(iter(holders.get(chunk.key, ())), ""), []).append(number)
    # Each worker has ``count`` threads in use; thread k gets every count-th of its chunks.
    return [
        (address, numbers[k::count])
        for address, numbers in numbers_of.items()
        for count in [min(threads.get(address, len(numbers)), len(numbers))]
        for k in range(count)
    ]


def task(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return a task (a Dask Delayed) for ``call(*arguments)``; arguments may be other tasks."""
    from dask import delayed

    return delayed(call, pure=False)(*arguments)


def sent_once(array: object) -> Any:
    """Return an array as a task (a Dask Delayed), so that tasks that use it share one copy."""
    from dask import delayed

    return delayed(array, pure=False, traverse=False)


def added(tasks: list[Any], add: Callable[[Any], Any], most: int = 1) -> list[Any]:
    """Add up tasks by a tree of sums, and return at most ``most`` tasks of partial sums.

    ``add`` returns a task that adds up the results of a list of at most ``FAN_IN`` tasks. The order
    of summation is fixed, so that results are reproducible.
    """
    while len(tasks) > most:
        tasks = [add(tasks[start : start + FAN_IN]) for start in range(0, len(tasks), FAN_IN)]
    return tasks
