"""Elliptope and DoublyNonnegative: gauges whose best atom is a semidefinite program.

Both programs are solved by a primal-dual interior point method (HKM direction; Helmberg, Rendl,
Vanderbei, Wolkowicz 1996, doi 10.1137/0806020) that stays feasible on both sides. The dual point
bounds the polar from above, whatever the accuracy that is reached.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky

from atomlearn._support import Deadline
from atomlearn.core import Array, Atom, AtomGeneration, Columns, Scores, Solver
from atomlearn.matrices.norms.base import ShapedNorm
from atomlearn.matrices.norms.spectral import square
from atomlearn.matrices.scores import Shape, score_matrix
from atomlearn.matrices.settings import SETTINGS


class SemidefiniteAtom(NamedTuple):
    """The best atom R (p, p) for scores Z, lower = <Z, R>, and an upper bound on the polar.

    The polar (dual norm) is the largest <Z, R> over all atoms, the extreme points of the unit ball.
    """

    R: Array
    lower: float
    upper: float


class SemidefiniteSet(ShapedNorm):
    """Base of the gauges of t R with R positive semidefinite in an affine set, t >= 0.

    Subclasses say which entries the affine set fixes, and whether all entries are nonnegative.
    """

    def on(self, n_features: int, shape: Shape | None = None) -> SemidefiniteSet:
        """Return the same norm for matrices of this shape, with ``n_features`` entries.

        The shape must be square.
        """
        return square(super().on(n_features, shape))

    @abstractmethod
    def _best(self, Z: Array) -> SemidefiniteAtom:
        """Return the best atom for the symmetric scores Z (p, p), with its bounds."""

    @abstractmethod
    def _scale(self, W: Array) -> float:
        """Return the gauge of a positive semidefinite W (p, p); inf if the set excludes W."""

    def value(self, w: NDArray[Any]) -> float:
        """Return gauge(W), or infinity if W is outside the cone (by more than rounding)."""
        W = self._as_matrix(w)
        self.on(W.size, W.shape)
        # Scaled to a largest entry of 1, W may violate a condition by ``accuracy``.
        size = float(np.abs(W).max(initial=0.0))
        if size == 0.0:
            return 0.0
        W = W / size
        accuracy = 1e3 * SETTINGS.accuracy
        if float(np.abs(W - W.T).max()) > accuracy:
            return math.inf
        least = float(np.linalg.eigvalsh(0.5 * (W + W.T))[0])
        return math.inf if least < -accuracy * W.shape[0] else size * self._scale(W)

    def polar(self, scores: Scores) -> float:
        """Return an upper bound on the polar (dual norm) of ``scores``.

        It is the value of the dual point of the semidefinite program.
        """
        return max(self._best_for(scores).upper, 0.0)

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom R with the largest <Z, R> for ``scores`` Z.

        The result is the empty atom if no <Z, R> is positive.
        """
        best = self._best_for(scores)
        entries = best.R.reshape(-1)
        columns = np.flatnonzero(entries) if best.lower > 0.0 else np.zeros(0, dtype=np.int64)
        return Atom(columns, entries[columns])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the flat indices of the nonzero entries of the best atom for ``scores``.

        ``count`` is ignored.
        """
        return self.best_atom(scores).columns

    def solver(self, tol: float) -> Solver:
        """Return ``AtomGeneration`` with relative gap ``tol``: atoms are matrices of any rank."""
        return AtomGeneration(tol=tol)

    def _best_for(self, scores: Scores) -> SemidefiniteAtom:
        """Return the best atom for these scores; it is cached with the scores."""
        matrix = score_matrix(scores, self._shape_of(scores.n_columns))
        memo: dict[Any, Any] = matrix.memo
        cached: SemidefiniteAtom | None = memo.get(repr(self))
        if cached is None:
            Z = matrix.dense()
            cached = memo[repr(self)] = self._best(0.5 * (Z + Z.T))
        return cached


class Elliptope(SemidefiniteSet):
    """Gauge of the elliptope, the set of correlation matrices {R psd, R_ii = 1}.

    gauge(W) = W_11 if W is positive semidefinite and all W_ii are equal, else infinite. The polar
    max(0, max { <Z, R> : R psd, R_ii = 1 }) is the max-cut semidefinite program. [V] section 2.1
    names this set.

    Parameters
    ----------
    shape : (p, p), optional
        Shape of W; None: that of the design, or of a 2-d array.

    Notes
    -----
    The elliptope contains the cut polytope, conv {ss' : s in {-1, 1}^p}, whose polar is NP-hard
    (max-cut); both are equal for p <= 2 only. The polar of the elliptope is a semidefinite program
    and computed to about 1e-9 in 10 to 20 steps of O(p^3). It bounds that of the cut polytope from
    above, for positive semidefinite Z by a factor of at most pi / 2 [Nesterov 1998].

    References
    ----------
    [V] section 2.1; Goemans, Williamson 1995, doi:10.1145/227683.227684; Laurent, Poljak 1995,
    doi:10.1016/0024-3795(95)00271-R.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.Elliptope()
    >>> norm.value(np.array([[2.0, 1.0], [1.0, 2.0]])), norm.value(np.diag([2.0, 1.0]))
    (2.0, inf)
    >>> round(norm.polar(np.array([[1.0, -3.0], [-3.0, 1.0]])), 6)
    8.0
    """

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    def _scale(self, W: Array) -> float:
        """Return the common diagonal entry of W, or infinity if diagonal entries differ."""
        diagonal = np.diag(W)
        mean = float(diagonal.mean())
        is_constant = float(np.abs(diagonal - mean).max()) <= 1e3 * SETTINGS.accuracy
        return mean if is_constant else math.inf

    def _best(self, Z: Array) -> SemidefiniteAtom:
        """Return the best atom for the symmetric scores Z, by a semidefinite program."""
        identity = np.eye(len(Z))
        return solve_sdp(Z, identity, identity, nonnegative=False)


class DoublyNonnegative(SemidefiniteSet):
    """Gauge of the doubly nonnegative matrices of trace 1: {R psd, R_ij >= 0, tr R = 1}.

    gauge(W) = tr W if W is positive semidefinite and no entry is negative, else infinite. The polar
    is min { lambda_max(Z + N) : N_ij >= 0 }, or 0 if that is negative. [V] section 2.1 names this
    set.

    Parameters
    ----------
    shape : (p, p), optional
        Shape of W; None: that of the design, or of a 2-d array.

    Notes
    -----
    The set contains the completely positive matrices, conv {uu' : u >= 0, ||u|| = 1}, whose polar
    is NP-hard. Both sets are equal for p <= 4 only [Maxfield, Minc 1962]. The polar
    computed here is a semidefinite program with p (p - 1) / 2 inequalities. It is solved to about
    1e-9 in 10 to 30 steps of O(p^6) operations: 0.15 seconds for p = 20, three for p = 40. If no
    entry of Z off the diagonal is negative, the polar is the largest eigenvalue.

    References
    ----------
    [V] section 2.1; Berman, Shaked-Monderer 2003, Completely positive matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.DoublyNonnegative()
    >>> norm.value(np.array([[2.0, 1.0], [1.0, 2.0]])), norm.value(np.array([[1.0, -1.0], [-1, 1]]))
    (4.0, inf)
    >>> round(norm.polar(np.array([[1.0, -5.0], [-5.0, 3.0]])), 6)
    3.0
    """

    def __init__(self, shape: Any = None) -> None:
        self.shape = shape

    def _scale(self, W: Array) -> float:
        """Return tr W, or infinity if an entry is negative beyond rounding."""
        return math.inf if float(W.min()) < -1e3 * SETTINGS.accuracy else float(np.trace(W))

    def _best(self, Z: Array) -> SemidefiniteAtom:
        """Return the best atom for the symmetric scores Z, with its bounds.

        If Z has no negative entry off the diagonal, it is u u' for the leading eigenvector u of Z,
        which is nonnegative. Otherwise a semidefinite program is solved.
        """
        p = len(Z)
        off_diagonal = Z - np.diag(np.diag(Z))
        if float(off_diagonal.min(initial=0.0)) >= 0.0:
            values, vectors = np.linalg.eigh(Z)
            u = np.abs(vectors[:, -1])
            lower = float(u @ Z @ u)
            return SemidefiniteAtom(np.outer(u, u), lower, max(float(values[-1]), lower))
        # A strictly feasible start: trace 1, positive definite, with positive entries.
        interior = np.full((p, p), 0.5 / p**2)
        interior[np.diag_indices(p)] = 1.0 / p
        return solve_sdp(Z, np.ones((1, p)), interior, nonnegative=True)


class Feasible(NamedTuple):
    """Strictly feasible points of the primal and of the dual program, see ``Program``.

    R (p, p) is primal; y (m,) and n (number of pairs,) are dual, with S = diag(a'y) - C - N.
    """

    R: Array
    y: Array
    n: Array
    S: Array


class Program:
    """max <C, R> over psd R (p, p) with a diag(R) = a diag(R_0), and R_ij >= 0 if ``nonnegative``.

    Let b = a diag(R_0). The dual is min b'y over y and n >= 0 with S = diag(a'y) - C - N psd. N has
    the entries n_ij / 2 off the diagonal. Each such y bounds the first program from above, because
    <C, R> = b'y - <S, R> - <N, R>. If S has an eigenvalue -delta < 0, the bound is
    b'y + delta tr(R_0).

    Parameters
    ----------
    C : (p, p)
        Symmetric.
    a : (m, p)
        The rows of the constraints; together they fix the trace.
    R : (p, p)
        R_0, positive definite; its entries are positive if ``nonnegative``.
    nonnegative : bool
        Whether the entries off the diagonal are constrained.
    """

    def __init__(self, C: Array, a: Array, R: Array, nonnegative: bool) -> None:
        """Store the program, and make strictly feasible points of both programs, ``first``."""
        p = len(C)
        self.C = C
        self.a = a
        self.b = a @ np.diag(R)
        self.trace = float(np.trace(R))
        # Indices i < j of the constrained entries R_ij; the offset p leaves none of them.
        self.i, self.j = np.triu_indices(p, 1 if nonnegative else p)
        n = np.ones(self.i.size)
        # All y are equal, and the columns of a have equal sums: diag(a'y) is a multiple of the
        # identity, large enough for a positive definite S.
        y = np.full(len(a), 1.0 + float(np.abs(C).sum(axis=1).max()) + 0.5 * p)
        self.first = Feasible(R, y, n, self.slack(y, n))

    def slack(self, y: Array, n: Array) -> Array:
        """Return S = diag(a'y) - C - N (p, p), with N the matrix of n."""
        return np.diag(self.a.T @ y) - self.C - self.spread(n)

    def spread(self, n: Array) -> Array:
        """Return the symmetric matrix N with <N, R> = sum_ij n_ij R_ij over i < j.

        n has one number for each constrained entry (i, j); N has n_ij / 2 at (i, j) and (j,
        i).
        """
        N = np.zeros_like(self.C)
        N[self.i, self.j] = N[self.j, self.i] = 0.5 * n
        return N

    def upper(self, point: Feasible) -> float:
        """Return the upper bound b'y + max(delta, 0) tr(R_0) of a dual point."""
        least = float(np.linalg.eigvalsh(point.S)[0])
        return float(self.b @ point.y) + max(-least, 0.0) * self.trace

    def step(self, point: Feasible) -> tuple[Feasible, float]:
        """Return the next points, after a Newton step, and the shorter of both step lengths.

        The step aims at S R = mu I and n_ij R_ij = mu. mu is the share max(1 - t, 0.1)^2 of the
        present mean of these products. t is the length that a step to mu = 0 could have. [Mehrotra
        1992]
        """
        i = self.i
        j = self.j
        R = point.R
        inverse = np.linalg.inv(point.S)
        inverse = 0.5 * (inverse + inverse.T)
        factor = cho_factor(self._system(point, inverse))
        size = len(R) + i.size
        mean = (float(np.vdot(R, point.S)) + float(point.n @ R[i, j])) / size
        # The right side of the equations for dy and -dn is mu * with_mu - without_mu.
        without_mu = np.append(self.b, np.zeros(i.size))
        with_mu = np.append(self.a @ np.diag(inverse), inverse[i, j] - 1.0 / point.n)
        # The first round is for mu = 0, and determines t and mu; the second one is the step.
        mu = 0.0
        for _ in range(2):
            multipliers = cho_solve(factor, mu * with_mu - without_mu)
            dy = multipliers[: self.b.size]
            dn = -multipliers[self.b.size :]
            dS = np.diag(self.a.T @ dy) - self.spread(dn)
            dR = mu * inverse - R - inverse @ dS @ R
            dR = 0.5 * (dR + dR.T)
            primal_length = _length(R, dR, R[i, j], dR[i, j])
            dual_length = _length(point.S, dS, point.n, dn)
            shorter = min(primal_length, dual_length)
            mu = mu or mean * max(1.0 - shorter, 0.1) ** 2
        y = point.y + dual_length * dy
        n = point.n + dual_length * dn
        return Feasible(R + primal_length * dR, y, n, self.slack(y, n)), shorter

    def _system(self, point: Feasible, inverse: Array) -> Array:
        """Return the matrix of the equations for dy and -dn in a Newton step.

        ``inverse`` is S^-1. Entry (A, B) is tr(A S^-1 B R), with A and B the matrices of the
        constraints: diagonal ones for y, and a pair of entries 1/2 at (i, j) and (j, i) for n_ij.
        """
        i = self.i
        j = self.j
        R = point.R
        m = len(self.a)
        system = np.empty((m + i.size, m + i.size))
        system[:m, :m] = self.a @ (inverse * R) @ self.a.T
        mixed = 0.5 * (inverse[i] * R[j] + inverse[j] * R[i]) @ self.a.T
        system[m:, :m] = mixed
        system[:m, m:] = mixed.T
        system[m:, m:] = 0.25 * (
            inverse[np.ix_(i, i)] * R[np.ix_(j, j)]
            + inverse[np.ix_(i, j)] * R[np.ix_(j, i)]
            + inverse[np.ix_(j, i)] * R[np.ix_(i, j)]
            + inverse[np.ix_(j, j)] * R[np.ix_(i, i)]
        )
        # The equations n_ij R_ij = mu add to the diagonal.
        pairs = np.arange(m, len(system))
        system[pairs, pairs] += R[i, j] / point.n
        return system


def solve_sdp(Z: Array, a: Array, R: Array, nonnegative: bool) -> SemidefiniteAtom:
    """Return the solution of ``Program`` for the scores Z, with a lower and an upper bound.

    ``a``, ``R`` and ``nonnegative`` are the arguments of ``Program``. The iteration ends when the
    bounds differ by at most 1e-9 (``SETTINGS.accuracy``) of their size, or by 1e-18 of the largest
    |Z_ij|, or when they do not get closer. The bounds are valid in each case.
    """
    unit = float(np.abs(Z).max(initial=0.0))
    if unit == 0.0:
        return SemidefiniteAtom(R, 0.0, 0.0)
    program = Program(Z / unit, a, R, nonnegative)
    point = program.first
    best = SemidefiniteAtom(R, -math.inf, math.inf)
    stalled = 0
    while stalled < SETTINGS.interior_patience:
        # Each point may improve either bound. ``stalled`` counts the steps without progress.
        lower = float(np.vdot(program.C, point.R))
        upper = program.upper(point)
        gap = best.upper - best.lower
        best = SemidefiniteAtom(
            point.R if lower > best.lower else best.R,
            max(lower, best.lower),
            min(upper, best.upper),
        )
        new_gap = best.upper - best.lower
        stalled = 0 if new_gap < 0.9 * gap else stalled + 1
        # If the value of the program is 0, both bounds shrink forever, so the size that the gap is
        # compared with has a minimum. The largest |C_ij| is 1.
        size = max(abs(best.upper), SETTINGS.accuracy)
        if new_gap <= SETTINGS.accuracy * size or Deadline.current().passed:
            break
        try:
            point, length = program.step(point)
        except LinAlgError:
            break  # rounding: S is singular
        if not length > 0.0:
            break
    R = best.R / (float(np.trace(best.R)) / program.trace)
    return SemidefiniteAtom(R, unit * best.lower, unit * max(best.upper, best.lower))


def _length(M: Array, step: Array, x: Array, dx: Array) -> float:
    """Return the longest t <= 1 with M + t step psd and x + t dx >= 0, times 0.98 if below 1.

    M and ``step`` are (p, p), M is positive definite, and x > 0. The factor 0.98 keeps the next
    point strictly feasible. If M is singular up to rounding, the result is 0.
    """
    # M + t step is psd as long as I + t L^-1 step L^-T is, where M = L L'. So 1 / t is at least
    # minus the smallest eigenvalue of the second matrix, and minus the smallest dx / x.
    try:
        L = cholesky(M, lower=True)
        inner = np.linalg.solve(L, np.linalg.solve(L, step).T)
    except LinAlgError:
        return 0.0
    inverse_lengths = [-float(np.linalg.eigvalsh(0.5 * (inner + inner.T))[0])]
    inverse_lengths.append(float((-dx / x).max(initial=0.0)))
    # The minimum of 0.5 stands for all lengths above 1, and avoids a division by 0.
    return min(1.0, 0.98 / max(*inverse_lengths, 0.5))
