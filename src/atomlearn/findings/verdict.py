"""The verdict: whether a model predicts better than a guess, by rows that no fit has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split

from atomlearn.core.interfaces import Array
from atomlearn.designs import as_design
from atomlearn.findings.copies import known_already
from atomlearn.findings.ranking import (
    Ranked,
    area,
    area_interval,
    concordance,
    correlation,
    correlation_interval,
    mean_area,
    n_draws,
)
from atomlearn.findings.settings import SETTINGS

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
        With ``interval_level`` coverage, for the score of this very model.
    baseline : float
        What a guess scores: 0.5, or 0 for correlations.
    p_value : float
        How often a guess scores as much: labels of held-out rows permuted, one-sided.
    critical : float
        The score from which on the verdict is "better".
    n_rows : int
        Held-out rows.
    how : dict
        Sentences on how score, interval, p_value and verdict came about.

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
    how: dict[str, str] = field(default_factory=dict)
    interval_level: float = SETTINGS.coverage

    @property
    def better(self) -> bool:
        """True where the model is shown to predict."""
        return self.verdict == "better"

    def __str__(self) -> str:
        if self.n_rows == 0:
            return f"{self.verdict}: {self.how['verdict']}"
        low, high = self.interval
        return (
            f"{self.verdict} than a guess: " if self.verdict != "too few rows to tell"
            else f"{self.verdict}: "
        ) + (
            f"held-out {self.score_name} {self.score:.3f} ({100 * self.interval_level:.0f}% "
            f"interval {low:.3f} to {high:.3f}; a guess: {self.baseline:g}), p = {self.p_value:.2g}"
        )  # fmt: skip

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
            "how": dict(self.how),
        }


def no_verdict(reason: str) -> Verdict:
    """Return the verdict where nothing can be said, with the reason."""
    nothing = float("nan")
    how = {"verdict": reason}
    return Verdict("too few rows to tell", nothing, "", (nothing, nothing), nothing, 1.0, nothing,
                   0, how)  # fmt: skip


def no_new_rows() -> Verdict:
    """Return the verdict where every held-out row is a training row, or nearly."""
    return no_verdict("every held-out row is a training row too, or nearly")


def classification_verdict(
    codes: ArrayLike, decisions: ArrayLike, rng: int | np.random.Generator = 0
) -> Verdict:
    """Return the verdict on held-out classes.

    ``codes`` (n,) : 0 and 1, or the position of the class; ``decisions`` : (n,) or (n, 1), the
    larger the more it speaks for class 1, or one column a class.
    """
    truth = np.asarray(codes).astype(np.int64)
    values = np.asarray(decisions, dtype=np.float64)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    counts = np.bincount(truth)
    if np.count_nonzero(counts) < 2:
        return no_verdict("the held-out rows are of one class only, so nothing can be told apart")
    generator = np.random.default_rng(rng)
    if values.ndim == 1:
        ranked, name = area(truth, values, generator), "AUC"
        n_fewer = int(counts.min())
        words = "DeLong's standard error, on the scale of the logit"
    else:
        ranked, name = mean_area(truth, values, generator), "mean AUC"
        n_fewer = int(counts[counts > 0].min())
        words = "DeLong's standard error of the mean over classes, on the scale of the logit"
    interval = area_interval(ranked, SETTINGS.coverage, n_fewer)
    return _judged(ranked, name, interval, words, truth.size, SETTINGS.useful_area)


def regression_verdict(
    truth: ArrayLike,
    predicted: ArrayLike,
    rng: int | np.random.Generator = 0,
    *,
    ranks: bool = False,
) -> Verdict:
    """Return the verdict on held-out numbers by their correlation with the predicted ones.

    ``ranks`` : of ranks instead (Spearman), for counts and amounts with long tails.
    """
    y, z = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    y, z = y.reshape(y.shape[0], -1), z.reshape(z.shape[0], -1)
    if y.shape[0] < 3 or bool((np.ptp(y, axis=0) == 0).all()):
        return no_verdict("the held-out rows are below 3, or all have one value of the target")
    if y.shape[1] > 1:  # of several targets what predictions vary in most: one number, one test
        y, z = _scaled(y), _scaled(z)
        along = np.linalg.svd(z, full_matrices=False)[2][0]
        y, z = (y @ along)[:, None], (z @ along)[:, None]
    one, two = y[:, 0], z[:, 0]
    name = "rank correlation" if ranks else "correlation"
    if ranks:
        one, two = rankdata(one), rankdata(two)
    ranked = correlation(one, two, np.random.default_rng(rng))
    interval = correlation_interval(ranked, SETTINGS.coverage)
    words = "bootstrap of the held-out rows, on Fisher's scale"
    return _judged(ranked, name, interval, words, one.size, SETTINGS.useful_correlation)


def _scaled(values: Array) -> Array:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def survival_verdict(
    time: ArrayLike, event: ArrayLike, risk: ArrayLike, rng: int | np.random.Generator = 0
) -> Verdict:
    """Return the verdict on held-out survival times: a larger risk should mean an earlier event."""
    times, events = np.asarray(time, dtype=np.float64), np.asarray(event).astype(bool)
    ranked = concordance(
        times, events, np.asarray(risk, dtype=np.float64), np.random.default_rng(rng)
    )
    if ranked is None:
        return no_verdict("the held-out rows have no two times whose order is known")
    interval = area_interval(ranked, SETTINGS.coverage, int(events.sum()))
    words = "the error of a mean over pairs of rows, on the scale of the logit"
    return _judged(ranked, "concordance", interval, words, times.size, SETTINGS.useful_area)


def _judged(
    ranked: Ranked, name: str, interval: tuple[float, float], words: str, n_rows: int, useful: float
) -> Verdict:
    p_value, critical = ranked.p_value(), ranked.critical(SETTINGS.level)
    word: Word = "better" if p_value <= SETTINGS.level else "no better"
    if word == "no better" and critical > useful:
        word = "too few rows to tell"
    by = "the limit of all permutations"
    if ranked.null is not None:
        drawn = n_draws(n_rows) if n_rows <= SETTINGS.many_rows else ranked.null.size
        by = f"{drawn:,} permutations"
    how = {
        "score": f"{name} on {n_rows:,} rows that the model was not fitted to",
        "interval": f"{100 * SETTINGS.coverage:.0f}% interval: {words}",
        "p_value": f"share of {by} of the held-out targets with at least this {name}, one-sided",
        "verdict": f"better where p <= {SETTINGS.level:g}, here from {name} {critical:.3f} on; too "
        f"few rows where not even {useful:g} would have been told from a guess",
    }
    return Verdict(
        word, ranked.score, name, interval, ranked.baseline, p_value, critical, n_rows, how
    )


def held_out_verdict(
    estimator: Any, X: Any, y: Any, *, test_fraction: float = 0.3, rng: int = 0, n_splits: int = 1
) -> Verdict:
    """Return the verdict on an estimator: a clone is fitted to a part of the rows.

    Held-out rows that are nearly training rows count for nothing, where X is a table of numbers.

    Parameters
    ----------
    estimator : scikit-learn estimator, fitted or not
        A pipeline that selects features selects them on the rows of the fit only, as it must.
    X, y : array (n_samples, n_features), array (n_samples,)
    test_fraction : float
        Share of the rows that are held out; classes keep their shares.
    rng : int
        Seed of the splits and of the permutations.
    n_splits : int, default=1
        Above 1, so many random splits are judged and joined, which makes the verdict on few rows
        hang less on one split: p is twice the median of their p-values, which holds its level
        however the splits depend on each other; score and interval are medians.

    References
    ----------
    N. Meinshausen, L. Meier, P. Buhlmann. P-values for high-dimensional regression. JASA 104
    (2009) 1671-1681 (twice the median).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import held_out_verdict
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> held_out_verdict(AtomicRegressor(alpha=0.1), X, X[:, 0]).verdict
    'better'
    """
    if isinstance(n_splits, bool) or int(n_splits) < 1:
        raise ValueError(f"n_splits must be at least 1, got {n_splits!r}")
    found = [_of_split(estimator, X, y, test_fraction, rng + k) for k in range(int(n_splits))]
    return found[0] if len(found) == 1 else joined(found)


def _of_split(estimator: Any, X: Any, y: Any, test_fraction: float, rng: int) -> Verdict:
    target = np.asarray(y)
    rows = np.arange(target.shape[0])
    stratify = None
    if is_classifier(estimator) and np.unique(target, return_counts=True)[1].min() >= 2:
        stratify = target
    train, test = train_test_split(
        rows, test_size=test_fraction, random_state=rng, stratify=stratify
    )
    fitted = clone(estimator).fit(rows_of(X, train), target[train])
    test = test[~_known(X, train, test)]
    if not test.size:
        return no_new_rows()
    return judged(fitted, rows_of(X, test), target[test], rng)


def _known(X: Any, train: NDArray[np.int64], test: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which held-out rows the fit has seen; of tables of numbers, where rows compare."""
    table = X if hasattr(X, "tocsr") else np.asarray(X)
    values = table.data if hasattr(X, "tocsr") else table
    if table.ndim != 2 or table.dtype.kind not in "buif" or not np.isfinite(values).all():
        return np.zeros(test.size, dtype=bool)
    return known_already(as_design(table), train, test)


def joined(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict of several splits of the same rows: p is twice the median of theirs."""
    known = [verdict for verdict in verdicts if verdict.n_rows]
    if 2 * len(known) <= len(verdicts):
        return next(verdict for verdict in verdicts if not verdict.n_rows)
    first = known[0]
    p_values = [verdict.p_value for verdict in verdicts]  # where nothing is known, 1
    p_value = min(1.0, 2.0 * float(np.median(p_values)))
    score, low, high, critical = np.median(
        [[v.score, *v.interval, v.critical] for v in known], axis=0
    ).tolist()
    useful = SETTINGS.useful_area if first.baseline == 0.5 else SETTINGS.useful_correlation
    word: Word = "better" if p_value <= SETTINGS.level else "no better"
    if word == "no better" and critical > useful:
        word = "too few rows to tell"
    splits = f"{len(verdicts)} random splits"
    how = first.how | {
        "score": f"median over {splits}; of each, {first.how['score']}",
        "interval": f"median ends over {splits}; of each, {first.how['interval']}",
        "p_value": f"twice the median over {splits}; of each, {first.how['p_value']}",
    }
    return replace(
        first, verdict=word, score=score, interval=(low, high), p_value=p_value,
        critical=critical, how=how,
    )  # fmt: skip


def judged(fitted: Any, X: Any, y: NDArray[Any], rng: int = 0) -> Verdict:
    """Return the verdict on a fitted estimator by rows that it was not fitted to."""
    if y.dtype.names is not None:
        event, time = y.dtype.names[:2]
        return survival_verdict(y[time], y[event], fitted.predict(X), rng)
    if not is_classifier(fitted):
        return regression_verdict(y, fitted.predict(X), rng, ranks=_has_link(fitted))
    labels = fitted.classes_
    known = np.isin(y, labels)
    codes = np.searchsorted(labels, y[known])
    if hasattr(fitted, "decision_function"):
        values = fitted.decision_function(X)
    else:
        values = fitted.predict_proba(X)
        values = values[:, 1] if values.shape[1] == 2 else values
    return classification_verdict(codes, np.asarray(values)[known], rng)


def _has_link(fitted: Any) -> bool:
    """Whether predictions are means through a link, of amounts with a long tail."""
    loss = getattr(fitted, "loss", None)
    name = loss if isinstance(loss, str) else getattr(loss, "name", "")
    return str(name) in LONG_TAILED


def rows_of(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a data frame, an array, a sparse matrix or lists."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):  # other sparse formats have no rows to take
        return X.tocsr()[rows]
    return (X if hasattr(X, "shape") else np.asarray(X))[rows]
