"""Intervals of predictions and sets of labels, from the fits of a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.parts import part_of
from atomlearn.core.interfaces import Array, Columns, Design, Loss, Mask, Rows
from atomlearn.core.interfaces.loss import has_link
from atomlearn.core.losses.probabilities import log_probabilities
from atomlearn.core.paths.folds import Fold, decisions_at, training_part
from atomlearn.core.paths.path import PathResult
from atomlearn.core.paths.relax import relaxed
from atomlearn.estimators.dependent_rows import unit_numbers
from atomlearn.problem import Problem

#: Errors that a file keeps.
MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """The fit without each fold at the chosen level, and how far off it is on the rows left out.

    columns : (m,) columns of the fits, weights : (n_folds, n_outputs, m), intercepts : (n_folds,
    n_outputs); rows, folds, scores : (r,), (r,), (r, ...) of each row that was left out: its
    number, the fold, and how far the fit is from it; mass : (r,) what each counts, of 1 in all.
    """

    loss: Loss
    columns: Columns
    weights: Array
    intercepts: Array
    rows: Rows
    folds: Rows
    scores: Array
    mass: Array

    @classmethod
    def of(
        cls, problems: Sequence[Problem], folds: Sequence[Fold],
        paths: Sequence[Sequence[PathResult]], level: int, share: float,
    ) -> OutOfFold | None:  # fmt: skip
        """Return those of a level; None where the search was cut short, or fits have no columns.

        And of survival times and losses without probabilities. ``paths`` : of each fold, one an
        output; ``share`` : of a refit without penalty.
        """
        loss, found = problems[0].loss.bare, []
        if not (loss.task == "regression" or loss.has_probabilities):
            return None
        for (train, _), outputs in zip(folds, paths, strict=True):
            for problem, path in zip(problems, outputs, strict=True):
                if len(path.results) <= level or path.results[level].matrix_parts is not None:
                    return None
                part = training_part(problem, train) if share else problem
                found.append(relaxed(part, path.results[level], share))
        shape = len(folds), len(problems)
        columns = np.unique(np.concatenate([result.columns for result in found]))
        weights = np.zeros((len(found), columns.size))
        for row, result in zip(weights, found, strict=True):
            row[np.searchsorted(columns, result.columns)] = result.weights
        intercepts = np.array([result.intercept for result in found]).reshape(shape)
        none = np.zeros(0, dtype=np.int64)
        empty = none, none, np.zeros(0), np.zeros(0)
        fits = cls(loss, columns, weights.reshape(*shape, -1), intercepts, *empty)
        rows, of_rows, scores = [], [], []
        for number, (_, test) in enumerate(folds):
            kept = test[problems[0].weight[test] > 0]
            linear = fits.decisions(part_of(problems[0].design, rows=kept))
            each = zip(problems, linear[:, number].T, strict=True)
            decisions = np.stack([decisions_at(p, z, kept) for p, z in each], axis=1)
            y = np.stack([problem.y[kept] for problem in problems], axis=1)
            rows.append(kept)
            of_rows.append(np.full(kept.size, number))
            scores.append(fits.score(decisions, y, drawn(linear)))
        return replace(
            fits, rows=np.concatenate(rows), folds=np.concatenate(of_rows),
            scores=np.concatenate(scores),
        ).counted(problems[0].y.size, None)  # fmt: skip

    def counted(self, n_rows: int, groups: Any) -> Self:
        """Return the same where each group of rows counts as one, and a new one as one more."""
        units = unit_numbers(n_rows, groups)[self.rows]
        _, units, sizes = np.unique(units, return_inverse=True, return_counts=True)
        return replace(self, mass=1.0 / ((sizes.size + 1) * sizes[units]))

    def decisions(self, design: Design, offset: Array | None = None) -> Array:
        """Return X w + b (+ offset) of each fit, (n, n_folds, n_outputs)."""
        block = design.gather(self.columns)
        linear = [block.dot(w) for w in self.weights.reshape(self.intercepts.size, -1)]
        values = np.stack(linear, axis=1).reshape(-1, *self.intercepts.shape) + self.intercepts
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

    def interval(self, design: Design, share: float, offset: Array | None) -> tuple[Array, Array]:
        """Return the ends of intervals that hold a share of new targets, each (n, n_outputs)."""
        means = self.loss.mean(self.decisions(design, offset))
        scales = scale_of(self.loss, means)
        low, high = np.empty((2, len(means), means.shape[2]))
        for some in LIMITS.pieces(len(means), self.folds.size):
            for output in range(means.shape[2]):
                middle = means[some, self.folds, output]
                far = self.scores[:, output] * scales[some, self.folds, output]
                high[some, output] = _quantiles(middle + far, self.mass, share)
                low[some, output] = -_quantiles(far - middle, self.mass, share)
        return (np.maximum(low, 0.0) if has_link(self.loss) else low), high

    def sets(self, design: Design, share: float, offset: Array | None) -> Mask:
        """Return which labels are in sets that hold a share of new labels, (n, n_classes)."""
        decisions = self.decisions(design, offset)
        u, below = drawn(self.decisions(design)), np.zeros(())
        for fold in range(decisions.shape[1]):
            mine = np.flatnonzero(self.folds == fold)
            order = mine[np.argsort(self.scores[mine])]
            sums = np.concatenate([[0.0], np.cumsum(self.mass[order])])
            ranked = self.ranked(decisions[:, fold], u)
            below = below + sums[np.searchsorted(self.scores[order], ranked)]
        return np.asarray(below < share)


def scale_of(loss: Loss, mean: Array) -> Array:
    """Return what errors are measured by: of amounts and counts the root of the mean."""
    root = np.sqrt(np.maximum(mean, np.finfo(float).tiny))
    return np.asarray(root if has_link(loss) else np.ones_like(mean))


def score_of(loss: Loss, mean: Array, y: Array) -> Array:
    """Return how far targets are from what was expected."""
    return np.asarray(np.abs(y - mean) / scale_of(loss, mean))


def thinned(errors: Array) -> list[float]:
    """Return errors in increasing order, of many as many as a file should hold: none too small."""
    shares = np.linspace(0.0, 1.0, min(errors.size, MOST_KEPT))
    return np.quantile(errors, shares, method="higher").tolist() if errors.size else []


def drawn(decisions: Array) -> Array:
    """Return a number in [0, 1) a row: digits of its decisions (n, n_folds, n_outputs) far back.

    As good as drawn, and the same whenever a row is asked for.
    """
    return np.asarray(np.mod(np.abs(decisions[:, :, 0].sum(axis=1)) * 1e4, 1.0))


def _quantiles(values: Array, mass: Array, share: float) -> NDArray[Any]:
    """Return of each row the least value that a share of the mass does not exceed, or infinity."""
    order = np.argsort(values, axis=1)
    enough = np.cumsum(mass[order], axis=1) >= share - 1e-12
    at = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
    found = np.take_along_axis(values, at, axis=1)[:, 0]
    return np.where(enough.any(axis=1), found, np.inf)
