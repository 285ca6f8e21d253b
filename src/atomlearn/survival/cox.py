"""Cox: the partial likelihood of the proportional hazards model, and Harrell's concordance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from atomlearn._support import LastAnswer
from atomlearn.core import EDGE_TOLERANCE, Array, Loss, Task
from atomlearn.survival.risk_sets import RiskSets
from atomlearn.survival.target import checked_survival, competing_at_infinity

#: Two predicted risks that differ by at most this count as tied, as in scikit-survival.
TIED = 1e-8


@final
@dataclass(frozen=True)
class Cox(Loss):
    """Negative log partial likelihood of Cox's proportional hazards model.

    f(z) = sum over event times t of [d_t log sum_(i at risk at t) s_i exp(z_i) - sum_(i with event
    at t) s_i z_i], with sample weights s_i and d_t the total weight of the events at t. The infimum
    of the term of each time is subtracted, so that f >= 0. At risk at t are the samples of the same
    stratum with entry_i < t <= time_i. Predictions z are log hazard ratios: adding a constant to
    all samples of a stratum does not change f, so that there is no intercept. A sample with a
    competing event at c stays in the risk sets of later times t (Fine and Gray). Its weight is
    multiplied by G(t-) / G(c-), where G is the distribution of the censoring times.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default="efron"
        Treatment of k > 1 events at one time t. Breslow: one sum over the risk set, with weight
        d_t. Efron: k sums, each with weight d_t / k; in sum l = 0, ..., k - 1 the samples with
        events at t are multiplied by 1 - l/k. A sample weight of 2 is equivalent to a duplicated
        row for Breslow's method, but not for Efron's (as in R's ``coxph``), because duplicates are
        ties.

    Notes
    -----
    Targets are structured arrays; see ``losses.survival_target``. The loss is a sum of log-sum-exp
    terms m, one for each event time (Efron: one for each event), with weights omega_m and softmax
    probabilities p_m over their risk sets. With c = sum_m omega_m p_m the Hessian is diag(c) -
    sum_m omega_m p_m p_m'. It couples all predictions, and ``coupling`` multiplies with it in
    O(n_samples) per column.

    Dual points u are gradients, u_i + s_i event_i = sum_m omega_m p_mi. The conjugate at u = f'(z)
    is f*(u) = <u, z> - f(z), and t f*(u) bounds f*(t u) for 0 <= t <= 1, because f*(0) <= 0.
    Without left truncation the risk sets are nested, and f* separates over event times; for Efron's
    ties a concave maximization in one variable per tied time remains.

    References
    ----------
    D. R. Cox. Regression models and life-tables. Journal of the Royal Statistical Society B 34
    (1972) 187-220.
    B. Efron. The efficiency of Cox's likelihood function for censored data. Journal of the
    American Statistical Association 72 (1977) 557-565.
    J. P. Fine, R. J. Gray. A proportional hazards model for the subdistribution of a competing
    risk. Journal of the American Statistical Association 94 (1999) 496-509.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Cox, survival_target
    >>> y = survival_target([True, True, False], [1.0, 2.0, 3.0])
    >>> Cox().gradient(y, np.zeros(3), np.ones(3)).round(6).tolist()
    [-0.666667, -0.166667, 0.833333]
    """

    ties: Literal["efron", "breslow"] = "efron"
    #: Cached risk sets at z = 0, because sorting is slow, and at the last predictions.
    at_zero: LastAnswer = field(default_factory=LastAnswer, init=False, repr=False, compare=False)
    there: LastAnswer = field(default_factory=LastAnswer, init=False, repr=False, compare=False)
    name: ClassVar[str] = "cox"
    coupled: ClassVar[int] = 0
    task: ClassVar[Task] = "survival"
    dispersed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise ValueError unless ``ties`` is a known method."""
        if self.ties not in ("efron", "breslow"):
            raise ValueError(f"Cox: ties must be 'efron' or 'breslow', got {self.ties!r}")

    def check_target(self, y: object) -> Array:
        """Return ``y`` as a structured array with the fields event, time, entry and stratum."""
        return checked_survival(y)

    def strata(self, y: Any, prediction: Array, weight: Array) -> list[RiskSets]:
        """Return the risk sets of each stratum of ``y`` with an event, at z = ``prediction``.

        ``weight`` are the sample weights (n_samples,).
        """
        return self._risk_sets_at(y, prediction, weight)[1]

    def _risk_sets_at(
        self, y: Any, prediction: Array, weight: Array
    ) -> tuple[Array, list[RiskSets]]:
        """Return the weights of events (``_event_weights``), and the risk sets at ``prediction``.

        ``y`` are the targets and ``weight`` the sample weights. The last answer is cached, as
        value, gradient and curvature are computed at the same predictions.
        """
        zero = self._risk_sets_at_zero(y, weight)

        def find() -> tuple[Any, list[RiskSets]]:
            """Return the result for z = 0, and its risk sets recomputed at ``prediction``."""
            return zero, [sets.at(prediction) for sets in zero[1]]

        cached: Any = self.there.of(find, prediction)
        if cached[0] is not zero:  # the cache holds the risk sets of other samples
            self.there.forget()
            cached = self.there.of(find, prediction)
        return zero[0], cached[1]

    def _risk_sets_at_zero(self, y: Any, weight: Array) -> tuple[Array, list[RiskSets]]:
        """Return the weights of events and the risk sets at z = 0, cached for y and weight.

        ``y`` are the targets, and ``weight`` the sample weights, (n_samples,).
        """

        def find() -> tuple[Array, list[RiskSets]]:
            """Return the weights of events and the risk sets of all strata."""
            # Split the sorted rows where the stratum changes; strata without an event are left out.
            order = np.argsort(y["stratum"], kind="stable")
            rows_by_stratum = np.split(order, np.flatnonzero(np.diff(y["stratum"][order])) + 1)
            efron = self.ties == "efron"
            strata = (RiskSets.of_stratum(y, weight, rows, efron) for rows in rows_by_stratum)
            return _event_weights(y, weight), [sets for sets in strata if sets is not None]

        cached: tuple[Array, list[RiskSets]] = self.at_zero.of(find, y, weight)
        return cached

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) >= 0 at z = ``prediction``, for targets ``y`` and weights ``weight``."""
        # The term of each stratum is at least 0 except for rounding.
        z = prediction
        event_weight, strata = self._risk_sets_at(y, z, weight)
        return sum(
            max(0.0, sets.value(float(event_weight[sets.rows] @ z[sets.rows]))) for sets in strata
        )

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error of ``value``, which subtracts large sums.

        The arguments are those of ``Loss.slack``; ``dual`` is not needed.
        """
        event_weight, strata = self._risk_sets_at(y, prediction, weight)
        return sum(
            sets.rounding(event_weight[sets.rows] * prediction[sets.rows]) for sets in strata
        )

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'(z) at z = ``prediction``: expected minus observed events of each sample.

        These are the negative martingale residuals, for targets ``y`` and sample weights
        ``weight``.
        """
        event_weight, strata = self._risk_sets_at(y, prediction, weight)
        return _expected(strata, y.size) - event_weight

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return c = sum_m omega_m p_m (n_samples,) at ``prediction``; diag(c) bounds the Hessian.

        It is an upper bound, for targets ``y`` and sample weights ``weight``.
        """
        return _expected(self.strata(y, prediction, weight), y.size)

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c and K of the Hessian diag(c) - K K' at ``prediction``.

        K has the columns sqrt(omega_m) p_m (see ``Cox``). ``y`` are the targets, ``weight`` the
        weights.
        """
        strata = self.strata(y, prediction, weight)
        return _expected(strata, y.size), Coupling(strata, y.size)

    def score_residuals(self, y: Array, prediction: Array, weight: Array, A: Array) -> Array:
        """Return the score residuals of the columns A (n_samples, k), (n_samples, k).

        They are the integrals of A minus its mean over the risk set, with respect to the martingale
        of each sample. Their sums are minus the gradient with respect to the coefficients of A. The
        model is that of targets ``y``, sample weights ``weight`` and log hazard ratios
        ``prediction``.

        References
        ----------
        D. Y. Lin, L. J. Wei. The robust inference for the Cox proportional hazards model. Journal
        of the American Statistical Association 84 (1989) 1074-1078.
        """
        event_weight = _event_weights(y, weight)
        residuals = -self.gradient(y, prediction, weight)[:, None] * A
        # Two terms have the means p_m'A of A over the risk sets. K K'A = sum_m omega_m p_m p_m'A
        # sums them over the terms in which a sample is at risk: ``pulled`` is K'A, and ``spread``
        # multiplies by K. The other one is at its own event, whose time is ``of``.
        for sets in self.strata(y, prediction, weight):
            residuals[sets.rows] += sets.spread(sets.pulled(A))
            events = sets.rows[sets.events]
            residuals[events] -= event_weight[events][:, None] * sets.means(A)[sets.of]
        return np.asarray(residuals)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return the convex conjugate f*(u) at u = ``dual``; ``inf`` outside its domain.

        It is a function of e_i = u_i + s_i event_i >= 0, a sum over strata. ``y`` are the targets,
        and s = ``weight`` the sample weights. With left truncation or competing events there is no
        formula, and the result is always ``inf``.
        """
        event_weight, at_zero = self._risk_sets_at_zero(y, weight)
        e = dual + event_weight
        # Tolerances for single entries and sums that are negative because of rounding.
        tolerances = EDGE_TOLERANCE * (np.abs(dual) + event_weight)
        if not np.all(e >= -tolerances):
            return float("inf")
        e = np.maximum(e, 0.0)
        slack = float(tolerances.sum())
        is_counted = np.zeros(y.size, dtype=bool)
        total = 0.0
        for sets in at_zero:
            is_counted[sets.rows] = True
            total += _conjugate(sets, e[sets.rows], weight[sets.rows], slack)
        # The conjugate is finite only if e = 0 outside all risk sets. The test is written as "not
        # all inside", so that NaN counts as outside.
        return total if np.all(np.abs(e[~is_counted]) <= 0.0) else float("inf")

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return an upper bound on f*(factor * u), for u = ``dual`` = f'(prediction).

        It is exact for ``factor`` 1, and infinite unless 0 <= factor <= 1. ``y`` are the targets,
        ``weight`` the sample weights.
        """
        if not 0.0 <= factor <= 1.0:
            return float("inf")
        # f*(u) = <u, z> - f(z) at u = f'(z), and t f*(u) bounds f*(t u) for 0 <= t <= 1.
        scaled = factor * (float(dual @ prediction) - self.value(y, prediction, weight))
        return scaled if factor == 1.0 else min(scaled, self.conjugate(y, factor * dual, weight))

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return Harrell's concordance index of the risks ``prediction``; ``weight`` is ignored."""
        return concordance(y, prediction)


@dataclass(frozen=True, slots=True)
class Coupling:
    """K (n_samples, n_terms) of the Hessian diag(c) - K K', as an implicit matrix.

    ``K @ A`` and ``K.T @ A`` are computed from the risk sets of all strata.

    Attributes
    ----------
    strata : list of RiskSets
    n_samples : int
    transposed : bool
        Whether the object is K'.
    """

    strata: list[RiskSets]
    n_samples: int
    transposed: bool = False

    @property
    def T(self) -> Coupling:
        """The transpose."""
        return Coupling(self.strata, self.n_samples, not self.transposed)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_terms), or the reverse for the transpose."""
        terms = sum(sets.shares[0].size for sets in self.strata)
        return (terms, self.n_samples) if self.transposed else (self.n_samples, terms)

    def __matmul__(self, other: Any) -> Array:
        """Return the product with ``other``, a vector or a matrix."""
        A = np.asarray(other, dtype=np.float64)
        columns = A[:, None] if A.ndim == 1 else A
        if self.transposed:
            # Without any event there are no terms.
            products = [sets.pulled(columns) for sets in self.strata] or [columns[:0]]
            result = products[0] if len(products) == 1 else np.vstack(products)
        else:
            # The terms of the strata follow one another in the columns of K.
            result = np.zeros((self.n_samples, columns.shape[1]))
            start = 0
            for sets in self.strata:
                end = start + sets.shares[0].size
                result[sets.rows] = sets.spread(columns[start:end])
                start = end
        return result[:, 0] if A.ndim == 1 else result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return K as a dense array of type ``dtype`` (tests); ``copy`` is ignored."""
        return (self @ np.eye(self.shape[1])).astype(dtype or np.float64)


def _event_weights(y: Any, weight: Array) -> Array:
    """Return the ``weight`` of each sample of ``y`` with an observed event; 0 for the others."""
    return np.where(y["event"], weight, 0.0)


def _expected(strata: list[RiskSets], count: int) -> Array:
    """Return the expected weight of events of each of ``count`` samples, (count,).

    It is 0 for samples that are in no risk set of ``strata``.
    """
    result = np.zeros(count)
    for sets in strata:
        result[sets.rows] = sets.expected
    return result


def _x_log(x: Array, y: Array) -> Array:
    """Return x log y for x >= 0, and 0 if x is 0; faster than ``scipy.special.xlogy``."""
    with np.errstate(divide="ignore"):
        return np.asarray(x * np.log(np.where(x > 0.0, y, 1.0)))


def _conjugate(sets: RiskSets, e: Array, weight: Array, slack: float) -> float:
    """Return the conjugate of the loss of one stratum; ``inf`` outside its domain.

    It is ``inf`` also with left truncation or competing events. Let e_i be u_i plus the weight s_i
    of an observed event. The value is

        sum_i e_i log(e_i / s_i) + sum over event times of
        [L log L - (C + L) log(C + L) - D log D + max of ``_largest_of_set``] + ``least``

    where D is the sum of e_i over samples with an event at the time, and C the sum of e_i over
    samples censored between this event time and the next one. L is the sum of u_i over the samples
    of all later event times.

    Parameters
    ----------
    sets : RiskSets
    e : (n,)
        The e_i >= 0, in the order of ``sets.rows``.
    weight : (n,)
        s, in the same order.
    slack : float
        Tolerance for sums that rounding makes negative.
    """
    if sets.entries is not None or sets.staying is not None:
        return float("inf")
    group = sets.last - 1  # number of the last event time up to each sample's time; -1: none
    if np.any(e[group < 0] > 0.0):
        return float("inf")
    # Sums of e over the samples of each event time: all of them, D and C.
    m = sets.ends.size
    has_event = np.zeros(group.size, dtype=bool)
    has_event[sets.events] = True
    is_other = ~has_event & (group >= 0)
    total = np.bincount(group[group >= 0], e[group >= 0], minlength=m)
    D: Array = np.asarray(np.bincount(sets.of, e[sets.events], minlength=m), dtype=np.float64)
    C: Array = np.asarray(np.bincount(group[is_other], e[is_other], minlength=m), dtype=np.float64)
    # The sum of u over the samples from each event time on must be >= 0, and 0 from the first time
    # on. Otherwise u is outside the domain.
    after = np.cumsum((total - sets.totals)[::-1])[::-1]
    if abs(after[0]) > slack or not np.all(after >= -slack):
        return float("inf")
    L = np.maximum(np.append(after[1:], 0.0), 0.0)
    result = float((_x_log(e, e) - _x_log(e, weight))[group >= 0].sum())
    result -= float(_x_log(D, D).sum())
    C_and_L = C + L
    result += float((_x_log(L, L) - _x_log(C_and_L, C_and_L)).sum())
    result += float(_largest_of_set(sets, D, C_and_L, np.maximum(after, 0.0)).sum())
    return result + sets.least


def _largest_of_set(sets: RiskSets, D: Array, C_and_L: Array, after: Array) -> Array:
    """Return max over x in [0, 1] of D log x + (C + L) log(1 - x) - sum_l w log(1 - x l / k).

    There is one maximum for each event time of ``sets``, (m,). The sum is over Efron's terms l = 0,
    ..., k - 1 of the k tied events, each with weight w (``term_weights``). Without ties the maximum
    has a closed form; else bisection is used. D, C and L (m,) are the sums of ``_conjugate``, and
    ``after`` = D + C + L - k w is the sum of u_i over the samples from the event time on.
    """
    # Without ties the maximum is at x = D / (D + C + L).
    total = D + C_and_L
    interior = _x_log(D, D) + _x_log(C_and_L, C_and_L) - _x_log(total, total)
    if not sets.shares[1].any():
        return np.asarray(interior)
    # For each term: the number of its event time, l / k and w.
    times, share = sets.shares
    term_weights = (sets.totals / sets.counts)[times]
    m = sets.ends.size
    is_interior = (D > 0.0) & (C_and_L > 0.0)
    low = np.full(m, -80.0)
    high = np.full(m, 80.0)
    # With x = expit(theta) and r = 1 - l / k, the objective is concave in theta:
    #     D theta - after log(1 + e^theta) - sum_l w log(1 + r e^theta).
    # Its derivative decreases from D > 0 to -(C + L) < 0, so that bisection finds its zero. At the
    # ends, theta = -80 and 80, x is 0 or 1 to all digits.
    for _ in range(70):
        theta = 0.5 * (low + high)
        slope = D - after * expit(theta)
        slope -= np.bincount(
            times, term_weights * expit(theta[times] + np.log1p(-share)), minlength=m
        )
        low = np.where(slope > 0, theta, low)
        high = np.where(slope > 0, high, theta)
    # The maximum is at the zero of the derivative, or at x = 0 if D = 0, or at x = 1 if C + L = 0.
    best = D * theta - after * np.logaddexp(0.0, theta)
    best -= np.bincount(
        times, term_weights * np.logaddexp(0.0, theta[times] + np.log1p(-share)), minlength=m
    )
    at_end = -np.bincount(times, term_weights * np.log1p(-share), minlength=m)
    largest = np.where(is_interior, best, np.where(C_and_L > 0.0, 0.0, at_end))
    return np.where(sets.counts > 1, largest, interior)


def concordance(y: Any, risk: Array) -> float:
    """Return Harrell's concordance index: the fraction of comparable pairs ordered correctly.

    ``y`` are the targets, and ``risk`` (n_samples,) is larger for samples that should have the
    event earlier. Tied risks count one half. A pair of samples of one stratum is comparable if one
    has an event at a time at which the other is at risk. The other must also be observed longer, or
    equally long without an event. A sample with a competing event counts as observed without an
    event forever (Wolbers et al., Epidemiology 20, 2009). The result is nan if there are no
    comparable pairs.
    """
    y = competing_at_infinity(y)
    order = np.argsort(y["time"], kind="stable")
    y = y[order]
    risk = risk[order]
    time = y["time"]
    event = y["event"]
    concordant = 0.0
    pairs = 0
    ends = np.searchsorted(time, time, side="right")
    starts = np.searchsorted(time, time, side="left")
    for i in np.flatnonzero(event):
        # Samples of the same stratum whose observation began before this event. Compare with those
        # that were observed longer, and with those censored at the same time.
        was_at_risk = (y["entry"] < time[i]) & (y["stratum"] == y["stratum"][i])
        tied = slice(starts[i], ends[i])
        for other_risks in (
            risk[ends[i] :][was_at_risk[ends[i] :]],
            risk[tied][(was_at_risk & ~event)[tied]],
        ):
            # A pair is ordered correctly if the sample with the event has the higher risk. A tie
            # counts one half.
            pairs += other_risks.size
            difference = risk[i] - other_risks
            concordant += float(np.count_nonzero(difference > TIED))
            concordant += 0.5 * np.count_nonzero(np.abs(difference) <= TIED)
    return concordant / pairs if pairs else float("nan")
