"""What is fitted to, what comes of it, and the way with feature generation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.cli.options import CommandError
from atomlearn.cli.plan import LARGE, Plan
from atomlearn.cli.source import Given
from atomlearn.cli.targets import Target
from atomlearn.cli.watching import Watch
from atomlearn.core import Array, Columns, Design, Norm, Result, dense_part
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.generation import norm_of
from atomlearn.estimators.generation_trials import SIZES
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.subsets import SECONDS, SubsetClassifier, SubsetRegressor, told
from atomlearn.findings.knockoffs import KnockoffSelector
from atomlearn.findings.power import power
from atomlearn.findings.stability import StabilitySelector
from atomlearn.reports.view import in_words
from atomlearn.subsets.hunt import GAP
from atomlearn.subsets.result import SubsetRecord


def select_columns(data: Data, plan: Plan) -> Outcome:
    """Return the columns of standardized features that --fdr or --stability lets through.

    The outcome has no model yet.

    Covariates are no candidates: what they explain of the others, and of a target of numbers, is
    taken off first.
    """
    design = data.design
    target = data.target
    y = data.y
    n_rows, n_columns = design.shape
    if not design.listable or n_rows * n_columns > LARGE:
        raise CommandError(
            f"--fdr and --stability hold the features in memory, and {n_rows:,} x {n_columns:,} "
            "are too many; leave --interactions out, or select with --n-features first"
        )
    covariates = np.array(data.given.covariates, dtype=np.int64)
    candidates = np.setdiff1d(np.arange(n_columns), covariates)
    X = dense_part(design, np.arange(n_columns))
    if covariates.size:
        beside = np.column_stack([np.ones(n_rows), X[:, covariates]])
        X = _rest(X[:, candidates], beside)
        y = _rest(y, beside) if target.classes is None else y
    found = (_stable if plan.stability else _knocked)(X, y, data, plan)
    words = found.settings["selected_by"] + ("; given the covariates" if covariates.size else "")
    return replace(
        found,
        settings={"selected_by": words},
        selected=candidates[found.selected],
        stability={int(candidates[at]): share for at, share in found.stability.items()},
    )


def _rest(values: Array, beside: Array) -> Array:
    """Return what least squares on ``beside`` leave of the values; rounding is nothing."""
    rest = values - beside @ np.linalg.lstsq(beside, values, rcond=None)[0]
    nothing = np.linalg.norm(rest, axis=0) <= 1e-10 * np.linalg.norm(values, axis=0)
    return np.asarray(np.where(nothing, 0.0, rest))


def _knocked(X: Array, y: NDArray[Any], data: Data, plan: Plan) -> Outcome:
    assert plan.fdr is not None
    loss = plan.loss_for(data.target.task)
    dependence = data.given.dependence
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        selector = KnockoffSelector(fdr=plan.fdr, random_state=plan.seed, loss=loss)
        selector.fit(X, y, **dependence)
    notes = [str(item.message) for item in told if "correlated" in str(item.message)]
    columns = np.flatnonzero(selector.get_support())
    if any(values is not None for values in dependence.values()):
        notes.append("--fdr counts rows as independent, and these are not: do not trust its share")
    if not columns.size:
        least = int(np.ceil(1 / plan.fdr))
        notes.append(
            f"knockoffs at --fdr {plan.fdr:g} select nothing, or at least {least} features: fewer "
            "than that cannot be told from chance in this way"
        )
    if plan.power:
        anew = clone(selector).set_params(loss="auto")  # targets that are made up are numbers
        true = min(int(np.ceil(2 / plan.fdr)), X.shape[1])
        curve = power(anew, X, n_true=true, classes=data.target.classes is not None, rng=plan.seed)
        notes.append("; ".join(str(curve).splitlines()))
    words = (
        f"knockoffs: of the features selected, on average at most {100 * plan.fdr:g}% are false, "
        f"{selector.condition}"
    )
    return Outcome(
        [],
        None,
        {"selected_by": words},
        selected=columns,
        notes=tuple(notes),
        selector=in_words(selector),
    )


def _stable(X: Array, y: NDArray[Any], data: Data, plan: Plan) -> Outcome:
    target = data.target
    kind = AtomicRegressor if target.classes is None else AtomicClassifier
    base = kind(tol=1e-3, loss=plan.loss_for(target.task))
    selector = StabilitySelector(base, random_state=plan.seed, alphas="auto")
    selector.fit(X, y, **data.given.dependence)
    shares = selector.selection_probabilities_
    words = (
        f"stability: selected by at least {100 * selector.threshold:g}% of {selector.n_resamples} "
        f"random halves of the rows; at most {selector.expected_false_:.2g} of features no better "
        "than random are expected among them"
    )
    note = (
        "stability tells what would be selected again; neighbors of true features may be stable too"
    )
    return Outcome(
        [],
        None,
        {"selected_by": words},
        selected=np.flatnonzero(shares >= selector.threshold),
        notes=(note,),
        stability=dict(enumerate(shares.tolist())),
        selector=in_words(selector),
    )


@dataclass(frozen=True)
class Outcome:
    """What a way to fit gives back; ``model`` : the (last) estimator.

    results : one an output, in the units of the fit; settings : how, as text and numbers;
    gaps_on_selected : for feature generation, one an output: the proved relative gap of the
    coefficients with the features as selected; chosen : norm and alpha that a refit should use;
    moments, scaled_by : (columns, means, scales) and words, where the estimator scales features
    itself; selected : columns that were selected, those whose exact coefficient is zero too;
    selector : what chose them before the fit, as it would be typed.
    """

    results: Sequence[Result]
    model: Any
    settings: dict[str, Any]
    gaps_on_selected: tuple[float | None, ...] = ()
    chosen: tuple[Norm, float] | None = None
    moments: tuple[Columns, Array, Array] | None = None
    scaled_by: str = ""
    notes: tuple[str, ...] = ()
    stability: dict[int, float] = field(default_factory=dict)
    selected: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    selector: str = ""

    @property
    def together(self) -> bool:
        """Whether one fit was of all classes, whose features are the model's."""
        return self.settings.get("classes") == "together"


@dataclass(frozen=True, slots=True)
class Data:
    """What an estimator is fitted to: the design, the target, its values and what rows have."""

    design: Design
    target: Target
    y: NDArray[Any]
    given: Given

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of estimators that the data ask for."""
        covariates = self.given.covariates
        return {"unpenalized": np.array(covariates)} if covariates else {}

    @property
    def of_rows(self) -> dict[str, Any]:
        """What ``fit`` takes beside X and y."""
        found = {"sample_weight": self.given.weight, "offset": self.given.offset}
        return {name: values for name, values in found.items() if values is not None}


def generate(data: Data, plan: Plan, watch: Watch) -> Outcome:
    """Select by feature generation, as from Python: several classes share their features.

    But that the coefficients of the selected features are computed to the gap asked for: half of
    it, so that what is reported is at most that, rounding included.
    """
    if plan.best_subset:
        return best_subset(data, plan, watch)
    loss = plan.loss_for(data.target.task)
    several = len(data.target.outputs) > 1
    if several and np.unique(data.y).size < len(data.target.outputs):
        raise CommandError("a class has no row to fit on; join classes with --positive")
    model = FeatureGenerator(
        plan.n_features or 1,
        plan.batch or "auto",
        plan.C,
        loss,
        groups=None if plan.additive else data.given.groups,
        standardize=plan.standardize and not plan.additive,
        tol=plan.gap,
        selected_tol=0.5 * plan.gap,
        **data.parameters,
        **watch.options,
    )
    model.fit(data.design, data.y, **data.of_rows, **data.given.dependence)
    notes = list[str]()
    if model.C_choice_ and model.C_choice_.cut:
        told = f"{model.n_wanted_} features, C = {model.C_:g}"
        notes = [f"interrupted: {told}, of the values that were tried"]
    settings = {
        "method": "feature generation",
        "n_features": int(model.n_wanted_),
        "batch": norm_of(model, data.design)[0].k,
        "C": model.C_,
        "loss": loss,
    }
    if several:
        settings["classes"] = "together"
    return _outcome(
        model,
        plan,
        settings=settings,
        gaps_on_selected=(model.selected_gap_,),
        notes=tuple(notes),
        # Curves are columns of their own.
        selected=model.selected_[:0] if plan.additive else np.sort(model.selected_),
    )


def best_subset(data: Data, plan: Plan, watch: Watch) -> Outcome:
    """Select the best subset of columns, or groups, as from Python."""
    loss = plan.loss_for(data.target.task)
    several = len(data.target.outputs) > 1
    kind = SubsetRegressor if data.target.classes is None else SubsetClassifier
    most = max(1, data.y.size // 2)
    sizes: Any = plan.n_features
    if sizes == "auto":
        sizes = [size for size in SIZES if size <= most][:8]
    seconds = watch.options["time_limit"]
    model = kind(
        sizes,
        None,
        loss,
        data.given.groups,
        standardize=plan.standardize,
        tol=GAP if plan.gap == Plan().gap else plan.gap,
        time_limit=SECONDS if seconds is None else seconds,
        observers=[partial(_seen, watch)],
        **data.parameters,
    )
    model = model if plan.proves else model.skip_proof()
    model.fit(data.design, data.y, **data.of_rows, **data.given.dependence)
    settings = {
        "method": "best subset",
        "n_features": model.n_selected_,
        "l2": model.l2_,
        "loss": loss,
        "branches": model.result_.nodes,
    }
    if several:
        settings["classes"] = "together"
    return _outcome(model, plan, settings=settings, selected=model.selected_)


def _seen(watch: Watch, record: SubsetRecord) -> None:
    """Show how far a search for the best subset is."""
    if not watch.line(f"{watch.doing}: {told(record)}"):
        watch.say(f"  {told(record)}")


def _outcome(model: Any, plan: Plan, **more: Any) -> Outcome:
    """Return what a model gave back that scales the features itself."""
    if plan.standardize:
        more |= {"moments": model.moments_, "scaled_by": model.scaled_by_}
    return Outcome(model.results_, model, **more)
