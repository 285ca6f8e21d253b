"""Scores of held-out decisions that know no threshold, with their errors and null distributions.

Each kind of target has one statistic: the area under the ROC curve (two classes), its mean over
classes (more), the correlation (numbers), the concordance index (survival times); given covariates,
for all of them, the partial correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from atomlearn.core.interfaces import Array, Columns, Mask, Rows

#: Level of the test; intervals leave out as much on each side, so that their lower end and the
#: test agree. Error rates at this level, and how often verdicts are right, are measured by
#: ``benchmarks/findings/verdict.py``.
LEVEL = 0.05
#: Numbers of all permutations: what keeps a verdict below a second, and in memory.
MOST_DRAWN = 10_000_000
#: Rows whose pairs are looked at for the concordance index.
MOST_PAIRED = 1_000


@dataclass(frozen=True, slots=True)
class Ranked:
    """A statistic, its standard error, and draws of it with the labels permuted.

    score, error : at the labels as they are; null : (n_draws,) with permuted labels.
    """

    score: float
    error: float
    baseline: float
    null: Array

    def p_value(self) -> float:
        """Return P(permuted score >= score), never 0."""
        least = self.score - 1e-12
        return float((1 + np.count_nonzero(self.null >= least)) / (1 + self.null.size))

    def critical(self) -> float:
        """Return the score from which on a guess would be rejected."""
        return float(np.quantile(self.null, 1.0 - LEVEL, method="higher"))


def _permuted(y: Array, x: Array, baseline: float, rng: np.random.Generator, left: Array) -> Array:
    """Return draws of baseline + sum_k y_k'x_k over orders of the rows of x.

    Of many rows they are quantiles of the normal limit. ``left`` : an orthonormal basis that y and
    x are free of; a permuted column of length 1 is made free of it once more, and as long as
    before.
    """
    n_rows = len(y)
    n_draws = min(9_999, MOST_DRAWN // n_rows)
    if n_draws < 999:
        spread = np.sqrt(np.sum((y.T @ y) * (x.T @ x)) / (n_rows - 1))
        return np.asarray(baseline + spread * norm.ppf(np.arange(1, 10_000) / 10_000))
    orders = rng.permuted(np.tile(np.arange(n_rows), (n_draws, 1)), axis=1)
    null = np.full(n_draws, baseline)
    for mine, theirs in zip(y.T, x.T, strict=True):
        permuted = theirs[orders]
        kept = 1.0 - np.sum((permuted @ left) ** 2, axis=1)
        null += permuted @ mine / np.sqrt(np.maximum(kept, 1e-12))
    return null


def areas(codes: Columns, decisions: Array, rng: np.random.Generator) -> Ranked:
    """Return the mean area under the ROC curve with DeLong's error, as ``mean_area`` has it."""
    positive, columns = _against_rest(codes, decisions)
    score, influence = mean_area(codes, decisions)
    shares, ranks = positive.mean(axis=0), rankdata(columns, axis=0)
    # The area is a sum over rows: ranks times whether a row is positive, both centered.
    weights = (positive - shares) / (codes.size**2 * shares * (1.0 - shares) * shares.size)
    ranks -= ranks.mean(axis=0)
    null = _permuted(weights, ranks, 0.5, rng, np.zeros((codes.size, 0)))
    return Ranked(score, float(np.linalg.norm(influence)), 0.5, null)


def mean_area(codes: Columns, decisions: Array) -> tuple[float, Array]:
    """Return the mean AUC of the classes, each against the rest, and the influence of rows on it.

    decisions (n, m) : one column a class, or one alone that speaks for class 1 of two. It is
    NaN where there is one class only.
    """
    positive, columns = _against_rest(codes, decisions)
    each = [area_of(column, mine) for column, mine in zip(columns.T, positive.T, strict=True)]
    if not each:
        return float("nan"), np.zeros(codes.size)
    return float(np.mean([area for area, _ in each])), np.mean([rows for _, rows in each], axis=0)


def _against_rest(codes: Columns, decisions: Array) -> tuple[Mask, Array]:
    """Return which rows are positive, (n, m), and the decisions of these classes."""
    classes = np.array([1]) if decisions.shape[1] == 1 else np.arange(decisions.shape[1])
    positive = codes[:, None] == classes
    known = positive.any(axis=0) & ~positive.all(axis=0)
    return positive[:, known], decisions[:, known]


def area_of(decisions: Array, positive: Mask) -> tuple[float, Array]:
    """Return the area, and what each row adds to its error: the squares sum to DeLong's variance.

    A positive row adds the share of negative ones below it, less the area, and so the other way.
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(decisions)
    shares = np.empty(decisions.size)
    shares[positive] = (ranks[positive] - rankdata(decisions[positive])) / n_negative
    shares[~positive] = 1.0 - (ranks[~positive] - rankdata(decisions[~positive])) / n_positive
    value = float(shares[positive].mean())
    shares -= value
    for rows, count in ((positive, n_positive), (~positive, n_negative)):
        # DeLong's variance divides by n - 1; a single row has no spread to tell.
        shares[rows] /= np.sqrt(count * max(count - 1, 1))
    return value, shares


def correlations(
    truth: Array, predicted: Array, known: Array | None, rng: np.random.Generator | None
) -> Ranked | None:
    """Return the correlation of what linear functions of ``known`` (n, q) do not explain.

    The mean over the columns of truth and predicted, (n, m) both. None where ``known`` has nearly
    as many columns as there are rows. The null permutes what is left of ``predicted``;
    without ``rng`` there is none.
    """
    left = _basis(known, len(truth))
    freedom = len(truth) - left.shape[1]
    if freedom < 3:
        return None
    y, x = _free_of(left, truth), _free_of(left, predicted)
    each = np.sum(x * y, axis=0)
    score = float(each.mean())
    influence = (x * y - 0.5 * each * (x**2 + y**2)).mean(axis=1)
    error = (
        np.linalg.norm(influence) * np.sqrt(len(y) / max(freedom - 3, 1)) / max(1 - score**2, 1e-12)
    )
    null = np.zeros(0) if rng is None else _permuted(y / y.shape[1], x, 0.0, rng, left)
    return Ranked(score, float(error), 0.0, null)


def _basis(known: Array | None, n_rows: int) -> Array:
    """Return an orthonormal basis of a constant and the columns of ``known``."""
    ones = np.ones((n_rows, 1))
    columns = ones if known is None else np.column_stack([ones, known])
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    left, sizes, _ = np.linalg.svd(columns / scale, full_matrices=False)
    return left[:, sizes > 1e-10 * sizes[0]]


def _free_of(left: Array, values: Array) -> Array:
    """Return what the basis leaves of each column, of length 1; rounding alone is nothing."""
    rest = values - left @ (left.T @ values)
    rest[:, np.abs(rest).max(axis=0) <= 1e-10 * np.abs(values).max(axis=0)] = 0.0
    sizes = np.sqrt(np.sum(rest**2, axis=0))
    return rest / np.where(sizes > 0, sizes, 1.0)


def comparable(records: NDArray[Any]) -> tuple[Rows, Rows]:
    """Return the pairs of rows of which it is known who has the event first: these, and others.

    Both are of one stratum, and the other was under observation when the first had its event.
    """
    time, event, stratum = records["time"], records["event"], records["stratum"]
    later = (time[:, None] < time) | ((time[:, None] == time) & ~event)
    later &= (records["entry"] < time[:, None]) & (stratum == stratum[:, None])
    np.fill_diagonal(later, False)
    first, second = np.nonzero(event[:, None] & later)
    return first, second


def concordance_of(risk: Array, first: Rows, second: Rows) -> float:
    """Return Harrell's index: the share of pairs whose order the risk tells, ties for half."""
    return float(np.mean(0.5 + 0.5 * np.sign(risk[first] - risk[second]))) if first.size else np.nan


def ranked_concordance(
    records: NDArray[Any], risk: Array, rng: np.random.Generator
) -> Ranked | None:
    """Return Harrell's index with its error and null; None where no pair can be compared.

    Risks are permuted within strata: what these have in common is no order of times.
    """
    if risk.size > MOST_PAIRED:
        rows = rng.choice(risk.size, MOST_PAIRED, replace=False)
        records, risk = records[rows], risk[rows]
    order = np.argsort(records["stratum"], kind="stable")
    records, risk = records[order], risk[order]
    first, second = comparable(records)
    if not first.size:
        return None
    value = concordance_of(risk, first, second)
    off = 0.5 + 0.5 * np.sign(risk[first] - risk[second]) - value
    influence = np.bincount(first, off, risk.size) + np.bincount(second, off, risk.size)
    draws = []
    for _ in range(999):
        moved = risk[np.lexsort((rng.random(risk.size), records["stratum"]))]
        draws.append(concordance_of(moved, first, second))
    return Ranked(value, float(np.linalg.norm(influence)) / first.size, 0.5, np.array(draws))


def plain_interval(ranked: Ranked) -> tuple[float, float]:
    """Return the interval of an area (or a concordance) with an error that is of a guess.

    Areas spread most where they are one half: at a larger area the interval is rather too wide. On
    the scale of the logit that error would grow without bound near 1.
    """
    width = float(norm.isf(LEVEL)) * ranked.error
    return max(ranked.score - width, 0.0), min(ranked.score + width, 1.0)


def area_interval(ranked: Ranked, n_fewer: int) -> tuple[float, float]:
    """Return the interval of an area (or a concordance) on the scale of its logit.

    Where all pairs are right (or wrong) the error is 0, which nobody should believe: so many
    independent pairs as there are rows of the rarer kind (``n_fewer``) would all be right with
    probability area^n_fewer, which is set to the level of one side.
    """
    value, limit = ranked.score, LEVEL ** (1 / max(n_fewer, 1))
    if value == 1.0:
        return float(limit), 1.0
    if value == 0.0:
        return 0.0, float(1.0 - limit)
    width = float(norm.isf(LEVEL)) * ranked.error / (value * (1 - value))
    return float(expit(logit(value) - width)), float(expit(logit(value) + width))


def correlation_interval(ranked: Ranked) -> tuple[float, float]:
    """Return the interval of a correlation on Fisher's scale."""
    middle = np.arctanh(np.clip(ranked.score, -1 + 1e-12, 1 - 1e-12))
    width = float(norm.isf(LEVEL)) * ranked.error
    return float(np.tanh(middle - width)), float(np.tanh(middle + width))
