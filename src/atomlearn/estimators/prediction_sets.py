"""Prediction intervals, bounds of survival times and sets of labels, from a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from atomlearn._support import TINY
from atomlearn.core import (
    LIMITS,
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
    relaxed,
    together,
    training_part,
)
from atomlearn.core.solve import solve
from atomlearn.estimators.dependent_rows import unit_numbers
from atomlearn.estimators.probabilities import log_probabilities
from atomlearn.estimators.survival import Baseline
from atomlearn.estimators.units import Units

#: Maximum number of errors in a model file.
MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """The fits without each fold at the chosen alpha, and their errors at held-out rows.

    Attributes
    ----------
    loss : Loss
        The loss of the fits.
    columns : (m,) ndarray of int
        Columns with a coefficient in any of the fits.
    weights : (n_folds, n_outputs, m) float64
        Coefficients of these columns.
    intercepts : (n_folds, n_outputs) float64
    rows, folds : (r,) ndarray of int
        Index of each held-out row, and the fold that holds it out.
    scores : (r,) or (r, n_outputs) float64
        Error at each held-out row of the fit without its fold.
    mass : (r,) float64
        Share of each row in the quantiles of the errors. The shares add up to n / (n + 1) for n
        independent rows; a new row has the rest. Before ``counted``, the number of rows that the
        row represents.
    clock : (2, m) float64 or None
        Times and cumulative hazards, for survival: see ``_survival_errors``.
    drift : float
        Probability that errors grow as much along a series by chance; 1 without an order of rows.
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
    def from_paths(
        cls, problems: Sequence[Problem], folds: Sequence[Fold],
        paths: Sequence[Sequence[PathResult]], level: float, share: float,
        problems_of_folds: Sequence[Sequence[Problem]] = (),
    ) -> OutOfFold | None:  # fmt: skip
        """Return the fits without each fold, or None if there are no prediction sets for them.

        There are none if the search was cut short, if the fit is a matrix, for classes without
        probabilities, and for survival times with strata or late entries. ``problems`` has one
        problem per output, over all rows. ``folds`` are (training rows, held-out rows) of each
        fold. ``paths`` has, for each fold, the path of each output; ``level`` is the weight of the
        norm at which the solutions are read. ``share`` is the share of a refit without penalty.
        ``problems_of_folds`` has the problems of each fold, if folds have different designs.
        """
        loss = bare_loss(problems[0].loss)
        results = []
        target: Any = problems[0].y
        is_timed = loss.task == "survival"
        if is_timed and not is_plain(target):
            return None
        if loss.task == "classification" and not has_probabilities(loss):
            return None
        problems_of_folds = problems_of_folds or [problems] * len(folds)
        for (train, _), outputs, problems_of_fold in zip(
            folds, paths, problems_of_folds, strict=True
        ):
            for problem, path in zip(problems_of_fold, outputs, strict=True):
                # The alpha of the path at which the norm has the weight ``level``.
                result = path.result_at(level / path.l1_ratio)
                if result is None or result.matrix_parts is not None:
                    return None
                training = training_part(problem, train) if share else problem
                results.append(relaxed(training, result, share))
        # The coefficients of all fits over their common columns.
        shape = len(folds), len(problems)
        columns, weights = together(results)
        intercepts = np.array([result.intercept for result in results]).reshape(shape)
        tests = [test[problems[0].weight[test] > 0] for _, test in folds]
        rows = np.concatenate(tests)
        fold_of = np.repeat(np.arange(len(folds)), [test.size for test in tests])
        coefficients = loss, columns, weights.reshape(*shape, -1), intercepts
        # The errors and their mass are ones until they are computed below.
        fits = cls(*coefficients, rows, fold_of, *np.ones((2, rows.size)))
        # The decisions of all rows by all fits; folds with different imputed values replace theirs.
        linear = fits.decisions(problems[0].design)
        for number, problems_of_fold in enumerate(problems_of_folds):
            if problems_of_fold[0].design is not problems[0].design:
                linear[:, number] = fits.decisions(problems_of_fold[0].design)[:, number]
        if is_timed:  # the risks of each fold have a different constant, so subtract their mean
            fits = replace(fits, intercepts=-linear.mean(axis=0))
            linear += fits.intercepts
        problems_and_predictions = zip(problems, linear[rows, fold_of].T, strict=True)
        decisions = np.stack(
            [
                decisions_at(problem, predicted, rows)
                for problem, predicted in problems_and_predictions
            ],
            axis=1,
        )
        if is_timed:
            early, mass, clock = _survival_errors(
                loss, target[rows], decisions[:, 0], problems[0].weight[rows]
            )
            return replace(fits, scores=early[:, None], mass=mass, clock=clock)
        y = np.stack([problem.y[rows] for problem in problems], axis=1)
        return replace(fits, scores=fits.score(decisions, y, drawn(linear)[rows]))

    def counted(self, n_rows: int, groups: Any, order: Any = None) -> Self:
        """Return the same fits with equal mass for each group of rows, and for one new group.

        n_rows : number of rows of the data. groups : their group labels (n_rows,), or None. order :
        their positions in a series, or None; then ``drift`` tests whether errors grow along the
        series.
        """
        units = unit_numbers(n_rows, groups)[self.rows]
        _, units, sizes = np.unique(units, return_inverse=True, return_counts=True)
        drift = 1.0
        if order is not None:
            ordered_rows = np.argsort(unit_numbers(n_rows, None, order)[self.rows], kind="stable")
            drift = drift_along(
                self.scores[ordered_rows].reshape(ordered_rows.size, -1).mean(axis=1)
            )
        return replace(self, mass=self.mass / ((sizes.size + 1) * sizes[units]), drift=drift)

    def in_data_units(self, units: Units) -> Self:
        """Return the same fits with coefficients in units of the data."""
        weights, intercepts = units.to_data(self.columns, self.weights, self.intercepts)
        return replace(self, weights=weights, intercepts=intercepts)

    def among(self, chosen: Mask) -> Self:
        """Return the same fits with mass only for the chosen rows.

        chosen : a mask (r,) of held-out rows, such as those of one class. A new row is assumed to
        be exchangeable with these.
        """
        mass_of_chosen = self.mass[chosen].sum()
        # With n independent groups of rows, the mass of all rows is n / (n + 1). The same must hold
        # for the chosen rows.
        n_units = self.mass.sum() / max(1.0 - self.mass.sum(), TINY)
        n_chosen = n_units * mass_of_chosen / max(self.mass.sum(), TINY)
        mass = (
            np.where(chosen, self.mass, 0.0)
            / max(mass_of_chosen, TINY)
            * n_chosen
            / (n_chosen + 1.0)
        )
        return replace(self, mass=mass)

    def decisions(self, design: Design, offset: Array | None = None) -> Array:
        """Return X w + b (+ offset) of each fit, (n, n_folds, n_outputs).

        design : the columns of the n rows. offset : (n, n_outputs) or None.
        """
        linear = design.product(self.weights.reshape(self.intercepts.size, -1).T, self.columns)
        values = linear.reshape(-1, *self.intercepts.shape) + self.intercepts
        return np.asarray(values if offset is None else values + offset[:, None])

    def score(self, decisions: Array, y: Array, uniforms: Array) -> Array:
        """Return the errors of decisions (n, n_outputs) at targets y (n, n_outputs).

        uniforms : (n,) numbers in [0, 1) that randomize the errors of labels, see ``ranked``.
        """
        if self.loss.task == "classification":
            codes = np.argmax(y, axis=1) if y.shape[1] > 1 else (y[:, 0] > 0).astype(np.int64)
            return np.take_along_axis(self.ranked(decisions, uniforms), codes[:, None], axis=1)[
                :, 0
            ]
        return score_of(self.loss, self.loss.mean(decisions), y)

    def ranked(self, decisions: Array, uniforms: Array) -> Array:
        """Return P(more probable labels) + u P(label) for each label, (n, n_classes).

        decisions : (n, n_outputs). uniforms : (n,) the numbers u in [0, 1). For the true label the
        result is uniformly distributed if the probabilities are right.
        """
        probability = np.exp(log_probabilities(self.loss, decisions, False))
        order = np.argsort(-probability, axis=1, kind="stable")
        ordered = np.take_along_axis(probability, order, axis=1)
        ranked: Array = np.empty_like(probability)
        np.put_along_axis(
            ranked, order, np.cumsum(ordered, axis=1) - (1 - uniforms[:, None]) * ordered, axis=1
        )
        return ranked

    def interval(
        self, design: Design, share: float | Array, offset: Array | None
    ) -> tuple[Array, ...]:
        """Return the ends of intervals that cover a share of new targets, each (n, n_outputs).

        design : the columns of the new rows. offset : (n, n_outputs) or None. share : the share, a
        number or one for each row. For survival times there is only a lower end. There the errors
        are those of log H(T), so that the end is converted to a time by ``clock``.
        """
        means = self.loss.mean(self.decisions(design, offset))
        means = means if self.clock is None else -means
        scales = scale_of(self.loss, means)
        low, high = np.empty((2, len(means), means.shape[2]))
        needed = np.broadcast_to(share, len(means))[:, None]
        # Each held-out row gives one candidate: the prediction by the fit without it, plus its
        # error.
        for rows in LIMITS.pieces(len(means), self.folds.size):
            for output in range(means.shape[2]):
                middle = means[rows, self.folds, output]
                distances = self.scores[:, output] * scales[rows, self.folds, output]
                high[rows, output] = _quantiles(middle + distances, self.mass, needed[rows])
                low[rows, output] = -_quantiles(distances - middle, self.mass, needed[rows])
        if self.clock is not None:
            return (np.interp(np.exp(low), self.clock[1], self.clock[0]),)
        return (np.maximum(low, 0.0) if has_link(self.loss) else low), high

    def sets(self, design: Design, share: float | Array, offset: Array | None) -> Mask:
        """Return the mask (n, n_classes) of the labels in sets that cover a share of new labels.

        design : the columns of the n new rows. share : the share, a number or one for each row.
        offset : (n, n_outputs) or None.
        """
        decisions = self.decisions(design, offset)
        uniforms = drawn(self.decisions(design))
        # The mass of held-out rows with a smaller error than the label would have.
        mass_below = np.zeros(())
        for fold in range(decisions.shape[1]):
            rows = np.flatnonzero(self.folds == fold)
            order = rows[np.argsort(self.scores[rows])]
            sums = np.concatenate([[0.0], np.cumsum(self.mass[order])])
            ranked = self.ranked(decisions[:, fold], uniforms)
            mass_below = mass_below + sums[np.searchsorted(self.scores[order], ranked)]
        return np.asarray(mass_below < np.broadcast_to(share, len(mass_below))[:, None])


def drift_along(errors: Array) -> float:
    """Return the probability that errors grow as much along a series by chance.

    errors : (n_rows,) in the order of the series. The test compares the rank correlation of errors
    and positions with those of all cyclic shifts of the errors, which keep their autocorrelation.
    """
    n_rows = errors.size
    if n_rows < 20 or not np.ptp(errors):
        return 1.0
    ranks = rankdata(errors) - 0.5 * (n_rows + 1)
    position = np.arange(n_rows) - 0.5 * (n_rows - 1)
    # All cyclic shifts together, by the Fourier transform.
    sums = np.fft.irfft(np.fft.rfft(ranks).conj() * np.fft.rfft(position), n_rows)
    return float(np.mean(sums >= ranks @ position - 1e-9 * n_rows**2))


def is_plain(y: Any) -> bool:
    """Return True if survival times have one stratum, no late entries and no competing events.

    ``y`` is their structured array.
    """
    late = np.isfinite(y["entry"]) | y["competing"]
    return not (np.ptp(y["stratum"]) or late.any())


def _survival_errors(loss: Loss, y: Any, risk: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the errors (n,), the number of rows (n,) that each represents, and the clock (2, m).

    y : records of survival times. risk : (n,) linear predictors. weight : (n,). Times are measured
    by the cumulative baseline hazard H, so that log H(T) is about -risk with errors of equal size.
    The error of an event is -log H(T) - risk: large for early events. An event represents 1 / G(T)
    rows. G(T) is the probability not to be censored before T, by a Cox model of censoring whose
    only column is the risk. Censored rows share the remaining number of rows, with the smallest
    error. The clock has the times of events and H at these times. ``loss`` is the loss of the
    model.
    """
    event = y["event"]
    hazard = Baseline.of(y, risk, weight)
    early = -np.log(np.where(event, hazard.until(y["time"]), 1.0)) - risk
    # In the Cox model of censoring, the events are the censored rows. ``counts`` are 1 / G(T).
    censoring = y.copy()
    censoring["event"] = ~event
    counts = np.ones(y.size)
    if not event.all():
        slope = float(solve(risk[:, None], censoring, loss=loss, alpha=1e-3).coef[0])
        baseline = Baseline.of(censoring, slope * risk, weight)
        counts = np.exp(baseline.until(y["time"], "left") * np.exp(slope * risk))
        counts[~event] = (y.size - counts[event].sum()) / np.sum(~event)
        early[~event] = early[event].min()
    return early, counts, np.insert([hazard.times, hazard.cumulative], 0, 0.0, axis=1)


def scale_of(loss: Loss, mean: Array) -> Array:
    """Return the unit of errors: the square root of the mean for amounts and counts, else 1.

    ``loss`` is the loss of the model and ``mean`` the predicted means; the result has their shape.
    """
    root = np.sqrt(np.maximum(mean, TINY))
    return np.asarray(root if has_link(loss) else np.ones_like(mean))


def score_of(loss: Loss, mean: Array, y: Array) -> Array:
    """Return the distance of targets y to their predicted means, in units of ``scale_of``.

    loss : the loss of the model. mean : the predicted means, of the shape of y.
    """
    return np.asarray(np.abs(y - mean) / scale_of(loss, mean))


def thinned(errors: Array, counts: Array | None = None) -> list[float]:
    """Return errors in increasing order, at most MOST_KEPT of them, rounded up.

    errors : (n,). counts : (n,) the number of rows that each error represents, None for 1. The
    k-th of the m results is the smallest error that at least a share k / (m + 1) of all rows, one
    new row included, does not exceed.
    """
    order = np.argsort(errors)
    n_kept = min(errors.size, MOST_KEPT)
    sums = np.cumsum(np.ones(errors.size) if counts is None else counts[order]) / (errors.size + 1)
    shares = np.arange(1, n_kept + 1) / (n_kept + 1)
    positions = np.minimum(np.searchsorted(sums, shares - 1e-12), errors.size - 1)
    quantiles: list[float] = errors[order][positions].tolist()
    return quantiles


def held_out_errors(loss: Loss, y: Any, decisions: Array, weight: Array) -> dict[str, list[float]]:
    """Return the errors at held-out rows for a model file; {} if there are no intervals.

    y, decisions, weight : target, linear predictor and weight of these rows. For survival times
    without strata and late entries the result also has the times and cumulative hazards of
    ``_survival_errors``; a constant added to ``decisions`` does not matter then. ``loss`` is the
    loss of the model.
    """
    if loss.task == "regression":
        return {"held_out_errors": thinned(score_of(loss, loss.mean(decisions), y))}
    y = y[weight > 0]
    decisions = decisions[weight > 0]
    weight = weight[weight > 0]
    if not is_plain(y) or not y["event"].any():
        return {}
    early, counts, clock = _survival_errors(loss, y, decisions, weight)
    values = thinned(early, counts), *clock.tolist()
    return dict(zip(("held_out_errors", "held_out_times", "held_out_hazard"), values, strict=True))


def drawn(decisions: Array) -> Array:
    """Return a number in [0, 1) for each row: the digits of its decisions after the fourth decimal.

    ``decisions`` has shape (n, n_folds, n_outputs). The numbers serve as random ones, and are the
    same for the same row.
    """
    return np.asarray(np.mod(np.abs(decisions[:, :, 0].sum(axis=1)) * 1e4, 1.0))


def _quantiles(values: Array, mass: Array, share: Array) -> NDArray[Any]:
    """Return the quantile of each row of ``values`` (n, r) at its share (n, 1) of the mass.

    mass : (r,) the mass of each column. The quantile is infinite if all mass is below the share.
    """
    order = np.argsort(values, axis=1)
    # The first value, in increasing order, at which the mass reaches the share.
    is_enough = np.cumsum(mass[order], axis=1) >= share - 1e-12
    chosen = np.take_along_axis(order, is_enough.argmax(axis=1)[:, None], axis=1)
    quantiles = np.take_along_axis(values, chosen, axis=1)[:, 0]
    return np.where(is_enough.any(axis=1), quantiles, np.inf)
