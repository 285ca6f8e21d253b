"""The methods of [T]: FGM in its variants, l1 by LIBLINEAR and exactly, de-biasing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from atomlearn.core.solvers.stopping import Iterations, RelativeGap, Seconds
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FeatureGeneration, run
from tests.oracles.sums import solve_sum

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

    def row(self, X: Array, y: Array, truth: Array | None = None) -> dict[str, float]:
        """Return what a figure shows of it."""
        row = {
            "features": int(self.columns.size),
            "accuracy": self.accuracy(X, y),
            "seconds": self.seconds,
        }
        if truth is not None:
            row["hits"] = int(np.isin(self.columns, truth).sum())
        return row


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
    limit: float = np.inf,
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
    result = run(problem, solver, RelativeGap(1e-6) | Iterations(500) | Seconds(limit))
    seconds = time.process_time() - began
    return Fit(result.columns, result.weights, result.intercept, seconds), result


class Liblinear:
    """scikit-learn's LIBLINEAR at its own default tolerances, as [T] has it; X is converted once.

    Its seconds leave out the conversion to its own storage, which a fit at C = 1e-9, over after one
    iteration, measures. With a shift it has a column of ones, whose weight is penalized too.
    """

    def __init__(self, X: Array, y: Array, shift: bool = False) -> None:
        self.X = sp.csr_matrix(X, dtype=float) if sp.issparse(X) else np.ascontiguousarray(X, float)
        self.y, self.shift = y, shift
        self.setup = self._fit(LinearSVC(penalty="l1", dual=False, C=1e-9, fit_intercept=shift))[1]

    def svm(self, C: float) -> Fit:
        """l1-SVM: min ||w||_1 + C sum max(0, 1 - y z)^2."""
        return self._of(
            LinearSVC(penalty="l1", dual=False, C=C, tol=0.01, fit_intercept=self.shift)
        )

    def svm_cut(self, C: float, steps: int) -> tuple[Fit, int]:
        """l1-SVM with so many iterations at most, and the iterations that it took."""
        how = {"penalty": "l1", "dual": False, "tol": 0.01, "fit_intercept": self.shift}
        machine = LinearSVC(C=C, max_iter=steps, **how)
        return self._of(machine), int(machine.n_iter_)

    def lr(self, C: float) -> Fit:
        """l1-LR: min ||w||_1 + C sum log(1 + exp(-y z))."""
        return self._of(
            LogisticRegression(
                l1_ratio=1.0, solver="liblinear", C=C, tol=0.01, fit_intercept=self.shift
            )
        )

    def all_features(self) -> dict[str, Fit]:
        """CD-SVM and CD-LR: the l2 machines on all features, C = 1."""
        return {
            "CD-SVM": self._of(LinearSVC(C=1.0, tol=0.1, fit_intercept=self.shift)),
            "CD-LR": self._of(
                LogisticRegression(solver="liblinear", C=1.0, tol=0.1, fit_intercept=self.shift)
            ),
        }

    def _fit(self, machine: Any) -> tuple[Any, float]:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own limit of iterations is part of it
            machine.fit(self.X, self.y)
        return machine, time.process_time() - began

    def _of(self, machine: Any) -> Fit:
        fitted, seconds = self._fit(machine)
        w, b = fitted.coef_.ravel(), float(np.ravel(fitted.intercept_)[0])
        columns = np.flatnonzero(w)
        return Fit(columns, w[columns], b, max(seconds - self.setup, 1e-3))


def l1_optimum(
    design: Any, y: Array, C: float, *, loss: str, ridge: float = 0.0, shift: bool = False
) -> Fit:
    """Return the optimum of l1-SVM, l1-LR or (with ``ridge``) SGD-SLR, proved to 1e-3.

    What LIBLINEAR comes near to, where its copies of the data do not fit into memory. [T]'s
    squared hinge has no factor 1/2, ours has.
    """
    level = 1.0 / (2.0 * C if loss == "squared_hinge" else C)
    began = time.process_time()
    found = solve_sum(
        design, y, loss=loss, norm="l1", level=level, tau=ridge, tol=1e-3, fit_intercept=shift
    )
    return Fit(found.columns, found.weights, found.intercept, time.process_time() - began)


def rows_of(fits: Sequence[Fit], X: Array, y: Array, truth: Array | None = None) -> list[Any]:
    """Return a row for each fit that has selected anything."""
    return [fit.row(X, y, truth) for fit in fits if fit.columns.size]


def debiased(X: Array, y: Array, fit: Fit, C: float = 20.0, shift: bool = False) -> Fit:
    """Return CD-SVM, LIBLINEAR's l2-SVM, with C on what was selected ([T] 8.2.2)."""
    if not fit.columns.size:
        return fit
    part = X[:, fit.columns]
    part = np.asarray(part.todense()) if hasattr(part, "todense") else part
    machine = LinearSVC(C=C, dual=False, tol=0.01, fit_intercept=shift).fit(part.astype(float), y)
    b = float(np.ravel(machine.intercept_)[0]) if shift else 0.0
    return Fit(fit.columns, machine.coef_.ravel(), b, fit.seconds)


def at(rows: Sequence[dict[str, float]], what: str, count: float) -> float:
    """Return a curve at so many features, linearly between its points; NaN beyond its ends."""
    ordered = sorted(rows, key=lambda row: row["features"])
    sizes, values = ([row[key] for row in ordered] for key in ("features", what))
    return float(np.interp(count, sizes, values, left=np.nan, right=np.nan))
