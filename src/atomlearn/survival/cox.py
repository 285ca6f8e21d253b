"""Cox: the partial likelihood of proportional hazards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from atomlearn.core import EDGE_TOLERANCE, Array, LastAnswer, Loss, Task
from atomlearn.survival.risk_sets import RiskSets
from atomlearn.survival.target import checked_survival

#: Risks that differ by less are tied, as in scikit-survival.
TIED = 1e-8


@final
@dataclass(frozen=True)
class Cox(Loss):
    """f(z) = sum over event times t of  d_t log sum_(at risk) s_i exp(z_i) - sum_(events) s_i z_i.

    This is minus the logarithm of Cox's partial likelihood, minus its smallest value at each single
    time, so that f >= 0. d_t is the weight of the events at t; at risk are those with entry_i < t
    <= time_i, in the stratum of the event. Predictions z are log hazard ratios: a constant added to
    all of a stratum changes nothing, so that there is no intercept.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default="efron"
        Treatment of k > 1 events at one time. Breslow's sums are over all at risk; of Efron's k
        sums the l-th counts those events by 1 - l/k, l = 0, ..., k - 1, each with the mean weight
        d_t / k. A weight of 2 is the same as two rows with Breslow's treatment. With Efron's it is
        not, as in R's ``coxph``, because two rows would be a tie.

    Notes
    -----
    Targets are structured arrays, see ``losses.survival_target``. The Hessian is diag(c) - sum_m
    omega_m p_m p_m' with p_m the distribution over the risk set of a term m: it couples all
    predictions, and ``coupling`` multiplies with it in O(n_samples) for each column.

    A dual point is a gradient u, u_i + s_i event_i = sum_m omega_m p_mi. Its conjugate is <u, z> -
    f(z) at the z of the gradient, and t times that is a bound for t u, 0 <= t <= 1, because f*(0)
    <= 0. Without left truncation the risk sets are nested and the conjugate has a formula: with g =
    log of the sum over those who leave between two events, the problem decomposes into one for the
    share of each (and, for Efron's ties, one unknown for each time).

    References
    ----------
    D. R. Cox. Regression models and life-tables. Journal of the Royal Statistical Society B 34
    (1972) 187-220.
    B. Efron. The efficiency of Cox's likelihood function for censored data. Journal of the
    American Statistical Association 72 (1977) 557-565.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Cox, survival_target
    >>> y = survival_target([True, True, False], [1.0, 2.0, 3.0])
    >>> Cox().gradient(y, np.zeros(3), np.ones(3)).round(6).tolist()
    [-0.666667, -0.166667, 0.833333]
    """

    ties: Literal["efron", "breslow"] = "efron"
    #: The risk sets at z = 0, which are kept because sorting is slow, and at the last prediction.
    at_zero: LastAnswer = field(default_factory=LastAnswer, init=False, repr=False, compare=False)
    there: LastAnswer = field(default_factory=LastAnswer, init=False, repr=False, compare=False)
    name: ClassVar[str] = "cox"
    coupled: ClassVar[int] = 0
    task: ClassVar[Task] = "survival"
    dispersed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.ties not in ("efron", "breslow"):
            raise ValueError(f"Cox: ties must be 'efron' or 'breslow', got {self.ties!r}")

    def check_target(self, y: object) -> Array:
        """Return y as a structured array with the fields event, time, entry and stratum."""
        return checked_survival(y)

    def strata(self, y: Any, prediction: Array, weight: Array) -> list[RiskSets]:
        """Return the risk sets of each stratum that has an event."""
        found: list[RiskSets] = self.there.of(
            lambda: [sets.at(prediction) for sets in self._at_zero(y, weight)],
            prediction,
            y,
            weight,
        )
        return found

    def _at_zero(self, y: Any, weight: Array) -> list[RiskSets]:
        """Return the risk sets at z = 0."""

        def find() -> list[RiskSets]:
            order = np.argsort(y["stratum"], kind="stable")
            parts = np.split(order, np.flatnonzero(np.diff(y["stratum"][order])) + 1)
            sets = (RiskSets.of_stratum(y, weight, rows, self.ties == "efron") for rows in parts)
            return [each for each in sets if each is not None]

        found: list[RiskSets] = self.at_zero.of(find, y, weight)
        return found

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z), never negative."""
        z = prediction
        seen = _seen(y, weight)
        return sum(
            max(0.0, sets.value(float(seen[sets.rows] @ z[sets.rows])))
            for sets in self.strata(y, z, weight)
        )

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding of the difference of logarithms and predictions."""
        return sum(
            sets.rounding(_seen(y, weight)[sets.rows] * prediction[sets.rows])
            for sets in self.strata(y, prediction, weight)
        )

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the expected weight of events of each sample, minus the observed weight."""
        return self.curvature(y, prediction, weight) - _seen(y, weight)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return sum_m omega_m p_mi, a diagonal upper bound on the Hessian."""
        result = np.zeros(y.size)
        for sets in self.strata(y, prediction, weight):
            result[sets.rows] = sets.expected
        return result

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return sum_m omega_m p_m and K, whose columns are sqrt(omega_m) p_m."""
        strata = self.strata(y, prediction, weight)
        return self.curvature(y, prediction, weight), Coupling(strata, y.size)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u), ``inf`` outside its domain, and everywhere with left truncation."""
        seen = _seen(y, weight)
        events = dual + seen
        # Tolerances for values that rounding may have made negative, single ones and sums.
        each = EDGE_TOLERANCE * (np.abs(dual) + seen)
        if not np.all(events >= -each):
            return float("inf")
        events = np.maximum(events, 0.0)
        slack = float(each.sum())
        inside = np.zeros(y.size, dtype=bool)
        total = 0.0
        for sets in self.strata(y, np.zeros(y.size), weight):
            inside[sets.rows] = True
            total += _conjugate(sets, events[sets.rows], weight[sets.rows], slack)
        # "not all inside" rather than "any outside": a NaN is outside too.
        return total if np.all(np.abs(events[~inside]) <= 0.0) else float("inf")

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return an upper bound on f*(factor u), u = f'(z), exact at factor 1; see Notes."""
        if not 0.0 <= factor <= 1.0:
            return float("inf")
        along = factor * (float(dual @ prediction) - self.value(y, prediction, weight))
        return along if factor == 1.0 else min(along, self.conjugate(y, factor * dual, weight))

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return Harrell's concordance of times and risks, which ignores weights."""
        return concordance(y, prediction)


@dataclass(frozen=True, slots=True)
class Coupling:
    """K of the Hessian diag(c) - K K', defined by its products; ``T`` is its transpose."""

    strata: list[RiskSets]
    n_samples: int
    transposed: bool = False

    @property
    def T(self) -> Coupling:
        """The transpose."""
        return Coupling(self.strata, self.n_samples, not self.transposed)

    @property
    def shape(self) -> tuple[int, int]:
        """Samples by terms, or the reverse."""
        terms = sum(sets.shares[0].size for sets in self.strata)
        return (terms, self.n_samples) if self.transposed else (self.n_samples, terms)

    def __matmul__(self, other: Any) -> Array:
        A = np.asarray(other, dtype=np.float64)
        columns = A[:, None] if A.ndim == 1 else A
        if self.transposed:
            parts = [sets.pulled(columns) for sets in self.strata] or [columns[:0]]
            result = parts[0] if len(parts) == 1 else np.vstack(parts)
        else:
            result = np.zeros((self.n_samples, columns.shape[1]))
            start = 0
            for sets in self.strata:
                end = start + sets.shares[0].size
                result[sets.rows] = sets.spread(columns[start:end])
                start = end
        return result[:, 0] if A.ndim == 1 else result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return (self @ np.eye(self.shape[1])).astype(dtype or np.float64)


def _seen(y: Any, weight: Array) -> Array:
    """Return the weight of the event of each sample, 0 if none was observed."""
    return np.where(y["event"], weight, 0.0)


def _conjugate(sets: RiskSets, events: Array, s: Array, slack: float) -> float:
    """Return the conjugate of one stratum without truncation, for u + seen = ``events``."""
    if sets.entries is not None:
        return float("inf")
    group = sets.last - 1  # the last event before each leaves, -1: before any
    if np.any(events[group < 0] > 0.0):
        return float("inf")
    m = sets.ends.size
    tied = np.zeros(group.size, dtype=bool)
    tied[sets.events] = True
    rest = ~tied & (group >= 0)
    total = np.bincount(group[group >= 0], events[group >= 0], minlength=m)
    D: Array = np.asarray(np.bincount(sets.of, events[sets.events], minlength=m), dtype=np.float64)
    C: Array = np.asarray(np.bincount(group[rest], events[rest], minlength=m), dtype=np.float64)
    after = np.cumsum((total - sets.totals)[::-1])[::-1]
    if abs(after[0]) > slack or not np.all(after >= -slack):
        return float("inf")
    ahead = np.maximum(np.append(after[1:], 0.0), 0.0)
    result = float((xlogy(events, events) - xlogy(events, s))[group >= 0].sum())
    result -= float(xlogy(D, D).sum() + xlogy(C, C).sum())
    both = C + ahead
    result += float((xlogy(C, C) + xlogy(ahead, ahead) - xlogy(both, both)).sum())
    result += float(_of_shares(sets, D, both, np.maximum(after, 0.0)).sum())
    return result + sets.least


def _of_shares(sets: RiskSets, D: Array, both: Array, after: Array) -> Array:
    """Return max over x in [0, 1] of D log x + both log(1 - x) - sum_l w log(1 - x l / k)."""
    plain = xlogy(D, D) + xlogy(both, both) - xlogy(D + both, D + both)
    if not sets.shares[1].any():
        return np.asarray(plain)
    times, share = sets.shares
    w = (sets.totals / sets.counts)[times]
    m = sets.ends.size
    open_ = (D > 0.0) & (both > 0.0)
    low = np.full(m, -80.0)
    high = np.full(m, 80.0)
    # In x = expit(theta) it is concave, and its derivative falls from D > 0 to -both < 0.
    for _ in range(70):
        theta = 0.5 * (low + high)
        slope = D - after * expit(theta)
        slope -= np.bincount(times, w * expit(theta[times] + np.log1p(-share)), minlength=m)
        low = np.where(slope > 0, theta, low)
        high = np.where(slope > 0, high, theta)
    best = D * theta - after * np.logaddexp(0.0, theta)
    best -= np.bincount(times, w * np.logaddexp(0.0, theta[times] + np.log1p(-share)), minlength=m)
    at_end = -np.bincount(times, w * np.log1p(-share), minlength=m)
    found = np.where(open_, best, np.where(both > 0.0, 0.0, at_end))
    return np.where(sets.counts > 1, found, plain)


def concordance(y: Any, risk: Array) -> float:
    """Return the share of comparable pairs that the risks order correctly; ties count half.

    A pair is comparable if one has an event, and the other, of the same stratum, was at risk then
    and was observed for longer, or equally long without an event. The result is nan if there are no
    pairs.
    """
    order = np.argsort(y["time"], kind="stable")
    y = y[order]
    risk = risk[order]
    time = y["time"]
    event = y["event"]
    right = 0.0
    pairs = 0
    ends = np.searchsorted(time, time, side="right")
    starts = np.searchsorted(time, time, side="left")
    for i in np.flatnonzero(event):
        # Samples of the same stratum that are at risk then.
        with_it = (y["entry"] < time[i]) & (y["stratum"] == y["stratum"][i])
        same = slice(starts[i], ends[i])
        for others in (risk[ends[i] :][with_it[ends[i] :]], risk[same][(with_it & ~event)[same]]):
            pairs += others.size
            gap = risk[i] - others
            right += float(np.count_nonzero(gap > TIED))
            right += 0.5 * np.count_nonzero(np.abs(gap) <= TIED)
    return right / pairs if pairs else float("nan")
