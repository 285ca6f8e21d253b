"""SparseRankOne and SparsePSD: atoms u v' and u u' of sparse unit vectors. Oracles are NP-hard."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Design, Term, whole_number
from atomlearn.matrices.designs.reshaped import as_matrix_design
from atomlearn.matrices.found import Found, joined, merged, positive_part
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.lanczos import top_singular
from atomlearn.matrices.norms.psd import check_square
from atomlearn.matrices.norms.sparse_search import (
    Branching,
    branch_pairs,
    frobenius_bound,
    pair_starts,
    pairs_on_supports,
    power_pairs,
)
from atomlearn.matrices.norms.sparse_vectors import (
    branch_vectors,
    disc_bound,
    exchanged,
    power_vectors,
    supports_of,
    vector_starts,
    vectors_on_supports,
)
from atomlearn.matrices.scores import ScoreMatrix, SymmetricPart
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.rays import Rays


class SparseNorm(MatrixNorm):
    """What the two norms with sparse atoms share: rays, no value of their own, no prox."""

    def at_zero(self, term: Term, design: Design) -> Rays:
        """No rays."""
        p, q = self.matrix_shape or ()
        return Rays(term, as_matrix_design(design, (p, q)), np.zeros((p, 0)), np.zeros((q, 0)))

    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """The atoms themselves, orthogonal on each pair of supports."""
        return merged(left, weights, right)

    @property
    def knows_value(self) -> bool:
        """False: the value is as hard as the best atom."""
        return False

    def value(self, w: NDArray[Any]) -> float:
        """Raise: the value is NP-hard, as the best atom is."""
        raise TypeError(
            f"the value of {type(self).__name__} is NP-hard; "
            "solvers.gauge_by_generation(norm, w) gives bounds on it"
        )

    @abstractmethod
    def search_near(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """Return the best atoms on the supports of these, and where they lead by local search.

        A fraction of the price of ``search``; ``upper`` is the same bound.
        """

    @abstractmethod
    def search_on_supports(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """Return all atoms of positive value on these supports: a small decomposition for each.

        ``matrix`` may be that of some rows and columns only. ``upper`` is infinite.
        """


class SparseRankOne(SparseNorm):
    """gauge of { u v' : ||u|| = ||v|| = 1, ||u||_0 <= k, ||v||_0 <= q }: the (k, q)-trace norm.

    Without the factor sqrt(k q) of Richard, Obozinski, Vert (2014), whose atoms it shares
    ([V] section 2.1). k = p and q = n columns: the trace norm; k = q = 1: the l1 norm.

    Parameters
    ----------
    k, q : int
        Most non-zeros of u and of v.
    shape : (p, n), optional
        Of W; None: that of the design.

    Notes
    -----
    The polar is NP-hard. ``search`` takes truncated power iterations from singular vectors, the
    best rows and random starts; its bound from above is the least of the largest singular value,
    the largest k x q sum of squares by rows or columns, and, for at most 1024 entries, of branch
    and bound, which ends exact as a rule. Where the bounds stay apart a fit can end with
    ``Status.SEARCH_RELATIVE``.

    References
    ----------
    Richard, Obozinski, Vert 2014; [V] sections 2.1 and 4.4.

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

    def check(self, n_features: int) -> None:
        """Raise where k, q or the shape is unusable; k and q may exceed the sides."""
        whole_number("SparseRankOne", "k", self.k)
        whole_number("SparseRankOne", "q", self.q)
        super().check(n_features)

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """The best pairs of sparse vectors found, with bounds."""
        Z = matrix.dense()
        k, q = min(self.k, Z.shape[0]), min(self.q, Z.shape[1])
        spectrum = top_singular(matrix, SETTINGS.starts, 1e-3)
        rng = np.random.default_rng(0)
        sizes = SETTINGS.thorough if thorough else SETTINGS.quick
        starts = pair_starts(Z, q, spectrum.right, rng, sizes)
        U, V, values = power_pairs(Z, k, q, starts, matrix.deadline)
        if not values.size:
            return Found(U, V, values, 0.0, 0.0)
        upper = min(spectrum.upper, frobenius_bound(Z, k, q))
        if (
            thorough
            and upper > values[0] * (1 + SETTINGS.branched)
            and Z.size <= SETTINGS.branch_entries
        ):
            best = Branching(float(values[0]), U[:, 0], V[:, 0], upper)
            tree = branch_pairs(Z, k, q, best, SETTINGS.branched, matrix.deadline)
            upper = min(upper, tree.bound)
            if tree.value > values[0]:
                U, V = np.column_stack([tree.left, U]), np.column_stack([tree.right, V])
                values = np.append(tree.value, values)
        lower = float(values[0])
        return Found(U[:, :count], V[:, :count], values[:count], lower, max(upper, lower))

    def search_near(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """The singular vectors on each pair of supports, and power iterations from ``right``."""
        Z = matrix.dense()
        k, q = min(self.k, Z.shape[0]), min(self.q, Z.shape[1])
        upper = min(top_singular(matrix, 1, 1e-3).upper, frobenius_bound(Z, k, q))
        near = Found(*power_pairs(Z, k, q, right, matrix.deadline), 0.0, upper)
        return joined(near, self.search_on_supports(matrix, left, right))

    def search_on_supports(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """The singular vectors on each pair of supports."""
        U, V, values = pairs_on_supports(matrix.dense(), left, right, matrix.deadline)
        return Found(U, V, values, float(values.max(initial=0.0)), math.inf)


class SparsePSD(SparseNorm):
    """gauge of { u u' : ||u|| = 1, ||u||_0 <= k }: the gauge of sparse principal components.

    Infinite but for sums of such atoms, which are positive semidefinite. [V] section 2.1.

    Parameters
    ----------
    k : int
        Most non-zeros of u.
    shape : (p, p), optional
        Of W; None: that of the design.

    Notes
    -----
    The polar, max u'Zu, is NP-hard: truncated power iterations (Yuan, Zhang 2013) from several
    starts, then exchanges of one index; bounded from above by the largest eigenvalue, Gershgorin's
    discs of k x k blocks, sums of squares, and branch and bound for p <= 32; see SparseRankOne.

    References
    ----------
    Richard, Obozinski, Vert 2014; [V] section 4.4.

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

    def check(self, n_features: int) -> None:
        """Raise where k is unusable or the shape is not square."""
        whole_number("SparsePSD", "k", self.k)
        super().check(n_features)
        check_square(self)

    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """The best sparse vectors found, with bounds; those of positive value only."""
        A = SymmetricPart(matrix).dense()
        k = min(self.k, A.shape[0])
        eigenvalues, vectors = np.linalg.eigh(A)
        sizes = SETTINGS.thorough_vectors if thorough else SETTINGS.quick_vectors
        top, rng = vectors[:, ::-1][:, : SETTINGS.starts], np.random.default_rng(0)
        starts = vector_starts(A, k, top, rng, sizes)
        supports = power_vectors(A, k, starts, max(0.0, -float(eigenvalues[0])))
        values, U, _ = exchanged(A, supports, matrix.deadline)
        upper = self._upper(A, k, float(eigenvalues[-1]))
        lower = max(float(values[0]), 0.0)
        apart = upper > lower * (1 + SETTINGS.branched) and upper > 0.0
        if thorough and apart and A.size <= SETTINGS.branch_entries:
            best = Branching(lower, U[:, 0], U[:, 0], upper)
            tree = branch_vectors(A, k, best, SETTINGS.branched, matrix.deadline)
            upper = min(upper, tree.bound)
            if tree.value > lower:
                U, values = np.column_stack([tree.left, U]), np.append(tree.value, values)
                lower = tree.value
        return positive_part(U[:, :count], values[:count], lower, max(upper, lower))

    @staticmethod
    def _upper(A: Array, k: int, largest: float) -> float:
        """Return the least of the bounds that cost little: the eigenvalue, discs, squares."""
        return max(min(largest, disc_bound(A, k), frobenius_bound(A, k, k)), 0.0)

    def search_near(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """The eigenvectors on each support, and exchanges of indices from there."""
        A = SymmetricPart(matrix).dense()
        k = min(self.k, A.shape[0])
        values, U, _ = exchanged(A, supports_of(A, k, left), matrix.deadline)
        upper = self._upper(A, k, float(np.linalg.eigvalsh(A)[-1]))
        near = positive_part(U, values, max(float(values[0]), 0.0), upper)
        return joined(near, self.search_on_supports(matrix, left, right))

    def search_on_supports(self, matrix: ScoreMatrix, left: Array, right: Array) -> Found:
        """The eigenvectors on each support."""
        A = SymmetricPart(matrix).dense()
        U, values = vectors_on_supports(A, supports_of(A, min(self.k, A.shape[0]), left))
        return positive_part(U, values, max(float(values.max()), 0.0), math.inf)
