"""Tasks: the design of multi-task (multi-output) regression, with predictions X W."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import _kernels
from atomlearn._support import is_whole
from atomlearn.core import (
    TUNING,
    Array,
    ArrayScores,
    Block,
    Columns,
    RepeatedBlock,
    Scores,
    SparseBlock,
    Traits,
    as_design,
    columns_for_kernel,
    coupled_gram,
    spanned,
)
from atomlearn.matrices.designs.base import MatrixDesign, SpanBlock
from atomlearn.matrices.scores import MatrixScores


class TaskSpan(SpanBlock):
    """The implicit matrix A kron B of the linear map S -> vec(A S B') for a core S (r, s).

    The coefficients are W = U S B' with the left basis U and the right basis B (n_tasks, s), and
    A = X U is (n_rows, r). Sample i * n_tasks + t is row i of X and task t.
    """

    traits = Traits(couples_by_structure=True)


class TaskBlock(Block):
    """Columns of pairs (feature j, task t): x_j at the samples of task t, zero elsewhere.

    Column i has the feature in row ``places[i]`` of ``features`` (n_distinct, n_rows) and the
    task ``tasks[i]``, one of ``n_tasks``; pairs may repeat. Each feature is stored once for all
    tasks. A product costs O(n_rows) per column, and columns of different tasks are orthogonal. If
    the block has at least 1 / ``SPARSE`` of all pairs of its features and tasks, it computes dense
    products over all pairs, for which BLAS takes less time.
    """

    #: Number of multiplications of a dense product in the time of one of a sparse product.
    SPARSE = 4

    def __init__(self, features: Array, places: Columns, tasks: Columns, n_tasks: int) -> None:
        """Store the features and the pairs, and order the pairs by features."""
        self.features = features
        self.places = places
        self.tasks = tasks
        self.n_tasks = n_tasks
        # The columns ordered by features, and the first column of each feature.
        self._order = np.argsort(places, kind="stable")
        starts = np.searchsorted(places[self._order], np.arange(features.shape[0] + 1))
        self._pattern = tasks[self._order], starts
        self._stored: SparseBlock | None = None
        self.shape = self.features.shape[1] * self.n_tasks, self.tasks.size
        self._is_full = self.SPARSE * tasks.size >= features.shape[0] * n_tasks

    def predict(self, weights: Array) -> Array:
        """Return vec(X W) for the sparse W with these ``weights`` at the pairs of the block."""
        if self._is_full:
            n_pairs = self.features.shape[0] * self.n_tasks
            dense_W = np.bincount(self.places * self.n_tasks + self.tasks, weights, n_pairs)
            return (self.features.T @ dense_W.reshape(-1, self.n_tasks)).reshape(-1)
        entries = np.asarray(weights)[self._order], *self._pattern
        W = sparse.csr_array(entries, shape=(self.features.shape[0], self.n_tasks))
        return np.ascontiguousarray((W.T @ self.features).T).reshape(-1)

    def scores(self, v: Array) -> Scores:
        """Return the products of all columns with v (n_samples,)."""
        return ArrayScores(self._pairs(self.features, v))

    def _squares(self, weights: Array) -> Array:
        """Return the squared norm of each column, with ``weights`` (n_samples,) of the samples."""
        return self._pairs(np.square(self.features), weights)

    def _pairs(self, rows: Array, v: Array) -> Array:
        """Return <rows[feature], v at the samples of the task> for each column, (n_columns,).

        ``rows`` (n_distinct, n_rows) has one vector for each feature; v is (n_samples,).
        """
        if self._is_full:
            products: Array = (rows @ np.reshape(v, (-1, self.n_tasks)))[self.places, self.tasks]
            return products
        result = np.empty(self.tasks.size)
        result[self._order] = _kernels.sampled_products(*self._pattern, rows, self._of_tasks(v))
        return result

    def _of_tasks(self, v: Array) -> Array:
        """Return v (n_samples,) as an array (n_tasks, n_rows) with one row per task."""
        return np.ascontiguousarray(np.reshape(v, (-1, self.n_tasks)).T)

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A' diag(curvature) A for the columns at ``positions``, computed task by task."""
        chosen = self if positions is None else self.gather(positions)
        result = np.zeros((chosen.tasks.size, chosen.tasks.size))
        weights = self._of_tasks(curvature)
        # Columns of different tasks are orthogonal, so that each task has a block of its own.
        order = np.argsort(chosen.tasks, kind="stable")
        tasks, starts = np.unique(chosen.tasks[order], return_index=True)
        for task, members in zip(tasks, np.split(order, starts[1:]), strict=False):
            rows = self.features[chosen.places[members]]
            products = (rows * weights[task]) @ rows.T
            result[np.ix_(members, members)] = 0.5 * (products + products.T)
        return result

    def dense(self) -> Array:
        """Return the columns as a dense array (n_samples, n_columns)."""
        return self.explicit().dense()

    def explicit(self) -> SparseBlock:
        """Return the same columns as a sparse block, which is computed once and kept."""
        if self._stored is not None:
            return self._stored
        n_rows = self.features.shape[1]
        # Column i is stored at the samples row * n_tasks + tasks[i].
        rows = np.arange(n_rows, dtype=np.int64)[None, :] * self.n_tasks + self.tasks[:, None]
        starts = np.arange(self.tasks.size + 1, dtype=np.int64) * n_rows
        data = self.features[self.places].reshape(-1)
        self._stored = SparseBlock(data, rows.reshape(-1), starts, self.shape[0])
        return self._stored

    traits = Traits(is_sparse=True)

    def stored(self) -> Any:
        """Return the columns as a sparse matrix of SciPy."""
        return self.explicit().stored()

    def gather(self, columns: Columns) -> TaskBlock:
        """Return the columns at these positions, over the same features."""
        return TaskBlock(self.features, self.places[columns], self.tasks[columns], self.n_tasks)

    def append(self, other: Block) -> Block:
        """Return the columns of this block and of ``other``.

        Features that are in both blocks are stored twice. Other kinds of blocks are appended to
        a sparse block.
        """
        if not isinstance(other, TaskBlock) or other.n_tasks != self.n_tasks:
            return self.explicit().append(other)
        return TaskBlock(
            np.vstack([self.features, other.features]),
            np.append(self.places, other.places + self.features.shape[0]),
            np.append(self.tasks, other.tasks),
            self.n_tasks,
        )


class TaskRidge:
    """Alternating ridge regression steps for the factors of W = left right'.

    With right fixed, the SVD of X diagonalizes the ridge regression for left. With left fixed, the
    factor right is a ridge regression on X left. The loss is replaced by a quadratic upper bound,
    whose curvature at a row is the weight of the row times the largest curvature per unit weight.

    Parameters
    ----------
    X : (n_rows, n_features) float64
        The features.
    weight : (n_samples,) float64
        The sample weights, one for each row and task.
    """

    def __init__(self, X: Array, weight: Array) -> None:
        """Compute the SVD of X (n_rows, n_features) with its rows weighted."""
        self._X = X
        self._weight = weight
        self._rows = np.reshape(weight, (X.shape[0], -1)).max(axis=1)
        self._values, self._vectors = np.linalg.svd(
            np.sqrt(self._rows)[:, None] * X, full_matrices=False
        )[1:]

    def predictions(self, left: Array, right: Array) -> Array:
        """Return the predictions vec(X left right'), (n_samples,)."""
        return np.asarray(self._X @ left @ right.T).reshape(-1)

    def step(
        self,
        is_left: bool,
        slope: Array,
        curvature: Array,
        updated: Array,
        fixed: Array,
        amount: float,
    ) -> Array:
        """Return the updated factor ``updated`` (left if ``is_left``), with ``fixed`` fixed.

        ``slope`` and ``curvature`` (n_rows * n_tasks,) are first and second derivatives of the loss
        in the predictions, and ``amount`` is the ridge parameter a. The step minimizes the upper
        bound in which the curvature is the same multiple of the weight of a row everywhere.
        """
        V = np.reshape(slope, (self._X.shape[0], -1))  # slopes, (n_rows, n_tasks)
        # The bound has the curvature ``largest`` times the largest weight of each row, ``_rows``.
        has_weight = self._weight > 0.0
        largest = float((curvature[has_weight] / self._weight[has_weight]).max())
        # Each update is a Newton step on the quadratic upper bound.
        if not is_left:
            images = self._X @ fixed
            H = largest * (images.T * self._rows) @ images + amount * np.eye(fixed.shape[1])
            return np.asarray(updated - np.linalg.solve(H, images.T @ V + amount * updated.T).T)
        # In the eigenvectors of fixed'fixed and the right singular vectors of X the Hessian is
        # diagonal, with the entries c + a, c = ``curvatures``. Its inverse is
        # 1/a (1 - c / (c + a)).
        eigenvalues, eigenvectors = np.linalg.eigh(fixed.T @ fixed)
        change = (self._X.T @ (V @ fixed) + amount * updated) @ eigenvectors / amount
        curvatures = largest * np.outer(self._values**2, np.maximum(eigenvalues, 0.0))
        shares = curvatures / (curvatures + amount)
        change -= self._vectors.T @ (shares * (self._vectors @ change))
        return np.asarray(updated - change @ eigenvectors.T)


class Tasks(MatrixDesign):
    """Design of multi-task regression: predictions vec(X W) for W (n_features, n_tasks).

    It has n_rows * n_tasks samples: sample i * n_tasks + t is target t of row i of X, so that
    targets Y (n_rows, n_tasks) are passed as ``Y.ravel()``. Column j * n_tasks + t is W[j, t]. A
    pass over the data is one product X'V for V (n_rows, n_tasks). Matrix pursuit, which
    approximates X by X W, is ``Tasks(X, X.shape[1])`` with the target X.

    Parameters
    ----------
    X : array, sparse matrix, table or Design, shape (n_rows, n_features)
        The features, common to all tasks.
    n_tasks : int
        Number of targets.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import Tasks
    >>> X, Y = np.eye(3), np.array([[4.0, 2.0], [0.5, 0.1], [2.0, 1.0]])
    >>> fit = solve(Tasks(X, 2), Y.ravel(), norm=norms.TraceNorm(), alpha=0.01)
    >>> fit.coef.reshape(3, 2).round(2).tolist()[1] != [0.5, 0.1]
    True
    """

    def __init__(self, X: object, n_tasks: int) -> None:
        """Check ``n_tasks``; X is read as a design, and not copied."""
        self.base = as_design(X)
        if not is_whole(n_tasks) or n_tasks < 1:
            raise ValueError(
                f"Tasks: n_tasks must be a whole number >= 1, got {n_tasks!r}; use Y.shape[1]"
            )
        self.n_tasks = int(n_tasks)
        shape = self.base.shape[1], self.n_tasks
        self.traits = Traits(self.base.traits.reads_at_once, matrix_shape=shape)
        #: The last sample weights, and the ``TaskRidge`` with the SVD of X weighted by them.
        self._ridge: tuple[Array, TaskRidge] | None = None
        n_rows, n_features = self.base.shape
        self.shape = n_rows * self.n_tasks, n_features * self.n_tasks
        self.dtype = self.base.dtype

    def scores(self, v: Array) -> Scores:
        """Return the scores Z = X'V of v (n_samples,), with V its reshape to (n_rows, n_tasks)."""
        return self.scores_many(v[:, None])[0]

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'V_m of each column v of V, with V_m its reshape to rows and tasks.

        One pass reads X for all vectors and tasks.
        """
        task_scores = self.base.scores_many(np.hstack([self._rows(v) for v in V.T]))
        Z = np.column_stack([z.full() for z in task_scores])
        return [MatrixScores(z) for z in np.hsplit(Z, V.shape[1])]

    def predict(self, weights: Array) -> Array:
        """Return vec(X W) in one pass; ``weights`` are W in row-major order."""
        return self.base.product(np.reshape(weights, self.matrix_shape)).reshape(-1)

    def gather(self, columns: Columns) -> Block:
        """Return the columns j * n_tasks + t: a ``TaskBlock`` for dense data, else a sparse block.

        Each feature j is read once for all its tasks t.
        """
        features, positions = np.unique(columns // self.n_tasks, return_inverse=True)
        block = self.base.gather(features)
        tasks = columns % self.n_tasks
        if not block.traits.is_sparse:
            rows = np.ascontiguousarray(block.dense().T, dtype=np.float64)
            return TaskBlock(rows, positions.ravel(), tasks, self.n_tasks)
        # A sparse column has x_j at the samples of task t: its rows i become i * n_tasks + t.
        matrix = block.stored()[:, positions.ravel()].tocsc()
        column_of_entry = np.repeat(np.arange(positions.size), np.diff(matrix.indptr))
        rows = matrix.indices.astype(np.int64) * self.n_tasks + tasks[column_of_entry]
        return SparseBlock(matrix.data, rows, matrix.indptr, self.shape[0])

    def span(self, left: Array, right: Array) -> Block:
        """Return the implicit matrix from S to predictions of left S right'; stores X left."""
        return TaskSpan(self, self.images(left), right)

    def images(self, left: Array) -> Array:
        """Return X left (n_rows, r) for ``left`` (n_features, r): O(n_rows n_features r)."""
        return self.base.product(left)

    def ridge_steps(self) -> Callable[[Array], TaskRidge] | None:
        """Return a function from sample weights to ``TaskRidge``; None if the SVD is too large.

        A step of ``TaskRidge`` updates one factor of W = left right' by a ridge regression. It
        needs a base that is ``listable``: one with few enough columns to loop over all.
        """
        base = self.base
        n_features = self.base.shape[1]
        # X is decomposed once for each array of weights, which must cost less than a few passes.
        is_small = min(base.shape) <= TUNING.few_columns and base.listable
        if not is_small or base.shape[0] * n_features > TUNING.column_entries:
            return None

        def begin(weight: Array) -> TaskRidge:
            """Return the steps for these sample weights; those of the last array are kept."""
            cached = self._ridge
            if cached is None or cached[0] is not weight:
                X = base.gather(np.arange(n_features)).dense()
                self._ridge = cached = weight, TaskRidge(np.asarray(X, dtype=np.float64), weight)
            return cached[1]

        return begin

    def pulled(self, v: Array, right: Array) -> Array:
        """Return V right (n_rows, s) for V = v reshaped to (n_rows, n_tasks)."""
        return np.asarray(self._rows(v) @ right)

    def _rows(self, v: Array) -> Array:
        """Return v (n_samples,) as a matrix (n_rows, n_tasks)."""
        return np.reshape(v, (self.base.shape[0], self.n_tasks))


@columns_for_kernel.register
def _pairs_of(block: TaskBlock) -> Any:
    """Return the arguments of kernels for a ``TaskBlock``.

    They are the distinct features, the feature and the task of each column, and the number of
    tasks.
    """
    return block.features, block.places, block.tasks, block.n_tasks


@coupled_gram.register
def _span_hessian(block: TaskSpan, curvature: Array, coupling: Any) -> Array:
    """Return the Hessian (A kron B)'(diag(c) - K K')(A kron B), (r s, r s), of the core S.

    ``curvature`` is c (n_samples,) and ``coupling`` is K, sparse (n_samples, k). If a column of K
    has entries in one row i of the data only, as in multinomial losses, row i has a matrix
    C_i (s, s). Block (a, b) of the result is then A' diag(C_1ab, C_2ab, ...) A, at a cost of
    O(n_rows r^2). Other columns of K contribute rank-one terms.
    """
    A = block._images
    B = block._right
    (n_rows, r) = A.shape
    (n_tasks, s) = B.shape
    K = sparse.csc_array(coupling)
    column_of_entry = np.repeat(np.arange(K.shape[1]), np.diff(K.indptr))
    # In losses of several classes column i of K belongs to row i; other columns may follow.
    is_in_row = (column_of_entry < n_rows) & (K.indices // n_tasks == column_of_entry)
    other_columns = np.unique(column_of_entry[~is_in_row])
    is_in_row &= ~np.isin(column_of_entry, other_columns)
    # Row i of ``shares`` is column i of K at the samples of row i; it is 0 for other columns.
    shares = np.zeros((n_rows, n_tasks))
    shares[column_of_entry[is_in_row], K.indices[is_in_row] % n_tasks] = K.data[is_in_row]
    # C_i = B' (diag(c_i) - k_i k_i') B, with c_i and k_i at the samples of row i.
    U = shares @ B
    C = np.einsum("it,ta,tb->iab", np.reshape(curvature, (n_rows, n_tasks)), B, B)
    C -= U[:, :, None] * U[:, None, :]
    blocks = np.empty((r, s, r, s))
    for a in range(s):
        for b in range(a, s):
            blocks[:, a, :, b] = (A * C[:, a, b][:, None]).T @ A
            blocks[:, b, :, a] = blocks[:, a, :, b]
    H: Array = blocks.reshape(r * s, r * s)
    for column in other_columns:
        pulled = block.scores(K[:, [column]].toarray().ravel()).full()
        H -= np.outer(pulled, pulled)
    return H


@spanned.register
def _of_tasks(block: TaskBlock, right: Array) -> Block | None:
    """Return the implicit matrix from S to the predictions of the block at weights S right'.

    S right' is (n_features, n_tasks), with one row for each feature of the block. The result is
    None if the block does not contain all tasks of each of its features, in order.
    """
    features = block.places[:: block.n_tasks]
    pairs = np.repeat(features, block.n_tasks), np.tile(np.arange(block.n_tasks), features.size)
    if not (np.array_equal(block.places, pairs[0]) and np.array_equal(block.tasks, pairs[1])):
        return None
    images = np.ascontiguousarray(block.features[features].T)
    return TaskSpan(Tasks(images, block.n_tasks), images, right)


@spanned.register
def _of_repeated_tasks(block: RepeatedBlock, right: Array) -> Block | None:
    """Return the result of ``_of_tasks`` for a block in which some columns are repeated.

    It is the implicit matrix from a core S to the predictions of the block at weights S right'.
    The result is None if the block without repetitions is not a ``TaskBlock``.
    """
    inner = block.base.inner
    if not isinstance(inner, TaskBlock):
        return None
    return _of_tasks(inner.gather(block.positions), right)
