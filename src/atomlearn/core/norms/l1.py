"""L1: gauge(w) = sum_j weight_j |w_j| within bounds; its atoms are signed unit vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import to_float64
from atomlearn.core.interfaces import Array, Columns, GroupWeights, ProxJacobian, ProxPoint, Scores
from atomlearn.core.interfaces.certificate import BoxExcess
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.base import RatedNorm
from atomlearn.core.norms.forms import soft_point


class L1(RatedNorm):
    """gauge(w) = sum_j weight_j |w_j| for lower <= w <= upper; without them, ||w||_1.

    The polar (dual) norm of scores z is max_j |z_j| / weight_j. The proximal maps are soft
    thresholding, clipped at the bounds; their thresholds are found in O(n) expected time.

    Parameters
    ----------
    weights : float, array (n_features,), mapping of names, or None
        Penalty factor of each column: 0 leaves a column unpenalized (as ``solve(unpenalized=)``
        does), inf excludes it. A mapping lists the columns whose factor is not 1.
    lower, upper : float, array (n_features,), mapping of names, or None
        Bounds on coefficients, lower <= 0 <= upper; a bound of 0 fixes the sign. A column of
        weight 0 may have two finite bounds. Paths then need ``alphas=``, and the ridge part of
        ``l1_ratio`` penalizes this column. Bounds of columns in ``unpenalized=`` are ignored.

    Notes
    -----
    With finite nonzero bounds l and u, the penalty is not a function h of a homogeneous gauge.
    Still its conjugate is a minimum over one scalar t, so that the duality gap is exact. With
    weights p,

        sup over l <= w <= u of <z, w> - h(gauge(w)) = min over t >= t_0 of
            h*(t) + sum_j u_j max(z_j - t p_j, 0) + sum_j (-l_j) max(-z_j - t p_j, 0),

    where the sums run over finite bounds, and t_0 is the maximum of |z_j| / p_j over the signs of
    w_j without a bound (``BoxExcess``). The score of a coefficient at its bound may exceed its
    weight.

    References
    ----------
    R. Tibshirani 1996, Regression shrinkage and selection via the lasso.
    H. Zou 2006, doi:10.1198/016214506000000735 (the adaptive lasso: weights from a first fit).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.L1().value(np.array([3.0, 0.0, -4.0]))
    7.0
    >>> norms.L1(weights=[1.0, 2.0, np.inf], lower=0.0).value(np.array([3.0, 1.0, 0.0]))
    5.0
    """

    def __init__(self, weights: Any = None, lower: Any = None, upper: Any = None) -> None:
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.weights = weights
        self.lower = lower
        self.upper = upper

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> L1:
        """Return the norm with weights and bounds as arrays; raise if they do not fit X.

        ``n_features`` is the number of columns; ``shape`` is used only by norms of matrices.
        """
        box = self._box(n_features)
        return self if box is self.weights else L1(box)

    def with_names(self, names: Sequence[str]) -> L1:
        """Return the same norm with arrays in place of mappings from column names.

        names : the names of all columns, in order.
        """
        return L1(
            _numbers_by_name(self.weights, names, 1.0, "weights"),
            _numbers_by_name(self.lower, names, -np.inf, "lower"),
            _numbers_by_name(self.upper, names, np.inf, "upper"),
        )

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """True if the norm depends only on |w|, that is, without bounds."""
        if isinstance(self.weights, WeightedBox):
            return self.weights.symmetric
        return self.lower is None and self.upper is None

    @property
    def bounds_coefficients(self) -> bool:
        """Whether a bound is neither 0 nor infinite."""
        if isinstance(self.weights, WeightedBox):
            return bool(self.weights.boxed.any())
        # A bound is a number, an array, or a mapping from names to numbers.
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        numbers = [[*b.values()] if isinstance(b, Mapping) else b for b in bounds]
        return any(bool((np.isfinite(n) & (np.asarray(n) != 0)).any()) for n in numbers)

    def value(self, w: Array) -> float:
        """Return sum_j weight_j |w_j| for w (n_features,), or infinity outside the bounds."""
        w = to_float64(w)
        box = self._box(w.size)
        return float(np.abs(w).sum()) if box is None else box.value(w)

    def excess(self, scores: Scores) -> BoxExcess | None:
        """Return the term that finite nonzero bounds add to the conjugate of the penalty.

        None without such bounds. scores : z (n_features,). See ``BoxExcess`` for the formula.
        """
        box = self._box(scores.n_columns)
        return None if box is None or box.symmetric else box.excess(scores.full())

    def ratings(self, scores: Scores) -> Scores:
        """Return the rating |z_j| / weight_j of each column, from the scores z.

        It is 0 if the bounds exclude a w_j with the sign of z_j.
        """
        box = self._box(scores.n_columns)
        return scores if box is None else ArrayScores(box.ratios(scores.full()))

    def without(self, columns: Columns, n_features: int) -> tuple[Columns, L1]:
        """Return the unpenalized columns, and this norm with these columns excluded.

        The unpenalized columns are ``columns`` and all columns of weight 0 without bounds. Their
        coefficients are fitted as a part of the loss, so that their entries of w are fixed at 0, by
        a weight of inf. n_features : the number of all columns.
        """
        box = self._box(n_features)
        if box is None:
            return columns, self
        # A column of weight 0 has no bounds or two finite ones: the upper one tells which.
        free = np.union1d(columns, np.flatnonzero((box.weights == 0) & np.isposinf(box.upper)))
        weights = box.weights.copy()
        weights[free] = np.inf
        return free, L1(box._replace(weights=weights).with_exclusions())

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * gauge(x) for v (n,), within the bounds.

        It is soft thresholding at step * weight_j, clipped at the bounds.
        """
        box = self._box(v.size)
        return soft_point(v, step) if box is None else box.point(v, step)

    def _last_step(self, v: Array) -> float:
        """Return the smallest step at which the proximal map sets all penalized v_j to 0.

        v : (n,). It is the largest |v_j| / weight_j.
        """
        box = self._box(v.size)
        ratios = np.abs(v) if box is None else box.ratios(v)[box.weights > 0]
        return float(ratios.max(initial=0.0))

    def restrict(self, columns: Columns, n_features: int) -> L1:
        """Return the same norm on ``columns``, with their weights and bounds.

        n_features : the number of all columns.
        """
        box = self._box(n_features)
        return self if box is None else L1(WeightedBox(*(array[columns] for array in box)))

    def as_groups(self, n_features: int, nonnegative: bool = False) -> GroupWeights | None:
        """Return the norm as one group per column; None if it is no group norm.

        A group norm has finite weights > 0. Without ``nonnegative``, it has no bounds. With
        ``nonnegative``, a group norm for w >= 0 is requested: lower = 0 and no upper bound for all
        columns. n_features : the number of all columns.
        """
        box = self._box(n_features)
        columns = np.arange(n_features)
        if box is None:
            return None if nonnegative else GroupWeights(columns, np.ones(n_features))
        is_nonnegative = bool(((box.lower == 0) & np.isposinf(box.upper)).all())
        bounds_fit = is_nonnegative if nonnegative else box.symmetric
        weights_fit = bool((np.isfinite(box.weights) & (box.weights > 0)).all())
        return GroupWeights(columns, box.weights) if bounds_fit and weights_fit else None

    @property
    def scores_for_ratings(self) -> Literal["all", "large"] | None:
        """Which scores ratings need: the large ones without weights, all with weights.

        It is None (columns are not rated) with bounds, as the score of a coefficient at its bound
        may exceed its weight.
        """
        if self.weights is self.lower is self.upper is None:
            return "large"
        return "all" if self.absolute else None

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> Array | float:
        """Return the weights of the zero coefficients ``columns``, or 0 with bounds.

        w_j = 0 stays optimal while |z_j| <= multiplier * weight_j, see ``Norm.thresholds``; ``w``
        are the nonzero coefficients. With bounds the result is 0, for "not known": w_j can
        also stay 0 because of a bound, however large |z_j| is. n_features is the number of all
        columns.
        """
        box = self._box(n_features)
        if box is None:
            return 1.0
        return box.weights[columns] if box.symmetric else 0.0

    def _box(self, n_features: int) -> WeightedBox | None:
        """Return weights and bounds as one number for each column; None for the plain l1 norm.

        After ``on``, the attribute ``weights`` is this box, which is returned. n_features : the
        number of all columns.
        """
        if self.weights is self.lower is self.upper is None:
            return None
        return WeightedBox.read(self.weights, self.lower, self.upper, n_features)


class WeightedBox(NamedTuple):
    """The weights and bounds of an ``L1`` norm as arrays, each of shape (n_features,).

    gauge(w) = sum_j weight_j |w_j| for lower <= w <= upper, and infinite elsewhere. weights : in
    [0, inf]; an infinite weight excludes the column: it fixes w_j at 0. lower, upper : lower <= 0
    <= upper, infinite if there is no bound.
    """

    weights: Array
    lower: Array
    upper: Array

    @classmethod
    def read(cls, weights: Any, lower: Any, upper: Any, n_features: int) -> WeightedBox:
        """Return the parameters of ``L1``, checked and broadcast to one number per column.

        Raises ValueError if they do not fit ``n_features`` columns or exclude w = 0. weights,
        lower, upper : each a number, an array or None.
        """
        # ``L1.on`` has stored a box as the weights, with all bounds.
        if isinstance(weights, WeightedBox):
            if weights.weights.size != n_features:
                raise ValueError(
                    f"L1: weights and bounds are of {weights.weights.size} columns, and X has "
                    f"{n_features}"
                )
            return weights
        factors = _numbers("weights", weights, 1.0, n_features)
        low = _numbers("lower", lower, -np.inf, n_features)
        high = _numbers("upper", upper, np.inf, n_features)
        if (factors < 0).any():
            raise ValueError(
                f"L1: weights must be >= 0 (0: unpenalized, inf: left out), got {factors.min()}"
            )
        if (low > 0).any() or (high < 0).any():
            raise ValueError(
                "L1: bounds must hold 0, lower <= 0 <= upper; got lower up to "
                f"{low.max()} and upper down to {high.min()}"
            )
        # With weight 0 and one bound, the conjugate is infinite for scores of one sign.
        one_sided = (factors == 0) & (np.isfinite(low) != np.isfinite(high))
        if one_sided.any():
            raise ValueError(
                f"L1: column {int(np.argmax(one_sided))} has weight 0 and a bound on one side "
                "only, which proves nothing; give the other side a bound that it will not reach, "
                "or the column a small weight"
            )
        return cls(factors, low, high).with_exclusions()

    def with_exclusions(self) -> WeightedBox:
        """Return the same box, with weight inf and both bounds 0 for every excluded column.

        A column is excluded by an infinite weight, or by two bounds of 0.
        """
        is_zero = np.isinf(self.weights) | ((self.lower == 0) & (self.upper == 0))
        low = np.where(is_zero, 0.0, self.lower)
        high = np.where(is_zero, 0.0, self.upper)
        return WeightedBox(np.where(is_zero, np.inf, self.weights), low, high)

    @property
    def symmetric(self) -> bool:
        """Whether no column has a bound, except excluded columns, which are fixed at 0."""
        return bool(np.all((self.lower == -self.upper) & ~self.boxed))

    @property
    def boxed(self) -> NDArray[np.bool_]:
        """The columns with a finite bound that is not 0, as a mask (n_features,)."""
        low = self.lower
        high = self.upper
        return (np.isfinite(low) & (low < 0)) | (np.isfinite(high) & (high > 0))

    def value(self, w: Array) -> float:
        """Return sum_j weight_j |w_j|, or infinity outside the bounds.

        Bounds may be exceeded by a relative rounding error of 1e-9. w : (n_features,).
        """
        # The bound that applies is upper for w_j > 0, else lower.
        slack = 1e-9 * np.where(w > 0, self.upper, -self.lower) if w.size else w
        slack = np.where(np.isfinite(slack), slack, 0.0)
        if (w > self.upper + slack).any() or (w < self.lower - slack).any():
            return float("inf")
        is_nonzero = w != 0
        return float(np.abs(w[is_nonzero]) @ self.weights[is_nonzero])

    def ratios(self, z: Array) -> Array:
        """Return |z_j| / weight_j for scores z, (n_features,).

        It is 0 if the bounds exclude a w_j with the sign of z_j, and infinite if weight_j is 0.
        """
        is_allowed = np.where(z > 0, self.upper > 0, self.lower < 0)
        sizes = np.where(is_allowed, np.abs(z), 0.0)
        return np.divide(
            sizes, self.weights, out=np.where(sizes > 0, np.inf, 0.0), where=self.weights > 0
        )

    def excess(self, z: Array) -> BoxExcess | None:
        """Return the term that finite nonzero bounds add to the conjugate at the scores z.

        None if there are no such bounds. z : (n_features,).
        """
        if not self.boxed.any():
            return None
        # The distance from 0 to the bound, in the direction of the sign of z_j. The polar is over
        # the columns without a bound in this direction.
        widths = np.where(z > 0, self.upper, -self.lower)
        ratios = self.ratios(z)
        bounded = np.isfinite(widths) & (widths > 0) & (z != 0)
        polar = float(ratios[~bounded].max(initial=0.0))
        return BoxExcess(polar, np.abs(z[bounded]), self.weights[bounded], widths[bounded])

    def point(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * sum_j weight_j |x_j| within the bounds; v (n,).

        It is soft thresholding at step * weight_j, clipped at the bounds. The Jacobian is diagonal:
        1 for coefficients strictly between 0 and their bound, else 0.
        """
        # x_j has the sign of v_j, and its bound on that side.
        caps = np.where(v > 0, self.upper, -self.lower)
        # Excluded columns have caps of 0, so that a weight of 0 in place of inf changes nothing.
        weights = np.where(np.isfinite(self.weights), self.weights, 0.0)
        excess = np.abs(v) - step * weights
        sizes = np.clip(excess, 0.0, caps)
        moves = ((excess > 0) | (step == 0.0)) & (excess < caps)
        jacobian = ProxJacobian(moves.astype(np.float64))
        return ProxPoint(np.copysign(sizes, v), float(weights @ sizes), lambda: jacobian)


def _numbers_by_name(numbers: Any, names: Sequence[str], default: float, owner: str) -> Any:
    """Return a mapping of names to numbers as one number per column; other values unchanged.

    names : the names of all columns, in order. default : the value for columns that are not in the
    mapping. owner : the parameter, for errors.
    """
    if not isinstance(numbers, Mapping):
        return numbers
    unknown = [name for name in numbers if name not in set(names)]
    if unknown:
        raise ValueError(f"L1: {owner} names column {unknown[0]!r}, which X does not have")
    return np.array([float(numbers.get(name, default)) for name in names])


def _numbers(kind: str, value: Any, default: float, n_features: int) -> Array:
    """Return ``value`` as one number per column, (n_features,); raise if it does not fit.

    default : the number if ``value`` is None. kind : the name of the parameter, for errors.
    """
    if value is None:
        return np.full(n_features, default)
    if isinstance(value, Mapping):
        raise ValueError(
            f"L1: {kind} by name needs columns with names; pass a data frame, or an array"
        )
    # One number is broadcast to all columns.
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"L1: {kind} must be a number or one number a column: {error}") from error
    if numbers.ndim == 0:
        numbers = np.full(n_features, float(numbers))
    if numbers.shape != (n_features,):
        raise ValueError(
            f"L1: {kind} must be a number or hold one a column, shape ({n_features},); got "
            f"{numbers.shape}"
        )
    if np.isnan(numbers).any():
        raise ValueError(f"L1: {kind} must not be NaN")
    return numbers
