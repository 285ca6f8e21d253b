"""Several targets of the same samples, or several classes at once, with an intercept for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    Array,
    Design,
    FreeColumns,
    Loss,
    Problem,
    Regularizer,
    centered,
    task_intercepts,
    with_free,
)
from atomlearn.matrices.designs.tasks import Tasks


@dataclass(frozen=True, slots=True)
class TaskProblem:
    """min over W, b of sum_it s_i loss(Y_it, x_i'W_t + b_t) + R(W), as a problem over vec(W).

    problem : over centered columns where X can be centered, which leaves the optimal W as it is
    and moves b; means : (n_features,) what was taken off; offsets : (n_tasks,) what was taken off
    the targets.
    """

    problem: Problem
    means: Array
    offsets: Array

    def freed(self, columns: NDArray[np.int64]) -> TaskProblem:
        """Return the problem with these columns of X free of any penalty, for all tasks."""
        n_tasks = self.offsets.size
        entries = columns[:, None] * n_tasks + np.arange(n_tasks)
        return replace(self, problem=with_free(self.problem, entries.reshape(-1)))

    def intercepts(self, W: Array) -> Array:
        """Return the optimal intercepts at W for the columns as they were given: one pass."""
        b = self.offsets - self.means @ W
        if self.problem.loss.free is not None:
            own = task_intercepts(self.problem, self.problem.design.predict(W.reshape(-1)))
            b = b + own if own.size else b
        return np.asarray(b)


def task_problem(
    design: Design,
    Y: Array,
    weight: Array,
    loss: Loss,
    regularizer: Regularizer,
    fit_intercept: bool,
    offset: Array | None = None,
) -> TaskProblem:
    """Return the problem of Y (n_samples, n_tasks), weight (n_samples,), checked.

    ``offset`` (n_samples, n_tasks) is added to the predictions, of a loss of classes.

    The intercepts need no variables. Squared loss: at the optimum the weighted mean of the
    residuals of each task is zero, so centered columns and targets have none left, and the
    objectives are equal. Others: the loss is minimized over them at every point
    (``losses.FreeColumns``), over centered columns, which only moves b.
    """
    n_tasks = Y.shape[1]
    means = np.zeros(design.shape[1])
    offsets = np.zeros(n_tasks)
    if fit_intercept:
        shifted = centered(design, weight)
        if shifted is not None:
            design = shifted
            means = shifted.means
        if shifted is not None and loss.is_quadratic:
            offsets = weight @ Y / weight.sum()
            Y = Y - offsets
        else:
            loss = FreeColumns.of_tasks(loss, Y.shape[0], n_tasks)
    problem = Problem.build(
        Tasks(design, n_tasks),
        np.ascontiguousarray(Y).reshape(-1),
        loss,
        regularizer,
        sample_weight=np.repeat(weight, n_tasks),
        offset=None if offset is None else np.ascontiguousarray(offset).reshape(-1),
    )
    return TaskProblem(problem, means, offsets)


def several_targets(
    X: Any, y: Any, sample_weight: Any, intercept: bool
) -> tuple[object, object, object]:
    """Return targets y (n_samples, n_tasks) of the same samples as one: ``Tasks`` and vec(y)."""
    if getattr(X, "matrix_shape", None) is not None:
        if X.shape[0] != y.shape[0] * y.shape[1]:
            raise ValueError(
                f"y has shape {y.shape} and the design {type(X).__name__} other samples; pass y as "
                "a vector with one target for each sample of the design"
            )
        return X, np.asarray(y).reshape(-1), sample_weight
    if intercept:
        raise ValueError(
            "intercept=True fits one number for all targets of a 2-d y, which is seldom meant; "
            "center y (and X) for the squared loss, or add a column of ones to X"
        )
    if getattr(sample_weight, "shape", ()) == y.shape[:1]:
        sample_weight = np.repeat(np.asarray(sample_weight), y.shape[1])
    return Tasks(X, y.shape[1]), np.asarray(y).reshape(-1), sample_weight
