"""Intervals of predictions, bounds of times, sets of labels: from fits of a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from atomlearn.core import (
    LIMITS,
    TINY,
    Array,
    Columns,
    Design,
    Fold,
    Loss,
    Mask,
    PathResult,
    Problem,
    Rows,
    bare_loss,
    decisions_at,
    has_link,
    has_probabilities,
    log_probabilities,
    relaxed,
    together,
    training_part,
)
from atomlearn.core.solve import solve
from atomlearn.estimators.dependent_rows import unit_numbers
from atomlearn.estimators.survival import Baseline
from atomlearn.estimators.units import Units

#: Errors that a file keeps.
MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """The fit without each fold at the chosen level, and how far off it is on the rows left out.

    columns : (m,) columns of the fits, weights : (n_folds, n_outputs, m), intercepts : (n_folds,
    n_outputs); rows, folds, scores : (r,), (r,), (r, ...) of each row that was left out: its
    number, the fold, and how far the fit is from it; mass : (r,) what each counts, of 1 in all
    (before ``counted``: for how many rows it stands); clock : of survival, see ``_timed``; drift :
    how often errors would grow as much along a series by chance, 1 without an order of rows.
    """

    loss: Loss
    columns: Columns
    weights: Array
    intercepts: Array
    rows: Rows
    folds: Rows
    scores: Array
    mass: Array
    clock: Array | None = None
    drift: float = 1.0

    @classmethod
    def of(
        cls, problems: Sequence[Problem], folds: Sequence[Fold],
        paths: Sequence[Sequence[PathResult]], level: float, share: float,
    ) -> OutOfFold | None:  # fmt: skip
        """Return those of a level; None where the search was cut short, or fits have no columns.

        And of losses without probabilities, and of survival times with strata or late entries.
        ``paths`` : of each fold, one an output; ``share`` : of a refit without penalty.
        """
        loss = bare_loss(problems[0].loss)
        found = []
        target: Any = problems[0].y
        is_timed = loss.task == "survival"
        if is_timed and not is_plain(target):
            return None
        if loss.task == "classification" and not has_probabilities(loss):
            return None
        for (train, _), outputs in zip(folds, paths, strict=True):
            for problem, path in zip(problems, outputs, strict=True):
                result = path.at(level / path.l1_ratio)
                if result is None or result.matrix_parts is not None:
                    return None
                part = training_part(problem, train) if share else problem
                found.append(relaxed(part, result, share))
        shape = len(folds), len(problems)
        columns, weights = together(found)
        intercepts = np.array([result.intercept for result in found]).reshape(shape)
        tests = [test[problems[0].weight[test] > 0] for _, test in folds]
        at = np.concatenate(tests)
        of = np.repeat(np.arange(len(folds)), [t.size for t in tests])
        parts = loss, columns, weights.reshape(*shape, -1), intercepts
        fits = cls(*parts, at, of, *np.ones((2, at.size)))
        linear = fits.decisions(problems[0].design)
        if is_timed:  # risks without a constant, which would be another one in each fold
            fits = replace(fits, intercepts=-linear.mean(axis=0))
            linear += fits.intercepts
        each = zip(problems, linear[at, of].T, strict=True)
        mine = np.stack([decisions_at(p, z, at) for p, z in each], axis=1)
        if is_timed:
            early, mass, clock = _timed(loss, target[at], mine[:, 0], problems[0].weight[at])
            return replace(fits, scores=early[:, None], mass=mass, clock=clock)
        y = np.stack([problem.y[at] for problem in problems], axis=1)
        return replace(fits, scores=fits.score(mine, y, drawn(linear)[at]))

    def counted(self, n_rows: int, groups: Any, order: Any = None) -> Self:
        """Return the same where each group of rows counts as one, and a new one as one more."""
        units = unit_numbers(n_rows, groups)[self.rows]
        _, units, sizes = np.unique(units, return_inverse=True, return_counts=True)
        drift = 1.0
        if order is not None:
            places = np.argsort(unit_numbers(n_rows, None, order)[self.rows], kind="stable")
            drift = drift_along(self.scores[places].reshape(places.size, -1).mean(axis=1))
        return replace(self, mass=self.mass / ((sizes.size + 1) * sizes[units]), drift=drift)

    def in_data_units(self, units: Units) -> Self:
        """Return the same fits over columns in units of the data."""
        weights, intercepts = units.to_data(self.columns, self.weights, self.intercepts)
        return replace(self, weights=weights, intercepts=intercepts)

    def among(self, mine: Mask) -> Self:
        """Return the same of these rows alone: a new one is then one more of them."""
        sums = self.mass[mine].sum()
        # All rows hold units / (units + 1) of the mass.
        every = self.mass.sum() / max(1.0 - self.mass.sum(), TINY)
        units = every * sums / max(self.mass.sum(), TINY)
        mass = np.where(mine, self.mass, 0.0) / max(sums, TINY) * units / (units + 1.0)
        return replace(self, mass=mass)

    def decisions(self, design: Design, offset: Array | None = None) -> Array:
        """Return X w + b (+ offset) of each fit, (n, n_folds, n_outputs)."""
        linear = design.product(self.weights.reshape(self.intercepts.size, -1).T, self.columns)
        values = linear.reshape(-1, *self.intercepts.shape) + self.intercepts
        return np.asarray(values if offset is None else values + offset[:, None])

    def score(self, decisions: Array, y: Array, u: Array) -> Array:
        """Return how far decisions (n, n_outputs) are from targets as the losses take them."""
        if self.loss.task == "classification":
            codes = np.argmax(y, axis=1) if y.shape[1] > 1 else (y[:, 0] > 0).astype(np.int64)
            return np.take_along_axis(self.ranked(decisions, u), codes[:, None], axis=1)[:, 0]
        return score_of(self.loss, self.loss.mean(decisions), y)

    def ranked(self, decisions: Array, u: Array) -> Array:
        """Return P(more probable labels) + u P(label) of each label, (n, n_classes)."""
        probability = np.exp(log_probabilities(self.loss, decisions, False))
        order = np.argsort(-probability, axis=1, kind="stable")
        ordered = np.take_along_axis(probability, order, axis=1)
        ranked: Array = np.empty_like(probability)
        np.put_along_axis(
            ranked, order, np.cumsum(ordered, axis=1) - (1 - u[:, None]) * ordered, axis=1
        )
        return ranked

    def interval(
        self, design: Design, share: float | Array, offset: Array | None
    ) -> tuple[Array, ...]:
        """Return the ends of intervals that hold a share of new targets, each (n, n_outputs).

        Of survival times the lower one alone. ``share`` : one number, or one a row.
        """
        means = self.loss.mean(self.decisions(design, offset))
        means = means if self.clock is None else -means
        scales = scale_of(self.loss, means)
        low, high = np.empty((2, len(means), means.shape[2]))
        wanted = np.broadcast_to(share, len(means))[:, None]
        for some in LIMITS.pieces(len(means), self.folds.size):
            for output in range(means.shape[2]):
                middle = means[some, self.folds, output]
                far = self.scores[:, output] * scales[some, self.folds, output]
                high[some, output] = _quantiles(middle + far, self.mass, wanted[some])
                low[some, output] = -_quantiles(far - middle, self.mass, wanted[some])
        if self.clock is not None:
            return (np.interp(np.exp(low), self.clock[1], self.clock[0]),)
        return (np.maximum(low, 0.0) if has_link(self.loss) else low), high

    def sets(self, design: Design, share: float | Array, offset: Array | None) -> Mask:
        """Return which labels are in sets that hold a share of new labels, (n, n_classes)."""
        decisions = self.decisions(design, offset)
        u = drawn(self.decisions(design))
        below = np.zeros(())
        for fold in range(decisions.shape[1]):
            mine = np.flatnonzero(self.folds == fold)
            order = mine[np.argsort(self.scores[mine])]
            sums = np.concatenate([[0.0], np.cumsum(self.mass[order])])
            ranked = self.ranked(decisions[:, fold], u)
            below = below + sums[np.searchsorted(self.scores[order], ranked)]
        return np.asarray(below < np.broadcast_to(share, len(below))[:, None])


def drift_along(errors: Array) -> float:
    """Return how often errors in the order of a series would grow as much along it by chance.

    By the rank correlation with the position, of the series as it is and moved on by every number
    of rows, its end coming to the beginning: so what is next to each other stays so.
    """
    n_rows = errors.size
    if n_rows < 20 or not np.ptp(errors):
        return 1.0
    ranks = rankdata(errors) - 0.5 * (n_rows + 1)
    place = np.arange(n_rows) - 0.5 * (n_rows - 1)
    sums = np.fft.irfft(np.fft.rfft(ranks).conj() * np.fft.rfft(place), n_rows)
    return float(np.mean(sums >= ranks @ place - 1e-9 * n_rows**2))


def is_plain(y: Any) -> bool:
    """Return whether survival times are of one stratum, and all rows at risk from the start."""
    return not (np.ptp(y["stratum"]) or np.isfinite(y["entry"]).any())


def _timed(loss: Loss, y: Any, risk: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return how early events are, for how many rows each stands, and (times, hazards), (2, m).

    A time is told by the cumulative baseline hazard H there, so that log H(T) is about -risk and
    its errors are alike: minus such an error comes back. An event stands for 1 / G(T) rows, G the
    share such as it that nothing but an event would have ended before T: by a Cox model of leaving
    whose one column is the risk. The rows that left share what is then missing of all, late.
    """
    event = y["event"]
    hazard = Baseline.of(y, risk, weight)
    early = -np.log(np.where(event, hazard.until(y["time"]), 1.0)) - risk
    left = y.copy()
    left["event"], stands = ~event, np.ones(y.size)
    if not event.all():
        slope = float(solve(risk[:, None], left, loss=loss, alpha=1e-3).coef[0])
        leaving = Baseline.of(left, slope * risk, weight)
        stands = np.exp(leaving.until(y["time"], "left") * np.exp(slope * risk))
        stands[~event] = (y.size - stands[event].sum()) / np.sum(~event)
        early[~event] = early[event].min()
    return early, stands, np.insert([hazard.times, hazard.cumulative], 0, 0.0, axis=1)


def scale_of(loss: Loss, mean: Array) -> Array:
    """Return what errors are measured by: of amounts and counts the root of the mean."""
    root = np.sqrt(np.maximum(mean, TINY))
    return np.asarray(root if has_link(loss) else np.ones_like(mean))


def score_of(loss: Loss, mean: Array, y: Array) -> Array:
    """Return how far targets are from what was expected."""
    return np.asarray(np.abs(y - mean) / scale_of(loss, mean))


def thinned(errors: Array, stands: Array | None = None) -> list[float]:
    """Return errors in increasing order, of many as many as a file should hold: none too small.

    stands : for how many rows each error stands, one each where None. The k-th of m is the least
    that k / (m + 1) of the rows, and one more, do not exceed.
    """
    order = np.argsort(errors)
    most = min(errors.size, MOST_KEPT)
    sums = np.cumsum(np.ones(errors.size) if stands is None else stands[order]) / (errors.size + 1)
    shares = np.arange(1, most + 1) / (most + 1)
    at = np.minimum(np.searchsorted(sums, shares - 1e-12), errors.size - 1)
    found: list[float] = errors[order][at].tolist()
    return found


def held_out_errors(loss: Loss, y: Any, decisions: Array, weight: Array) -> dict[str, list[float]]:
    """Return what a file keeps of a fit on rows held out, for intervals; {} where there are none.

    Of survival times without strata and late entries the errors of ``_timed`` and its clock;
    decisions : of these without a constant.
    """
    if loss.task == "regression":
        return {"held_out_errors": thinned(score_of(loss, loss.mean(decisions), y))}
    y = y[weight > 0]
    decisions = decisions[weight > 0]
    weight = weight[weight > 0]
    if not is_plain(y) or not y["event"].any():
        return {}
    early, stands, clock = _timed(loss, y, decisions, weight)
    parts = thinned(early, stands), *clock.tolist()
    return dict(zip(("held_out_errors", "held_out_times", "held_out_hazard"), parts, strict=True))


def drawn(decisions: Array) -> Array:
    """Return a number in [0, 1) a row: digits of its decisions (n, n_folds, n_outputs) far back.

    As good as drawn, and the same whenever a row is asked for.
    """
    return np.asarray(np.mod(np.abs(decisions[:, :, 0].sum(axis=1)) * 1e4, 1.0))


def _quantiles(values: Array, mass: Array, share: Array) -> NDArray[Any]:
    """Return of each row the least value that its share of the mass does not exceed, or infinity.

    share : (n, 1).
    """
    order = np.argsort(values, axis=1)
    enough = np.cumsum(mass[order], axis=1) >= share - 1e-12
    at = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
    found = np.take_along_axis(values, at, axis=1)[:, 0]
    return np.where(enough.any(axis=1), found, np.inf)
