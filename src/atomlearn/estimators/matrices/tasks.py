"""Several outputs in one fit: multi-task regression and multinomial classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from atomlearn.core.interfaces import Array, Design, Loss
from atomlearn.core.interfaces.numbers import unmasked
from atomlearn.core.norms.names import named
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.estimators.checks import amount_of, free_columns, grouped, input_names, names_of
from atomlearn.estimators.targets import of_samples
from atomlearn.maps.feature_map import map_of
from atomlearn.matrices.norms.rows import over_tasks
from atomlearn.matrices.tasks import task_problem
from atomlearn.norms import as_norm


def is_of_tasks(y: Any) -> bool:
    """Return whether y holds several targets a sample."""
    shape = np.asarray(y).shape  # what is merely like an array may refuse np.shape
    return len(shape) == 2 and shape[1] > 1


def checked_tasks(y: Any, n_samples: int) -> Array:
    """Return y (n_samples, n_tasks) as finite float64."""
    Y: Array = check_array(unmasked("y", y), dtype=np.float64, input_name="y", ensure_min_samples=0)
    return of_samples(Y, n_samples)


def absorbable(offset: Any, loss: Loss, shape: tuple[int, ...]) -> Array:
    """Return an offset (n_samples, n_tasks) that may be taken off the targets instead."""
    if not loss.translates:
        raise ValueError(
            f"an offset for several targets at once needs a loss of differences y - z such as "
            f"'squared', and loss is {loss.name!r}; fit one target at a time"
        )
    numbers = np.asarray(offset, dtype=np.float64)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(
            f"offset must hold finite numbers of shape {shape}, one a target; got {numbers.shape}"
        )
    return numbers


def fit_tasks(
    estimator: Any,
    design: Design,
    Y: Array,
    weight: Array,
    loss: Loss,
    settings: Settings,
    classes: NDArray[Any] | None = None,
    offset: Array | None = None,
) -> None:
    """Fit W (n_features, n_tasks) and one intercept a task; set coef_ = W' and the rest.

    ``classes`` : the labels, where the tasks are the classes of one target; ``offset`` :
    (n_samples, n_tasks), added to the predictions.
    """
    if np.any(estimator.relax) or estimator.adaptive:
        raise ValueError(
            "relax and adaptive are for one target at a time; fit several by themselves, or use "
            "multi_class='ovr'"
        )
    norm = named(as_norm(grouped(estimator.norm, design)), input_names(estimator))
    norm = over_tasks(norm, design.shape[1], Y.shape[1])
    regularizer = Regularizer(norm, estimator.form, amount_of(estimator))
    has_intercept = bool(estimator.fit_intercept)
    task = task_problem(design, Y, weight, loss, regularizer, has_intercept, offset)
    free = free_columns(estimator, design)
    if free is not None:
        task = task.freed(free)
    starts = estimator._starts(1, task.problem.design.shape[1], classes)
    [result] = estimator._solve([task.problem], starts, settings)
    if classes is not None:
        estimator.classes_ = classes
    W = task.weights(result)
    estimator.coef_ = np.ascontiguousarray(W.T.astype(design.dtype))
    estimator.intercept_ = task.intercepts(W)
    estimator.feature_map_ = map_of(design)
    estimator.selected_ = np.flatnonzero(W.any(axis=1))
    estimator.selected_names_ = names_of(estimator, estimator.feature_map_, estimator.selected_)
    estimator._report([result])
