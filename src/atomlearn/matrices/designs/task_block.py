"""TaskBlock: a few columns e_t kron x_j of a multi-task design, known by their pairs (j, t)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import _kernels
from atomlearn.core.data.blocks import SparseBlock
from atomlearn.core.interfaces import Array, Block, Columns
from atomlearn.matrices.designs.task_span import TaskSpan


class TaskBlock(Block):
    """Columns e_t kron x_j: task t alone sees them, so x_j is stored once for all tasks.

    Column i is row ``places[i]`` of ``features`` (f, n_rows), seen by task ``tasks[i]``; pairs may
    repeat. A product costs O(n_rows) a column, and the Gram matrix is zero between tasks.
    """

    __slots__ = ("_order", "_pattern", "_stored", "features", "n_tasks", "places", "tasks")

    def __init__(self, features: Array, places: Columns, tasks: Columns, n_tasks: int) -> None:
        self.features, self.places, self.tasks, self.n_tasks = features, places, tasks, n_tasks
        # The columns feature after feature, and where each feature begins among them.
        self._order = np.argsort(places, kind="stable")
        starts = np.searchsorted(places[self._order], np.arange(features.shape[0] + 1))
        self._pattern = tasks[self._order], starts
        self._stored: SparseBlock | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape[1] * self.n_tasks, self.tasks.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def dot(self, weights: Array) -> Array:
        parts = np.asarray(weights)[self._order], *self._pattern
        W = sparse.csr_array(parts, shape=(self.features.shape[0], self.n_tasks))
        return np.ascontiguousarray((W.T @ self.features).T).reshape(-1)

    def transpose_dot(self, v: Array) -> Array:
        return self._pairs(self.features, v)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        ones = np.ones(self.shape[0])
        return self._pairs(np.square(self.features), ones if curvature is None else curvature)

    def _pairs(self, rows: Array, v: Array) -> Array:
        """Return the product of the row of each column with the samples of its task."""
        result = np.empty(self.tasks.size)
        result[self._order] = _kernels.sampled_products(*self._pattern, rows, self._of_tasks(v))
        return result

    def _of_tasks(self, v: Array) -> Array:
        """Return the samples of each task as a row, (n_tasks, n_rows)."""
        return np.ascontiguousarray(np.reshape(v, (-1, self.n_tasks)).T)

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, task by task."""
        chosen = self if positions is None else self.take(positions)
        result = np.zeros((chosen.tasks.size, chosen.tasks.size))
        weights = self._of_tasks(curvature)
        order = np.argsort(chosen.tasks, kind="stable")
        found, starts = np.unique(chosen.tasks[order], return_index=True)
        for task, own in zip(found, np.split(order, starts[1:]), strict=False):
            rows = self.features[chosen.places[own]]
            corner = (rows * weights[task]) @ rows.T
            result[np.ix_(own, own)] = 0.5 * (corner + corner.T)
        return result

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        """Return A'(diag(c) - K K')A."""
        return self.explicit().coupled_gram(curvature, coupling)

    def spanned(self, right: Array) -> Block | None:
        """Return the design of S where the rows of all tasks, one a feature, are S right'."""
        places = self.places[:: self.n_tasks]
        pairs = np.repeat(places, self.n_tasks), np.tile(np.arange(self.n_tasks), places.size)
        if not (np.array_equal(self.places, pairs[0]) and np.array_equal(self.tasks, pairs[1])):
            return None
        return TaskSpan(np.ascontiguousarray(self.features[places].T), right)

    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        return self.explicit().outer(diagonal, positions)

    def dense(self) -> Array:
        return self.explicit().dense()

    @property
    def nonzeros(self) -> int:  # type: ignore[override]
        return int(self.features.shape[1] * self.tasks.size)

    def explicit(self) -> SparseBlock:
        """Return the same columns with their entries stored, sparse; kept once made."""
        if self._stored is not None:
            return self._stored
        n_rows = self.features.shape[1]
        rows = np.arange(n_rows, dtype=np.int64)[None, :] * self.n_tasks + self.tasks[:, None]
        starts = np.arange(self.tasks.size + 1, dtype=np.int64) * n_rows
        data = self.features[self.places].reshape(-1)
        self._stored = SparseBlock(data, rows.reshape(-1), starts, self.shape[0])
        return self._stored

    def stored_sparse(self) -> Any:
        return self.explicit().stored_sparse()

    def take(self, positions: Columns) -> TaskBlock:
        """Return the columns at these positions, over the same features."""
        return TaskBlock(self.features, self.places[positions], self.tasks[positions], self.n_tasks)

    def append(self, other: Block) -> Block:
        if not isinstance(other, TaskBlock) or other.n_tasks != self.n_tasks:
            return self.explicit().append(other)
        return TaskBlock(
            np.vstack([self.features, other.features]),
            np.append(self.places, other.places + self.features.shape[0]),
            np.append(self.tasks, other.tasks),
            self.n_tasks,
        )
