"""The observed entries of a matrix, their losses, and what is fitted to some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Loss, Rows
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.matrices.designs.entries import Entries
from atomlearn.matrices.norms.spectral import TraceNorm


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """z, rows, cols : (n_entries,) values and places in a matrix of this shape; loss : of them."""

    z: Array
    rows: Rows
    cols: Rows
    shape: tuple[int, ...]
    loss: Loss

    def some(self, mask: NDArray[np.bool_]) -> Observed:
        """Return these entries."""
        kept = np.flatnonzero(mask)
        return Observed(
            self.z[kept], self.rows[kept], self.cols[kept], self.shape, self.loss.part(kept)
        )

    def problem(self, level: float) -> Problem:
        """Return the problem of these entries."""
        design = Entries(self.rows, self.cols, (self.shape[0], self.shape[1]))
        regularizer = Regularizer(TraceNorm(), "penalized", level)
        return Problem.build(design, self.z, self.loss, regularizer)

    def largest(self) -> float:
        """Return the level from which on L is zero: the largest singular value of -f'(0)."""
        problem = self.problem(1.0)
        slope = -self.loss.gradient(problem.y, np.zeros(self.z.size), np.ones(self.z.size))
        polar: float = problem.regularizer.norm.polar(problem.design.scores(slope))
        return polar

    def error(self, result: Result) -> float:
        """Return twice the mean loss of what was fitted to other entries."""
        if not self.z.size:
            return 0.0
        held = result.low_rank
        at = np.zeros(self.z.size)
        if held is not None:
            at = np.asarray(held.at(self.rows, self.cols))
        return 2.0 * self.loss.value(self.z, at, np.ones(self.z.size)) / self.z.size


def column_losses(asked: Any, data: Array, observed: NDArray[np.bool_]) -> list[str]:
    """Return the name of the loss of each column."""
    n_columns = data.shape[1]
    held = np.where(observed, data, 0.0)
    labels = ((held == 0.0) | (held == 1.0)).all(axis=0)
    names = [asked] * n_columns if isinstance(asked, str) else [str(name) for name in asked]
    if len(names) != n_columns:
        raise ValueError(f"loss has {len(names)} names, and X {n_columns} columns; give one each")
    if asked == "auto":
        return ["logistic" if label else "squared" for label in labels.tolist()]
    for column, name in enumerate(names):
        if name not in ("squared", "huber", "logistic"):
            raise ValueError(
                f"loss must be 'squared', 'huber', 'logistic' or 'auto', got {name!r}; others have "
                "no bound on their curvature, or no mean to fill in"
            )
        if name == "logistic" and not labels[column]:
            raise ValueError(
                f"loss 'logistic' is for columns of 0 and 1, and column {column} holds other "
                "numbers; use 'squared' there"
            )
    return names


def row_factor(loss: Loss, z: Array, factors: Array, level: float) -> Array:
    """Return argmin over a of  sum_j loss_j(z_j, a'b_j) + level/2 ||a||^2, by Newton steps."""
    ones = np.ones(z.size)
    a = np.zeros(factors.shape[1])

    def objective(a: Array) -> float:
        return loss.value(z, factors @ a, ones) + 0.5 * level * float(a @ a)

    for _ in range(50):
        at = factors @ a
        slope = factors.T @ loss.gradient(z, at, ones) + level * a
        curved = factors.T @ (loss.curvature(z, at, ones)[:, None] * factors)
        step = np.linalg.solve(curved + level * np.eye(a.size), slope)
        size, before = 1.0, objective(a)
        while size > 1e-9 and objective(a - size * step) > before - 0.1 * size * float(
            slope @ step
        ):
            size *= 0.5
        if size <= 1e-9:
            break
        a = a - size * step
        if np.abs(step).max() <= 1e-12 * max(1.0, float(np.abs(a).max())):
            break
    return a
