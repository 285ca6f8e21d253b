"""Scores of held-out decisions that know no threshold, with their errors and null distributions.

Each kind of target has one statistic: the area under the ROC curve (two classes), its mean over
classes (more), the correlation (numbers), the concordance index (survival times); beside
covariates, for all of them, the partial correlation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from atomlearn.core.interfaces import Array, Rows
from atomlearn.findings.settings import SETTINGS

Codes = NDArray[np.int64]
#: Orders of the rows to permute by, one a row, or None for random ones.
Orders = Rows | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A statistic, its standard error, and draws of it with the labels permuted.

    score, error : at the labels as they are; null : (n_draws,) with permuted labels, or None where
    ``null_spread`` is the exact standard deviation of the permutation distribution instead.
    """

    score: float
    error: float
    null: Array | None
    baseline: float
    null_spread: float = 0.0

    def p_value(self) -> float:
        """Return P(permuted score >= score), never 0."""
        if self.null is None:
            if self.null_spread == 0.0:
                return 1.0
            tail = float(norm.sf((self.score - self.baseline) / self.null_spread))
            return max(tail, 1e-300)
        least = self.score - 1e-12
        return float((1 + np.count_nonzero(self.null >= least)) / (1 + self.null.size))

    def critical(self, level: float) -> float:
        """Return the score from which on a guess would be rejected at this level."""
        if self.null is None:
            return self.baseline + float(norm.isf(level)) * self.null_spread
        return float(np.quantile(self.null, 1.0 - level, method="higher"))


def n_draws(n_rows: int) -> int:
    """Return how many permutations are drawn: 9,999, and at least 999 where rows are many."""
    return int(min(9_999, max(999, SETTINGS.most_drawn // max(n_rows, 1))))


def drawn_orders(n_rows: int, rng: np.random.Generator, orders: Orders = None) -> Iterator[Rows]:
    """Yield orders of the rows as the rows of matrices: those given, or random ones."""
    total = n_draws(n_rows) if orders is None else len(orders)
    step = max(1, SETTINGS.drawn_together // max(n_rows, 1))
    for first in range(0, total, step):
        count = min(step, total - first)
        if orders is not None:
            yield orders[first : first + count]
        else:
            yield rng.permuted(np.tile(np.arange(n_rows), (count, 1)), axis=1)


def area(codes: Codes, decisions: Array, rng: np.random.Generator, orders: Orders = None) -> Ranked:
    """Return the area under the ROC curve, (codes 0 and 1), with DeLong's standard error."""
    if codes.size > SETTINGS.many_rows and orders is None:
        value, influence = area_of(decisions, codes == 1)
        n_positive = int(np.count_nonzero(codes))
        pairs = n_positive * (codes.size - n_positive)
        spread = np.sqrt(rankdata(decisions).var() * pairs / (codes.size - 1)) / pairs
        return Ranked(value, _norm(influence), None, 0.5, float(spread))
    return mean_area(codes, np.column_stack([-decisions, decisions]), rng, orders, only=1)


def mean_area(
    codes: Codes, decisions: Array, rng: np.random.Generator, orders: Orders = None,
    only: int | None = None,
) -> Ranked:  # fmt: skip
    """Return the mean over the classes present of the area of each against the rest."""
    present = [code for code in np.unique(codes) if 0 < (codes == code).sum() < codes.size]
    present = present if only is None else [only]
    values, influence, null = [], np.zeros(codes.size), list[Array]()
    for code in present:
        value, of_rows = area_of(decisions[:, code], codes == code)
        values.append(value)
        influence += of_rows / len(present)
    ranks = {code: rankdata(decisions[:, code]) for code in present}
    for some in drawn_orders(codes.size, rng, orders):
        total = np.zeros(len(some))
        for code in present:
            moved, mine = ranks[code][some], codes == code
            count = int(mine.sum())
            # Groups of several sizes bring ranks in twice, or not at all: their mean then moves.
            middle = moved.sum(axis=1) / codes.size - (codes.size + 1) / 2
            sums = moved[:, mine].sum(axis=1) - count * (count + 1) / 2 - count * middle
            total += sums / (count * (codes.size - count) * len(present))
        null.append(total)
    return Ranked(float(np.mean(values)), _norm(influence), np.concatenate(null), 0.5)


def area_of(decisions: Array, positive: NDArray[np.bool_]) -> tuple[float, Array]:
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


def correlation(
    truth: Array, predicted: Array, rng: np.random.Generator, orders: Orders = None
) -> Ranked:
    """Return Pearson's correlation, with the bootstrap's error of its Fisher transform."""
    x, y = standard(predicted), standard(truth)
    if x is None or y is None:
        # A constant says nothing, and nothing of it is uncertain.
        return Ranked(0.0, 0.0, None, 0.0)
    value = float(np.clip(x @ y / x.size, -1.0, 1.0))
    error = _bootstrapped(x, y, rng)
    if x.size > SETTINGS.many_rows and orders is None:
        return Ranked(value, error, None, 0.0, 1.0 / np.sqrt(x.size - 1))
    return Ranked(value, error, _null_of(y[:, None], x[:, None], rng, orders), 0.0)


def partial(
    truth: Array, predicted: Array, known: Array, rng: np.random.Generator, orders: Orders = None
) -> Ranked | None:
    """Return the correlation of what linear functions of ``known`` (n, q) do not explain.

    The mean over the columns of truth and predicted, (n, m) both. None where ``known`` has nearly
    as many columns as there are rows. The null permutes what is left of ``predicted``.
    """
    left = _basis(known, len(truth))
    if len(truth) - left.shape[1] < 3:
        return None
    x, y = _free_of(left, predicted), _free_of(left, truth)
    error = 1.0 / np.sqrt(max(len(x) - left.shape[1] - 2, 1))
    null = _null_of(y, x, rng, orders, left)
    return Ranked(float(np.mean(_cosines(x, y))), float(error), null, 0.0)


def partial_of(truth: Array, predicted: Array, known: Array | None) -> float | None:
    """Return that correlation alone; without ``known``, the plain one."""
    left = _basis(known, len(truth))
    if len(truth) - left.shape[1] < 3:
        return None
    return float(np.mean(_cosines(_free_of(left, predicted), _free_of(left, truth))))


def _basis(known: Array | None, n_rows: int) -> Array:
    """Return an orthonormal basis of a constant and the columns of ``known``."""
    ones = np.ones((n_rows, 1))
    columns = ones if known is None else np.column_stack([ones, known])
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    left, sizes, _ = np.linalg.svd(columns / scale, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-10 * sizes[0]])


def _free_of(left: Array, values: Array) -> Array:
    rest = values - left @ (left.T @ values)
    # What rounding alone leaves is nothing.
    rest[:, np.abs(rest).max(axis=0) <= 1e-10 * np.abs(values).max(axis=0)] = 0.0
    return np.asarray(rest)


def _null_of(
    y: Array, x: Array, rng: np.random.Generator, orders: Orders, left: Array | None = None
) -> Array:
    """Return correlations of the columns of y with permuted ones of x, in their mean.

    ``left`` : an orthonormal basis that y is free of, and that x is made free of once more.
    """
    basis = np.full((len(y), 1), 1 / np.sqrt(len(y))) if left is None else left
    found = []
    for some in drawn_orders(len(y), rng, orders):
        total = np.zeros(len(some))
        for mine, theirs in zip(y.T, x.T, strict=True):
            moved = theirs[some]
            square = np.sum(moved**2, axis=1) - np.sum((moved @ basis) ** 2, axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = np.sqrt(np.maximum(square, 0) * (mine @ mine))
                total += np.nan_to_num(moved @ mine / scale)
        found.append(total / y.shape[1])
    return np.concatenate(found)


def _cosines(x: Array, y: Array) -> Array:
    sizes = np.sqrt(np.sum(x**2, axis=0) * np.sum(y**2, axis=0))
    return np.asarray(np.sum(x * y, axis=0) / np.where(sizes > 0, sizes, 1.0))


def standard(values: Array) -> Array | None:
    centered = values - values.mean()
    spread = float(np.sqrt(np.mean(centered**2)))
    # What rounding alone makes differ is constant.
    if spread <= 1e-13 * max(float(np.abs(values).max()), 1e-300):
        return None
    return np.asarray(centered / spread)


def _bootstrapped(x: Array, y: Array, rng: np.random.Generator) -> float:
    """Return the standard deviation of arctanh(correlation) over samples drawn with repetition."""
    n_rows = x.size
    total = int(min(2_000, max(200, SETTINGS.most_drawn // n_rows)))
    found: list[Array] = []
    step = max(1, SETTINGS.drawn_together // n_rows)
    for first in range(0, total, step):
        count = min(step, total - first)
        times = rng.multinomial(n_rows, np.full(n_rows, 1.0 / n_rows), size=count) / n_rows
        mean_x, mean_y = times @ x, times @ y
        spread = (times @ x**2 - mean_x**2) * (times @ y**2 - mean_y**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            r = (times @ (x * y) - mean_x * mean_y) / np.sqrt(spread)
        found.append(np.arctanh(np.clip(r[np.isfinite(r)], -1 + 1e-9, 1 - 1e-9)))
    draws = np.concatenate(found)
    return float(draws.std()) if draws.size else float("inf")


def concordance(
    time: Array, event: NDArray[np.bool_], risk: Array, rng: np.random.Generator,
    orders: Orders = None,
) -> Ranked | None:  # fmt: skip
    """Return Harrell's index: of pairs whose order is known, the share that the risk orders so.

    None where no pair can be compared.
    """
    if time.size > SETTINGS.most_paired and orders is None:
        rows = rng.choice(time.size, SETTINGS.most_paired, replace=False)
        time, event, risk = time[rows], event[rows], risk[rows]
    earlier = event[:, None] & (
        (time[:, None] < time[None, :]) | ((time[:, None] == time[None, :]) & ~event[None, :])
    )
    np.fill_diagonal(earlier, False)
    pairs = np.flatnonzero(earlier.ravel())
    if not pairs.size:
        return None
    first, second = np.divmod(pairs, time.size)

    def share(values: Array) -> float:
        difference = values[first] - values[second]
        return float(np.mean(np.where(difference == 0, 0.5, difference > 0)))

    difference = risk[first] - risk[second]
    right = np.where(difference == 0, 0.5, difference > 0)
    value = float(right.mean())
    influence = np.bincount(first, right - value, time.size)
    influence += np.bincount(second, right - value, time.size)
    drawn = (rng.permutation(time.size) for _ in range(999)) if orders is None else orders
    null = np.array([share(risk[order]) for order in drawn])
    return Ranked(value, _norm(influence / pairs.size), null, 0.5)


def _norm(values: Array) -> float:
    return float(np.sqrt(np.sum(values**2)))


def area_interval(ranked: Ranked, level: float, n_fewer: int) -> tuple[float, float]:
    """Return the interval of an area (or a concordance) on the scale of its logit.

    Where all pairs are right (or wrong) the error is 0, which nobody should believe: so many
    independent pairs as there are rows of the rarer kind (``n_fewer``) would all be right with
    probability area^n_fewer, which is set to the level of one side.
    """
    value, error, beyond = ranked.score, ranked.error, (1 - level) / 2
    limit = beyond ** (1 / max(n_fewer, 1))
    if value == 1.0:
        return float(limit), 1.0
    if value == 0.0:
        return 0.0, float(1.0 - limit)
    width = float(norm.isf(beyond)) * error / (value * (1 - value))
    return float(expit(logit(value) - width)), float(expit(logit(value) + width))


def correlation_interval(ranked: Ranked, level: float) -> tuple[float, float]:
    """Return the interval of a correlation on Fisher's scale."""
    middle = np.arctanh(np.clip(ranked.score, -1 + 1e-12, 1 - 1e-12))
    width = float(norm.isf((1 - level) / 2)) * ranked.error
    return float(np.tanh(middle - width)), float(np.tanh(middle + width))
