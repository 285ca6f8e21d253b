"""One selection on some rows: standardize, fit an estimator, come back to the units of the data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from atomlearn.cli.generating import Data, Outcome, generate, select_columns
from atomlearn.cli.options import CommandError
from atomlearn.cli.plan import USUAL, Plan
from atomlearn.cli.source import Given
from atomlearn.cli.targets import Target
from atomlearn.cli.watching import Watch
from atomlearn.core import (
    L1,
    L2,
    Array,
    Columns,
    Design,
    Norm,
    Rows,
    RowSubset,
    Rule,
    Status,
    part_of,
    together,
)
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import (
    AtomicClassifierCV,
    AtomicRegressorCV,
)
from atomlearn.estimators.cross_validated_survival import AtomicSurvivalCV
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.survival import AtomicSurvival, Baseline
from atomlearn.estimators.units import Units, as_they_are, standardized_design, too_many
from atomlearn.maps.feature_map import FeatureMap, map_of
from atomlearn.reports.structure_displays import has_parts
from atomlearn.reports.view import in_words


@dataclass(frozen=True, kw_only=True)
class Fitted(Outcome):
    """What a way to fit gave back, as a model of all outputs over the selected columns.

    columns : (m,) those with a coefficient that is not zero for some output, increasing;
    coefficients : (n_outputs, m) in data units; considered : columns that the search took up and
    gave the coefficient zero; intercepts : (n_outputs,) in data units; map : what the columns are
    of the data, inputs or curves; data : what the (last) estimator was fitted to; in_python : the
    estimator that does the same from Python.
    """

    columns: Columns
    coefficients: Array
    considered: Columns
    intercepts: Array
    map: FeatureMap
    data: Data
    in_python: str

    @property
    def units(self) -> Columns:
        """What was selected: columns, or of an additive model the inputs that have a curve."""
        return np.unique(self.map.term_of(self.columns))

    @property
    def terms(self) -> Columns:
        """The same without covariates, as a person counts: groups where these were selected."""
        given = self.data.given
        if given.overlap and has_parts(self.model.parts_):
            used = [part.group for part in self.model.parts_ if part.weights.any()]
            return np.unique(np.array(used, dtype=np.int64))
        units = np.setdiff1d(self.units, given.covariates)
        return units if self.has_curves else given.terms(units)

    @property
    def has_curves(self) -> bool:
        """True where what was selected are curves."""
        return self.map.unit is not None

    @property
    def interrupted(self) -> bool:
        """True where Ctrl-C ended a fit."""
        return any(result.status is Status.INTERRUPTED for result in self.results)

    def decisions(self, design: Design, rows: Rows, offset: Array | None = None) -> Array:
        """Return X_S w + b + offset for rows of the unscaled design, (n_rows, n_outputs)."""
        block = RowSubset(design, rows).gather(self.columns)
        told = np.stack([block.dot(weights) for weights in self.coefficients], axis=1)
        return told + self.intercepts + (0.0 if offset is None else offset[rows][:, None])


def fit(
    design: Design, target: Target, rows: Rows, plan: Plan, watch: Watch, given: Given
) -> Fitted:
    """Select and fit on these rows."""
    part = _rows_of(design, rows, plan)
    mine = given.rows(rows)
    units = _units(part, plan, given.center, mine.weight)
    data = Data(units.design, target, target.values[rows], mine)
    how = generate if plan.generates else _cross_validate if plan.cross_validates else _estimate
    how = _controlled if plan.controls else how
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # What ended early, or found fewer features than asked for, is told in our own words.
        outcome = how(data, plan, watch)
    columns, coefficients, intercepts = _coefficients(outcome, units)
    used = coefficients.any(axis=0)
    return Fitted(
        **vars(outcome) | {"scaled_by": outcome.scaled_by or units.words},
        columns=columns[used],
        coefficients=coefficients[:, used],
        considered=columns[~used],
        intercepts=intercepts,
        map=map_of(design),
        data=data,
        in_python=_in_python(outcome, plan, given.center),
    )


def _coefficients(outcome: Outcome, units: Units) -> tuple[Columns, Array, Array]:
    """Return columns, their coefficients, of some zero, and intercepts, in data units."""
    results = outcome.results
    model = outcome.model
    if outcome.together:
        columns = model.moments_[0]
        return columns, np.asarray(model.coef_)[:, columns], model.intercept_
    columns, weights = together(results, outcome.selected)
    means, scales = units.of(columns)
    if outcome.moments is not None:
        mine, own_means, own_scales = outcome.moments
        places = np.searchsorted(columns, mine)
        means[places] = own_means
        scales[places] = own_scales
    coefficients = weights / scales
    intercepts = np.array([result.intercept for result in results]) - coefficients @ means
    return columns, coefficients, intercepts


def _units(design: Design, plan: Plan, center: bool, weight: Array | None) -> Units:
    """Return the features in the units of a fit with a norm; generation sees to its own."""
    if plan.additive:
        scaled = ", of variance 1 each" if plan.standardize else ""
        return as_they_are(design, f"a curve for each column ({plan.additive}{scaled})")
    if plan.generates or not plan.standardize:
        return as_they_are(design)
    return standardized_design(design, center, weight)


def _rows_of(design: Design, rows: Rows, plan: Plan) -> Design:
    """Return the design of these rows, itself where it is all of them."""
    if rows.size == design.shape[0]:
        return design
    own = design.with_rows(rows) if plan.additive or too_many(design) else None
    return own or RowSubset(design, rows)


#: The estimator at a given level, and the one that chooses norm and level, of each task.
ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "regression": (AtomicRegressor, AtomicRegressorCV),
    "classification": (AtomicClassifier, AtomicClassifierCV),
    "survival": (AtomicSurvival, AtomicSurvivalCV),
}


def _controlled(data: Data, plan: Plan, watch: Watch) -> Outcome:
    """Select by knockoffs or stability; then a ridge fit over those columns, its weight by CV."""
    watch.say("  selecting by " + ("stability" if plan.stability else "knockoffs"))
    found = select_columns(data, plan)
    covariates = np.array(data.given.covariates, dtype=np.int64)
    whole = np.union1d(found.selected, covariates)
    whole = whole if whole.size else np.arange(1)
    free = tuple(np.searchsorted(whole, covariates).tolist())
    over = replace(
        data,
        design=part_of(data.design, columns=whole),
        given=replace(data.given, covariates=free),
    )
    if found.selected.size:
        outcome = _cross_validate(over, replace(plan, norms=(L2(),), form="squared"), watch)
    else:  # the intercept and the covariates alone
        outcome = _estimate(over, replace(plan, norms=(L1(),), alpha=1e6), watch)
    moved = [
        replace(r, columns=whole[r.columns], n_features=data.design.shape[1], parts=None)
        for r in outcome.results
    ]
    settings = outcome.settings | found.settings | {"method": "error control"}
    none = found.selected[:0]  # those whose coefficient is zero are not in the model
    return replace(found, results=moved, model=outcome.model, settings=settings, selected=none)


def _estimate(data: Data, plan: Plan, watch: Watch) -> Outcome:
    """Fit one norm at one alpha."""
    assert plan.alpha is not None
    target = data.target
    kind = ESTIMATORS[target.task][0]
    model = kind(plan.norms[0], plan.alpha, **_options(data, plan, watch))
    model.fit(data.design, data.y, **data.of_rows)
    return Outcome(model.results_, model, _settings(plan.norms[0], plan.alpha, plan, target))


def _cross_validate(data: Data, plan: Plan, watch: Watch) -> Outcome:
    """Choose alpha, and the norm of several, by the held-out loss; then fit to these rows."""
    target = data.target
    y = data.y
    cv, n_folds = _folds(data, plan.seed)
    rule: Rule = "one_standard_error" if plan.one_se else "best"
    options = _options(data, plan, watch)
    search = ESTIMATORS[target.task][1]
    model = search(list(plan.norms), cv=cv, selection=rule, **options)
    tried = plan.norms[0].candidates(*data.design.shape)
    is_open = len(tried) > 1
    n_norms = max(len(plan.norms), len(tried))
    # Of an open k only what is near the best is fitted, which nobody can count before.
    watch.searches = 0 if is_open else n_norms * model.n_alphas * n_folds * len(target.outputs)
    watch.say(
        f"  cross-validation: {n_folds} folds, {model.n_alphas} alphas, {n_norms} norm"
        f"{'s' if n_norms > 1 else ''}{', near the best of them' if is_open else ''}"
    )
    try:
        model.fit(data.design, y, **data.of_rows, **data.given.dependence)
    except KeyboardInterrupt:
        if watch.alpha is None:
            raise
        by = "Ctrl-C, before a level was scored: the last one that was fitted"
        watch.say(f"  alpha chosen by {by}")
        norm = tried[0]
        alpha = watch.alpha
        plan = replace(plan, norms=(norm,), alpha=alpha, chosen_by=by)
        outcome = _estimate(data, plan, watch)
        outcome.results[0].status = Status.INTERRUPTED
        return replace(outcome, chosen=(norm, alpha))
    by = _chosen_by(model, n_folds, y.size, watch)
    settings = _settings(model.norm_, model.alpha_, replace(plan, chosen_by=by), target)
    outcome = Outcome(model.results_, model, settings, chosen=(model.norm_, model.alpha_))
    if Status.INTERRUPTED in (model._searched, model.status_):
        for result in outcome.results:
            result.status = Status.INTERRUPTED
    return outcome


def _chosen_by(model: Any, n_folds: int, n_rows: int, watch: Watch) -> str:
    """Return how alpha was chosen, and say where the search was cut short."""
    if model._searched.is_converged:
        return f"{n_folds}-fold cross-validation on {n_rows} rows"
    said = "interrupted" if model._searched is Status.INTERRUPTED else "out of time"
    table = model.cv_results_
    known = np.isfinite(table["mean_test_score"])
    folds = sum(name.startswith("split") for name in table)
    watch.say(f"  {said}: alpha {model.alpha_:.3g} is the best of {known.sum()} that were tried")
    return f"{folds}-fold cross-validation, {said} after {known.sum()} of {known.size} levels"


def _options(data: Data, plan: Plan, watch: Watch) -> dict[str, Any]:
    """Return what estimators with a norm have in common."""
    loss = plan.loss_for(data.target.task)
    return {
        "form": plan.form,
        **({} if data.target.is_survival else {"loss": loss}),
        "tol": plan.gap,
        **data.parameters,
        **watch.options,
    }


def _folds(data: Data, seed: int) -> tuple[Any, int]:
    """Return what a search takes as cv, and how many folds; of rows that belong together a number.

    The search folds those itself, as it is told of them.
    """
    target = data.target
    y = data.y
    codes = replace(target, values=y).codes
    what = "the target"
    most = y.size
    if target.is_survival:
        what = "the event"
        most = int(y["event"].sum())
    elif target.classes is not None:
        counts = np.bincount(y, minlength=len(target.classes))
        what = f"class {target.classes[counts.argmin()]!r}"
        most = int(counts.min())
    if most < 2:
        raise CommandError(
            f"{what} has {most} row to fit on, and cross-validation needs at least 2; give "
            "--alpha, or join classes with --positive"
        )
    n_folds = min(USUAL.cv, most)
    if any(values is not None for values in data.given.dependence.values()):
        return n_folds, n_folds
    kind = KFold if codes is None else StratifiedKFold
    return kind(n_folds, shuffle=True, random_state=seed), n_folds


def _settings(norm: Norm, alpha: float | None, plan: Plan, target: Target) -> dict[str, Any]:
    settings = {
        "method": "atomic norm",
        "norm": in_words(norm).replace(", groups=None", "").replace(", weights=None", ""),
        "form": plan.form,
        "alpha": alpha,
        "loss": plan.loss_for(target.task),
    }
    return settings | ({"alpha_chosen_by": plan.chosen_by} if plan.chosen_by else {})


def _in_python(outcome: Outcome, plan: Plan, center: bool) -> str:
    """Return what does the same from Python, without what watches it."""
    model = outcome.model
    given = model.get_params(deep=False) | {"observers": None, "time_limit": None}
    shown = in_words(type(model)(**given))
    if outcome.selector:
        shown = f"{outcome.selector}, {shown}"
    if plan.additive:
        made = f"Additive(X, {plan.additive!r}, normalize={plan.standardize})"
        return f"{shown}.fit(designs.{made}, y)"
    if plan.generates or not plan.standardize:
        return f"make_pipeline({shown})" if outcome.selector else shown
    scaler = "StandardScaler()" if center else "StandardScaler(with_mean=False)"
    return f"make_pipeline({scaler}, {shown})"


def with_baseline(fitted: Fitted, design: Design, rows: Rows, given: Given) -> Fitted:
    """Return the model with Breslow's baseline hazard among its settings; others as they are.

    Scores are X w as from Python, and the hazard is of scores less those of the means: exp(X w)
    may overflow where columns are far from zero. The cumulative hazard of a row is
    baseline_hazard * exp(score - baseline_score).
    """
    if not fitted.data.target.is_survival:
        return fitted
    weight = np.ones(rows.size) if given.weight is None else given.weight[rows]
    risk = fitted.decisions(design, rows, given.offset)[:, 0]
    settings = dict(fitted.settings)
    with np.errstate(over="ignore"):
        baseline = Baseline.of(fitted.data.y, risk, weight)
    one = np.unique(fitted.data.y["stratum"]).size == 1  # of several each has its own
    if one and np.isfinite(baseline.cumulative).all():
        settings["baseline_times"] = baseline.times.tolist()
        settings["baseline_hazard"] = baseline.cumulative.tolist()
        settings["baseline_score"] = -float(fitted.intercepts[0])
    return replace(fitted, intercepts=np.zeros(1), settings=settings)
