"""Convex problem, selected terms and coefficients of the estimators of feature generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    L2,
    Array,
    ColumnGeneration,
    Columns,
    Design,
    FreeColumns,
    KSupport,
    Lift,
    Membership,
    Norm,
    Problem,
    Regularizer,
    Result,
    Settings,
    check_loss,
    free_columns,
    free_part,
)
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names, table_groups, unpenalized_inputs
from atomlearn.estimators.coefficients import coefficient_rows, single_row
from atomlearn.estimators.probabilities import for_classes
from atomlearn.estimators.selects_columns import SelectsColumns
from atomlearn.estimators.targets import Checked
from atomlearn.estimators.units import Units, batch_of, too_many
from atomlearn.lifting.latent import LatentKSupport, LatentNorm
from atomlearn.maps.feature_map import FeatureMap
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.matrices.norms.rows import over_tasks
from atomlearn.matrices.tasks import task_intercepts
from atomlearn.papers.feature_generation import FeatureGeneration, GenerationState, WeightedBlocks

# --- the problem ----------------------------------------------------------------------------


def norm_of(estimator: Any, design: Design) -> tuple[Any, int]:
    """Return the k-support norm of an estimator, and the number of features (or groups).

    design : the expanded columns. k is the batch size: the number of features (or groups) that one
    pass adds. The norm is the latent k-support norm (a minimum over ways to split the coefficients
    between groups) if groups overlap, or if ``estimator.groups`` is a latent norm such as
    ``Trees(...)``.
    """
    groups = table_groups(estimator) if estimator.groups is None else estimator.groups
    groups = estimator.feature_map_.column_groups(groups)
    batch = batch_of(estimator.n_wanted_) if estimator.batch == "auto" else int(estimator.batch)
    n_columns = design.shape[1]
    sets = None
    if isinstance(groups, LatentNorm):
        sets = groups.membership(n_columns)
    elif _overlap(groups):
        sets = Membership.of(groups, n_columns, "groups")
    if sets is not None:
        return LatentKSupport(min(batch, sets.n_sets), groups), sets.n_sets
    # Columns in no group are groups of their own.
    count = n_columns if groups is None else KSupport(1, groups).partition(n_columns).n_groups
    return KSupport(min(batch, max(count, 1)), groups), count


def _overlap(groups: Any) -> bool:
    """Return whether ``groups`` is a list of index lists of which two share a column."""
    if not isinstance(groups, list | tuple):
        return False
    lists = [group for group in groups if np.ndim(group) == 1]
    all_members = np.concatenate(lists) if lists and len(lists) == len(groups) else np.zeros(0)
    # Within one list a column counts once; a column of two lists counts twice.
    n_distinct = sum(np.unique(group).size for group in lists)
    return all_members.dtype.kind in "iu" and np.unique(all_members).size < n_distinct


def problem_of(estimator: Any, data: Checked) -> tuple[Problem, int]:
    """Return the optimization problem of an estimator, and its number of candidate features.

    data : checked columns, targets and weights. Candidates are the penalized features, or groups.
    With several classes the coefficients are a matrix W (n_features, n_classes), and a feature is
    selected with its whole row of W. The loss is then the multinomial (softmax) version of the loss
    if there is one, else the sum of the one-vs-rest losses.
    """
    design = data.design
    loss = data.loss
    weight = data.weight
    y = data.targets[0]
    n_outputs = len(data.targets)
    names = input_names(estimator)
    norm, n_units = norm_of(estimator, design)
    norm = norm if names is None else norm.with_names(names)
    # Survival models have no intercept: it is part of the baseline hazard.
    intercept = estimator.fit_intercept and loss.task != "survival"
    # Unpenalized features are always in the model, so they are no candidates.
    free = unpenalized_inputs(estimator, design.shape[1])
    if free is not None and estimator.groups is None:
        units = table_groups(estimator)
        n_units -= free.size if units is None else np.unique(units[free]).size
    # Row-major order: column j * n_outputs + c of the joint design has coefficient (j, c) of W.
    if n_outputs > 1:
        norm = _row_norm(norm, design, n_outputs)
        y = np.column_stack(data.targets).reshape(-1)
        joint_loss = for_classes(loss, n_outputs)
        if joint_loss is not None:  # its targets are 0 and 1 instead of -1 and 1
            y = np.maximum(y, 0.0)
            loss = joint_loss
        if intercept:  # one for each class, minimized inside the loss
            loss = FreeColumns.of_tasks(loss, weight.size, n_outputs)
            intercept = False
        if free is not None:
            free = (free[:, None] * n_outputs + np.arange(n_outputs)).reshape(-1)
        design = Tasks(design, n_outputs)
        weight = np.repeat(weight, n_outputs)
    problem = Problem.build(
        design,
        y,
        loss,
        Regularizer(norm, "squared", 1.0),
        fit_intercept=intercept,
        sample_weight=weight,
        offset=None if data.offset is None else data.offset.reshape(-1),
        unpenalized=free,
    )
    return problem, n_units


def _row_norm(norm: Any, design: Design, n_classes: int) -> Any:
    """Return the norm for W (n_features, n_classes) in row-major order, with rows as groups.

    norm : a norm for one class. design : the columns of X. Each group of features becomes the group
    of all coefficients of these features.
    """
    n_features = design.shape[1]
    if too_many(design):
        raise ValueError(
            "several classes need a list of all features, and there are too many products "
            f"({n_features}) for a list; use sklearn.multiclass.OneVsRestClassifier around this "
            "estimator, or --positive of the command line"
        )
    if isinstance(norm, LatentKSupport):
        sets = norm.membership(n_features)
        members = (sets.members[:, None] * n_classes + np.arange(n_classes)).reshape(-1)
        sets_of_coefficients = replace(sets, members=members, starts=sets.starts * n_classes)
        return LatentKSupport(norm.k, sets_of_coefficients)
    by_feature = norm if norm.groups is not None else KSupport(norm.k, np.arange(n_features))
    return over_tasks(by_feature, n_features, n_classes)


# --- its solution ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selected:
    """The terms of the feature map that feature generation selected.

    Attributes
    ----------
    terms : (n_selected,) int64
        Numbers of the selected terms, in the order of selection.
    rounds : (n_selected,) int64
        For each of these, the pass over the data that added it.
    scaled : (m,) int64
        Numbers of the terms whose scaling factor d is positive, in increasing order.
    scaling : (m,) float64
        The factors d of these terms, between 0 and 1: the objective penalizes w_j^2 / d_j.
    """

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
        """Return the selected terms and their scaling factors from the final state of a solver.

        Each term is listed once, although it may have a coefficient for each class, several
        columns, and, if groups overlap, a copy in each of its groups. The scaling factor of a term
        (d_j in the penalty w_j^2 / d_j) is the largest factor among these coefficients.

        Parameters
        ----------
        problem : Problem
            The problem that was solved; its columns are the n_terms * count coefficients, or
            their copies.
        state : GenerationState
            The final state of the solver.
        lift : Lift or None
            The map from copies of columns to columns, if groups overlap.
        map : FeatureMap
            The map from columns to terms.
        count : int
            Number of outputs (classes), which is the number of coefficients of each column.
        """

        def terms_of(columns: Columns) -> Columns:
            """Return the term of the feature map for each column of the solver's problem."""
            if lift is not None:
                touched = lift.expansion.touched(columns)
                columns = touched.features[touched.rows]
            return map.term_of(columns // count)

        norm: Any = problem.regularizer.norm
        # Terms in the order in which their first column was selected.
        columns, rounds = state.selection()
        terms, first_positions = np.unique(terms_of(columns), return_index=True)
        order = np.argsort(first_positions, kind="stable")
        # The largest scaling factor of each term.
        columns, scaling = state.scaling(norm, problem.design.shape[1])
        scaled, term_positions = np.unique(terms_of(columns), return_inverse=True)
        largest = np.zeros(scaled.size)
        np.maximum.at(largest, term_positions.ravel(), scaling)
        return cls(terms[order], rounds[first_positions[order]], scaled, largest)


class ScaledModel(SelectsColumns, AtomicModel):
    """Base class of estimators that select standardized features jointly for all classes."""

    def _candidates(self) -> list[Norm]:
        """Return no norm: those of these estimators do not depend on the units of columns."""
        return []

    def _take_scaled(
        self, problem: Problem, result: Result, units: Units, classes: NDArray[Any] | None
    ) -> None:
        """Set ``coef_``, ``intercept_`` and ``classes_``, rescaled to the columns of X.

        problem, result : the solved problem and its solution. ``units`` are the offsets and scales
        with which the columns were standardized for the fit, and ``classes`` the class labels, None
        for a regression.
        """
        # Coefficient c of feature j is column j * count + c of the problem, for ``count`` classes.
        count = 1 if classes is None or len(classes) == 2 else len(classes)
        columns, positions = np.unique(result.columns // count, return_inverse=True)
        weights = np.zeros((count, columns.size))
        weights[result.columns % count, positions.ravel()] = result.weights
        intercepts = np.zeros(count) + result.intercept
        # Several classes have their intercepts inside the loss, so they are computed again here.
        if count > 1 and free_columns(problem.loss) is not None:
            linear = problem.design.gather(result.columns).predict(result.weights)
            own_intercepts = task_intercepts(problem, linear)
            intercepts = own_intercepts if own_intercepts.size else intercepts
        self.moments_ = (columns, *units.of(columns))
        self.scaled_by_ = units.words
        weights, intercepts = units.to_data(columns, weights, intercepts)
        entries = [(columns, row) for row in weights]
        coef = coefficient_rows(entries, units.design.shape[1], self.feature_map_.implicit)
        if classes is None:
            self.coef_ = single_row(coef)
            self.intercept_ = float(intercepts[0])
        else:
            self.coef_ = coef
            self.intercept_ = intercepts
            self.classes_ = classes


def debiased(problem: Problem, result: Result, factor: float, gap: float) -> Result:
    """Return the fit of the selected columns with only a ridge penalty in place of the norm.

    This is the debiasing of [T] (Tan, Tsang, Wang 2014), section 5.3. It minimizes 1/2 ||w||^2 +
    factor * f(X w + b) over the columns of ``result``, to the relative duality gap ``gap``; f is
    the loss of ``problem``.
    """
    free = problem.free
    columns = result.columns if free is None else np.setdiff1d(result.columns, free)
    selected_block = problem.design.gather(columns)
    restricted = replace(
        problem,
        design=selected_block,
        weight=factor * problem.weight,
        regularizer=Regularizer(L2(), "squared", 1.0),
        free=columns[:0],
    )
    refit = Settings(gap, 50, ColumnGeneration(tol=gap)).run(restricted)
    linear = selected_block.gather(refit.columns).predict(refit.weights)
    # Back to the columns of the whole problem, with the coefficients of unpenalized columns.
    refit = replace(refit, columns=columns[refit.columns], n_features=problem.design.shape[1])
    free_coefficients = free_part(problem, linear)
    if free_coefficients is None:
        return refit
    coefficients, intercept = free_coefficients
    refit = replace(refit, intercept=intercept)
    return refit if free is None else refit.with_free(free, coefficients[: free.size], 0.0)


@dataclass(slots=True)
class Selections:
    """The selections of features from one set of rows, each of them computed once.

    Attributes
    ----------
    data : Checked
        The rows.
    units : Units
        Their features in the units of the fit.
    problem, lifted : Problem
        The problem at C = 1, and the one that the solver sees if groups overlap.
    lift : Lift or None
        The map between the two.
    wanted : int
        The requested number of features.
    takes_all : bool
        Whether these are all features.
    generate : callable
        Runs feature generation on a problem and returns its result.
    ends : tuple of float
        Relative duality gaps at which a fit ends: over all features, and over the selected ones.
    proves_all : bool
        Whether the gap of a fit is computed over all features.
    runs : dict
        The selection at each C.
    starts : dict
        For each C of a selection, the fits of its coefficients: C of the fit -> their blocks.
    """

    data: Checked
    units: Units
    problem: Problem
    lifted: Problem
    lift: Lift | None
    wanted: int
    takes_all: bool
    generate: Callable[[Problem], Result]
    ends: tuple[float, float | None]
    proves_all: bool
    runs: dict[float, Result] = field(default_factory=dict)
    starts: dict[float, dict[float, WeightedBlocks]] = field(default_factory=dict)

    def first(self, rising: Sequence[float]) -> tuple[float, Result]:
        """Return the first C that selects the requested number of features, and its selection.

        rising : increasing values of C. If none selects enough, it is the last C; after a run that
        does not converge, larger C are not tried. The result has the passes and seconds of all
        runs.
        """
        runs = list[Result]()
        for C in rising:
            if C not in self.runs:
                self.runs[C] = selection = self.generate(self._problem_at(C))
                selection.state.block = None  # it would keep a copy of the selected columns
            runs.append(self.runs[C])
            if runs[-1].state.units >= self.wanted or not runs[-1].converged:
                break
        passes = sum(run.passes for run in runs)
        seconds = sum(run.seconds for run in runs)
        return C, replace(runs[-1], passes=passes, seconds=seconds)

    def fitted(self, C: float, strength: float, selection: Result) -> Result:
        """Return the fit of the features that were selected at ``C``, at another C, ``strength``.

        selection : the result of the selection at ``C``. The fit starts at the known fit of the
        same features whose C is nearest to ``strength``, on a logarithmic scale.
        """
        fits = self.starts.setdefault(C, {C: selection.state.weighted()})
        if strength == C:
            return selection
        nearest = min(fits, key=lambda known_C: abs(np.log(known_C / strength)))
        solver = FeatureGeneration(
            blocks=fits[nearest], tol=self.ends[1], proves_all=self.proves_all
        )
        result = weighed(self._problem_at(strength), selection, solver, self.ends[0])
        fits[strength] = result.state.weighted()
        return result

    def _problem_at(self, C: float) -> Problem:
        """Return the problem of the solver at this C; raise ValueError if C is too large."""
        lifted = self.lifted
        weight = C * lifted.weight
        check_loss(lifted.loss, lifted.y, weight, lifted.fit_intercept)
        return replace(lifted, weight=weight)


def weighed(problem: Problem, selection: Result, solver: FeatureGeneration, gap: float) -> Result:
    """Return the fit of the coefficients of the selected features, at the C of ``problem``.

    ``solver`` has the blocks of features that ``selection`` found one after another, and the
    weights at which the fit starts. ``gap`` is the relative duality gap at which it ends. The
    result also counts the passes and seconds of the selection.
    """
    result = Settings(gap, solver=solver).run(problem)
    result.state.found = selection.state.found
    # If neither run converged, the reason is that of the selection.
    ended = result.converged or selection.converged
    return replace(
        result,
        status=result.status if ended else selection.status,
        history=selection.history,
        iterations=selection.iterations,
        passes=selection.passes + result.passes,
        seconds=selection.seconds + result.seconds,
    )
