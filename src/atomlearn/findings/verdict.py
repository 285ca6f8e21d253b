"""The verdict: whether a model predicts better than a guess, by rows that no fit has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from atomlearn.core.interfaces import Array, Task
from atomlearn.estimators.survival import Baseline
from atomlearn.findings.ranking import (
    LEVEL,
    Ranked,
    area_interval,
    areas,
    correlation_interval,
    correlations,
    ranked_concordance,
)
from atomlearn.survival.target import checked_survival, survival_target

#: How far from a guess to perfection a useful model may be asked to come: where not even it would
#: be told from a guess, rows are too few.
USEFUL = 0.5

Word = Literal["better", "no better", "too few rows to tell"]

#: Losses of counts and amounts, whose few large values would rule a plain correlation.
LONG_TAILED = ("poisson", "gamma", "tweedie")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model predicts better than a guess, and how that is known.

    Attributes
    ----------
    verdict : {"better", "no better", "too few rows to tell"}
    score, score_name : float, str
        Held-out AUC, mean AUC over classes, correlation, rank correlation or concordance; NaN
        where there is none.
    interval : (float, float)
        With ``interval_level`` coverage, 90%, for the score of this very model.
    baseline : float
        What a guess scores: 0.5, or 0 for correlations.
    p_value : float
        How often random labels score as much: those of held-out rows permuted, one-sided.
    critical : float
        The score from which on the verdict is "better".
    n_rows : int
        Held-out rows.
    how : dict
        Sentences on how score, interval, p_value and verdict came about.
    n_folds : int
        Of the cross-validation that the score is of; 0 where it is of one held-out part.
    guess : str
        What the model is compared with: a guess, or the covariates alone.
    power : float or None
        Share of signals of a useful size, put into the data, that this test tells; None where that
        was not tried.

    References
    ----------
    E. DeLong, D. DeLong, D. Clarke-Pearson. Comparing the areas under two or more correlated
    receiver operating characteristic curves. Biometrics 44 (1988) 837-845. M. Ojala, G. Garriga.
    Permutation tests for studying classifier performance. JMLR 11 (2010) 1833-1863.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.findings import classification_verdict
    >>> truth = np.array([0, 1] * 20)
    >>> found = classification_verdict(truth, truth + np.linspace(0, 1.5, 40))
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

    @property
    def interval_level(self) -> float:
        """Coverage of the interval."""
        return 1.0 - 2.0 * LEVEL

    @property
    def better(self) -> bool:
        """True where the model is shown to predict."""
        return self.verdict == "better"

    @property
    def measured(self) -> str:
        """What the score is: "held-out AUC", "cross-validated correlation"."""
        return ("cross-validated " if self.n_folds else "held-out ") + self.score_name

    @property
    def evidence(self) -> str:
        """The score with its interval and that of a guess, in words; or why there is none."""
        if self.n_rows == 0:
            return self.how["verdict"]
        low, high = self.interval
        return (
            f"{self.measured} {self.score:.3f} ({100 * self.interval_level:.0f}% interval "
            f"{low:.3f} to {high:.3f}; {self.guess}: {self.baseline:g}), p = {self.p_value:.2g}"
        )

    def __str__(self) -> str:
        than = "" if self.verdict == "too few rows to tell" else f" than {self.guess}"
        return f"{self.verdict}{than}: {self.evidence}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, None for what is not known: what ``summary.json`` holds."""
        known = self.n_rows > 0
        return {
            "verdict": self.verdict,
            "score": self.score if known else None,
            "score_name": self.score_name,
            "interval": list(self.interval) if known else None,
            "interval_level": self.interval_level,
            "baseline": self.baseline if known else None,
            "p_value": self.p_value if known else None,
            "critical_score": self.critical if known else None,
            "n_held_out": self.n_rows,
            "n_folds": self.n_folds,
            "compared_with": self.guess,
            "power": self.power,
            "how": dict(self.how),
        }


def no_verdict(reason: str) -> Verdict:
    """Return the verdict where nothing can be said, with the reason."""
    nothing = float("nan")
    interval, how = (nothing, nothing), {"verdict": reason}
    return Verdict("too few rows to tell", nothing, "", interval, nothing, 1.0, nothing, 0, how, 0)


def verdict_on(
    task: Task,
    truth: NDArray[Any],
    decisions: Array,
    rng: int | np.random.Generator = 0,
    *,
    ranks: bool = False,
    known: Array | None = None,
) -> Verdict:
    """Return the verdict on held-out rows.

    truth : codes of classes, numbers, or records of survival; ranks, known : as
    ``regression_verdict`` has them.
    """
    if known is not None:
        return regression_verdict(numbers_of(task, truth), decisions, rng, known=known)
    if task == "classification":
        return classification_verdict(truth, decisions, rng)
    if task == "survival":
        return _of_records(checked_survival(truth), np.asarray(decisions).reshape(-1), rng)
    return regression_verdict(truth, decisions, rng, ranks=ranks)


def numbers_of(task: Task, truth: NDArray[Any]) -> Array:
    """Return the target as columns of numbers: classes as 0 and 1, of times what was not expected.

    That is the event less the hazard of its stratum summed from entry until then (Nelson, Aalen).
    """
    if task == "survival":
        y, found = checked_survival(truth), np.empty(len(truth))
        for rows in (np.flatnonzero(y["stratum"] == s) for s in np.unique(y["stratum"])):
            own = y[rows]
            hazard = Baseline.of(own, np.zeros(rows.size), np.ones(rows.size))
            found[rows] = own["event"] - hazard.until(own["time"]) + hazard.until(own["entry"])
        return found[:, None]
    if task == "classification":
        codes = truth.astype(np.int64)
        several = np.arange(codes.max(initial=1) + 1)
        return np.asarray(codes[:, None] == (several[1:] if several.size == 2 else several), float)
    return np.asarray(truth, dtype=np.float64).reshape(len(truth), -1)


def classification_verdict(
    codes: ArrayLike, decisions: ArrayLike, rng: int | np.random.Generator = 0
) -> Verdict:
    """Return the verdict on held-out classes.

    ``codes`` (n,) : 0 and 1, or the position of the class; ``decisions`` : (n,) or (n, 1), the
    larger the more it speaks for class 1, or one column a class.
    """
    truth = np.asarray(codes).astype(np.int64)
    values = np.asarray(decisions, dtype=np.float64).reshape(truth.size, -1)
    counts = np.bincount(truth)
    if np.count_nonzero(counts) < 2:
        return no_verdict("the held-out rows are of one class only, so nothing can be told apart")
    name = "AUC" if values.shape[1] == 1 else "mean AUC"
    ranked = areas(truth, values, np.random.default_rng(rng))
    words = "DeLong's standard error, on the scale of the logit"
    interval = area_interval(ranked, int(counts[counts > 0].min()))
    return judged(ranked, interval, name, truth.size, words)


def regression_verdict(
    truth: ArrayLike,
    predicted: ArrayLike,
    rng: int | np.random.Generator = 0,
    *,
    ranks: bool = False,
    known: Array | None = None,
) -> Verdict:
    """Return the verdict on held-out numbers by their correlation with the predicted ones.

    Of several targets it is the mean of their correlations.

    ``ranks`` : of ranks instead (Spearman), for counts and amounts with long tails; ``known``
    (n, q) : what a guess knows of the rows, such as covariates. The null hypothesis is then: given
    these, predictions and target are independent, and linear functions of them explain what one of
    both, or the other, has in common with them.
    """
    y, z = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    y, z = y.reshape(len(y), -1), z.reshape(len(z), -1)
    if ranks:
        y, z = rankdata(y, axis=0), rankdata(z, axis=0)
    if not np.ptp(y, axis=0).any():
        return no_verdict("all held-out rows have one value of the target")
    ranked = correlations(y, z[:, : y.shape[1]], known, np.random.default_rng(rng))
    if ranked is None:
        return no_verdict("the held-out rows are below 3, or hardly more than there are covariates")
    name, guess = "rank correlation" if ranks else "correlation", "a guess"
    if known is not None:
        name, guess = "partial correlation", "the covariates alone"
    words = "the influence of each row, on Fisher's scale"
    return judged(ranked, correlation_interval(ranked), name, len(y), words, guess=guess)


def survival_verdict(
    time: ArrayLike,
    event: ArrayLike,
    risk: ArrayLike,
    rng: int | np.random.Generator = 0,
    *,
    entry: ArrayLike | None = None,
    stratum: ArrayLike | None = None,
) -> Verdict:
    """Return the verdict on held-out survival times: a larger risk should mean an earlier event.

    ``entry`` : times from which rows were seen; ``stratum`` : only rows of one are compared.
    """
    records = survival_target(event, time, entry, stratum)
    return _of_records(records, np.asarray(risk, dtype=np.float64), rng)


def _of_records(records: NDArray[Any], risks: Array, rng: int | np.random.Generator) -> Verdict:
    ranked = ranked_concordance(records, risks, np.random.default_rng(rng))
    if ranked is None:
        return no_verdict("the held-out rows have no two times whose order is known")
    words = "the error of a mean over pairs of rows, on the scale of the logit"
    interval = area_interval(ranked, int(records["event"].sum()))
    return judged(ranked, interval, "concordance", len(records), words)


def judged(
    ranked: Ranked,
    interval: tuple[float, float],
    name: str,
    n_rows: int,
    words: str,
    n_folds: int = 0,
    guess: str = "a guess",
) -> Verdict:
    """Return the verdict on a score and its null distribution.

    words : how the interval came about.
    """
    p_value, critical = ranked.p_value(), ranked.critical()
    useful = ranked.baseline + USEFUL * (1.0 - ranked.baseline)
    word: Word = "better" if p_value <= LEVEL else "no better"
    if word == "no better" and critical > useful:
        word = "too few rows to tell"
    rows, of_what = f"{n_rows:,} rows that the model was not fitted to", "held-out targets"
    if n_folds:
        rows = f"{n_rows:,} rows, each by a model of the other {n_folds - 1} of {n_folds} folds"
        of_what = "rows, each with its own cross-validation and all choices made in it,"
    how = {
        "score": f"{name} on {rows}",
        "interval": f"{100 * (1.0 - 2.0 * LEVEL):.0f}% interval: {words}",
        "p_value": f"share of permutations of the {of_what} with at least this {name}, one-sided",
        "verdict": f"better where p <= {LEVEL:g}, here from {name} {critical:.3f} on; too "
        f"few rows where a useful signal ({useful:g}) would have been missed more often than not",
    }
    measured = (word, ranked.score, name, interval, ranked.baseline, p_value, critical, n_rows)
    return Verdict(*measured, how, n_folds, guess)
