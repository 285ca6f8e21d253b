"""SparseRankOne and SparsePSD: atomic norms with sparse rank-one atoms, with NP-hard polars."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import to_float64, whole_number
from atomlearn.core import Array, gauge_by_generation
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.sparse_search import SparseSearch
from atomlearn.matrices.norms.spectral import PSD, square, top_singular
from atomlearn.matrices.scores import Found, ScoreMatrix, Shape, merged, symmetric_part
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.rays import Rays


class SparseNorm(MatrixNorm):
    """Base of the norms with sparse rank-one atoms, whose value and proximal operator are hard."""

    coordinates = Rays

    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """Return left diag(weights) right', a sum of atoms, orthogonalized on each support.

        left is (p, t), weights (t,) and right (q, t). A support is the pair of nonzero rows
        of an atom. The result has the same form, and its weights have no larger sum.
        """
        return merged(left, weights, right)

    def value(self, w: NDArray[Any]) -> float:
        """Return gauge(W) to a relative accuracy of 1e-6, by column generation.

        ``w`` is W (p, q), or its entries in row-major order. Raise TypeError if this accuracy
        cannot be certified, or if W is too large.
        """
        if np.ndim(w) == 2:
            return float(self.on(np.size(w), np.shape(w)).value(np.ravel(w)))
        vector = to_float64(w)
        value = gap = math.inf
        # The search for atoms by branch and bound is exact for small matrices.
        if sum(self._shape_of(vector.size)) <= 2 * SETTINGS.branch_side:
            value, gap = gauge_by_generation(self, vector, tol=1e-6)
        if not gap <= 1e-6 * value < math.inf:
            raise TypeError(
                f"the value of {type(self).__name__} is NP-hard; "
                "solvers.gauge_by_generation(norm, w) gives bounds on it"
            )
        return value

    @abstractmethod
    def _sparse(self, matrix: ScoreMatrix) -> SparseSearch:
        """Return the object that searches ``matrix`` (p, q) for the sparse atoms of largest score.

        Nothing is searched yet.
        """

    def nearest(self, matrix: ScoreMatrix, radius: float, accuracy: float) -> tuple[Array, float]:
        """Return scores near ``matrix`` and an upper bound on their polar (dual norm).

        They are the projection of ``matrix`` on the scores for which the convex relaxation proves
        that the polar is at most ``radius``. The projection ends when its relative duality gap is
        at most ``accuracy``, so that the bound may be slightly above ``radius``.
        """
        relaxation = self._sparse(matrix).relaxation
        dense = matrix.dense()
        target = symmetric_part(matrix).dense() if relaxation.symmetric else dense
        projected, bound = relaxation.nearest(target, radius, accuracy, matrix.deadline)
        # The skew-symmetric part has no effect on symmetric atoms, so that it stays as it is.
        return projected + (dense - target), bound

    @abstractmethod
    def _dense(self, matrix: ScoreMatrix, accuracy: float) -> Found:
        """Return the best atoms for the scores ``matrix`` without the sparsity constraint.

        Their scores are an upper bound, and their supports start the search for sparse
        atoms. ``accuracy`` is the relative gap between the bounds on the best score at
        which the search stops.
        """

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """Return the best sparse atoms found for the scores ``matrix``, with bounds on the polar.

        There are at most ``count`` atoms. ``accuracy`` is the relative gap of the search
        for dense atoms, and ``thorough`` allows branch and bound.
        """
        search = self._sparse(matrix)
        dense = self._dense(matrix, accuracy)
        top = np.vstack([dense.left, dense.right])[: search.labels.size]
        X, values, upper = search.best(top, dense.upper, thorough)
        return _atoms(X[:, :count], values[:count], matrix, upper)

    def search_near(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """Return all atoms of positive score on the supports of given atoms and on nearby supports.

        The given atoms have the columns of ``left`` (p, t) and ``right`` (q, t). Nearby supports
        are those that local search reaches by exchanging indices. Each support takes a small
        eigendecomposition. ``matrix`` may contain only some rows and columns of the scores. The
        upper bound on the polar is infinite.
        """
        search = self._sparse(matrix)
        supports = search.supports(np.vstack([left, right])[: search.labels.size])
        candidates = np.vstack([supports, search.exchanged(search.ranked(supports))])
        return _atoms(*search.on_supports(np.unique(candidates, axis=0)), matrix, math.inf)


def _atoms(X: Array, values: Array, matrix: ScoreMatrix, upper: float) -> Found:
    """Return the atoms of the columns of X, which are u (for u u') or (u, v) / sqrt(2).

    ``values`` (t,) are their scores, ``matrix`` has the shape of the scores, and ``upper`` is an
    upper bound on the polar.
    """
    # For u u' the first p rows and the last q = p rows are the same.
    left = X[: matrix.shape[0]]
    right = X[-matrix.shape[1] :]
    left = left / np.linalg.norm(left, axis=0)
    right = right / np.linalg.norm(right, axis=0)
    return Found(left, right, values, float(values.max(initial=0.0)), upper)


class SparseRankOne(SparseNorm):
    """(k, q)-trace norm: the atomic norm of sparse rank-one matrices u v'.

    The atoms have ||u||_2 = ||v||_2 = 1, and at most k nonzero entries in u and q in v. They are
    the atoms of Richard, Obozinski, Vert (2014) without the factor sqrt(k q) ([V] section 2.1). For
    W of shape (p, n), k = p and q = n give the trace norm, k = q = 1 the l1 norm.

    Parameters
    ----------
    k, q : int
        Largest number of nonzero entries of u and of v.
    shape : (p, n), optional
        Shape of W; None: that of the design.

    Notes
    -----
    The polar is NP-hard. ``search`` exchanges indices one by one, starting at the supports of
    singular vectors, of the best rows and columns, and of random vectors. Its upper bound is the
    least of several ones: the largest singular value, and the largest sums of k x q magnitudes or
    squares by rows or columns. At the end of a fit the semidefinite relaxation and branch and bound
    are added, which is exact for p + n up to about 64. With a squared loss of the entries of W
    (``designs.Identity``) the gap is computed at a dual point for which the relaxation is tight. It
    is far smaller than the gap at the scores. If the bounds remain different, a fit can end with
    ``Status.SEARCH_RELATIVE``.

    References
    ----------
    Richard, Obozinski, Vert 2014; [V] sections 2.1 and 4.4; d'Aspremont, El Ghaoui, Jordan,
    Lanckriet 2007 (the relaxation).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.SparseRankOne(k=1, q=2)
    >>> round(norm.polar(np.array([[3.0, 4.0], [0.0, 1.0]])), 6)
    5.0
    """

    def __init__(self, k: int, q: int, shape: Any = None) -> None:
        self.k = k
        self.q = q
        self.shape = shape

    def on(self, n_features: int, shape: Shape | None = None) -> SparseRankOne:
        """Return the same norm for matrices of this shape, with ``n_features`` entries.

        k and q may exceed the sides of the matrix.
        """
        whole_number("SparseRankOne", "k", self.k)
        whole_number("SparseRankOne", "q", self.q)
        return super().on(n_features, shape)

    def _sparse(self, matrix: ScoreMatrix) -> SparseSearch:
        """Return the search in ``matrix`` for pairs u, v with at most k and q nonzero entries."""
        return SparseSearch.of_pairs(matrix.dense(), self.k, self.q, matrix.deadline)

    def _dense(self, matrix: ScoreMatrix, accuracy: float) -> Found:
        """Return the top singular triplets of ``matrix``, with bounds of gap ``accuracy``."""
        return top_singular(matrix, SETTINGS.starts, accuracy)


class SparsePSD(SparseNorm):
    """Atomic norm for sparse PCA, with atoms u u' for k-sparse unit vectors u.

    It is finite only for nonnegative combinations of atoms with ||u||_2 = 1 and ||u||_0 <= k, which
    are positive semidefinite. [V] section 2.1.

    Parameters
    ----------
    k : int
        Largest number of nonzero entries of u.
    shape : (p, p), optional
        Shape of W; None: that of the design.

    Notes
    -----
    The polar, max u'Zu, is NP-hard. It is searched by exchanges of one index from several starts.
    Upper bounds are the largest eigenvalue, Gershgorin's discs of k x k blocks, sums of squares,
    the semidefinite relaxation of sparse PCA, and branch and bound; see SparseRankOne.

    References
    ----------
    Richard, Obozinski, Vert 2014; [V] section 4.4; d'Aspremont, El Ghaoui, Jordan, Lanckriet 2007
    (the relaxation).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> round(norms.SparsePSD(k=2).polar(np.diag([1.0, 3.0, 2.0])), 6)
    3.0
    """

    def __init__(self, k: int, shape: Any = None) -> None:
        self.k = k
        self.shape = shape

    def on(self, n_features: int, shape: Shape | None = None) -> SparsePSD:
        """Return the same norm for matrices of this shape, with ``n_features`` entries.

        The shape must be square.
        """
        whole_number("SparsePSD", "k", self.k)
        return square(super().on(n_features, shape))

    def _sparse(self, matrix: ScoreMatrix) -> SparseSearch:
        """Return the search in ``matrix`` for vectors u with at most k nonzero entries."""
        A = symmetric_part(matrix).dense()
        return SparseSearch.of_vectors(A, self.k, matrix.deadline)

    def _dense(self, matrix: ScoreMatrix, accuracy: float) -> Found:
        """Return the top eigenpairs of the symmetric part of ``matrix``, with bounds.

        The relative gap of the bounds is ``accuracy``.
        """
        return PSD(matrix.shape).search(matrix, SETTINGS.starts, accuracy)
