"""Verdict: whether a model predicts better than a baseline, tested on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.preprocessing import SplineTransformer

from atomlearn.core import Array, Task
from atomlearn.estimators.survival import Baseline
from atomlearn.findings.ranking import (
    LEVEL,
    POWER,
    Ranked,
    area_interval,
    areas,
    correlation_interval,
    correlations,
    ranked_concordance,
)
from atomlearn.survival.target import checked_survival, competing_at_infinity

#: Smallest effect of interest, as a share of the distance from a guess to a perfect score: a
#: correlation of 0.3, an AUC of 0.65. If the power for it is below 80 %, rows are too few.
USEFUL = 0.3
#: Knots of the spline of a covariate if there are enough rows; a covariate with at most this number
#: of distinct values enters linearly.
KNOTS = 5

Word = Literal["better", "no better", "too few rows to tell"]

#: Losses of heavy-tailed targets, whose few large values would dominate Pearson's correlation:
#: Spearman's rank correlation is used instead.
LONG_TAILED = ("poisson", "gamma", "tweedie")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model predicts better than a baseline, with the evidence.

    Attributes
    ----------
    verdict : {"better", "no better", "too few rows to tell"}
    score, score_name : float, str
        Held-out AUC, mean AUC over classes, correlation, rank correlation or concordance; NaN
        if there is none.
    interval : (float, float)
        With ``confidence`` coverage, 90%, for the score of this very model.
    baseline : float
        The score of a guess: 0.5, or 0 for correlations.
    p_value : float
        One-sided p-value of a studentized permutation test of no relation between target and
        features; an upper bound if no permutation scored as high (``at_most``).
    critical : float
        The critical value: the smallest score at which the verdict is "better".
    n_rows : int
        Held-out rows.
    how : dict
        Sentences that describe how score, interval, p_value and verdict were computed.
    n_folds : int
        Number of cross-validation folds behind the score; 0 for a single held-out part.
    guess : str
        The baseline of the comparison: a guess, or only the covariates.
    power : float or None
        Estimated power: share of simulated signals of a useful size that the test detects; None if
        it was not estimated.
    n_draws : int
        Number of permutations behind p_value.

    References
    ----------
    E. DeLong, D. DeLong, D. Clarke-Pearson. Comparing the areas under two or more correlated
    receiver operating characteristic curves. Biometrics 44 (1988) 837-845. M. Ojala, G. Garriga.
    Permutation tests for studying classifier performance. JMLR 11 (2010) 1833-1863.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.findings.verdict import verdict_on
    >>> truth = np.array([0, 1] * 20)
    >>> found = verdict_on("classification", truth, truth + np.linspace(0, 1.5, 40))
    >>> found.verdict, found.score > 0.8, found.p_value < 0.001
    ('better', True, True)
    """

    verdict: Word
    score: float
    score_name: str
    interval: tuple[float, float]
    baseline: float
    p_value: float
    critical: float
    n_rows: int
    how: dict[str, str]
    n_folds: int
    guess: str = "a guess"
    power: float | None = None
    n_draws: int = 0

    @property
    def at_most(self) -> bool:
        """True if no permutation scored as high: then p_value is the smallest possible value."""
        return self.n_draws > 0 and self.p_value <= 1.0 / (1.0 + self.n_draws) * (1 + 1e-9)

    @property
    def p_words(self) -> str:
        """The p-value as text for reports."""
        return f"p {'at most' if self.at_most else '='} {self.p_value:.2g}"

    @property
    def confidence(self) -> float:
        """Coverage of the interval."""
        return 1.0 - 2.0 * LEVEL

    @property
    def better(self) -> bool:
        """True if the verdict is "better"."""
        return self.verdict == "better"

    @property
    def measured(self) -> str:
        """The name of the score, such as "held-out AUC" or "cross-validated correlation"."""
        return f"{self.kind} {self.score_name}"

    @property
    def kind(self) -> str:
        """How the scored rows were separated from the rows of the fits."""
        return "cross-validated" if self.n_folds else "held-out"

    @property
    def evidence(self) -> str:
        """The score with its interval and the score of the baseline in words, or the reason."""
        if self.n_rows == 0:
            return self.how["verdict"]
        low, high = self.interval
        return (
            f"{self.measured} {self.score:.3f} ({100 * self.confidence:.0f}% interval "
            f"{low:.3f} to {high:.3f}; {self.guess}: {self.baseline:g}), {self.p_words}"
        )

    def __str__(self) -> str:
        """Return the verdict and its evidence in one line."""
        than = "" if self.verdict == "too few rows to tell" else f" than {self.guess}"
        return f"{self.verdict}{than}: {self.evidence}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, None if not known: the content of ``summary.json``."""
        has_rows = self.n_rows > 0
        return {
            "verdict": self.verdict,
            "score": self.score if has_rows else None,
            "score_name": self.score_name,
            "interval": list(self.interval) if has_rows else None,
            "confidence": self.confidence,
            "baseline": self.baseline if has_rows else None,
            "p_value": self.p_value if has_rows else None,
            "p_value_at_most": self.at_most if has_rows else None,
            "n_draws": self.n_draws,
            "critical_score": self.critical if has_rows else None,
            "n_held_out": self.n_rows,
            "n_folds": self.n_folds,
            "compared_with": self.guess,
            "power": self.power,
            "how": dict(self.how),
        }


def no_verdict(reason: str) -> Verdict:
    """Return a ``Verdict`` that nothing can be concluded, with the reason as its evidence."""
    nan = float("nan")
    interval = (nan, nan)
    sources = {"verdict": reason}
    return Verdict("too few rows to tell", nan, "", interval, nan, 1.0, nan, 0, sources, 0)


def measure(task: Task, several: bool, ranks: bool, known: bool) -> tuple[str, float, str]:
    """Return the name of the score, the score of a baseline, and the name of the baseline.

    task : the kind of target. several : whether there are more than two classes. ranks : whether
    correlations are of ranks. known : whether the baseline knows covariates.
    """
    if known:
        return "partial correlation", 0.0, "the covariates alone"
    if task == "regression":
        return "rank correlation" if ranks else "correlation", 0.0, "a guess"
    if task == "survival":
        return "concordance", 0.5, "a guess"
    return "mean AUC" if several else "AUC", 0.5, "a guess"


def verdict_on(
    task: Task,
    truth: ArrayLike,
    decisions: ArrayLike,
    rng: int | np.random.Generator = 0,
    *,
    ranks: bool = False,
    known: Array | None = None,
) -> Verdict:
    """Return the verdict on held-out rows.

    Parameters
    ----------
    task : {"classification", "regression", "survival"}
    truth : (n,) or (n, q)
        For classes their codes from 0. For numbers the targets; several targets have a column each,
        and their mean correlation is judged. For survival times the records of ``survival_target``;
        only rows of the same stratum are compared.
    decisions : (n,) or (n, m)
        For classes the scores of class 1, or one column of scores per class. For numbers the
        predictions. For survival times risk scores; a larger score means an earlier event.
    rng : int or Generator
        Of the permutations.
    ranks : bool
        Whether to use Spearman's rank correlation, for counts and amounts with heavy tails. With
        covariates it has no effect.
    known : (n, q), optional
        Covariates of the baseline. The null hypothesis is then that predictions and target are
        conditionally independent given the covariates, with at least one of the two conditional
        means linear in them (spline columns make it additive).
    """
    truth = np.asarray(truth)
    rng = np.random.default_rng(rng)
    z = _numbers("decisions", decisions)
    if not truth.ndim or z.shape[:1] != truth.shape[:1]:
        raise ValueError(
            "truth and decisions must hold the same rows, one entry or more each; got shapes "
            f"{truth.shape} and {z.shape}"
        )
    truth = truth if task == "survival" else _numbers("truth", truth)
    z = z.reshape(len(truth), -1)
    if task == "regression" and not (np.isfinite(truth).all() and np.isfinite(z).all()):
        raise ValueError("truth and decisions of a regression must be finite numbers")
    name, baseline, guess = measure(task, z.shape[1] > 1, ranks, known is not None)
    # Numbers, or any target given covariates: a (partial) correlation.
    if baseline == 0.0:
        y = numbers_of(task, truth)
        if ranks and known is None:
            y = rankdata(y, axis=0)
            z = rankdata(z, axis=0)
        if not np.ptp(y, axis=0).any():
            return no_verdict("all held-out rows have one value of the target")
        ranked = correlations(y, z[:, : y.shape[1]], known, rng)
        if ranked is None:
            reason = "the held-out rows are below 3, or too few for the number of covariates"
            return no_verdict(reason)
        words = "the jackknife's error on Fisher's scale, by Student's t whose degrees of freedom "
        words += "are the number of rows in that error"
        return judged(ranked, correlation_interval(ranked), name, len(y), words, guess=guess)
    # Without covariates, classes and survival times are scored by the order of the decisions.
    if task == "classification":
        codes = truth.astype(np.int64)
        counts = np.bincount(codes)
        if np.count_nonzero(counts) < 2:
            return no_verdict(
                "the held-out rows have one class only, so there is no order to score"
            )
        ranked = areas(codes, z, rng)
        fewest = counts[counts > 0].min()
        words = "DeLong's standard error, on the scale of the logit"
    else:
        records = checked_survival(truth)
        ranked = ranked_concordance(records, z[:, 0], rng)
        fewest = records["event"].sum()
        words = "the error of a mean over pairs of rows, on the scale of the logit"
        if ranked is None:
            return no_verdict("the held-out rows have no two times whose order is known")
    return judged(ranked, area_interval(ranked, int(fewest)), name, len(truth), words)


def with_curves(known: Array | None, n_rows: int) -> tuple[Array | None, dict[str, str]]:
    """Return the covariates with spline columns of the numeric ones, and a description.

    known : (n, q) covariates or None. n_rows : the number of rows of the test, which sets the
    number of knots; with few rows covariates stay linear. The description is a dict for
    ``Verdict.how``, empty without covariates.
    """
    if known is None:
        return None, {}
    is_continuous = [np.unique(column).size > KNOTS for column in known.T]
    # At least 8 rows for each spline column.
    affordable_knots = n_rows / 8 / max(sum(is_continuous), 1)
    n_knots_used = KNOTS if affordable_knots > KNOTS else 2 if affordable_knots >= 3 else 0
    if not n_knots_used or not any(is_continuous):
        remark = ": the rows are too few for curves of them" if any(is_continuous) else ""
        return known, {"compared_with": f"the covariates alone, each linearly{remark}"}
    curves = [known]
    for column in known.T[is_continuous]:
        knot_positions = np.unique(np.quantile(column, np.linspace(0, 1, n_knots_used)))[:, None]
        # Spline columns add up to 1, so the first one is left out.
        curves.append(SplineTransformer(knots=knot_positions).fit_transform(column[:, None])[:, 1:])
    words = "the covariates alone, with a cubic spline of each numeric one"
    return np.hstack(curves), {"compared_with": words}


def _numbers(name: str, argument: ArrayLike) -> Array:
    """Return an array-like ``argument`` as an array of floats; raise ValueError if one is missing.

    name : the name of the argument, for the message.
    """
    values = np.asarray(argument)
    if values.dtype.kind not in "biuf" or (values != values).any():
        raise ValueError(f"{name} must hold numbers without NaN, got dtype {values.dtype}")
    return values.astype(np.float64)


def numbers_of(task: Task, truth: NDArray[Any]) -> Array:
    """Return the target as columns of numbers: one-hot classes, or martingale residuals of times.

    A martingale residual is the event indicator minus the Nelson-Aalen cumulative hazard of the
    stratum from entry to the observed time. ``task`` is the kind of target and ``truth`` are the
    targets of n rows.
    """
    if task == "survival":
        y = checked_survival(truth)
        residuals = np.empty(len(truth))
        # Each stratum has its own baseline hazard, taken from its own rows.
        for rows in (
            np.flatnonzero(y["stratum"] == stratum) for stratum in np.unique(y["stratum"])
        ):
            stratum_rows = y[rows]
            until = competing_at_infinity(stratum_rows)["time"]
            hazard = Baseline.of(stratum_rows, np.zeros(rows.size), np.ones(rows.size))
            residuals[rows] = (
                stratum_rows["event"] - hazard.until(until) + hazard.until(stratum_rows["entry"])
            )
        return residuals[:, None]
    if task == "classification":
        codes = truth.astype(np.int64)
        class_codes = np.arange(codes.max(initial=1) + 1)
        return np.asarray(
            codes[:, None] == (class_codes[1:] if class_codes.size == 2 else class_codes), float
        )
    return np.asarray(truth, dtype=np.float64).reshape(len(truth), -1)


def judged(
    ranked: Ranked,
    interval: tuple[float, float],
    name: str,
    n_rows: int,
    words: str,
    n_folds: int = 0,
    guess: str = "a guess",
    draws: str = "permutations of the held-out targets",
) -> Verdict:
    """Return the ``Verdict`` from a score and its permutation distribution.

    It is "better" if p <= LEVEL. Otherwise it is "no better" if the power for a useful signal is at
    least POWER, else "too few rows to tell". ranked : score, error and null distribution. interval
    : the confidence interval of the score. name : the name of the score. n_rows, n_folds : numbers
    of scored rows and of folds, 0 for a held-out part. words : the method of the interval. guess :
    the name of the baseline. draws : how the null distribution was drawn, in words.
    """
    p_value = ranked.p_value()
    critical = ranked.critical()
    # The score of a model that is USEFUL of the way from a guess to a perfect score.
    useful = ranked.baseline + USEFUL * (1.0 - ranked.baseline)
    word: Word = "better" if p_value <= LEVEL else "no better"
    if word == "no better" and not ranked.has_power(useful):
        word = "too few rows to tell"
    rows = f"{n_rows:,} rows that the model was not fitted to"
    if n_folds:
        rows = f"{n_rows:,} rows, each by a model of the other {n_folds - 1} of {n_folds} folds"
    sources = {
        "score": f"{name} on {rows}",
        "interval": f"{100 * (1.0 - 2.0 * LEVEL):.0f}% interval: {words}",
        "p_value": f"share of {ranked.null.size:,} {draws} with at least this {name} over its "
        "error, one-sided",
        "verdict": f"better where p <= {LEVEL:g}, here from {name} {critical:.3f} on; no better "
        f"where a model with a true {name} of {useful:g} would have been detected with probability "
        f"{POWER:g}; else too few rows",
    }
    measured = (word, ranked.score, name, interval, ranked.baseline, p_value, critical, n_rows)
    return Verdict(*measured, sources, n_folds, guess, n_draws=ranked.null.size)
