"""One selection on some rows: standardize, fit, come back to the units of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from atomlearn.cli.errors import CommandError
from atomlearn.cli.plan import Plan
from atomlearn.cli.targets import Target
from atomlearn.cli.watching import Watch, gap_on_selected
from atomlearn.core.data.parts import RowSubset
from atomlearn.core.data.standardized import Standardized, moments_of, scales_of_inputs
from atomlearn.core.interfaces import Design, Norm
from atomlearn.core.losses import as_loss
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result, Status
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.feature_generation import FeatureGeneration, scaling_vector
from atomlearn.core.solvers.run import run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.maps.additive import Additive
from atomlearn.maps.pairs.polynomial import Polynomial

Array = NDArray[np.float64]
Columns = NDArray[np.int64]
Rows = NDArray[np.int64]

_FOLDS = 5
_N_ALPHAS = 30
_MAX_ITER = 1000
#: Moments of up to this many products are listed, 32 MB each.
_LISTED = 2**22


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model of all outputs over the selected columns.

    columns : (m,) union over the outputs, increasing; coefficients : (n_outputs, m) in data
    units; standardized : the same per standard deviation; intercepts : (n_outputs,) in data
    units; scaling : (m,) d of the norm or None; found : (m,) pass that found each column;
    results : one an output, in the units of the fit; settings : how, as text and numbers;
    scaled_by : what was done to the features while selecting;
    gaps_on_selected : for feature generation, one an output: the proved relative gap of the
    coefficients with the features as selected; chosen : norm and alpha that a refit should use;
    additive : the design, where columns are those of curves.
    """

    columns: Columns
    coefficients: Array
    standardized: Array
    intercepts: Array
    scaling: Array | None
    found: Columns
    results: Sequence[Result]
    settings: dict[str, Any]
    n_rows: int
    gaps_on_selected: tuple[float | None, ...]
    chosen: tuple[Norm, float] | None = None
    scaled_by: str = "as they are"
    additive: Additive | None = None

    @property
    def units(self) -> Columns:
        """What was selected: columns, or of an additive model the inputs that have a curve."""
        return self.columns if self.additive is None else self.additive.input_of(self.inputs_at)

    @property
    def inputs_at(self) -> Columns:
        """The first selected column of each input of an additive model."""
        assert self.additive is not None
        inputs = self.additive.input_of(self.columns)
        return self.columns[np.unique(inputs, return_index=True)[1]]

    @property
    def interrupted(self) -> bool:
        """True where Ctrl-C ended a fit."""
        return any(result.status is Status.INTERRUPTED for result in self.results)

    def decisions(self, design: Design, rows: Rows) -> Array:
        """Return X_S w + b for these rows of the unscaled design, shape (n_rows, n_outputs)."""
        block = RowSubset(design, rows).gather(self.columns)
        return np.stack([block.dot(weights) for weights in self.coefficients], axis=1) + (
            self.intercepts
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a way to fit gives back, in the units of the fit."""

    results: Sequence[Result]
    norm: Norm
    settings: dict[str, Any]
    gaps_on_selected: tuple[float | None, ...]
    chosen: tuple[Norm, float] | None = None


def fit(
    design: Design, target: Target, rows: Rows, plan: Plan, watch: Watch, center: bool
) -> Fitted:
    """Select and fit on these rows.

    An intercept that is not penalized makes centering change nothing but the rounding, so sparse
    data is only scaled (``center`` False) and stays sparse.
    """
    units = _units(design, rows, plan, center)
    watch.found.clear()
    how = _generate if plan.generates else _cross_validate if plan.cross_validates else _estimate
    with warnings.catch_warnings():
        # Every status is told in our own words.
        warnings.simplefilter("ignore", ConvergenceWarning)
        outcome = how(units.design, target, target.values[rows], plan, watch)
    results = outcome.results
    columns = np.unique(np.concatenate([result.columns for result in results]))
    weights = np.zeros((len(results), columns.size))
    for row, result in zip(weights, results, strict=True):
        row[np.searchsorted(columns, result.columns)] = result.weights
    means, scales, deviations = units.of(columns)
    coefficients = weights / scales
    return Fitted(
        columns=columns,
        coefficients=coefficients,
        standardized=coefficients * deviations,
        intercepts=np.array([r.intercept for r in results]) - coefficients @ means,
        scaling=_scaling(outcome.norm, weights),
        found=_found(watch, columns, len(results)),
        results=results,
        settings=outcome.settings,
        n_rows=int(rows.size),
        gaps_on_selected=outcome.gaps_on_selected,
        chosen=outcome.chosen,
        scaled_by=units.words,
        additive=units.design if isinstance(units.design, Additive) else None,
    )


@dataclass(frozen=True, slots=True)
class _Units:
    """What is fitted to, and the way back: means, scales and deviations in units of the data."""

    design: Design
    of: Callable[[Columns], tuple[Array, Array, Array]]
    words: str


def _units(design: Design, rows: Rows, plan: Plan, center: bool) -> _Units:
    part = design
    if rows.size < design.shape[0]:
        part = design.with_rows(rows) if isinstance(design, Additive) else RowSubset(design, rows)

    def as_given(columns: Columns) -> tuple[Array, Array, Array]:
        deviations = moments_of(part, columns)[1]
        return np.zeros(columns.size), np.ones(columns.size), deviations

    if isinstance(part, Additive):
        scaled = ", of variance 1 each" if plan.standardize else ""
        return _Units(part, as_given, f"a curve for each column ({plan.additive}{scaled})")
    if not plan.standardize:
        return _Units(part, as_given, "as they are")
    if isinstance(design, Polynomial) and design.shape[1] > _LISTED:
        return _scaled_inputs(design, part, rows)
    standard = Standardized(part, center=center)

    def divided(columns: Columns) -> tuple[Array, Array, Array]:
        scales = standard.scales[columns]
        return standard.means[columns], scales, scales

    return _Units(standard, divided, "divided by their standard deviation")


def _scaled_inputs(design: Polynomial, part: Design, rows: Rows) -> _Units:
    """Return products too many to be listed, of columns that are scaled instead."""
    chosen = design if rows.size == design.shape[0] else design.with_rows(rows)
    scales, name = scales_of_inputs(chosen.base)

    def multiplied(columns: Columns) -> tuple[Array, Array, Array]:
        i, j = chosen.pairs(columns)
        factors = scales[i] * np.where(j < 0, 1.0, scales[j])
        return np.zeros(columns.size), factors, moments_of(part, columns)[1]

    words = f"products of columns divided by their {name}"
    return _Units(chosen.scaled(1.0 / scales), multiplied, words)


def _generate(
    design: Design, target: Target, y: NDArray[Any], plan: Plan, watch: Watch
) -> _Outcome:
    """Select by feature generation, as FeatureGenerator does; many classes one after the other."""
    groups, n_units = None, design.shape[1]
    if isinstance(design, Additive):
        groups, n_units = design.groups, design.n_groups
    wanted = min(plan.n_features or 1, n_units)
    norm = KSupport(min(plan.block, wanted), groups)
    loss = as_loss(plan.loss_for(target.task))
    # Half the gap: what is reported is at most the gap asked for, rounding included.
    generation = FeatureGeneration(n_features=wanted, final_tolerance=0.5 * plan.gap)
    solver = watch.over(generation)
    results: list[Result] = []
    gaps: list[float | None] = []
    for values in _signs(target, y):
        problem = Problem.build(
            design,
            values,
            loss,
            Regularizer(norm, "squared", 1.0),
            fit_intercept=True,
            sample_weight=np.full(values.size, plan.C),
        )
        interrupted = any(result.status is Status.INTERRUPTED for result in results)
        steps = 0 if interrupted else _MAX_ITER
        result = run(problem, solver, RelativeGap(plan.gap) | Iterations(steps))
        if interrupted:
            result.status = Status.INTERRUPTED
        gaps.append(gap_on_selected(result.state))
        result.state = None
        results.append(result)
    settings = {
        "method": "feature generation",
        "n_features": plan.n_features,
        "batch": norm.k,
        "C": plan.C,
        "loss": loss.name,
    }
    return _Outcome(results, norm, settings, tuple(gaps))


def _signs(target: Target, y: NDArray[Any]) -> list[Array]:
    """Return y as the losses take it: numbers, or -1 and +1 for each output."""
    if target.classes is None:
        return [y.astype(np.float64)]
    codes = [1] if len(target.classes) == 2 else range(len(target.classes))
    return [np.where(y == code, 1.0, -1.0) for code in codes]


def _estimate(
    design: Design, target: Target, y: NDArray[Any], plan: Plan, watch: Watch
) -> _Outcome:
    """Fit one norm at one alpha."""
    assert plan.alpha is not None
    norm, loss = plan.norms[0], plan.loss_for(target.task)
    kind = AtomicRegressor if target.classes is None else AtomicClassifier
    estimator = kind(
        norm,
        plan.alpha,
        form=plan.form,
        loss=loss,
        tol=plan.gap,
        max_iter=_MAX_ITER,
        solver=watch.over(ColumnGeneration(tolerance=plan.gap)),
    ).fit(design, y)
    results = estimator.results_
    settings = _settings(norm, plan.alpha, plan, loss)
    return _Outcome(results, norm, settings, (None,) * len(results))


def _cross_validate(
    design: Design, target: Target, y: NDArray[Any], plan: Plan, watch: Watch
) -> _Outcome:
    """Choose alpha, and the norm of several, by the held-out loss; then fit to these rows."""
    loss, folds = plan.loss_for(target.task), _folds(target, y, plan.seed)
    kind = AtomicRegressorCV if target.classes is None else AtomicClassifierCV
    n_folds = folds.get_n_splits()
    watch.searches = len(plan.norms) * _N_ALPHAS * n_folds * len(target.outputs)
    watch.say(
        f"  cross-validation: {n_folds} folds, {_N_ALPHAS} alphas, {len(plan.norms)} norm"
        f"{'s' if len(plan.norms) > 1 else ''}"
    )
    estimator = kind(
        list(plan.norms),
        n_alphas=_N_ALPHAS,
        form=plan.form,
        loss=loss,
        tol=plan.gap,
        max_iter=_MAX_ITER,
        solver=watch.over(ColumnGeneration(tolerance=plan.gap)),
        cv=folds,
    ).fit(design, y)
    norm, alpha = estimator.norm_, estimator.alpha_
    settings = _settings(norm, alpha, plan, loss)
    settings["alpha_chosen_by"] = f"{n_folds}-fold cross-validation on {y.size} rows"
    unknown = (None,) * len(estimator.results_)
    return _Outcome(estimator.results_, norm, settings, unknown, (norm, alpha))


def _folds(target: Target, y: NDArray[Any], seed: int) -> Any:
    if target.classes is None:
        if y.size < 2:
            raise CommandError("cross-validation needs at least 2 rows; give --alpha instead")
        return KFold(min(_FOLDS, y.size), shuffle=True, random_state=seed)
    counts = np.bincount(y, minlength=len(target.classes))
    if counts.min() < 2:
        rare = target.classes[int(np.argmin(counts))]
        raise CommandError(
            f"class {rare!r} has {counts.min()} row to fit on, and cross-validation needs at "
            "least 2 of each class; give --alpha, or join classes with --positive"
        )
    return StratifiedKFold(min(_FOLDS, int(counts.min())), shuffle=True, random_state=seed)


def _settings(norm: Norm, alpha: float, plan: Plan, loss: str) -> dict[str, Any]:
    return {
        "method": "atomic norm",
        "norm": _shown(norm),
        "form": plan.form,
        "alpha": alpha,
        "loss": loss,
    }


def _shown(norm: Norm) -> str:
    return repr(norm).replace(", groups=None", "").replace(", weights=None", "")


def _scaling(norm: Norm, weights: Array) -> Array | None:
    """Return the d that the norm gives each column, for one output and the k-support norm."""
    if len(weights) > 1 or not isinstance(norm, KSupport) or not weights.size:
        return None
    if norm.groups is not None:
        return None
    return scaling_vector(weights[0], norm.k)


def _found(watch: Watch, columns: Columns, n_outputs: int) -> Columns:
    """Return the pass that first gave each column a weight, over all outputs."""
    first: dict[int, int] = {}
    for found in watch.found[-n_outputs:]:
        for column, step in found.items():
            first[column] = min(step, first.get(column, step))
    return np.array([first.get(column, 0) for column in columns.tolist()], dtype=np.int64)
