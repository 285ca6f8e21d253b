"""Scores of held-out decisions that know no threshold, with their errors and null distributions.

Each kind of target has one statistic: the area under the ROC curve (two classes), its mean over
classes (more), the correlation (numbers), the concordance index (survival times).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from atomlearn.core.interfaces import Array
from atomlearn.findings.settings import SETTINGS

Codes = NDArray[np.int64]


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


def permuted(
    values: NDArray[np.generic], statistic: Callable[[NDArray[np.generic]], Array],
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Return ``statistic`` of permutations of ``values``, which come as the rows of a matrix."""
    total, found = n_draws(values.size), []
    step = max(1, SETTINGS.drawn_together // max(values.size, 1))
    for first in range(0, total, step):
        count = min(step, total - first)
        found.append(statistic(rng.permuted(np.tile(values, (count, 1)), axis=1)))
    return np.concatenate(found)


def area(codes: Codes, decisions: Array, rng: np.random.Generator) -> Ranked:
    """Return the area under the ROC curve, (codes 0 and 1), with DeLong's standard error."""
    ranks = rankdata(decisions)
    positive = codes == 1
    n_positive = int(positive.sum())
    n_negative = codes.size - n_positive
    value, influence = _area_of(decisions, positive)
    pairs = n_positive * n_negative
    least = n_positive * (n_positive + 1) / 2
    if codes.size > SETTINGS.many_rows:
        spread = np.sqrt(ranks.var() * pairs / (codes.size - 1)) / pairs
        return Ranked(value, _norm(influence), None, 0.5, float(spread))
    null = permuted(ranks, lambda rows: (rows[:, :n_positive].sum(axis=1) - least) / pairs, rng)
    return Ranked(value, _norm(influence), null, 0.5)


def mean_area(codes: Codes, decisions: Array, rng: np.random.Generator) -> Ranked:
    """Return the mean over the classes present of the area of each against the rest."""
    present = [code for code in np.unique(codes) if 0 < (codes == code).sum() < codes.size]
    values, influence = [], np.zeros(codes.size)
    for code in present:
        value, of_rows = _area_of(decisions[:, code], codes == code)
        values.append(value)
        influence += of_rows / len(present)
    ranks = {code: rankdata(decisions[:, code]) for code in present}

    def statistic(rows: NDArray[np.generic]) -> Array:
        total = np.zeros(len(rows))
        for code in present:
            chosen = rows == code
            n_positive = int((codes == code).sum())
            sums = chosen @ ranks[code] - n_positive * (n_positive + 1) / 2
            total += sums / (n_positive * (codes.size - n_positive) * len(present))
        return total

    return Ranked(float(np.mean(values)), _norm(influence), permuted(codes, statistic, rng), 0.5)


def _area_of(decisions: Array, positive: NDArray[np.bool_]) -> tuple[float, Array]:
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


def correlation(truth: Array, predicted: Array, rng: np.random.Generator) -> Ranked:
    """Return Pearson's correlation, with the bootstrap's error of its Fisher transform."""
    x, y = _standard(predicted), _standard(truth)
    if x is None or y is None:
        # A constant says nothing, and nothing of it is uncertain.
        return Ranked(0.0, 0.0, None, 0.0)
    value = float(np.clip(x @ y / x.size, -1.0, 1.0))
    error = _bootstrapped(x, y, rng)
    if x.size > SETTINGS.many_rows:
        return Ranked(value, error, None, 0.0, 1.0 / np.sqrt(x.size - 1))
    null = permuted(y, lambda rows: np.asarray(rows, dtype=np.float64) @ x / x.size, rng)
    return Ranked(value, error, null, 0.0)


def _standard(values: Array) -> Array | None:
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


def concordance(time: Array, event: NDArray[np.bool_], risk: Array, rng: np.random.Generator) -> (
    Ranked | None
):  # fmt: skip
    """Return Harrell's index: of pairs whose order is known, the share that the risk orders so.

    None where no pair can be compared.
    """
    if time.size > SETTINGS.most_paired:
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
    null = np.array([share(rng.permutation(risk)) for _ in range(999)])
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
