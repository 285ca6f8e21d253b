"""What feature generation selected: over groups that may overlap, and re-fitted without bias."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Design, Lift, Loss
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.l2 import L2
from atomlearn.core.norms.sets import membership_of
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.steps import run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.estimators.targets import checked_labels, checked_target, encoded
from atomlearn.estimators.units import block_of
from atomlearn.lifting.latent import LatentNorm
from atomlearn.lifting.latent_ksupport import LatentKSupport
from atomlearn.papers.feature_generation import FeatureGeneration, GenerationState

#: Relative gap to which the weights of selected features are re-fitted.
REFITTED = 1e-8


def norm_over(batch: int, groups: Any, n_columns: int) -> tuple[KSupport | LatentKSupport, int]:
    """Return the norm that selects columns or groups, and how many there are to select from.

    Lists that share a feature, and norms of sets such as ``Trees(...)``, make it a latent one.
    """
    if groups is None:
        return KSupport(min(batch, max(n_columns, 1))), n_columns
    if isinstance(groups, LatentNorm):
        latent = LatentKSupport(batch, groups)
        count = latent.membership(n_columns).n_sets
        return LatentKSupport(min(batch, count), groups), count
    if _overlap(groups):
        sets = membership_of(groups, n_columns, "groups")
        return LatentKSupport(min(batch, sets.n_sets), groups), sets.n_sets
    count = KSupport(1, groups).partition(n_columns).n_groups
    return KSupport(min(batch, max(count, 1)), groups), count


def _overlap(groups: Any) -> bool:
    """Return whether these are lists of columns, two of which share one."""
    if not isinstance(groups, list | tuple):
        return False
    lists = [one for one in groups if np.ndim(one) == 1]
    members = np.concatenate(lists) if lists and len(lists) == len(groups) else np.zeros(0)
    distinct = sum(np.unique(one).size for one in lists)
    return members.dtype.kind in "iu" and np.unique(members).size < distinct


def target_of(
    estimator: Any, y: Any, weight: Array, loss: Loss
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the target as the loss takes it, and the labels of a classification.

    Of more than two classes the target is (n_samples, n_classes), with ones at the classes.
    """
    if loss.task == "survival":
        return loss.check_target(y), None
    if loss.task != "classification":
        return loss.check_target(checked_target(estimator, y, weight.size)), None
    classes, codes = encoded(estimator, checked_labels(estimator, y, weight.size), weight)
    if classes.size > 2:
        return np.eye(classes.size)[codes], classes
    return np.where(codes == 1, 1.0, -1.0), classes


@dataclass(frozen=True, slots=True)
class Selected:
    """columns, rounds : what was found, and when, in this order; scaled, scaling : d of columns."""

    columns: Columns
    rounds: Columns
    scaled: Columns
    scaling: Array

    @classmethod
    def of(cls, problem: Problem, state: GenerationState, lift: Lift | None) -> Selected:
        """Return what a state selected; of groups that overlap, each feature once.

        Its d is the largest of those of its groups.
        """
        norm: Any = problem.regularizer.norm
        columns, rounds = state.selection()
        scaled, scaling = state.scaling(norm, problem.design.shape[1])
        if lift is None:
            return cls(columns, rounds, scaled, scaling)
        features, first = np.unique(_features(lift, columns), return_index=True)
        order = np.argsort(first, kind="stable")
        columns, rounds = features[order], rounds[first[order]]
        own, place = np.unique(_features(lift, scaled), return_inverse=True)
        largest = np.zeros(own.size)
        np.maximum.at(largest, place.ravel(), scaling)
        return cls(columns, rounds, own, largest)


def _features(lift: Lift, lifted: Columns) -> Columns:
    at = lift.expansion.touched(lifted)
    return at.features[at.rows]


def debiased(problem: Problem, result: Result, factor: float) -> Result:
    """Return min over the columns in use of 1/2 ||w||^2 + factor f(X w + b), [T] section 5.3.

    What selected them, the norm, plays no part any more: a ridge is all that holds the weights.
    """
    columns = result.columns
    alone = replace(
        problem,
        design=problem.design.gather(columns),
        weight=factor * problem.weight,
        regularizer=Regularizer(L2(), "squared", 1.0),
    )
    found = run(alone, ColumnGeneration(tolerance=REFITTED), RelativeGap(REFITTED) | Iterations(50))
    return replace(found, columns=columns[found.columns], n_features=problem.design.shape[1])


def generation_of(estimator: Any) -> FeatureGeneration:
    """Return the solver with the stops that were asked for.

    It starts as the paper does where the paper's stops are asked for; else at the best constant.
    """
    stops = estimator.outer_tol is not None or estimator.max_blocks is not None
    return FeatureGeneration(
        outer_tolerance=estimator.outer_tol, max_blocks=estimator.max_blocks, from_zero=stops
    )


def norm_of(estimator: Any, design: Design) -> tuple[KSupport | LatentKSupport, int]:
    """Return the norm that selects, and how many features (or groups) there are to select from."""
    groups = estimator.feature_map_.column_groups(estimator.groups)
    batch = block_of(estimator.n_wanted_) if estimator.batch == "auto" else estimator.batch
    return norm_over(int(batch), groups, design.shape[1])
