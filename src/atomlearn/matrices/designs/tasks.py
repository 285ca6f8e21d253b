"""Tasks: several targets of the same samples, predictions X W (multi-task regression)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.data.blocks import SparseBlock
from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Array, Block, Columns, Scores, is_whole
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.designs.task_block import TaskBlock
from atomlearn.matrices.designs.task_span import TaskSpan
from atomlearn.matrices.scores import MatrixScores
from atomlearn.matrices.shapes import Shape


class Tasks(MatrixDesign):
    """I kron X: predictions vec(X W) for W (n_features, n_tasks), n_samples n_tasks samples.

    Sample i * n_tasks + t is the t-th target of the i-th row of X: pass ``Y.ravel()`` for targets
    Y (n_rows, n_tasks). Column j * n_tasks + t is W[j, t]. One X'V for V (n_rows, n_tasks) is one
    pass. Matrix pursuit, X - X W, is ``Tasks(X, X.shape[1])`` with the target X.

    Parameters
    ----------
    X : array, sparse matrix, table or Design, shape (n_rows, n_features)
    n_tasks : int

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import Tasks
    >>> X, Y = np.eye(3), np.array([[4.0, 2.0], [0.5, 0.1], [2.0, 1.0]])
    >>> fit = solve(Tasks(X, 2), Y.ravel(), norm=norms.TraceNorm(), level=1.0)
    >>> fit.coef.reshape(3, 2).round(2).tolist()[1] != [0.5, 0.1]
    True
    """

    def __init__(self, X: object, n_tasks: int) -> None:
        self.base = as_design(X)
        if not is_whole(n_tasks) or n_tasks < 1:
            raise ValueError(
                f"Tasks: n_tasks must be a whole number >= 1, got {n_tasks!r}; use Y.shape[1]"
            )
        self.n_tasks = int(n_tasks)

    @property
    def matrix_shape(self) -> Shape:
        """(n_features, n_tasks)."""
        return self.base.shape[1], self.n_tasks

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_features = self.base.shape
        return n_rows * self.n_tasks, n_features * self.n_tasks

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.base.dtype

    def scores(self, v: Array) -> Scores:
        return self.scores_many(v[:, None])[0]

    def scores_many(self, V: Array) -> Sequence[Scores]:
        many = self.base.scores_many(np.hstack([self._rows(v) for v in V.T]))
        Z = np.column_stack([z.full() for z in many])
        return [MatrixScores(z) for z in np.hsplit(Z, V.shape[1])]

    def passes_of_many(self, count: int) -> float:
        return self.base.passes_of_many(count)

    def predict(self, weights: Array) -> Array:
        """Return vec(X W): one pass."""
        return self.base.product(np.reshape(weights, self.matrix_shape)).reshape(-1)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_it x_ij^2 for every (j, t): one pass."""
        base: Any = self.base
        if curvature is None:
            return np.repeat(np.asarray(base.squared_norms()), self.n_tasks)
        parts = [base.squared_norms(np.ascontiguousarray(c)) for c in self._rows(curvature).T]
        return np.column_stack(parts).reshape(-1)

    def gather(self, columns: Columns) -> Block:
        features, places = np.unique(columns // self.n_tasks, return_inverse=True)
        block, tasks = self.base.gather(features), columns % self.n_tasks
        stored = block.stored_sparse()
        if stored is None:
            rows = np.ascontiguousarray(block.dense().T, dtype=np.float64)
            return TaskBlock(rows, places.ravel(), tasks, self.n_tasks)
        # The columns e_t kron x_j, stored.
        matrix = stored[:, places.ravel()].tocsc()
        owner = np.repeat(np.arange(places.size), np.diff(matrix.indptr))
        rows = matrix.indices.astype(np.int64) * self.n_tasks + tasks[owner]
        return SparseBlock(matrix.data, rows, matrix.indptr, self.shape[0])

    def span(self, left: Array, right: Array) -> Block:
        """Return the design of S where W = left S right': holds X left (n_rows, r)."""
        return TaskSpan(self.images(left), right)

    def images(self, left: Array) -> Array:
        """Return X left: O(n_rows n_features) a column."""
        return self.base.product(left)

    def pulled(self, v: Array, right: Array) -> Array:
        """Return V right for V (n_rows, n_tasks) of v."""
        return np.asarray(self._rows(v) @ right)

    def _rows(self, v: Array) -> Array:
        return np.reshape(v, (self.base.shape[0], self.n_tasks))
