"""Proximal Newton steps for one task after the other, where the tasks are separate problems."""

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
    **named: Any,
) -> tuple[Array, Array, int]:
    """Return the result of ``newton_qp``, task by task if the objective is a sum over the tasks.

    Then each task has a small Hessian of its own. Levels that some task did not reach are left out.
    The arguments are those of ``newton_qp``.
    """
    owners = _tasks_of_free_columns(columns, loss, named)
    if owners is None:
        return newton_qp(columns, target, sample_weight, loss, weights, shift, **named)
    features, places, tasks, n_tasks = columns
    terms = named["terms"]
    points = np.zeros((len(terms), weights.size))
    shifts = np.zeros((len(terms), shift.size))
    solved = len(terms)
    steps = 0
    until = time.monotonic() + named["seconds"]
    for task in range(n_tasks):
        samples = slice(task, None, n_tasks)
        members = np.flatnonzero(tasks == task)
        free = np.flatnonzero(owners == task)
        own = {
            "price": named["price"][members],
            "basis": named["basis"][free, samples],
            "gap": named["gap"] / n_tasks,
            "seconds": until - time.monotonic(),
            "kept": named["kept"].tasks.setdefault(task, KeptHessian()),
        }
        found, found_shifts, more = newton_qp(
            features[places[members]].T,
            np.ascontiguousarray(target[samples]),
            np.ascontiguousarray(sample_weight[samples]),
            loss_of_rows(loss, samples),
            weights[members],
            shift[free],
            **named | own,
        )
        solved = min(solved, len(found))
        points[:solved, members] = found[:solved]
        shifts[:solved, free] = found_shifts[:solved]
        steps = max(steps, more)
    return points[:solved], shifts[:solved], steps


def _tasks_of_free_columns(columns: Any, loss: Loss, named: dict[str, Any]) -> Array | None:
    """Return the task of each free column, or None unless the objective is a sum over the tasks.

    It is a sum if the columns are pairs of a feature and a task, the loss couples no samples, and
    no term of the penalty and no free column joins two tasks. ``named`` are arguments of
    ``newton_qp``.
    """
    are_pairs = isinstance(columns, tuple) and loss.coupled == 1
    if not are_pairs or named["groups"] is not None or named["metric"] is not None:
        return None
    terms = named["terms"]
    basis = named["basis"]
    n_tasks = columns[3]
    used = basis.reshape(len(basis), basis.shape[1] // n_tasks, n_tasks).any(axis=1)
    joins = terms[:, 1].any() or np.isfinite(terms[:, 3]).any() or (used.sum(axis=1) > 1).any()
    return None if joins else used.argmax(axis=1)
