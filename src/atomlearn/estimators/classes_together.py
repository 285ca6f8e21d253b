"""Feature generation for several classes: one selection that all of them share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Design, Loss
from atomlearn.core.losses import FreeColumns
from atomlearn.core.losses.probabilities import for_classes
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.names import named, named_columns
from atomlearn.core.norms.sets import Membership
from atomlearn.core.problem.checks import check_free
from atomlearn.core.problem.free import task_intercepts
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.estimators.checks import input_names
from atomlearn.estimators.selection import Selected, norm_of
from atomlearn.estimators.targets import offset_of
from atomlearn.estimators.units import too_many
from atomlearn.lifting.latent_ksupport import LatentKSupport
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.matrices.norms.rows import over_tasks


@dataclass(frozen=True, slots=True)
class Point:
    """What was found: features, (n_outputs, m) weights of them, (n_outputs,) intercepts."""

    columns: Columns
    weights: Array
    intercepts: Array


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a fit: the classes, where there are more than two, else one (``count`` 1).

    The variables of several are W (n_features, count) read row after row: entry j * count + t is
    the weight of feature j for class t, and a feature is selected with its whole row.
    """

    count: int

    def selected(self, found: Selected) -> Selected:
        """Return the features of selected entries, each once, in the order of selection."""
        columns, first = np.unique(found.columns // self.count, return_index=True)
        order = np.argsort(first, kind="stable")
        scaled, first_scaled = np.unique(found.scaled // self.count, return_index=True)
        rounds = found.rounds[first[order]]
        return Selected(columns[order], rounds, scaled, found.scaling[first_scaled])

    def point(self, problem: Problem, result: Result) -> Point:
        """Return the weights by feature, and the intercepts."""
        columns, places = np.unique(result.columns // self.count, return_inverse=True)
        weights = np.zeros((self.count, columns.size))
        weights[result.columns % self.count, places.ravel()] = result.weights
        intercepts = np.full(self.count, float(result.intercept))
        if self.count > 1 and problem.loss.free is not None:
            linear = problem.design.gather(result.columns).dot(result.weights)
            own = task_intercepts(problem, linear)
            intercepts = own if own.size else intercepts
        return Point(columns, weights, intercepts)


def problem_of(
    estimator: Any,
    design: Design,
    target: NDArray[Any],
    loss: Loss,
    weight: Array,
    offset: Any,
) -> tuple[Problem, int, Outputs]:
    """Return the problem, how many features (or groups) it selects from, and what its outputs are.

    A target (n_samples, n_classes) is that of several classes, with ones at the classes.
    """
    norm, n_units = norm_of(estimator, design)
    names = input_names(estimator)
    free = named_columns(estimator.unpenalized, names, type(estimator).__name__)
    if target.ndim > 1:
        n_outputs, shared = target.shape[1], named(norm, names)
        problem = _of_classes(design, target, loss, shared, weight, estimator.fit_intercept)
        if offset is not None:
            problem = problem.with_offset(offset_of(offset, target.shape).reshape(-1))
        if free is not None:
            free = check_free(free, design.shape[1])
            n_units -= free.size if estimator.groups is None else 0
            problem = problem.freed((free[:, None] * n_outputs + np.arange(n_outputs)).reshape(-1))
        return problem, n_units, Outputs(n_outputs)
    problem = Problem.build(
        design,
        target,
        loss,
        Regularizer(norm, "squared", 1.0),
        # A baseline hazard takes the place of the intercept.
        fit_intercept=estimator.fit_intercept and loss.task != "survival",
        sample_weight=weight,
        offset=offset,
        unpenalized=free,
    )
    if problem.free is not None and estimator.groups is None:
        n_units -= problem.free.size
    return problem, n_units, Outputs(1)


def _of_classes(
    design: Design, target: Array, loss: Loss, norm: Any, weight: Array, fit_intercept: bool
) -> Problem:
    """Return the problem of W (n_features, n_classes), intercepts minimized over in the loss.

    The loss is the one of all classes together where there is such a one (softmax), else the sum
    of those of each class against the rest.
    """
    n_classes = target.shape[1]
    if too_many(design):
        raise ValueError(
            f"several classes share a list of features, and {design.shape[1]} products are too "
            "many to be listed; use sklearn.multiclass.OneVsRestClassifier around this estimator"
        )
    together = for_classes(loss, n_classes)
    if together is None:
        target = np.where(target > 0, 1.0, -1.0)
    inner = loss if together is None else together
    return Problem.build(
        Tasks(design, n_classes),
        np.ascontiguousarray(target).reshape(-1),
        FreeColumns.of_tasks(inner, len(target), n_classes) if fit_intercept else inner,
        Regularizer(_of_rows(norm, design.shape[1], n_classes), "squared", 1.0),
        sample_weight=np.repeat(weight, n_classes),
    )


def _of_rows(norm: Any, n_features: int, n_classes: int) -> Any:
    """Return the norm whose groups hold the coefficients of their features for all classes."""
    if isinstance(norm, LatentKSupport):
        sets = norm.membership(n_features)
        members = (sets.members[:, None] * n_classes + np.arange(n_classes)).reshape(-1)
        whole: Membership = replace(sets, members=members, starts=sets.starts * n_classes)
        return LatentKSupport(norm.k, whole)
    by_feature = norm if norm.groups is not None else KSupport(norm.k, np.arange(n_features))
    return over_tasks(by_feature, n_features, n_classes)
