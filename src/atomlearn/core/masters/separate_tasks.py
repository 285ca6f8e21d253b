"""Proximal Newton steps for one task after the other, where the tasks are separate problems.

With several targets, a task is one of them. Samples are pairs of a row and a task, row after row.
Columns are pairs of a feature and a task.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from atomlearn._kernels import KeptHessian, newton_qp
from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses.around import loss_of_rows


def newton_by_task(
    columns: Any,
    target: Array,
    sample_weight: Array,
    loss: Loss,
    weights: Array,
    shift: Array,
    **keywords: Any,
) -> tuple[Array, Array, int]:
    """Return the result of the kernel ``newton_qp``, task by task if the tasks are independent.

    Tasks are independent if the objective is a sum over them. Then each task has a small Hessian of
    its own. A level is one penalty, a row of the argument ``terms``. Levels that are not solved for
    every task are left out.

    The arguments are those of ``newton_qp``: ``target`` and ``sample_weight`` (n_samples,), the
    loss, and the warm start. The warm start is ``weights`` (m,) and ``shift`` (r,), the
    coefficients of the free (unpenalized) columns. With several tasks ``columns`` is a tuple. It
    has the features (n_features, n_rows), the feature of each column (m,), the task of each column
    (m,), and the number of tasks. Otherwise ``columns`` is a matrix (n_samples, m).

    The result is the weights (n_solved, m), the coefficients of the free columns (n_solved, r), and
    the number of steps. n_solved is the number of levels that are solved for every task.
    """
    task_of_free = _tasks_of_free_columns(columns, loss, keywords)
    if task_of_free is None:
        return newton_qp(columns, target, sample_weight, loss, weights, shift, **keywords)
    features, feature_of_column, task_of_column, n_tasks = columns
    terms = keywords["terms"]
    points = np.zeros((len(terms), weights.size))
    shifts = np.zeros((len(terms), shift.size))
    n_solved = len(terms)
    steps = 0
    until = time.monotonic() + keywords["seconds"]
    for task in range(n_tasks):
        # The samples, the columns and the free columns of this task.
        samples = slice(task, None, n_tasks)
        members = np.flatnonzero(task_of_column == task)
        free = np.flatnonzero(task_of_free == task)
        # The gap is shared equally, and the time limit holds for all tasks together. Each task
        # keeps its Hessian between calls.
        arguments_of_task = {
            "price": keywords["price"][members],
            "basis": keywords["basis"][free, samples],
            "gap": keywords["gap"] / n_tasks,
            "seconds": until - time.monotonic(),
            "kept": keywords["kept"].tasks.setdefault(task, KeptHessian()),
        }
        solutions, free_coefficients, n_steps = newton_qp(
            features[feature_of_column[members]].T,
            np.ascontiguousarray(target[samples]),
            np.ascontiguousarray(sample_weight[samples]),
            loss_of_rows(loss, samples),
            weights[members],
            shift[free],
            **keywords | arguments_of_task,
        )
        n_solved = min(n_solved, len(solutions))
        points[:n_solved, members] = solutions[:n_solved]
        shifts[:n_solved, free] = free_coefficients[:n_solved]
        steps = max(steps, n_steps)
    return points[:n_solved], shifts[:n_solved], steps


def _tasks_of_free_columns(columns: Any, loss: Loss, keywords: dict[str, Any]) -> Array | None:
    """Return the task of each free column, (r,); None unless the objective is a sum over the tasks.

    The objective is a sum under three conditions: the columns are pairs of a feature and a task
    (then ``columns`` is a tuple, which ends with the number of tasks); the loss couples no samples;
    no penalty and no free column joins two tasks. ``keywords`` are keyword arguments of
    ``newton_qp``.
    """
    are_pairs = isinstance(columns, tuple) and loss.coupled == 1
    if not are_pairs or keywords["groups"] is not None or keywords["metric"] is not None:
        return None
    terms = keywords["terms"]
    basis = keywords["basis"]
    n_tasks = columns[3]
    # Which tasks each free column is nonzero in, (r, n_tasks).
    has_task = basis.reshape(len(basis), basis.shape[1] // n_tasks, n_tasks).any(axis=1)
    # The squared form and the constrained form (columns 1 and 3 of ``terms``) join all tasks.
    joins_by_penalty = terms[:, 1].any() or np.isfinite(terms[:, 3]).any()
    joins_by_column = (has_task.sum(axis=1) > 1).any()
    return None if joins_by_penalty or joins_by_column else has_task.argmax(axis=1)
