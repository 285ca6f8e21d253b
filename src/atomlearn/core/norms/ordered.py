"""Ordered norms: OWL (OSCAR, SLOPE) and the l-infinity norm, whose atoms are sign patterns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from atomlearn._support import positive, to_float64
from atomlearn.core.interfaces import Array, Atom, Columns, ProxJacobian, ProxPoint, Scores
from atomlearn.core.norms.base import VectorNorm


class OWL(VectorNorm):
    """gauge(w) = sum_i weight_i |w|_(i), the ordered weighted l1 norm (OWL, SLOPE, OSCAR).

    |w|_(1) >= |w|_(2) >= ... are the sorted magnitudes, and the weights are non-increasing. The
    norm gives coefficients of correlated columns the same magnitude. Its polar (dual) norm is the
    maximum over k of (sum of the k largest |z|) / (sum of the first k weights). Its atoms are sign
    vectors on k columns divided by the sum of the first k weights. Equal weights give the l1 norm,
    (1, 0, ..., 0) the l-infinity norm.

    Parameters
    ----------
    weights : array-like, shape (n_features,)
        Non-increasing, >= 0, the first positive. ``OWL.oscar`` has weights that decrease linearly.

    References
    ----------
    Bogdan et al. (2015), SLOPE, doi:10.1214/15-AOAS842. Figueiredo, Nowak (2016), Ordered weighted
    l1 regularized regression with strongly correlated covariates, AISTATS. Zeng, Figueiredo (2015),
    The atomic norm formulation of OSCAR regularization, arXiv:1409.8271.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.OWL([2.0, 1.0, 0.0]).value(np.array([3.0, 0.0, -4.0]))
    11.0
    """

    def __init__(self, weights: Any) -> None:
        """Store the weights; ``on`` checks them for the columns of a data set."""
        self.weights = weights

    @classmethod
    def oscar(cls, n_features: int, slope: float) -> OWL:
        """Return the OSCAR norm ||w||_1 + slope * sum over pairs of max(|w_i|, |w_j|).

        n_features : p, the number of columns. The weights are 1 + slope (p - i) for i = 1, ..., p
        (Bondell, Reich 2008, doi:10.1111/j.1541-0420.2007.00843.x).
        """
        positive("OWL.oscar: slope", slope)
        return cls(1.0 + slope * np.arange(n_features - 1, -1, -1, dtype=np.float64))

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> OWL:
        """Return the norm itself; raise ValueError if the weights do not fit or are invalid.

        ``n_features`` is the number of columns; ``shape`` is used only by norms of matrices.
        """
        self._weights(n_features)
        return self

    def value(self, w: Array) -> float:
        """Return sum_i weight_i |w|_(i) of the sorted magnitudes, O(n log n)."""
        w = to_float64(w)
        return float(self._weights(w.size) @ -np.sort(-np.abs(w)))

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm of the scores z).

        It is the maximum over k of sum_{i <= k} |z|_(i) / sum_{i <= k} weight_i.
        """
        return self._best(scores)[0]

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the columns of the best atom, and further ones of large |z_j| up to ``count``.

        The best atom is the vector a of norm 1 with the largest <a, z>, for the scores z
        (n_features,).
        """
        _, size = self._best(scores)
        return scores.top(max(size, count, 1))[0]

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom a (vector of norm 1) with the largest <a, z>, for the scores z.

        It has the signs of the k largest |z_j|, divided by the sum of the first k weights.
        """
        polar, size = self._best(scores)
        columns, values = scores.top(size)
        if polar == 0.0:
            return Atom(columns[:0], values[:0])
        total = float(self._weights(scores.n_columns)[:size].sum())
        return Atom(columns, np.where(values < 0, -1.0, 1.0) / total)

    def restrict(self, columns: Columns, n_features: int) -> OWL:
        """Return the norm of the first weights: coefficients that are zero are sorted last.

        columns : the kept ones; n_features : the number of all columns.
        """
        return OWL(self._weights(n_features)[: len(columns)])

    def _best(self, scores: Scores) -> tuple[float, int]:
        """Return the polar (dual norm of the scores z), and the number of entries of the best atom.

        The best atom is the vector a of norm 1 for which <a, z> is the polar.
        """
        # ratios[k - 1] is the sum of the k largest |z_j| over the sum of the first k weights.
        magnitudes = -np.sort(-np.abs(scores.full()))
        ratios = np.cumsum(magnitudes) / np.cumsum(self._weights(scores.n_columns))
        best = int(np.argmax(ratios)) if ratios.size else 0
        return (float(ratios[best]), best + 1) if ratios.size else (0.0, 0)

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * gauge(x) for v (n,), by an isotonic regression.

        The nonincreasing fit to sorted |v| - step * weights, cut at 0, gives the magnitudes of x.
        They are put back in the order of v, with the signs of v. The gauge is this norm.
        """
        weights = self._weights(v.size)
        magnitudes = np.abs(v)
        # The fit is of nonincreasing numbers, in the order of decreasing magnitudes.
        order = np.argsort(-magnitudes, kind="stable")
        fit = isotonic_regression(magnitudes[order] - step * weights, increasing=False)
        sizes = np.maximum(fit.x, 0.0)
        point = np.zeros_like(v)
        point[order] = sizes

        def jacobian() -> ProxJacobian:
            """Return the Jacobian of the proximal map at v; the identity for a step of 0."""
            if step == 0.0:
                return ProxJacobian(np.ones(v.size))
            return _block_jacobian(v, order, fit.blocks, sizes)

        return ProxPoint(np.copysign(point, v), float(weights @ sizes), jacobian)

    def _weights(self, n_features: int) -> Array:
        """Return the weights as float64, (n_features,), checked.

        Raises ValueError unless they are finite, nonincreasing and >= 0, and the first one is
        positive.
        """
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n_features,):
            raise ValueError(
                f"OWL: weights must hold one number a feature, shape ({n_features},), got "
                f"{weights.shape}"
            )
        if not np.isfinite(weights).all() or (weights < 0).any() or (np.diff(weights) > 0).any():
            raise ValueError(
                "OWL: weights must be finite, >= 0 and non-increasing; sort them with "
                "np.sort(weights)[::-1]"
            )
        if weights.size and not weights[0] > 0:
            raise ValueError("OWL: the first weight must be positive; all zero penalizes nothing")
        return weights


def _block_jacobian(v: Array, order: Columns, edges: NDArray[Any], sizes: Array) -> ProxJacobian:
    """Return the Jacobian of the OWL proximal map at v (n,): s s' / size for each block of ties.

    A block is a set of entries that have the same magnitude in the result x, and ``size`` is their
    number. s has the signs of v in the block, and is 0 elsewhere. The Jacobian of blocks of
    magnitude 0 is 0.

    order : the columns by decreasing |v|. edges : the positions in that order where blocks begin,
    followed by n. sizes : the magnitudes of x, in that order.
    """
    diagonal = np.zeros(v.size)
    factors = []
    coefficients = []
    for left, right in pairwise(edges):
        # Sizes decrease, so that all further blocks are 0, too.
        if sizes[left] <= 0:
            break
        # The entry of a block of size 1 is only shifted. A larger block has the mean of its
        # entries.
        members = order[left:right]
        if members.size == 1:
            diagonal[members] = 1.0
            continue
        factor = np.zeros(v.size)
        factor[members] = np.copysign(1.0, v[members])
        factors.append(factor)
        coefficients.append(1.0 / members.size)
    if not factors:
        return ProxJacobian(diagonal)
    return ProxJacobian(diagonal, np.column_stack(factors), np.asarray(coefficients))


class LInf(OWL):
    """gauge(w) = max_j |w_j|; its polar is ||z||_1, its atoms are the 2^p sign vectors.

    It is used for anti-sparse representations, in which all coefficients share one bound. The
    support of a best atom contains every column with z_j != 0.

    References
    ----------
    [V] section 2.1, the atoms of all signs.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.LInf().value(np.array([3.0, 0.0, -4.0]))
    4.0
    """

    def __init__(self) -> None:
        """Leave the weights open: they depend only on the number of columns."""
        super().__init__(None)

    def _weights(self, n_features: int) -> Array:
        """Return the weights of the maximum norm, (n_features,): 1, 0, 0, ..."""
        return np.where(np.arange(n_features) == 0, 1.0, 0.0)

    def restrict(self, columns: Columns, n_features: int) -> LInf:
        """Return the same norm: coefficients that are zero do not change the maximum.

        It has the same form for any ``columns`` of ``n_features``.
        """
        return self
