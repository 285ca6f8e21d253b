"""The claims of fitted models: problems, data and points in the units of the columns of X."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import check_weight
from atomlearn.core import (
    Affine,
    Array,
    Columns,
    Problem,
    Result,
    Scaled,
    as_design,
    bare_loss,
    free_columns,
)
from atomlearn.estimators import matrices
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import checked_design, input_names
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.subsets import SubsetModel
from atomlearn.estimators.targets import Checked, joint_loss
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.verification.bounds import claim_digest
from atomlearn.verification.claims import ClaimedPoint, Data, DesignColumns, NoClaim, claim_of


@dataclass(frozen=True, slots=True)
class Fit:
    """One problem of a fitted model, its solution and its data.

    Attributes
    ----------
    problem : Problem
        The problem that was solved.
    result : Result
        Its solution.
    y : ndarray
        The targets: numbers, -1 and +1, codes of classes, or survival records.
    weight : (n_rows,) float64
        The sample weights.
    offset : (n_rows, n_outputs) float64 or None
        Numbers added to the predictions.
    fit_intercept : bool
        Whether an intercept was fitted.
    positive : int or None
        For one class against the rest: the position of the class among the labels.
    among : array of int or None
        The columns of X that the problem is restricted to; None: all.
    unwraps : bool
        Whether the claim has the columns before they were centered and scaled. Then ``bounds``
        standardizes them itself.
    """

    problem: Problem
    result: Result
    y: NDArray[Any]
    weight: Array
    offset: Array | None
    fit_intercept: bool
    positive: int | None = None
    among: Columns | None = None
    unwraps: bool = True

    def claim(self) -> tuple[dict[str, Any], Data]:
        """Return the claim of this fit and its data; raise NoClaim if there cannot be a claim.

        The claim is what ``claim_of`` returns: the problem, its solution, a dual point and hashes.
        """
        n_outputs = len(np.atleast_1d(self.y[0])) if self.y.dtype.names is None else 1
        design = self.problem.design
        if bare_loss(self.problem.loss).name == "multinomial":
            n_outputs = int(bare_loss(self.problem.loss).coupled)
        if isinstance(design, Tasks):
            design = design.base
        means = np.zeros(design.shape[1])
        scales = np.ones(design.shape[1])
        # Undo centering and scaling: column = (original - means) / scales, with the total ``means``
        # and ``scales`` of all such layers. An intercept absorbs the means; without an intercept
        # (or a loss that ignores shifts) only layers without means can be undone.
        is_shift_invariant = self.fit_intercept or bare_loss(self.problem.loss).name == "cox"
        while (
            isinstance(design, Affine)
            and self.unwraps
            and (is_shift_invariant or not design.means.any())
        ):
            means = design.means + design.scales * means
            scales = design.scales * scales
            design = design.design
        standardize = bool((scales != 1.0).any())
        X = DesignColumns(design)
        X = X if self.among is None else X.taken(self.among)
        data = Data(X, self.y, self.weight, self.offset)
        if self.among is not None:
            means = means[self.among]
            scales = scales[self.among]
        point = self._point(n_outputs, means, scales)
        # The solver's dual point is rescaled from the weights of its problem to those of the data,
        # which count once for each output.
        dual = self.result.slopes
        if dual is not None:
            dual = dual * (self.weight.sum() * n_outputs / self.problem.weight.sum())
        entry = claim_of(
            self.problem,
            data,
            point,
            fit_intercept=self.fit_intercept,
            standardize=standardize,
            dual=dual,
        )
        entry |= {"positive": self.positive}
        entry |= {"among": None if self.among is None else self.among.tolist()}
        return entry | {"sha256": claim_digest(entry)}, data

    def _point(self, n_outputs: int, means: Array, scales: Array) -> ClaimedPoint:
        """Return the coefficients in the units of X, and the group of each coefficient.

        There are ``n_outputs`` coefficients for each column. The fit used the columns
        (X - means) / scales, where ``means`` and ``scales`` are (n_columns,).
        """
        result = self.result
        if result.matrix_parts is not None and any(
            part.factored is not None for part in result.matrix_parts
        ):
            raise NoClaim(f"{self.problem.regularizer.norm!r} is a norm of matrices")
        norm: Any = self.problem.regularizer.norm
        while isinstance(norm, Scaled):
            norm = norm.norm
        columns = result.columns
        weights = result.weights
        sets: list[int] = []
        n_coefficients = (
            self.problem.design.shape[1] if self.among is None else scales.size * n_outputs
        )
        # A lift writes overlapping groups as disjoint groups of copies of the coefficients. Each
        # copy is listed with its column and its group.
        lift = norm.lift(n_coefficients)
        if lift is not None:
            if result.lifted is None:
                raise NoClaim(f"{norm!r} was solved over atoms, whose groups are not kept")
            positions, weights = result.lifted
            columns = lift.expansion.matrix.indices[positions].astype(np.int64)
            sets = lift.norm.partition(lift.expansion.shape[1]).labels[positions].tolist()
        elif has_groups(norm):
            sets = norm.partition(n_coefficients).labels[columns].tolist()
        features = columns // n_outputs
        # w'(x - means) / scales + b: the intercept for columns that are not centered.
        b = np.zeros(n_outputs) + np.asarray(result.intercept)
        b -= np.bincount(
            columns % n_outputs, weights / scales[features] * means[features], n_outputs
        )
        return ClaimedPoint(columns, weights / scales[features], b, sets)


def has_groups(norm: Any) -> bool:
    """Return whether the coefficients of a norm belong to groups."""
    return getattr(norm, "groups", None) is not None


def fit_of_result(
    result: Result, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
) -> Fit:
    """Return the fit of ``result = solve(X, y, ...)``; X and y must be the same again.

    ``sample_weight`` and ``offset`` must be those of the fit, too. Raise NoClaim if the result does
    not have its problem.
    """
    problem = result.problem
    if problem is None:
        raise NoClaim(
            "this result does not hold its problem (it is of a path or a pickle): verify the "
            "result of solve(X, y, ...), a fitted estimator or a model file"
        )
    loss = bare_loss(problem.loss)
    n_outputs = np.size(result.intercept)
    free = free_columns(problem.loss)
    has_intercept = problem.fit_intercept or n_outputs > 1 or (free is not None and free.intercept)
    target = loss.check_target(y if loss.task == "survival" else np.ravel(y))
    if n_outputs > 1:
        target = target.reshape(-1, n_outputs)
    design = as_design(X)
    weight = check_weight(sample_weight, design.shape[0])
    # The design before centering: with several outputs, one column for each feature and output.
    uncentered = Tasks(design, n_outputs) if n_outputs > 1 else design
    offsets = None if offset is None else np.reshape(offset, (design.shape[0], n_outputs))
    return Fit(
        replace(problem, design=uncentered),
        result,
        target,
        weight,
        offsets,
        has_intercept,
        unwraps=False,
    )


def fits_of_estimator(
    model: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
) -> tuple[list[Fit], Checked]:
    """Return one fit for each problem of a fitted estimator, and its checked data.

    X, y, ``sample_weight`` and ``offset`` must be those of the fit. Raise NoClaim if the model
    has no certificate of one convex problem.
    """
    if isinstance(model, SubsetModel):
        raise NoClaim(
            "a best subset is proved by a tree of bounds, which the model does not carry; "
            "`atomlearn verify --full` selects again and compares"
        )
    if not isinstance(model, AtomicModel) or not model.results_:
        raise NoClaim(f"{type(model).__name__} has no certificate of one convex problem")
    if np.any(vars(model).get("relax_", model.relax)):
        raise NoClaim("relax= moves the coefficients away from the optimum that is proved")
    results = model.results_
    model = copy.copy(model)
    if isinstance(model, FeatureGenerator):
        return _of_generator(model, results, X, y, sample_weight, offset)
    data = model._checked(X, y, sample_weight, offset)
    weight = data.weight
    if model.class_weight is None:  # the scale of weights does not matter, but their hash does
        weight = check_weight(sample_weight, weight.size)
    loss = joint_loss(model.multi_class, data)
    penalty = model._regularized_by()
    has_intercept = bool(model.fit_intercept)
    # Without a joint loss, each output (or class against the rest) has a problem of its own.
    if loss is None:
        problems = model._problems(data, *penalty)
        positive = _positions(data)
        offsets = [
            None if data.offset is None else data.offset[:, k : k + 1] for k in range(len(problems))
        ]
        fit_arguments = zip(problems, results, data.targets, offsets, positive, strict=True)
        return [
            Fit(problem, result, target, weight, offset, has_intercept, position)
            for problem, result, target, offset, position in fit_arguments
        ], data
    # A joint loss has one problem for all outputs.
    task = matrices.joint_problem(model, data, loss, *penalty)
    target = data.codes if loss.name == "multinomial" else np.asarray(data.y, dtype=np.float64)
    result = results[0]
    W = result.coef.reshape(data.design.shape[1], -1)
    # The intercepts are those of the columns that the fit centered.
    result = replace(result, intercept=task.intercepts(W) + task.means @ W)
    return [Fit(task.problem, result, target, weight, data.offset, has_intercept)], data


def _positions(data: Checked) -> Sequence[int | None]:
    """Return the position of the positive class among the labels, for each output of ``data``.

    It is None for targets that are numbers.
    """
    if data.classes is None:
        return [None] * len(data.targets)
    return [1] if data.classes.size == 2 else range(data.classes.size)


def _of_generator(
    model: Any, results: Sequence[Result], X: Any, y: Any, sample_weight: Any, offset: Any
) -> tuple[list[Fit], Checked]:
    """Return the fits of feature generation at the chosen C, and the checked data.

    The first one is over all columns; a second one is over the selected columns only.
    ``results`` are those of ``model``. X, y, ``sample_weight`` and ``offset`` must be those of
    the fit.
    """
    if model.debias is not None:
        raise NoClaim("debias= fits again without a certificate over all columns")
    design = checked_design(model, X, reset=False)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the fit provided them
        selections = model.selections(design, y, sample_weight, offset, model._settings())
    # The strength C multiplies the loss, that is the sample weights.
    data = selections.data
    problem = replace(selections.problem, weight=model.C_ * selections.problem.weight)
    # One output has a vector of targets; several classes or targets have codes or a matrix.
    n_outputs = len(data.targets)
    loss = bare_loss(problem.loss)
    target = data.targets[0]
    if n_outputs > 1:
        target = data.codes if loss.name == "multinomial" else np.column_stack(data.targets)
    has_intercept = bool(model.fit_intercept) and loss.task != "survival"
    positive = _positions(data)[0] if n_outputs == 1 else None
    fit = Fit(problem, results[0], target, data.weight, data.offset, has_intercept, positive)
    return [fit, *_over_selected(fit, model, n_outputs)], data


def _over_selected(fit: Fit, model: Any, n_outputs: int) -> list[Fit]:
    """Return a list with the fit over the selected columns only.

    ``fit`` is the one over all columns, and ``model`` the estimator; there are ``n_outputs``
    coefficients for each column. The list is empty if groups overlap, or if all columns are
    selected.
    """
    problem = fit.problem
    result = fit.result
    if problem.regularizer.norm.lift(problem.design.shape[1]) is not None:
        return []
    # The selected columns, the coefficients that they have, and the norm of these.
    among = np.union1d(model.moments_[0], result.columns // n_outputs).astype(np.int64)
    entries = (among[:, None] * n_outputs + np.arange(n_outputs)).reshape(-1)
    norm = problem.regularizer.norm.restrict(entries, problem.design.shape[1])
    if norm is None or among.size == problem.design.shape[1] // n_outputs:
        return []
    # Coefficients are numbered among the selected ones.
    free = problem.free
    restricted = replace(
        problem,
        regularizer=problem.regularizer.of(norm),
        free=None if free is None else np.searchsorted(entries, free),
    )
    positions = np.searchsorted(entries, result.columns)
    return [
        replace(fit, problem=restricted, result=replace(result, columns=positions), among=among)
    ]


def proof_of_estimator(
    model: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
) -> dict[str, object]:
    """Return the proof for a model file: the claims of a fitted estimator on its data.

    X, y, ``sample_weight`` and ``offset`` must be those of the fit. The proof also has the
    names of the columns and the labels of classes. If nothing can be claimed, it has the
    reason, "why", and no claims.
    """
    names = input_names(model) if model.features == "linear" else None
    try:
        fits, data = fits_of_estimator(model, X, y, sample_weight, offset)
        claims = [fit.claim()[0] for fit in fits]
    except ValueError as error:  # a NoClaim, or a result that ``bounds`` cannot prove
        return {"why": str(error), "claims": []}
    classes = None if data.classes is None else data.classes.tolist()
    return {"names": names, "classes": classes, "claims": claims}
