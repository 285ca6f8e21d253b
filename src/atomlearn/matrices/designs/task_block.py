"""TaskBlock: a few columns e_t kron x_j of a multi-task design, known by their pairs (j, t)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns
from atomlearn.matrices.designs.structured import StructuredBlock
from atomlearn.matrices.designs.task_span import TaskSpan
from atomlearn.matrices.settings import SETTINGS


class TaskBlock(StructuredBlock):
    """Columns e_t kron x_j: task t alone sees them, so nothing but the pairs (j, t) is stored.

    Column i belongs to task ``tasks[i]`` and is feature ``features[i]`` of X there; pairs may
    repeat. A product costs O(n_rows) a column, in contiguous rows of X', and the Gram matrix is
    zero between tasks.

    Xt : (p, n_rows), X transposed; features, tasks : (m,) int64; n_tasks : int.
    """

    __slots__ = ("Xt", "_layout", "_smaller", "features", "n_tasks", "tasks")

    couples_by_structure = True

    def __init__(self, Xt: NDArray[Any], features: Columns, tasks: Columns, n_tasks: int) -> None:
        self.Xt, self.features, self.tasks, self.n_tasks = Xt, features, tasks, n_tasks
        self._layout: tuple[Columns, Columns] | None = None
        self._smaller: tuple[Array, Array, tuple[Block, Array]] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.Xt.shape[1] * self.n_tasks, self.features.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def by_task(self) -> tuple[Columns, Columns]:
        """The positions task after task, and where each task begins, (n_tasks + 1,)."""
        if self._layout is None:
            order = np.argsort(self.tasks, kind="stable")
            counts = np.bincount(self.tasks, minlength=self.n_tasks)
            self._layout = order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return self._layout

    def dot(self, weights: Array) -> Array:
        order, starts = self.by_task
        used = np.unique(self.features)
        places = np.searchsorted(used, self.features[order])
        parts = (np.asarray(weights, dtype=np.float64)[order], places, starts)
        W = sparse.csr_array(parts, shape=(self.n_tasks, used.size))
        whole = used.size == self.Xt.shape[0] and self.Xt.dtype == np.float64
        rows = self.Xt if whole else self._rows(used)
        return np.ascontiguousarray(np.asarray(W @ rows).T).reshape(-1)

    def transpose_dot(self, v: Array) -> Array:
        Vt = np.ascontiguousarray(self._of_tasks(v))
        if self.features.size > SETTINGS.share_of_pairs * self.Xt.shape[0] * self.n_tasks:
            used, places = np.unique(self.features, return_inverse=True)
            return np.asarray((self._rows(used) @ Vt.T)[places.ravel(), self.tasks])
        result = np.empty(self.features.size)
        for part in self._parts():
            rows = self._rows(self.features[part])
            result[part] = np.einsum("ij,ij->i", rows, Vt[self.tasks[part]])
        return result

    def squared_norms(self, curvature: Array | None = None) -> Array:
        Ct = None if curvature is None else np.ascontiguousarray(self._of_tasks(curvature))
        result = np.empty(self.features.size)
        for part in self._parts():
            rows = self._rows(self.features[part])
            weighted = rows if Ct is None else rows * Ct[self.tasks[part]]
            result[part] = np.einsum("ij,ij->i", weighted, rows)
        return result

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, task by task."""
        chosen = self if positions is None else self.take(positions)
        Ct = self._of_tasks(curvature)
        result = np.zeros((chosen.features.size, chosen.features.size))
        for task, own in chosen._tasks():
            rows = chosen._rows(chosen.features[own])
            corner = (rows * Ct[task]) @ rows.T
            result[np.ix_(own, own)] = 0.5 * (corner + corner.T)
        return result

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        """Return A'(diag(c) - K K')A, where column i of K stays within row i; others as they are.

        Such a column pulls k_it x_ij from the pair (j, t): no sample of another row takes part.
        """
        n_rows, K = self.Xt.shape[1], sparse.csc_array(coupling)
        owners = np.repeat(np.arange(K.shape[1]), np.diff(K.indptr))
        inside = min(n_rows, K.shape[1])
        if np.any((K.indices // self.n_tasks != owners) & (owners < inside)):
            inside = 0
        shares = np.zeros((self.n_tasks, n_rows))
        own = owners < inside
        shares[K.indices[own] % self.n_tasks, owners[own]] = K.data[own]
        pulled = self._rows(self.features)
        pulled *= shares[self.tasks]
        H = self.gram(curvature) - pulled @ pulled.T
        for column in range(inside, K.shape[1]):
            row = self.transpose_dot(K[:, [column]].toarray().ravel())
            H -= np.outer(row, row)
        return H

    def spanned(self, right: Array) -> Block | None:
        """Return the design of S where the rows of all tasks, one a feature, are S right'."""
        features = self.features[:: self.n_tasks]
        whole = np.repeat(features, self.n_tasks), np.tile(np.arange(self.n_tasks), features.size)
        if not (np.array_equal(self.features, whole[0]) and np.array_equal(self.tasks, whole[1])):
            return None
        return TaskSpan(self._rows(features).T, right)

    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        """Return A_S diag(diagonal) A_S', zero between samples of different tasks."""
        chosen = self if positions is None else self.take(positions)
        result = np.zeros((self.shape[0], self.shape[0]))
        for task, own in chosen._tasks():
            rows = chosen._rows(chosen.features[own])
            result[task :: self.n_tasks, task :: self.n_tasks] = (rows.T * diagonal[own]) @ rows
        return result

    def dense(self) -> Array:
        n_rows, m = self.Xt.shape[1], self.features.size
        result = np.zeros((n_rows * self.n_tasks, m), order="F")
        for position, task in enumerate(self.tasks.tolist()):
            result[task :: self.n_tasks, position] = self.Xt[self.features[position]]
        return result

    def explicit(self) -> SparseBlock:
        """Return the same columns with their entries stored, sparse."""
        n_rows, m = self.Xt.shape[1], self.features.size
        rows = np.arange(n_rows, dtype=np.int64)[None, :] * self.n_tasks + self.tasks[:, None]
        starts = np.arange(m + 1, dtype=np.int64) * n_rows
        data = self._rows(self.features)
        return SparseBlock(data.reshape(-1), rows.reshape(-1), starts, self.shape[0])

    def take(self, positions: Columns) -> TaskBlock:
        features, tasks = self.features[positions], self.tasks[positions]
        return TaskBlock(self.Xt, features, tasks, self.n_tasks)

    def append(self, other: Block) -> Block:
        if not isinstance(other, TaskBlock) or other.Xt is not self.Xt:
            return self.explicit().append(other)
        if other.n_tasks != self.n_tasks:
            raise ValueError(
                f"cannot append columns of {other.n_tasks} tasks to a block of {self.n_tasks}; "
                "both must come from the same design"
            )
        features = np.concatenate([self.features, other.features])
        return TaskBlock(self.Xt, features, np.concatenate([self.tasks, other.tasks]), self.n_tasks)

    def compressed(self, y: Array, weight: Array) -> tuple[Block, Array] | None:
        """Return R and t with R'R = A'DA and R't = A'Dy, D = diag(weight), task by task.

        R has Cholesky's factors of the Gram matrices of the tasks on its diagonal, O(n_rows s^2)
        for s columns of a task, up to rounding of the size of eps A'DA.
        """
        if self._smaller is not None and self._smaller[0] is y and self._smaller[1] is weight:
            return self._smaller[2]
        counts = np.diff(self.by_task[1])
        work = float(counts.astype(np.float64) @ counts)
        if not work or work > SETTINGS.columns_of_a_task * self.features.size:
            return None
        if 2 * self.features.size > self.shape[0]:
            return None
        root = np.sqrt(weight)
        found = _Compression(self, self._of_tasks(root), self._of_tasks(root * y)).result()
        self._smaller = y, weight, found
        return found

    def _of_tasks(self, v: Array) -> Array:
        """Return the samples of each task as a row, (n_tasks, n_rows)."""
        return np.reshape(v, (self.Xt.shape[1], self.n_tasks)).T

    def _rows(self, features: Columns) -> Array:
        return np.ascontiguousarray(self.Xt[features], dtype=np.float64)

    def _parts(self) -> Iterator[slice]:
        size = max(1, SETTINGS.copied_entries // max(1, self.Xt.shape[1]))
        for start in range(0, self.features.size, size):
            yield slice(start, start + size)

    def _tasks(self) -> Iterator[tuple[int, Columns]]:
        """Yield the tasks in use with the positions of their columns."""
        order, starts = self.by_task
        for task in np.flatnonzero(np.diff(starts)).tolist():
            yield task, order[starts[task] : starts[task + 1]]


class _Compression:
    """One call of ``compressed``: tasks of as many columns are factored together.

    roots, targets : (n_tasks, n_rows) square roots of the weights, and those times y. Column j of
    a task has j + 1 entries in its triangle, wherever the column stands in the block.
    """

    def __init__(self, block: TaskBlock, roots: Array, targets: Array) -> None:
        self.block, self.roots, self.targets = block, roots, targets
        order, starts = block.by_task
        self.order, self.starts = order, starts
        heights = np.empty(order.size, dtype=np.int64)
        heights[order] = np.arange(order.size) - np.repeat(starts[:-1], np.diff(starts)) + 1
        self.indptr = np.concatenate([[0], np.cumsum(heights)]).astype(np.int64)
        self.data = np.empty(int(self.indptr[-1]))
        self.rows = np.empty(self.data.size, dtype=np.int64)
        self.target = np.empty(order.size)

    def result(self) -> tuple[Block, Array]:
        """Return the triangles one below the other, with the targets."""
        counts = np.diff(self.starts)
        for size in np.unique(counts[counts > 0]).tolist():
            same = np.flatnonzero(counts == size)
            step = max(1, SETTINGS.copied_entries // (size * self.block.Xt.shape[1]))
            for start in range(0, same.size, step):
                self._factor(same[start : start + step], size)
        m = self.order.size
        block = SparseBlock(self.data, self.rows, self.indptr, m)
        return DenseBlock(block.dense()) if m * m <= LIMITS.small_entries else block, self.target

    def _factor(self, tasks: Columns, size: int) -> None:
        first = self.starts[tasks][:, None]
        positions = self.order[first + np.arange(size)]
        features = self.block.features[positions]
        columns = self.block._rows(features.reshape(-1)).reshape(*features.shape, -1)
        columns *= self.roots[tasks][:, None, :]
        gram = columns @ columns.transpose(0, 2, 1)
        diagonal = np.arange(size)
        trace = gram[:, diagonal, diagonal].sum(axis=1)
        # Rounding may have left it indefinite: a ridge of that size makes up for it.
        ridge = SETTINGS.gram_rounding * size * trace + sys.float_info.min
        gram[:, diagonal, diagonal] += ridge[:, None]
        lower = np.linalg.cholesky(gram)
        pulled = columns @ self.targets[tasks][:, :, None]
        place = first + np.arange(size)
        self.target[place] = np.linalg.solve(lower, pulled)[:, :, 0]
        j, i = np.tril_indices(size)  # the triangle is the transposed factor
        entries = self.indptr[positions[:, j]] + i
        self.data[entries] = lower[:, j, i]
        self.rows[entries] = first + i
