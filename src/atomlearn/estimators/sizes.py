"""How many features to select: the fewest within a standard error of the best, by held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.core.data.parts import RowSubset
from atomlearn.core.interfaces import Array, Design
from atomlearn.core.problem.result import Status
from atomlearn.estimators.dependent_rows import folds
from atomlearn.losses import as_loss

#: Sizes that are tried; beyond half the rows nothing is told apart.
SIZES = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)
FOLDS = 5
#: After so many sizes in a row that are worse than the best by two standard errors, no more.
HOPELESS = 2


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """sizes : that were tried; scores : (n_sizes, n_folds), larger is better; chosen : of them;
    interrupted : whether Ctrl-C ended the trials."""

    sizes: tuple[int, ...]
    scores: Array
    chosen: int
    interrupted: bool = False


def choice_of_size(
    estimator: Any, design: Design, y: Any, weight: Any, offset: Any, groups: Any, order: Any
) -> SizeChoice | None:
    """Return the size that held-out rows choose, where one is asked for; else None.

    It is the smallest whose mean held-out score is within one standard error of the best.

    The score is minus the mean loss (the share that is right, where there are several outputs).
    After Ctrl-C it is one of the sizes that were tried until then.
    """
    if estimator.n_features != "auto":
        return None
    y = np.asarray(y)
    classes = as_loss(estimator.loss).task != "regression"
    least = int(np.unique(y, return_counts=True)[1].min()) if classes else y.shape[0]
    n_folds = min(FOLDS, least)
    if n_folds < 2:
        raise ValueError(
            "n_features='auto' needs two rows of each class at least, to hold some out; give a "
            "number of features"
        )
    splits = folds(y.shape[0], n_folds, 0, y if classes else None, groups, order)
    most = max(1, min(design.shape[1], y.shape[0] // 2))
    sizes: list[int] = []
    scores: list[list[float]] = []
    worse = 0
    for size in [s for s in SIZES if s <= most]:
        try:
            scores.append([_score(estimator, size, design, y, weight, offset, *s) for s in splits])
        except KeyboardInterrupt:
            if not sizes:
                raise
            return replace(_chosen(sizes, scores), interrupted=True)
        sizes.append(size)
        means, errors = _summary(np.array(scores))
        best = int(np.argmax(means))
        worse = worse + 1 if means[-1] < means[best] - 2 * errors[best] else 0
        if worse >= HOPELESS:
            break
    return _chosen(sizes, scores)


def _chosen(sizes: list[int], scores: list[list[float]]) -> SizeChoice:
    means, errors = _summary(np.array(scores))
    best = int(np.argmax(means))
    first = int(np.argmax(means >= means[best] - errors[best]))
    return SizeChoice(tuple(sizes), np.array(scores), sizes[first])


def _summary(scores: Array) -> tuple[Array, Array]:
    return scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])


def _score(
    estimator: Any,
    size: int,
    design: Design,
    y: NDArray[Any],
    weight: Any,
    offset: Any,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> float:
    """Return the score at the test rows of a fit of this size to the training rows."""
    import warnings

    model = clone(estimator).set_params(n_features=size, verbose=0)
    model.set_params(observers=None)
    weights = None if weight is None else np.asarray(weight)
    added = None if offset is None else np.asarray(offset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            RowSubset(design, train),
            y[train],
            sample_weight=None if weights is None else weights[train],
            offset=None if added is None else added[train],
        )
    if model.results_[0].status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    held_out = RowSubset(design, test)
    decisions = model._linear(held_out).astype(np.float64)
    if decisions.shape[1] > 1:
        return float(np.mean(model.predict(held_out) == y[test]))
    loss, z = as_loss(estimator.loss), decisions[:, 0] + (0.0 if added is None else added[test])
    labels = y[test]
    if loss.task == "classification":
        labels = np.where(labels == model.classes_[1], 1.0, -1.0)
    ones = np.ones(test.size) if weights is None else weights[test]
    return -float(loss.mean_loss(loss.check_target(labels), z, ones))
