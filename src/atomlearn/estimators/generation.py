"""What feature generation solves: its norm, its problem, its selection, and how many to select."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import log_loss

from atomlearn.core.data.coefficients import coefficient_rows, single_row
from atomlearn.core.interfaces import Array, Columns, Design, Lift, Rows
from atomlearn.core.losses.probabilities import for_classes
from atomlearn.core.norms.names import named, named_columns
from atomlearn.core.norms.partition import membership_of
from atomlearn.core.problem.checks import check_free
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import FeatureMap, RowSubset, Tasks
from atomlearn.estimators.checks import input_names
from atomlearn.estimators.dependent_rows import folds
from atomlearn.estimators.targets import Checked, offset_of
from atomlearn.estimators.units import Units, batch_of, too_many
from atomlearn.lifting.latent import LatentNorm
from atomlearn.losses import FreeColumns, as_loss
from atomlearn.matrices.norms.rows import over_tasks
from atomlearn.norms import L2, KSupport, LatentKSupport
from atomlearn.papers.feature_generation import GenerationState
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result, Status
from atomlearn.solvers import ColumnGeneration, run

#: Sizes that are tried; beyond half the rows nothing is told apart.
SIZES = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)
#: C where nothing is said, and the values that are tried, of so many features where their number
#: is chosen afterwards.
USUAL, STRENGTHS, MANY = 10.0, (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 50


# --- the problem ----------------------------------------------------------------------------


def norm_of(estimator: Any, design: Design) -> tuple[Any, int]:
    """Return the norm that selects, and how many features (or groups) there are to select from.

    Lists that share a feature, and norms of sets such as ``Trees(...)``, make it a latent one.
    """
    groups = estimator.feature_map_.column_groups(estimator.groups)
    batch = batch_of(estimator.n_wanted_) if estimator.batch == "auto" else int(estimator.batch)
    n_columns = design.shape[1]
    sets = None
    if isinstance(groups, LatentNorm):
        sets = groups.membership(n_columns)
    elif _overlap(groups):
        sets = membership_of(groups, n_columns, "groups")
    if sets is not None:
        return LatentKSupport(min(batch, sets.n_sets), groups), sets.n_sets
    count = n_columns if groups is None else KSupport(1, groups).partition(n_columns).n_groups
    return KSupport(min(batch, max(count, 1)), groups), count


def _overlap(groups: Any) -> bool:
    """Return whether these are lists of columns, two of which share one."""
    if not isinstance(groups, list | tuple):
        return False
    lists = [one for one in groups if np.ndim(one) == 1]
    members = np.concatenate(lists) if lists and len(lists) == len(groups) else np.zeros(0)
    distinct = sum(np.unique(one).size for one in lists)
    return members.dtype.kind in "iu" and np.unique(members).size < distinct


def problem_of(estimator: Any, data: Checked, offset: Any) -> tuple[Problem, int]:
    """Return the problem, and how many features (or groups) it selects from.

    Of several classes the variables are W (n_features, n_classes) read row after row, and a feature
    is selected with its whole row. The loss is the one of all classes together where there is such
    a one (softmax), else the sum of those of each class against the rest.
    """
    design, loss, weight, y = data.design, data.loss, data.weight, data.targets[0]
    n_outputs, names = len(data.targets), input_names(estimator)
    norm, n_units = norm_of(estimator, design)
    norm = named(norm, names)
    # A baseline hazard takes the place of the intercept.
    intercept = estimator.fit_intercept and loss.task != "survival"
    free = named_columns(estimator.unpenalized, names, type(estimator).__name__)
    if free is not None:
        free = check_free(free, design.shape[1])
        n_units -= free.size if estimator.groups is None else 0
    if offset is not None:
        offset = offset_of(offset, (weight.size, n_outputs)).reshape(-1)
    if n_outputs > 1:
        norm = _of_rows(norm, design, n_outputs)
        y, together = np.column_stack(data.targets).reshape(-1), for_classes(loss, n_outputs)
        if together is not None:
            y, loss = np.maximum(y, 0.0), together
        if intercept:  # one a class, minimized over in the loss
            loss, intercept = FreeColumns.of_tasks(loss, weight.size, n_outputs), False
        if free is not None:
            free = (free[:, None] * n_outputs + np.arange(n_outputs)).reshape(-1)
        design, weight = Tasks(design, n_outputs), np.repeat(weight, n_outputs)
    problem = Problem.build(
        design,
        y,
        loss,
        Regularizer(norm, "squared", 1.0),
        fit_intercept=intercept,
        sample_weight=weight,
        offset=offset,
        unpenalized=free,
    )
    return problem, n_units


def _of_rows(norm: Any, design: Design, n_classes: int) -> Any:
    """Return the norm whose groups hold the coefficients of their features for all classes."""
    n_features = design.shape[1]
    if too_many(design):
        raise ValueError(
            f"several classes share a list of features, and {n_features} products are too "
            "many to be listed; use sklearn.multiclass.OneVsRestClassifier around this estimator, "
            "or --positive of the command line"
        )
    if isinstance(norm, LatentKSupport):
        sets = norm.membership(n_features)
        members = (sets.members[:, None] * n_classes + np.arange(n_classes)).reshape(-1)
        whole = replace(sets, members=members, starts=sets.starts * n_classes)
        return LatentKSupport(norm.k, whole)
    by_feature = norm if norm.groups is not None else KSupport(norm.k, np.arange(n_features))
    return over_tasks(by_feature, n_features, n_classes)


# --- its solution ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selected:
    """terms, rounds : what was found, and when, in this order; scaled, scaling : d of terms."""

    terms: Columns
    rounds: Columns
    scaled: Columns
    scaling: Array

    @classmethod
    def of(
        cls,
        problem: Problem,
        state: GenerationState,
        lift: Lift | None,
        map: FeatureMap,
        count: int,
    ) -> Selected:
        """Return what a state selected, each term of the map once; ``count`` : outputs.

        The d of a term is the largest of those of its columns, classes and groups.
        """

        def terms_of(columns: Columns) -> Columns:
            if lift is not None:
                at = lift.expansion.touched(columns)
                columns = at.features[at.rows]
            return map.term_of(columns // count)

        norm: Any = problem.regularizer.norm
        columns, rounds = state.selection()
        terms, first = np.unique(terms_of(columns), return_index=True)
        order = np.argsort(first, kind="stable")
        columns, scaling = state.scaling(norm, problem.design.shape[1])
        scaled, place = np.unique(terms_of(columns), return_inverse=True)
        largest = np.zeros(scaled.size)
        np.maximum.at(largest, place.ravel(), scaling)
        return cls(terms[order], rounds[first[order]], scaled, largest)


def take(
    estimator: Any, problem: Problem, result: Result, units: Units, classes: NDArray[Any] | None
) -> None:
    """Set the coefficients of an estimator of one output, or of all classes, in units of the data.

    ``units`` : those of the columns while selecting.
    """
    count = 1 if classes is None or len(classes) == 2 else len(classes)
    columns, places = np.unique(result.columns // count, return_inverse=True)
    weights = np.zeros((count, columns.size))
    weights[result.columns % count, places.ravel()] = result.weights
    intercepts = np.full(count, float(result.intercept))
    if count > 1 and problem.loss.free is not None:
        linear = problem.design.gather(result.columns).dot(result.weights)
        own = problem.task_intercepts(linear)
        intercepts = own if own.size else intercepts
    means, scales = units.of(columns)
    estimator.moments_, estimator.scaled_by_ = (columns, means, scales), units.words
    weights = weights / scales
    entries, n_columns = [(columns, row) for row in weights], units.design.shape[1]
    coef = coefficient_rows(entries, n_columns, result.dtype, estimator.feature_map_.implicit)
    estimator.coef_, estimator.intercept_ = coef, intercepts - weights @ means
    if classes is not None:
        estimator.classes_ = classes
    else:
        estimator.coef_, estimator.intercept_ = single_row(coef), float(estimator.intercept_[0])


def debiased(problem: Problem, result: Result, factor: float, gap: float) -> Result:
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
    found = run(alone, ColumnGeneration(tolerance=gap), RelativeGap(gap) | Iterations(50))
    return replace(found, columns=columns[found.columns], n_features=problem.design.shape[1])


# --- what held-out rows choose --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """Values of a parameter that were tried, and which of them was chosen.

    scores : (n_values, n_folds), larger is better; interrupted : whether Ctrl-C ended the trials.
    """

    values: tuple[float, ...]
    scores: Array
    chosen: Any
    interrupted: bool


class Trials:
    """Fits of an estimator to the training rows of ``most`` folds, scored at the others.

    The score is minus the log loss where there are probabilities, else that of the estimator: the
    share of labels that are right, R^2, the concordance. ``given`` : y, sample_weight, offset,
    groups and order, as ``fit`` takes them.
    """

    def __init__(self, estimator: Any, design: Design, given: Sequence[Any], most: int = 5) -> None:
        self.estimator, self.design = estimator, design
        y, self.weight, self.offset, groups, order = given
        self.y = np.asarray(y)
        loss = as_loss(estimator.loss)
        classes = loss.task != "regression"
        rarest = int(np.unique(self.y, return_counts=True)[1].min())
        n_folds = min(most, rarest if classes else self.y.size)
        if n_folds < 2:
            raise ValueError(
                "'auto' needs two rows of each class at least, to hold some out; give a number of "
                "features, and C"
            )
        self.likely = loss.task == "classification" and loss.has_probabilities
        self.splits = folds(self.y.shape[0], n_folds, 0, self.y if classes else None, groups, order)

    def choose(self, name: str, values: Sequence[float], near: float, **others: Any) -> Choice:
        """Return the first value of a parameter that is about as good as the best.

        That is, whose mean score is within ``near`` standard errors of it. Trials end after two
        values in a row that are worse by two standard errors. After Ctrl-C it is one of those that
        were tried until then.
        """
        scores: list[list[float]] = []
        interrupted, worse = False, 0
        try:
            for value in values:
                tried = {**others, name: value}
                scores.append(self.score(tried))
                means, errors = _summary(scores)
                best = int(np.argmax(means))
                worse = worse + 1 if means[-1] < means[best] - 2 * errors[best] else 0
                if worse >= 2:
                    break
        except KeyboardInterrupt:
            if not scores:
                raise
            interrupted = True
        means, errors = _summary(scores)
        best = int(np.argmax(means))
        chosen = values[int(np.argmax(means >= means[best] - near * errors[best]))]
        return Choice(tuple(values[: len(scores)]), np.array(scores), chosen, interrupted)

    def score(self, tried: dict[str, Any]) -> list[float]:
        """Return the score of these parameters at the test rows of each fold."""
        return [self._score(tried, *split) for split in self.splits]

    def _score(self, tried: dict[str, Any], train: Rows, test: Rows) -> float:
        """Return the score at the test rows of a fit with these parameters to the others."""
        model = clone(self.estimator).set_params(**tried, verbose=0, observers=None)
        rows = self.weight, self.offset
        (weight, offset), (tested, moved) = (
            [None if values is None else np.asarray(values)[part] for values in rows]
            for part in (train, test)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(RowSubset(self.design, train), self.y[train], weight, offset)
        if model.results_[0].status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        seen = RowSubset(self.design, test)
        if not self.likely:
            return float(model.score(seen, self.y[test], tested, moved))
        told = model.predict_proba(seen, moved)
        return -float(log_loss(self.y[test], told, sample_weight=tested, labels=model.classes_))


def choices(estimator: Any, design: Design, given: Sequence[Any]) -> tuple[Any, Any]:
    """Return the choices of C and of the number of features; None for what is a number."""
    size, strength = estimator.n_features, estimator.C
    strength = "auto" if strength is None and size == "auto" else strength
    trials = Trials(estimator, design, given) if "auto" in (size, strength) else None
    of_C = of_size = None
    sizes = [s for s in SIZES if s <= max(1, min(design.shape[1], design.shape[0] // 2))]
    if trials and strength == "auto":
        many = min(sizes[-1], MANY) if size == "auto" else size
        of_C = trials.choose("C", STRENGTHS, 1.0, n_features=many)
        strength = of_C.chosen
    if trials and size == "auto":
        # The fewest within a whole error lose a hundredth or two of the area under the curve.
        of_size = trials.choose("n_features", sizes, 0.25, C=strength)
    return of_C, of_size


def _summary(scores: list[list[float]]) -> tuple[Array, Array]:
    """Return the mean score of each value, and its standard error."""
    each = np.array(scores)
    return each.mean(axis=1), each.std(axis=1, ddof=1) / np.sqrt(each.shape[1])
