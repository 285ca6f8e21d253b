"""Threshold-free scores of held-out decisions, with standard errors and permutation distributions.

Each kind of target has one statistic: the area under the ROC curve (two classes), its mean over
classes (more), the correlation (numbers), the concordance index (survival times). If there are
covariates, the statistic of every kind is the partial correlation.

AUC and concordance are means over pairs of rows. A pair scores 1/2 (right order), 0 (tie) or -1/2
(wrong order), relative to a guess. The *contribution* of a row is the sum of the scores of its
pairs, divided by their number. Each pair counts for both of its rows, so that the contributions add
up to twice the statistic minus one half. The norm of the contributions is its standard error for a
guess (the projection of a U-statistic on single rows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from atomlearn.core import Array, Columns, Mask, Rows
from atomlearn.survival.target import competing_at_infinity

#: Level of the one-sided test, and the error probability of each side of an interval, so that the
#: lower end of the interval and the test agree. ``benchmarks/findings/verdict.py`` measures
#: error rates at this level, and how often verdicts are right.
LEVEL = 0.05
#: Probability with which a signal must be detectable before its absence is reported.
POWER = 0.8
#: Minimum number of rows in excess of the covariates for a partial correlation: with fewer rows,
#: the residuals are not exchangeable enough.
FEWEST_BESIDE = 8
#: Maximum of (permutations) x (rows) x (columns): it bounds time (below a second) and memory.
MOST_DRAWN = 10_000_000
#: Maximum number of rows whose pairs are compared for the concordance index.
MOST_PAIRED = 1_000


@dataclass(frozen=True, slots=True)
class Ranked:
    """A score, its standard error, and its studentized permutation distribution.

    C. J. DiCiccio, J. P. Romano. Robust permutation tests for correlation and regression
    coefficients. JASA 112 (2017) 1211-1220. E. Chung, J. P. Romano. Exact and asymptotically robust
    permutation tests. Annals of Statistics 41 (2013) 484-507.

    Attributes
    ----------
    score, error : float
        Of the observed targets.
    baseline : float
        The score of a guess.
    null : (n_draws,) float64
        Scores of permuted targets, whose deviation from the baseline is multiplied by the ratio of
        the observed standard error under the null to that of the draw. Comparing these
        scores with ``score`` compares t-statistics, which is valid under heteroskedasticity.
    usual : float
        Standard error of the score of a guess for homoskedastic rows.
    freedom : float
        Degrees of freedom of the error.
    """

    score: float
    error: float
    baseline: float
    null: Array
    usual: float = 0.0
    freedom: float = np.inf

    def p_value(self) -> float:
        """Return the one-sided permutation p-value, (1 + #{null >= score}) / (1 + n_draws)."""
        at_least = self.score - 1e-12
        return float((1 + np.count_nonzero(self.null >= at_least)) / (1 + self.null.size))

    def critical(self) -> float:
        """Return the critical value of the score: the 1 - LEVEL quantile of the null draws."""
        return float(np.quantile(self.null, 1.0 - LEVEL, method="higher"))

    def has_power(self, score: float) -> bool:
        """Return whether the test has power of at least POWER for a model with this true score.

        The test detects it if the critical value plus the POWER quantile of the noise is at most
        the score.
        """
        deviation = max(float(np.std(self.null)), self.usual)
        return self.critical() + float(norm.ppf(POWER)) * deviation <= score


def null_of(scores: Array, errors: Array, baseline: float, error: float) -> Array:
    """Return studentized null scores (n_draws,): baseline + (score - baseline) error / errors.

    scores, errors : (n_draws,) permuted scores and their standard errors. error : the observed one.
    A draw with standard error 0 becomes the baseline.
    """
    safe_errors = np.where(errors > 0, errors, np.inf)
    return np.asarray(baseline + (scores - baseline) * (error / safe_errors))


def _normal_quantiles(baseline: float, error: float) -> Array:
    """Return 9,999 quantiles of N(baseline, error^2), which replace permutations of many rows."""
    return np.asarray(baseline + error * norm.ppf(np.arange(1, 10_000) / 10_000))


def _orders(n_rows: int, n_columns: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield batches of random permutations of n_rows rows, (batch, n_rows).

    The number of permutations depends on n_rows and n_columns, up to 9,999; none are drawn if fewer
    than 999 are affordable. rng : their generator.
    """
    n_draws = min(9_999, MOST_DRAWN // (n_rows * max(n_columns, 1)))
    step = max(1, MOST_DRAWN // 5 // n_rows)
    for start in range(0, n_draws if n_draws >= 999 else 0, step):
        n_batch = min(step, n_draws - start)
        yield rng.permuted(np.tile(np.arange(n_rows), (n_batch, 1)), axis=1)


def areas(codes: Columns, decisions: Array, rng: np.random.Generator) -> Ranked:
    """Return the mean area under the ROC curve as ``Ranked``, with DeLong's error.

    codes, decisions : class codes (n,) and scores (n, m), as for ``mean_area``. rng : generator of
    the permutations. A permutation changes the labels only, so the rows of each column are sorted
    once.
    """
    score, row_influences = mean_area(codes, decisions)
    error = float(np.linalg.norm(row_influences))
    positive, columns = _against_rest(codes, decisions)
    counts = positive.sum(axis=0)
    per_positive = 1.0 / counts
    per_rest = 1.0 / (len(codes) - counts)
    null_deviations = list[Array]()
    sorted_columns = [_Sorted.of(column) for column in columns.T]
    # DeLong's studentized null distribution: for each permutation, the AUC minus one half (half the
    # sum of the contributions) over its standard error (their norm), both summed over the classes.
    for orders in _orders(len(columns), columns.shape[1], rng):
        deviations = np.zeros(len(orders))
        contributions = np.zeros(orders.shape)
        for k, ranked_rows in enumerate(sorted_columns):
            labels = positive[orders, k][:, ranked_rows.order]
            placements = ranked_rows.placements(labels) * np.where(
                labels, per_positive[k], per_rest[k]
            )
            deviations += placements.sum(axis=1) / 2
            contributions[:, ranked_rows.order] += placements
        errors = np.linalg.norm(contributions, axis=1)
        null_deviations.append(null_of(deviations, errors, 0.0, 1.0))
    # Deviations are in units of the standard error that the observed decisions have under the null.
    guess_error = float(np.linalg.norm(guess_area(codes, decisions)[1])) / max(
        len(sorted_columns), 1
    )
    null = (
        0.5 + guess_error * np.concatenate(null_deviations)
        if null_deviations
        else _normal_quantiles(0.5, guess_error)
    )
    # The AUC of a guess has about the variance (1 / n_positive + 1 / n_rest) / 12.
    usual = float(np.sqrt(np.sum(per_positive + per_rest) / 12)) / max(len(sorted_columns), 1)
    return Ranked(score, error, 0.5, null, usual)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows sorted by decision, with their ties.

    order : (n,) the sorting permutation. first, last : (n,) for each sorted row, the half-open
    range of positions of the decisions tied with it.
    """

    order: Rows
    first: Rows
    last: Rows

    @classmethod
    def of(cls, decisions: Array) -> _Sorted:
        """Return the sorting permutation of the decisions (n,), with the range of ties of each."""
        order = np.argsort(decisions, kind="stable")
        values = decisions[order]
        ends = (np.searchsorted(values, values, side=side) for side in ("left", "right"))
        return cls(order, *ends)

    def placements(self, labels: Mask) -> Array:
        """Return the DeLong placement value of each row minus one half, (n_draws, n).

        It is the share of rows of the opposite class that are ranked correctly relative to the row;
        ties count one half. labels : (n_draws, n) True for positive rows, in sorted order.
        """
        n_positive_before = np.zeros((len(labels), self.order.size + 1))
        np.cumsum(labels, axis=1, out=n_positive_before[:, 1:])
        # Midranks of the positive rows.
        midranks = 0.5 * (n_positive_before[:, self.first] + n_positive_before[:, self.last])
        n_positive = n_positive_before[:, -1:]
        rest_ranks = 0.5 * (self.first + self.last) - midranks
        share = np.where(
            labels, rest_ranks / (self.order.size - n_positive), 1.0 - midranks / n_positive
        )
        return np.asarray(share - 0.5)


def mean_area(codes: Columns, decisions: Array) -> tuple[float, Array]:
    """Return the mean one-vs-rest AUC over the classes, and the influence of each row on it, (n,).

    codes : (n,) class codes from 0; decisions (n, m) : one column per class, or a single column for
    class 1 of two. The AUC is NaN if there is only one class.
    """
    positive, columns = _against_rest(codes, decisions)
    areas = [area_of(column, labels) for column, labels in zip(columns.T, positive.T, strict=True)]
    if not areas:
        return float("nan"), np.zeros(codes.size)
    return float(np.mean([area for area, _ in areas])), np.mean([rows for _, rows in areas], axis=0)


def guess_area(codes: Columns, decisions: Array) -> tuple[float, Array]:
    """Return the mean one-vs-rest AUC minus one half, and the contributions of rows, (n,).

    codes, decisions : as for ``mean_area``. The contributions (see the module), summed over the
    classes, add up to twice the sum of the AUCs minus one half.
    """
    positive, columns = _against_rest(codes, decisions)
    contributions = np.zeros(codes.size)
    for column, is_class in zip(columns.T, positive.T, strict=True):
        ranked_rows = _Sorted.of(column)
        labels = is_class[ranked_rows.order]
        counts = np.where(labels, labels.sum(), (~labels).sum())
        contributions[ranked_rows.order] += ranked_rows.placements(labels[None])[0] / counts
    return float(contributions.sum()) / 2 / max(columns.shape[1], 1), contributions


def _against_rest(codes: Columns, decisions: Array) -> tuple[Mask, Array]:
    """Return one-vs-rest labels and decisions, (n, m) both, of classes with both labels present.

    codes : (n,) class codes. decisions : (n, k) one column per class, or one for class 1 of two.
    """
    classes = np.array([1]) if decisions.shape[1] == 1 else np.arange(decisions.shape[1])
    positive = codes[:, None] == classes
    has_both = positive.any(axis=0) & ~positive.all(axis=0)
    return positive[:, has_both], decisions[:, has_both]


def area_of(decisions: Array, positive: Mask) -> tuple[float, Array]:
    """Return the AUC, and an influence of each row (n,) whose squares sum to DeLong's variance.

    decisions : (n,) scores. positive : (n,) mask of the rows of the class. The influence is the
    placement value of the row minus the AUC, scaled by its class size.
    """
    ordered = _Sorted.of(decisions)
    influences = np.empty(decisions.size)
    influences[ordered.order] = 0.5 + ordered.placements(positive[ordered.order][None])[0]
    value = float(influences[positive].mean())
    influences -= value
    for rows in (positive, ~positive):
        # DeLong's variance divides by n - 1; from a single row no variance can be estimated.
        count = int(rows.sum())
        influences[rows] /= np.sqrt(count * max(count - 1, 1))
    return value, influences


def correlations(
    truth: Array, predicted: Array, known: Array | None, rng: np.random.Generator | None
) -> Ranked | None:
    """Return the partial correlation of truth and predicted given the covariates ``known`` (n, q).

    ``truth`` and ``predicted`` are (n, m); the result is the mean over their m pairs of columns.
    None if too few residual degrees of freedom are left. The standard error, on Fisher's z scale,
    is the jackknife's; its degrees of freedom are the effective number of rows that contribute to
    it, less one. The null distribution permutes the residuals of ``predicted``; it is empty without
    ``rng``.
    """
    basis = _basis(known, len(truth))
    freedom = len(truth) - basis.shape[1]
    if freedom < (3 if known is None else FEWEST_BESIDE):
        return None
    # Residuals given the covariates; their columns have unit norm, so a sum of products is a
    # correlation.
    y = _free_of(basis, truth)
    x = _free_of(basis, predicted)
    score = float(np.sum(x * y, axis=0).mean())
    error, error_freedom = _jackknife(x, y, basis)
    # The null distribution: permuted residuals, projected again, studentized by the norm of the
    # products.
    guess_error = float(np.linalg.norm((x * y).mean(axis=1)))
    null = np.zeros(0)
    null_scores = list[Array]()
    if rng is not None:
        for orders in _orders(len(y), y.shape[1], rng):
            # One term of the correlation for each permutation and row, averaged over the columns.
            terms = np.zeros(orders.shape)
            for true_column, predicted_column in zip(y.T, x.T, strict=True):
                permuted = predicted_column[orders]
                permuted = permuted - (permuted @ basis) @ basis.T
                lengths = np.linalg.norm(permuted, axis=1, keepdims=True)
                terms += (
                    permuted * true_column / np.where(lengths > 0, lengths, np.inf) / y.shape[1]
                )
            sums = terms.sum(axis=1)
            errors = np.linalg.norm(terms, axis=1)
            null_scores.append(null_of(sums, errors, 0.0, guess_error))
        null = np.concatenate(null_scores) if null_scores else _normal_quantiles(0.0, guess_error)
    usual = 1.0 / np.sqrt(freedom * y.shape[1])
    return Ranked(score, error, 0.0, null, float(usual), error_freedom)


def correlation_rows(truth: Array, predicted: Array, known: Array) -> Array:
    """Return the contribution of each row to the partial correlation given ``known``, (n,).

    truth, predicted : (n, m) columns that are compared pairwise. known : (n, q) covariates. All
    contributions are 0 if too few residual degrees of freedom are left.
    """
    basis = _basis(known, len(truth))
    if len(truth) - basis.shape[1] < FEWEST_BESIDE:
        return np.zeros(len(truth))
    return np.asarray((_free_of(basis, truth) * _free_of(basis, predicted)).mean(axis=1))


def _jackknife(x: Array, y: Array, basis: Array) -> tuple[float, float]:
    """Return the jackknife standard error of Fisher's z of the mean correlation, and its freedom.

    x, y : (n, m) residuals of unit norm, orthogonal to the orthonormal basis ``basis`` (n, k) of
    the covariates. The degrees of freedom are the effective number of rows that dominate the error,
    less one.
    """
    one_less_leverage = np.maximum(1.0 - np.sum(basis**2, axis=1), 1e-6)[:, None]
    # Without row i, a sum of products of residuals decreases by x_i y_i / (1 - leverage_i).
    products = np.sum(x * y, axis=0) - x * y / one_less_leverage
    lengths = np.maximum(1.0 - x**2 / one_less_leverage, 1e-12) * np.maximum(
        1.0 - y**2 / one_less_leverage, 1e-12
    )
    without_row = np.clip((products / np.sqrt(lengths)).mean(axis=1), -1 + 1e-12, 1 - 1e-12)
    squared_deviations = (np.arctanh(without_row) - np.arctanh(without_row).mean()) ** 2
    if not squared_deviations.any():
        return 0.0, np.inf
    effective_rows = float(squared_deviations.sum() ** 2 / np.sum(squared_deviations**2))
    return float(np.sqrt(squared_deviations.sum() * (len(x) - 1) / len(x))), max(
        effective_rows - 1.0, 1.0
    )


def _basis(known: Array | None, n_rows: int) -> Array:
    """Return an orthonormal basis (n_rows, k) of a constant and the columns of ``known``.

    known : (n_rows, q) or None.
    """
    ones = np.ones((n_rows, 1))
    columns = ones if known is None else np.column_stack([ones, known])
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    basis, sizes, _ = np.linalg.svd(columns / scale, full_matrices=False)
    return basis[:, sizes > 1e-10 * sizes[0]]


def _free_of(basis: Array, values: Array) -> Array:
    """Return the residuals of columns after projection on a basis, scaled to unit norm.

    basis : (n, k), the orthonormal basis. values : (n, m), the columns. A residual that is only
    rounding error becomes 0.
    """
    residuals = values - basis @ (basis.T @ values)
    residuals[:, np.abs(residuals).max(axis=0) <= 1e-10 * np.abs(values).max(axis=0)] = 0.0
    sizes = np.sqrt(np.sum(residuals**2, axis=0))
    return residuals / np.where(sizes > 0, sizes, 1.0)


def comparable(records: NDArray[Any]) -> tuple[Rows, Rows]:
    """Return the comparable pairs of the concordance index as two arrays of rows (first, second).

    The first row has an event. The second row is in the same stratum, was at risk at that time, and
    its event or censoring is later. records : structured array with time, event, entry and stratum.
    """
    records = competing_at_infinity(records)
    time = records["time"]
    event = records["event"]
    stratum = records["stratum"]
    is_later = (time[:, None] < time) | ((time[:, None] == time) & ~event)
    is_later &= (records["entry"] < time[:, None]) & (stratum == stratum[:, None])
    np.fill_diagonal(is_later, False)
    first, second = np.nonzero(event[:, None] & is_later)
    return first, second


def ranked_concordance(
    records: NDArray[Any], risk: Array, rng: np.random.Generator
) -> Ranked | None:
    """Return Harrell's concordance index as ``Ranked``; None if there is no comparable pair.

    records : structured array of survival times. risk : (n,) scores, larger for earlier events. rng
    : generator of the 999 permutations. Risks are permuted within strata, since only rows of the
    same stratum are compared. Of many rows a random sample is compared.
    """
    if risk.size > MOST_PAIRED:
        sample = rng.choice(risk.size, MOST_PAIRED, replace=False)
        records = records[sample]
        risk = risk[sample]
    order = np.argsort(records["stratum"], kind="stable")
    records = records[order]
    risk = risk[order]
    first, second = comparable(records)
    if not first.size:
        return None
    concordance = float(np.mean(0.5 + 0.5 * np.sign(risk[first] - risk[second])))
    contributions = concordance_rows(risk, first, second)
    guess_error = float(np.linalg.norm(contributions))
    members = np.concatenate([first, second])
    share_of_pairs = np.bincount(members, minlength=risk.size) / first.size
    scores, errors = np.empty((2, 999))
    for draw in range(999):
        permuted = risk[np.lexsort((rng.random(risk.size), records["stratum"]))]
        contributions_of_draw = concordance_rows(permuted, first, second)
        scores[draw] = 0.5 + contributions_of_draw.sum() / 2
        errors[draw] = np.linalg.norm(contributions_of_draw)
    null = null_of(scores, errors, 0.5, guess_error)
    # The influence of a row is its contribution, minus its share of the pairs times the mean.
    error = float(np.linalg.norm(contributions - (concordance - 0.5) * share_of_pairs))
    return Ranked(concordance, error, 0.5, null, float(np.std(scores)))


def concordance_rows(risk: Array, first: Rows, second: Rows) -> Array:
    """Return the contribution of each row to the concordance minus one half, (n,); see the module.

    risk : (n,) scores. first, second : the pairs from ``comparable``. Each pair is concordant
    (1/2), tied (0) or discordant (-1/2), and counts for both of its rows.
    """
    excess = 0.5 * np.sign(risk[first] - risk[second]) / max(first.size, 1)
    contributions = np.bincount(first, excess, risk.size) + np.bincount(second, excess, risk.size)
    return np.asarray(contributions, dtype=np.float64)


def plain_interval(ranked: Ranked) -> tuple[float, float]:
    """Return the symmetric interval of an AUC or concordance, from the standard error of a guess.

    The standard error is largest at one half, so the interval is conservative for larger scores. A
    logit scale is not used, since with this error the interval would diverge near 1. ``ranked`` is
    the score with its error.
    """
    width = float(norm.isf(LEVEL)) * ranked.error
    return max(ranked.score - width, 0.0), min(ranked.score + width, 1.0)


def area_interval(ranked: Ranked, n_fewer: int) -> tuple[float, float]:
    """Return the confidence interval of an AUC or concordance on the logit scale.

    n_fewer : number of rows of the rarer class, or of events. ``ranked`` is the score with its
    error. If the score is 1, its standard error is 0. Then the lower end is LEVEL^(1 / n_fewer), at
    which n_fewer independent pairs are all concordant with probability LEVEL. If the score is 0,
    the upper end follows by symmetry.
    """
    value = ranked.score
    limit = LEVEL ** (1 / max(n_fewer, 1))
    if value == 1.0:
        return float(limit), 1.0
    if value == 0.0:
        return 0.0, float(1.0 - limit)
    width = float(norm.isf(LEVEL)) * ranked.error / (value * (1 - value))
    return float(expit(logit(value) - width)), float(expit(logit(value) + width))


def correlation_interval(ranked: Ranked) -> tuple[float, float]:
    """Return the confidence interval of a correlation on Fisher's z scale, by Student's t.

    ``ranked`` is the score with its error.
    """
    middle = np.arctanh(np.clip(ranked.score, -1 + 1e-12, 1 - 1e-12))
    width = float(student.isf(LEVEL, ranked.freedom)) * ranked.error
    return float(np.tanh(middle - width)), float(np.tanh(middle + width))
