"""How many features to select: the fewest within a standard error of the best, by held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from atomlearn.core.data.parts import RowSubset
from atomlearn.core.interfaces import Array, Design, Rows
from atomlearn.core.problem.result import Status
from atomlearn.estimators.dependent_rows import folds
from atomlearn.losses import as_loss

#: Sizes that are tried; beyond half the rows nothing is told apart.
SIZES = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)


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

    The score is that of the estimator: the share of labels that are right, R^2, the concordance.
    After Ctrl-C it is one of the sizes that were tried until then.
    """
    if estimator.n_features != "auto":
        return None
    y = np.asarray(y)
    classes = as_loss(estimator.loss).task != "regression"
    least = int(np.unique(y, return_counts=True)[1].min()) if classes else y.shape[0]
    n_folds = min(5, least)
    if n_folds < 2:
        raise ValueError(
            "n_features='auto' needs two rows of each class at least, to hold some out; give a "
            "number of features"
        )
    splits = folds(y.shape[0], n_folds, 0, y if classes else None, groups, order)
    most = max(1, min(design.shape[1], y.shape[0] // 2))
    weight, added = (None if of is None else np.asarray(of) for of in (weight, offset))

    def score(size: int, train: Rows, test: Rows) -> float:
        """Return the score at the test rows of a fit of this size to the training rows."""
        model = clone(estimator).set_params(n_features=size, verbose=0, observers=None)
        mine = {"sample_weight": weight, "offset": added}
        own = {name: None if of is None else of[train] for name, of in mine.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(RowSubset(design, train), y[train], **own)
        if model.results_[0].status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        weights, offsets = (None if of is None else of[test] for of in (weight, added))
        return float(model.score(RowSubset(design, test), y[test], weights, offsets))

    sizes: list[int] = []
    scores: list[list[float]] = []
    worse = 0
    for size in [s for s in SIZES if s <= most]:
        try:
            scores.append([score(size, train, test) for train, test in splits])
        except KeyboardInterrupt:
            if not sizes:
                raise
            return replace(_chosen(sizes, scores), interrupted=True)
        sizes.append(size)
        means, errors = _summary(np.array(scores))
        best = int(np.argmax(means))
        worse = worse + 1 if means[-1] < means[best] - 2 * errors[best] else 0
        if worse >= 2:  # hopeless: twice in a row worse than the best by two standard errors
            break
    return _chosen(sizes, scores)


def _chosen(sizes: list[int], scores: list[list[float]]) -> SizeChoice:
    means, errors = _summary(np.array(scores))
    best = int(np.argmax(means))
    first = int(np.argmax(means >= means[best] - errors[best]))
    return SizeChoice(tuple(sizes), np.array(scores), sizes[first])


def _summary(scores: Array) -> tuple[Array, Array]:
    return scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
