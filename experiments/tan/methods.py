"""The methods of [T]'s experiments: FGM in its variants, l1 rivals, de-biasing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn import solve
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.norms import KSupport
from atomlearn.paths import path
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FeatureGeneration, run

Array = Any
C, ROUNDS = 10.0, 10


@dataclass
class Fit:
    """Columns in use, their weights and the intercept, with processor seconds."""

    columns: Array
    weights: Array
    intercept: float
    seconds: float

    def accuracy(self, X: Array, y: Array) -> float:
        """Return the share of right signs, in percent."""
        return 100.0 * float(np.mean(np.sign(self.decide(X)) == y))

    def decide(self, X: Array) -> Array:
        """Return the decisions."""
        return np.asarray(X[:, self.columns] @ self.weights).ravel() + self.intercept


def generated(
    X: Array,
    y: Array,
    batch: int,
    *,
    C: float = C,
    rounds: int | None = ROUNDS,
    loss: str = "squared_hinge",
    shift: bool = False,
    groups: Any = None,
    **settings: Any,
) -> tuple[Fit, Any]:
    """Return the fit of FGM (PROX-FGM, or PROX-SLR with the logistic loss) and its result."""
    problem = Problem.build(
        as_design(X),
        y,
        as_loss(loss),
        Regularizer(KSupport(batch, groups), "squared", 1.0),
        fit_intercept=shift,
        sample_weight=C,
    )
    began = time.process_time()
    solver = FeatureGeneration(max_blocks=rounds, **settings)
    result = run(problem, solver, RelativeGap(1e-6) | Iterations(500))
    seconds = time.process_time() - began
    return Fit(result.columns, result.weights, result.intercept, seconds), result


def l1_path(
    X: Array,
    y: Array,
    count: int,
    most: int,
    *,
    loss: str = "squared_hinge",
    shift: bool = False,
    **settings: Any,
) -> list[Fit]:
    """Return l1-SVM or l1-LR at levels that select up to about ``most`` features."""
    design, fits = as_design(X), []
    top = float(abs(design.scores(-as_loss(loss).gradient(y, 0 * y, np.ones(y.size))).top(1)[1][0]))
    for share in np.geomspace(0.7, 0.05, count):
        began = time.process_time()
        found = path(
            design,
            y,
            loss=loss,
            norm="l1",
            levels=[share * top],
            gap=1e-3,
            intercept=shift,
            **settings,
        ).results[0]
        seconds = time.process_time() - began
        fits.append(Fit(found.columns, found.weights, found.intercept, seconds))
        if found.columns.size > most:
            break
    return fits


def debiased(X: Array, y: Array, fit: Fit, C: float = 20.0, shift: bool = False) -> Fit:
    """Return the l2-SVM with C on what was selected ([T] 5.3)."""
    part = X[:, fit.columns]
    part = np.asarray(part.todense()) if hasattr(part, "todense") else part
    found = solve(
        np.asfortranarray(part, dtype=np.float64),
        y,
        loss="squared_hinge",
        norm="l2",
        form="squared",
        level=1.0 / C,
        intercept=shift,
        gap=1e-4,
    )
    return Fit(fit.columns[found.columns], found.weights, found.intercept, fit.seconds)


def at(fits: Sequence[Fit], values: Sequence[float], count: int) -> float:
    """Return a curve over numbers of features at ``count``, by linear interpolation."""
    sizes = np.array([fit.columns.size for fit in fits], dtype=float)
    order = np.argsort(sizes)
    return float(np.interp(count, sizes[order], np.asarray(values, dtype=float)[order]))
