"""AtomicSurvival: proportional hazards with an atomic norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Result
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.parameters import OneLevel
from atomlearn.estimators.selects_columns import SelectsColumns
from atomlearn.estimators.targets import Checked
from atomlearn.survival.cox import Cox
from atomlearn.survival.risk_sets import RiskSets


@dataclass(frozen=True, slots=True)
class StepFunction:
    """A function that is constant between the times ``x``, with values ``y`` from each on.

    Its value before the first time is ``first``.
    """

    x: Array
    y: Array
    first: float

    def __call__(self, times: Any) -> Any:
        """Return the values at these times."""
        positions = np.searchsorted(self.x, times, side="right")
        values = np.concatenate([[self.first], self.y])[positions]
        return float(values) if np.ndim(times) == 0 else values


@dataclass(frozen=True, slots=True)
class Baseline:
    """Breslow's baseline hazard of one stratum.

    times : (m,) increasing times of events. cumulative : (m,) the cumulative hazard at each.
    """

    times: Array
    cumulative: Array

    @classmethod
    def of(cls, y: Any, risk: Array, weight: Array) -> Baseline:
        """Return the baseline hazard of Breslow's estimator.

        At each time of events it increases by (weight of these events) / (sum of s exp(risk) over
        the rows at risk). y : records of one stratum. risk : (n,) linear predictors. weight : (n,)
        the weights s. Infinite risks, of fits without a bound, make the result NaN.
        """
        sets = RiskSets.of_stratum(y, weight, np.arange(y.size), efron=False)
        if sets is None:
            return cls(np.zeros(0), np.zeros(0))
        with np.errstate(invalid="ignore", over="ignore"):
            # ``totals`` are the weights of the events at each time, and ``at_risk`` is the
            # logarithm of the sum of s exp(risk).
            steps = np.exp(np.log(sets.totals) - sets.at(risk).at_risk)
            return cls(sets.times, np.cumsum(steps))

    def until(self, times: Array, side: Literal["left", "right"] = "right") -> Array:
        """Return the cumulative hazard at these times; just before them if ``side`` is "left"."""
        return np.append(0.0, self.cumulative)[np.searchsorted(self.times, times, side)]


class LinearSurvival(AtomicModel):
    """Base class of ``AtomicSurvival`` and ``AtomicSurvivalCV``; not for direct use.

    The parameter ``ties`` and the fitted attributes ``baselines_``, ``unique_times_`` and
    ``last_time_`` are documented in these.
    """

    task = "survival"
    fit_intercept = False
    ties: Literal["efron", "breslow"]
    baselines_: dict[int, Baseline]
    unique_times_: Array
    last_time_: float

    @property
    def loss(self) -> Cox:  # type: ignore[override]
        """The partial likelihood."""
        return Cox(self.ties)

    def _set_fitted(self, data: Checked, results: list[Result]) -> None:
        """Set the attributes of the fit, and the baseline hazard of each stratum.

        results : the result of the one problem. ``data`` is the checked data.
        """
        super()._set_fitted(data, results)
        self.intercept_ = 0.0
        target: Any = data.y
        risk = results[0].predict(data.fitted_design).astype(np.float64)
        if data.offset is not None:
            risk += data.offset[:, 0]
        self.baselines_ = {
            int(stratum): Baseline.of(target[members], risk[members], data.weight[members])
            for stratum in np.unique(target["stratum"])
            for members in [target["stratum"] == stratum]
        }
        self.last_time_ = float(target["time"].max())
        self.unique_times_ = np.unique(target["time"][target["event"] & (data.weight > 0.0)])

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, offset: Any = None, stratum: Any = None
    ) -> NDArray[Any]:
        """Return the cumulative hazard of each sample.

        Parameters
        ----------
        X : (n_samples, n_features)
        return_array : bool
            Whether to return the values at ``unique_times_``, (n_samples, n_times), instead of
            (n_samples,) functions of time.
        offset : (n_samples,), optional
        stratum : (n_samples,) int, optional
            The code of each sample, required if y had several strata.
        """
        return self._functions(X, return_array, offset, stratum, survival=False)

    def predict_survival_function(
        self, X: Any, return_array: bool = False, offset: Any = None, stratum: Any = None
    ) -> NDArray[Any]:
        """Return the probability of no event until each time, exp(-cumulative hazard).

        The parameters X, return_array, offset and stratum are those of
        ``predict_cumulative_hazard_function``.
        """
        return self._functions(X, return_array, offset, stratum, survival=True)

    def predict_risk(
        self, X: Any, at: Any, offset: Any = None, stratum: Any = None
    ) -> NDArray[np.float64]:
        """Return the probability of an event by each time, (n_samples, n_times).

        Parameters
        ----------
        X : (n_samples, n_features)
        at : (n_times,)
            Times, up to the last one that was observed: nothing is known of later ones.
        offset : (n_samples,), optional
        stratum : (n_samples,) int, optional
            The code of each sample, required if y had several strata.
        """
        times = np.atleast_1d(np.asarray(at, dtype=np.float64))
        if not times.size or times.max() > self.last_time_:
            raise ValueError(
                f"at={at!r} must be times up to {self.last_time_:g}, the last one of y; nothing is "
                "known of later risks"
            )
        functions = self.predict_survival_function(X, offset=offset, stratum=stratum)
        return 1.0 - np.array([function(times) for function in functions]).reshape(-1, times.size)

    def _functions(
        self, X: Any, return_array: bool, offset: Any, stratum: Any, *, survival: bool
    ) -> NDArray[Any]:
        """Return the survival or cumulative hazard function of each sample.

        X : (n_samples, n_features). survival : whether to return survival functions. return_array :
        whether to return values (n_samples, n_times) at ``unique_times_``, instead of
        ``StepFunction`` objects (n_samples,). offset, stratum : (n_samples,) or None, as for
        ``predict_cumulative_hazard_function``.
        """
        ratio = np.exp(self.predict(X, offset).astype(np.float64))
        if stratum is None and len(self.baselines_) > 1:
            raise ValueError("y had several strata; give stratum=, the code of each sample")
        # A single stratum needs no codes.
        codes = np.full(ratio.size, next(iter(self.baselines_))) if stratum is None else stratum
        functions = np.empty(ratio.size, dtype=object)
        for i, (code, factor) in enumerate(zip(codes, ratio, strict=True)):
            if code not in self.baselines_:
                raise ValueError(f"stratum {code!r} was not in y; fitted: {list(self.baselines_)}")
            baseline = self.baselines_[code]
            hazard = baseline.cumulative * factor
            values, first = (np.exp(-hazard), 1.0) if survival else (hazard, 0.0)
            functions[i] = StepFunction(baseline.times, values, first)
        if not return_array:
            return functions
        return np.array([function(self.unique_times_) for function in functions])


@dataclass(eq=False, repr=False)
class AtomicSurvival(SelectsColumns, OneLevel, LinearSurvival):
    """min over w of  (1 / sum s) f(X w) + alpha * penalty(w),  f Cox's partial likelihood.

    The gauge is the value of the norm. The penalty is the gauge (``form="penalized"``) or half its
    square ("squared"). "constrained" has no penalty, but the constraint gauge(w) <= radius. See
    ``losses.Cox`` for f, from which its minimum at each single time is subtracted. There is no
    intercept: the baseline hazard replaces it.

    Parameters
    ----------
    norm : str or Norm, default="l1"
        A name, or an object such as ``norms.KSupport(k=10)``, whose parameters ``set_params`` and
        grid searches reach as ``norm__k``.
    alpha : float, default=1.0
        Strength of the penalty; the loss is a mean over samples. It is the alpha of
        ``sksurv.linear_model.CoxnetSurvivalAnalysis``.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, from 0 to 1. The rest is the squared l2 norm: alpha *
        (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). With ``norm="l1"`` it is the
        l1_ratio of scikit-learn's ElasticNet. 0 leaves only the squared l2 norm. The constrained
        form needs 1.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the gauge (the value of the norm) enters: itself, half its square, or as a constraint.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
    ties : {"efron", "breslow"}, default="efron"
        Treatment of events at the same time.
    features : str or (str, dict), default="linear"
        "interactions" adds all products x_i x_j, i < j, after the columns of X. "quadratic" adds
        the squares, too. "polynomial" is "quadratic" with the scales of the kernel (x'y + 1)^2.
        "cubic" adds products of three (``designs.Cubic``). Products are never stored
        (``designs.Polynomial.interactions``). "splines", "intersection", "additive_gaussian" and
        "additive_chi2" make the model a sum of curves, one for each input
        (``designs.Additive(X, normalize=True)``). Then ``norm="groups"``, or
        ``norms.KSupport(k, "inputs")``, selects whole inputs. "anova" adds a surface for each pair
        of inputs (``designs.Anova(X, normalize=True)``); its groups are called "terms". A tuple of
        a name and a dictionary has settings of the features, such as ("splines", {"n_knots": 12}),
        or ("intersection", {"exponent": 2}) for the general intersection kernel.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of inputs, default=None
        Covariates without a penalty, such as age and sex: they are fitted like the intercept and
        always kept. With ``features`` other than "linear", their columns or curves are unpenalized,
        but not their products and surfaces.
    relax : float, default=0.0
        Share of a refit without penalty over the selected columns: ``coef_`` is (1 - relax) times
        the penalized fit plus relax times the refit, as in glmnet.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded as numbers. A category
        becomes a 0/1 column for each label but the first, such as "stage=4". A date becomes the
        number of days since the first date. Gaps are filled with the median, or the most frequent
        label, of the training rows. False: such tables are refused.
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Maximum number of steps of the solver.
    solver : str or Solver, default="auto"
        "auto" is column generation over subspaces or over atoms, as the norm allows. Others:
        "column_generation", "atom_generation", "fista", "kfcfw", "frank_wolfe".
    warm_start : bool, default=False
        Whether ``fit`` begins at the solution of the last ``fit``.
    verbose : int, default=0
        If above 0, print one line for each step.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far.

    Attributes
    ----------
    coef_ : (n_features,) ndarray, float64
        Log hazard ratios per unit of each column.
    unique_times_ : (n_times,) ndarray
        The times of events.
    last_time_ : float
        The last time of an event or of censoring.
    baselines_ : dict of Baseline
        Breslow's estimate of the cumulative baseline hazard of each stratum (also with Efron's
        ties, as in scikit-survival).
    selected_ : ndarray of int
        Columns with a coefficient.
    selected_names_ : list of str
        Their names.
    parts_ : list of Part, or None
        For latent norms (overlapping groups): the vectors, one for each group in use, whose sum is
        ``coef_``. None for other norms.
    objective_ : float
        Mean loss plus penalty.
    gap_ : float
        Proved bound on the distance of ``objective_`` to the optimum.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    n_passes_ : float
        Passes over the data.
    n_iter_ : int
        Number of points whose gap was computed, the starting point included.
    history_ : list of Record
        One record for each of these points.
    results_ : list of Result
        One for each output.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it has any.
    encoding_ : TableEncoding
        How a data frame with words, dates or gaps was encoded; absent for numbers.

    Notes
    -----
    y is a structured array as in scikit-survival: a boolean field (whether the event was observed)
    and a field of times. It may have the fields "entry" (left truncation) and "stratum"; use
    ``losses.survival_target`` to make it.

    References
    ----------
    N. Simon, J. Friedman, T. Hastie, R. Tibshirani. Regularization paths for Cox's proportional
    hazards model via coordinate descent. Journal of Statistical Software 39(5), 2011.
    N. E. Breslow. Covariance analysis of censored survival data. Biometrics 30 (1974) 89-99.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicSurvival
    >>> from atomlearn.losses import survival_target
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = survival_target(rng.random(200) < 0.7, rng.exponential(np.exp(-X[:, 3])))
    >>> model = AtomicSurvival(alpha=0.15).fit(X, y)
    >>> model.selected_.tolist(), bool(model.score(X, y) > 0.7)
    ([3], True)
    >>> model.predict_survival_function(X[:1])[0](1.0) < 1.0
    True
    """

    ties: Literal["efron", "breslow"] = "efron"
