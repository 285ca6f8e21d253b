"""ZeroSum: the l1 norm of coefficients that sum to zero, whose atoms are differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn._support import to_float64
from atomlearn.core.interfaces import EPS, Array, Atom, Columns, ProxJacobian, ProxPoint, Scores
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.names import named_groups
from atomlearn.core.norms.partition import Membership

#: The sum of coefficients may differ from 0 by this share of their size, for rounding.
ROUNDING = 1e-9


class ZeroSum(VectorNorm):
    """gauge(w) = ||w||_1 if the coefficients sum to zero, else infinite: for compositions.

    A composition is a set of parts of a whole, such as the bacteria of a sample. The columns are
    logarithms of the parts, which are known up to a constant of each row (the logarithm of the
    whole). Coefficients that sum to zero are not affected by this constant: the model is one of
    log-ratios. The atoms are (e_i - e_j) / 2, and the polar (dual norm) of scores z is
    (max z - min z) / 2, so that the duality gap of a fit includes the constraint.

    Parameters
    ----------
    groups : list of index lists, mapping of names to lists, or None, default=None
        Compositions that are disjoint; the coefficients of each of them sum to zero. Columns in
        none of them have the plain l1 norm, and ``unpenalized`` columns are in none. Lists may
        contain column names or patterns ("otu_*") if the columns of X have names. None: all columns
        are one composition.

    References
    ----------
    W. Lin, P. Shi, R. Feng, H. Li 2014, Variable selection in regression with compositional
    covariates, doi:10.1093/biomet/asu031. P. Shi, A. Zhang, H. Li 2016, Regression analysis for
    microbiome compositional data, doi:10.1214/16-AOAS928 (several compositions).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve
    >>> norms.ZeroSum().value(np.array([3.0, 1.0, -4.0]))
    8.0
    >>> rng = np.random.default_rng(0)
    >>> X = np.log(rng.dirichlet(np.ones(6), size=50))
    >>> result = solve(X, X[:, 0] - X[:, 1], norm=norms.ZeroSum(), alpha=0.1)
    >>> result.columns.tolist(), bool(abs(result.coef.sum()) < 1e-9)
    ([0, 1], True)
    """

    absolute = False
    bounds_coefficients = True

    def __init__(self, groups: Any = None) -> None:
        """Store the compositions; ``on`` checks them for the columns of a data set."""
        self.groups = groups

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> ZeroSum:
        """Return the same norm with its groups checked and resolved for n_features.

        ``shape`` is used only by norms of matrices.
        """
        sets = self._sets(n_features)
        return self if sets is self.groups else ZeroSum(sets)

    def with_names(self, names: Sequence[str]) -> ZeroSum:
        """Return the same norm with names and patterns of columns replaced by indices.

        names : the names of all columns, in order.
        """
        groups = named_groups(self.groups, names, "ZeroSum")
        return self if groups is self.groups else ZeroSum(groups)

    def value(self, w: Array) -> float:
        """Return ||w||_1, or infinity if the coefficients of a composition do not sum to zero."""
        w = to_float64(w)
        size = float(np.abs(w).sum())
        sums = [w[members].sum() for members in self._compositions(w.size)]
        return size if np.abs(sums).max(initial=0.0) <= ROUNDING * size else math.inf

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm of the scores z).

        It is the maximum of (max z - min z) / 2 over the compositions, and of |z_j| over other
        columns.
        """
        z = scores.full()
        halves = [0.5 * float(np.ptp(z[members])) for members in self._compositions(z.size)]
        return max([*halves, float(np.abs(z[self._unlisted_columns(z.size)]).max(initial=0.0))])

    def polar_of_sizes(self, sizes: Scores) -> float:
        """Return the largest polar (dual norm) of scores whose magnitudes are at most ``sizes``.

        In a composition it is the mean of the two largest sizes, whose scores may have opposite
        signs.
        """
        z = sizes.full()
        halves = [
            0.5 * float(np.sort(z[m])[-2:].sum()) for m in self._compositions(z.size) if m.size > 1
        ]
        return max([*halves, float(z[self._unlisted_columns(z.size)].max(initial=0.0))])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the columns of the largest and of the smallest scores, the best pair first.

        About ``count`` columns are returned, but at least one pair.
        """
        z = scores.full()
        # Entries (z_i - z_j, i, j): the largest and the smallest score of a composition, then the
        # second of each, and so on.
        pairs = []
        for members in self._compositions(z.size):
            order = members[np.argsort(-z[members], kind="stable")]
            count_of_pairs = min(order.size // 2, max(count, 1))
            first = order[:count_of_pairs]
            last = order[::-1][:count_of_pairs]
            pairs += list(zip(z[first] - z[last], first, last, strict=True))
        # The atom of a pair gives (z_i - z_j) / 2, and that of a single column |z_j|: the factor 2.
        pairs += [(2.0 * abs(z[j]), j, j) for j in self._unlisted_columns(z.size)]
        pairs.sort(key=lambda pair: -pair[0])
        chosen = [pair for pair in pairs[: max(count, 1)] if pair[0] > 0]
        # Distinct columns, in the order of the pairs.
        columns = np.array([j for _, *both in chosen for j in both], dtype=np.int64)
        return columns[np.sort(np.unique(columns, return_index=True)[1])][: max(count, 2)]

    def best_atom(self, scores: Scores) -> Atom:
        """Return the best atom (vector a of norm 1 with the largest <a, z>) for the scores z.

        It is (e_i - e_j) / 2 for the best pair, or a signed unit vector if the best column is in no
        composition.
        """
        columns = self.best_columns(scores, 1)
        values = scores.at(columns)
        if columns.size < 2:
            return Atom(columns, np.sign(values))
        # The larger of the two scores gets 1/2, the smaller one -1/2.
        return Atom(columns, np.copysign(0.5, values - values.mean()))

    def restrict(self, columns: Columns, n_features: int) -> ZeroSum:
        """Return the same norm on ``columns``, which sum to zero within each composition.

        n_features : the number of all columns.
        """
        position = np.full(n_features, -1, dtype=np.int64)
        position[columns] = np.arange(columns.size)
        # The new indices of the kept columns of each composition; empty compositions are dropped.
        indices = [position[members] for members in self._compositions(n_features)]
        compositions = [kept for index in indices if (kept := index[index >= 0]).size]
        return ZeroSum(Membership.of(compositions, columns.size, "ZeroSum"))

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * ||x||_1 for v (n,), with sums of zero.

        It is soft thresholding, after a shift of each composition that makes the result sum to
        zero.
        """
        # Columns in no composition are soft-thresholded without a shift.
        x = np.sign(v) * np.maximum(np.abs(v) - step, 0.0)
        listed = self._compositions(v.size)
        for members in listed:
            x[members] = balanced(v[members], step)
        # On the active (nonzero) entries of each composition, the Jacobian is the projection on the
        # vectors of sum zero: I - 1 1' / number of active entries.
        factors = np.zeros((v.size, len(listed)))
        for column, members in enumerate(listed):
            active = members[x[members] != 0]
            factors[active, column] = 1.0 / math.sqrt(max(active.size, 1))
        moves = (x != 0) | (step == 0.0)
        jacobian = ProxJacobian(moves.astype(np.float64), factors, -np.ones(len(listed)))
        return ProxPoint(x, float(np.abs(x).sum()), lambda: jacobian)

    def _sets(self, n_features: int) -> Membership:
        """Return the compositions, disjoint sets of columns; one set of all columns by default.

        Each column in no composition is a set of one, after the listed sets. n_features : the
        number of all columns.
        """
        if self.groups is None:
            return Membership.of([np.arange(n_features)], n_features, "ZeroSum")
        sets = Membership.of(self.groups, n_features, "ZeroSum")
        if sets.members.size > n_features:
            twice = int(np.argmax(np.bincount(sets.members)))
            raise ValueError(
                f"ZeroSum: compositions must be disjoint, and column {twice} is in two of them; "
                "list each column once"
            )
        return sets

    def _compositions(self, n_features: int) -> list[Columns]:
        """Return the columns of each composition.

        n_features : the number of all columns.
        """
        sets = self._sets(n_features)
        return np.split(sets.members, sets.starts[1:-1])[: sets.n_listed]

    def _unlisted_columns(self, n_features: int) -> Columns:
        """Return the columns that are in no composition.

        n_features : the number of all columns.
        """
        sets = self._sets(n_features)
        return sets.members[sets.starts[sets.n_listed] :]


def balanced(v: Array, step: float) -> Array:
    """Return argmin 1/2 ||x - v||^2 + step * ||x||_1 over x (n,) of sum zero, in O(n log n).

    x is the soft thresholding of v - shift at ``step``. The sum of x falls with the shift, and is
    linear between the numbers v_i - step and v_i + step. So the shift with sum zero is found by a
    search among these numbers, and linear interpolation.
    """
    surplus = float(v.sum())
    # For step 0, x is the projection on sum zero, or v itself if its sum is only rounding.
    if step == 0.0:
        is_balanced = abs(surplus) <= 4.0 * EPS * float(np.abs(v).sum())
        return v.copy() if is_balanced else v - surplus / v.size
    ordered = np.sort(v)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    # The shifts at which the sum of the result changes its slope.
    ends = np.sort(np.concatenate([ordered - step, ordered + step]))

    def total(shift: Array) -> Array:
        """Return the sum of S(v - shift, step) for each shift; S is soft thresholding."""
        # Entries above shift + step contribute v_i - shift - step, entries below shift - step
        # contribute v_i - shift + step.
        n_above = np.searchsorted(ordered, shift + step, side="right")
        n_below = np.searchsorted(ordered, shift - step, side="left")
        upper = sums[-1] - sums[n_above] - (v.size - n_above) * (shift + step)
        lower = sums[n_below] - n_below * (shift - step)
        return np.asarray(upper + lower)

    # The sums decrease, so that the search for 0 is among the negated sums.
    at_ends = total(ends)
    position = int(np.clip(np.searchsorted(-at_ends, 0.0, side="left"), 1, ends.size - 1))
    # The sum is linear between these two ends, and zero at a share of the way.
    left = at_ends[position - 1]
    right = at_ends[position]
    share = left / (left - right) if left > right else 0.0
    shift = ends[position - 1] + share * (ends[position] - ends[position - 1])
    shifted = v - shift
    x = np.sign(shifted) * np.maximum(np.abs(shifted) - step, 0.0)
    active = np.flatnonzero(x)
    if active.size:
        # The rounding error of the sum is spread over the coefficients that are free to move.
        x[active] -= x.sum() / active.size
    return np.asarray(x)
