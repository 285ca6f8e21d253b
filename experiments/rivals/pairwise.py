"""Norms that [A] section 1 compares with: the pairwise elastic net and the trace lasso."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn._support import to_float64
from atomlearn.core.interfaces import Array, Atom, Columns, Norm, Scores
from atomlearn.core.norms.parameters import Parameters

#: Trace lasso: steps of the search for its polar, and the relative distance of the bounds at which
#: it ends.
POLAR_STEPS, POLAR_GAP = 2000, 1e-7


class PairwiseElasticNet(Parameters, Norm):
    """gauge(w)^2 = ||w||_2^2 + ||w||_1^2 - |w|'R|w|, R_jk the similarity of columns j and k.

    The penalty of the pairwise elastic net (PEN) in the squared form: level/2 gauge(w)^2. With
    P = I + 11' - R it is |w|'P|w|; R = I gives the l1 norm, R of all ones the l2 norm. The polar
    at z is a quadratic program over w >= 0, solved by an active set.

    Parameters
    ----------
    similarity : array (n_features, n_features)
        R, symmetric with entries in [0, 1] and ones on its diagonal; I + 11' - R must be positive
        semidefinite, or the penalty is not convex.

    References
    ----------
    A. Lorbert, D. Eis, V. Kostina, D. M. Blei, P. J. Ramadge 2010; [A] section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.rivals import PairwiseElasticNet
    >>> alike = PairwiseElasticNet(np.ones((2, 2)))
    >>> alike.value([3.0, -4.0]), PairwiseElasticNet(np.eye(2)).value([3.0, -4.0])
    (5.0, 7.0)
    """

    def __init__(self, similarity: Any) -> None:
        self.similarity = similarity

    usual_form = "squared"

    #: It depends on |w| only, and grows with it.
    absolute = True

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> PairwiseElasticNet:
        """The norm itself; raise where R is no similarity, or the penalty is not convex."""
        R = np.asarray(self.similarity, dtype=np.float64)
        if R.shape != (n_features, n_features):
            raise ValueError(
                f"PairwiseElasticNet: similarity must have shape ({n_features}, {n_features}), one "
                f"row a column of X; got {R.shape}"
            )
        inside = bool(((R >= 0) & (R <= 1)).all()) and np.allclose(R, R.T)
        if not inside or not np.allclose(np.diag(R), 1.0):
            raise ValueError(
                "PairwiseElasticNet: similarity must be symmetric with entries in [0, 1] and ones "
                "on the diagonal; np.abs(np.corrcoef(X.T)) is one"
            )
        least = float(np.linalg.eigvalsh(self._matrix(n_features))[0])
        if least < -1e-10 * n_features:
            raise ValueError(
                f"PairwiseElasticNet: I + 11' - R has the eigenvalue {least:.3g}, so the penalty "
                "is not convex; shrink R toward the identity"
            )
        return self

    def _matrix(self, size: int) -> Array:
        return np.eye(size) + 1.0 - np.asarray(self.similarity, dtype=np.float64)

    def value(self, w: Array) -> float:
        """sqrt(|w|'P|w|)"""
        magnitudes = np.abs(to_float64(w))
        return math.sqrt(max(float(magnitudes @ self._matrix(magnitudes.size) @ magnitudes), 0.0))

    def polar(self, scores: Scores) -> float:
        """sqrt of max over w >= 0 of 2 |z|'w - w'P w."""
        return self._best(scores)[1]

    def best_atom(self, scores: Scores) -> Atom:
        """argmax <w, z> over |w|'P|w| <= 1."""
        w, polar = self._best(scores)
        used = np.flatnonzero(w)
        if not used.size or polar == 0.0:
            return Atom(used[:0], np.zeros(0))
        signs = np.sign(scores.full()[used])
        return Atom(used.astype(np.int64), signs * w[used] / polar)

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The columns of the best atom, largest weights first."""
        atom = self.best_atom(scores)
        return atom.columns[np.argsort(-np.abs(atom.values), kind="stable")]

    def _best(self, scores: Scores) -> tuple[Array, float]:
        """Return w >= 0 with P w = |z| on its support, and the polar (z'w)^1/2."""
        u = np.abs(scores.full())
        scale = float(u.max(initial=0.0))
        if scale == 0.0:
            return np.zeros_like(u), 0.0
        w, _ = active_set_qp(self._matrix(u.size), u / scale, np.zeros(u.size))
        # The optimum makes w'Pw = u'w; the larger of both bounds rounding.
        polar = math.sqrt(max(float(w @ u) / scale, 0.0))
        return w * scale, polar * scale


class TraceLasso(Parameters, Norm):
    """gauge(w) = ||X diag(w)||_*, the sum of the singular values.

    For columns of length one it is the l1 norm where they are orthogonal and the l2 norm where they
    are equal. Its polar at z, min ||M||_op over diag(X'M) = z, has no closed form: alternating
    directions bound it from both sides, O(n p min(n, p)) an iteration, so it is for small p.

    Parameters
    ----------
    X : array (n_samples, n_features)
        The data; columns must not be zero.

    References
    ----------
    E. Grave, G. Obozinski, F. Bach 2011, Trace lasso: a trace norm regularization for correlated
    designs, NIPS; [A] section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.rivals import TraceLasso
    >>> round(TraceLasso(np.eye(2)).value([3.0, -4.0]), 6)
    7.0
    >>> round(TraceLasso(np.full((2, 2), 0.5**0.5)).value([3.0, -4.0]), 6)
    5.0
    """

    def __init__(self, X: Any) -> None:
        self.X = X

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> TraceLasso:
        """The norm itself; raise where X has another number of columns, or one that is zero."""
        X = self._data()
        if X.ndim != 2 or X.shape[1] != n_features:
            raise ValueError(
                f"TraceLasso: X must have {n_features} columns, those of the design; got shape "
                f"{X.shape}"
            )
        empty = np.flatnonzero(~X.any(axis=0))
        if empty.size:
            raise ValueError(f"TraceLasso: column {int(empty[0])} of X is zero; leave it out")
        return self

    def _data(self) -> Array:
        return np.asarray(self.X, dtype=np.float64)

    def value(self, w: Array) -> float:
        """||X diag(w)||_*"""
        return float(np.linalg.norm(self._data() * to_float64(w), "nuc"))

    def polar(self, scores: Scores) -> float:
        """The bound from above that certificates are made of."""
        return self.polar_bounds(scores)[1]

    def polar_bounds(self, scores: Scores, thorough: bool = False) -> tuple[float, float]:
        """<w, z> / gauge(w) of the best w found, and ||M||_op of the best M with diag(X'M) = z."""
        _, lower, upper = self._search(scores.full())
        return lower, upper

    def best_atom(self, scores: Scores) -> Atom:
        """The best w found, of gauge 1."""
        w, lower, _ = self._search(scores.full())
        used = np.flatnonzero(w) if lower > 0 else np.zeros(0, dtype=np.int64)
        return Atom(used.astype(np.int64), w[used])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The columns of the best atom, largest weights first."""
        atom = self.best_atom(scores)
        return atom.columns[np.argsort(-np.abs(atom.values), kind="stable")]

    def _search(self, z: Array) -> tuple[Array, float, float]:
        """Return w of gauge 1, <w, z> and an upper bound: alternating directions on M."""
        X, size = self._data(), float(np.abs(z).max(initial=0.0))
        if size == 0.0:
            return np.zeros(z.size), 0.0, 0.0
        squares = (X * X).sum(axis=0)
        goal, best, lower, upper = z / size, np.zeros(z.size), 0.0, math.inf
        M = X * (goal / squares)
        U, rho = np.zeros_like(M), 1.0 / max(float(np.linalg.norm(M, 2)), 1e-300)
        for step in range(POLAR_STEPS):
            Y = _shrunk(M - U, 1.0 / rho)
            free = Y + U
            M = free + X * ((goal - (X * free).sum(axis=0)) / squares)
            U = U + Y - M
            if step % 10 == 9:
                upper = min(upper, float(np.linalg.norm(M, 2)))
                # The multiplier of diag(X'M) = z; M is moved along x_j by it.
                w = (X * (-rho * U)).sum(axis=0) / squares
                gauge = self.value(w)
                inner = float(w @ goal) / gauge if gauge > 0 else 0.0
                if abs(inner) > lower:
                    best, lower = math.copysign(1.0, inner) * w / gauge, abs(inner)
                if upper - lower <= POLAR_GAP * upper:
                    break
        return best, lower * size, upper * size


def _shrunk(V: Array, step: float) -> Array:
    """argmin_Y 1/2 ||Y - V||_F^2 + step ||Y||_op: singular values above a level are cut to it."""
    left, values, right = np.linalg.svd(V, full_matrices=False)
    if values.sum() <= step:
        return np.zeros_like(V)
    sums = np.cumsum(values) - step
    counts = np.arange(1, values.size + 1)
    level = float((sums / counts).max())
    return np.asarray((left * np.minimum(values, level)) @ right)
