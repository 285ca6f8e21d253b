"""build_estimator: build the public estimator that the command line options describe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from atomlearn.cli.options import CommandError
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.settings import DEFAULTS, SelectionSettings
from atomlearn.cli.source import DataRoles
from atomlearn.cli.targets import Target
from atomlearn.core import Design
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.cross_validated_survival import AtomicSurvivalCV
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.generation_trials import SIZES
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.subsets import SECONDS, SubsetClassifier, SubsetRegressor, line_of
from atomlearn.estimators.survival import AtomicSurvival
from atomlearn.subsets.hunt import GAP
from atomlearn.subsets.result import SubsetRecord

#: For each task: the estimator at a fixed alpha, and the one that cross-validates norm and alpha.
ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "regression": (AtomicRegressor, AtomicRegressorCV),
    "classification": (AtomicClassifier, AtomicClassifierCV),
    "survival": (AtomicSurvival, AtomicSurvivalCV),
}


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The rows that an estimator is fitted to.

    ``design`` holds the features, ``target`` describes the target of all rows, ``y`` holds the
    target values of these rows, and ``roles`` their weights, offset, groups and covariates.
    """

    design: Design
    target: Target
    y: NDArray[Any]
    roles: DataRoles

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameter of the estimator {"unpenalized": covariate columns}; {} without any."""
        covariates = self.roles.covariates
        return {"unpenalized": np.array(covariates)} if covariates else {}

    @property
    def fit_parameters(self) -> dict[str, Any]:
        """The arguments ``sample_weight`` and ``offset`` of ``fit`` that are not None."""
        parameters = {"sample_weight": self.roles.weight, "offset": self.roles.offset}
        return {name: values for name, values in parameters.items() if values is not None}


def build_estimator(
    settings: SelectionSettings, data: TrainingData, progress: ProgressPrinter
) -> Any:
    """Return the unfitted estimator that the options describe.

    It is a subset search, a ``FeatureGenerator``, an estimator at a fixed alpha, or a
    cross-validated estimator. ``settings`` are the options of the selection, ``data`` the rows of
    the fit, and ``progress`` is the printer of progress.
    """
    task = data.target.task
    loss = settings.loss_for(task)
    if settings.best_subset:
        return _subset_search(settings, data, progress)
    common_parameters = {"tol": settings.gap, **data.parameters, **progress.options}
    if settings.generates:
        n_classes = len(data.target.outputs)
        if n_classes > 1 and np.unique(data.y).size < n_classes:
            raise CommandError("a class has no row to fit on; join classes with --positive")
        return FeatureGenerator(
            settings.n_features or 1,
            settings.batch or "auto",
            settings.C,
            loss,
            groups=None if settings.additive else data.roles.groups,
            standardize=settings.standardize and not settings.additive,
            # With half of the tolerance, the reported gap does not exceed the tolerance despite
            # rounding.
            selected_tol=0.5 * settings.gap,
            **common_parameters,
        )
    fixed_alpha, search = ESTIMATORS[task]
    common_parameters["form"] = settings.form
    if not data.target.is_survival:
        common_parameters["loss"] = loss
    if settings.alpha is not None:
        return fixed_alpha(settings.norms[0], settings.alpha, **common_parameters)
    selection_rule = "one_standard_error" if settings.one_se else "best"
    return search(
        list(settings.norms),
        cv=_splitter(data, settings.seed),
        selection=selection_rule,
        **common_parameters,
    )


def _subset_search(
    settings: SelectionSettings, data: TrainingData, progress: ProgressPrinter
) -> Any:
    """Return the unfitted estimator of the best subset of columns or of groups.

    ``settings`` are the options of the selection, ``data`` the rows of the fit, and ``progress`` is
    the printer of progress.
    """
    kind = SubsetRegressor if data.target.classes is None else SubsetClassifier
    sizes: Any = settings.n_features
    # With --n-features auto, up to eight sizes are tried, at most half the number of rows.
    if sizes == "auto":
        largest = max(1, data.y.size // 2)
        sizes = [size for size in SIZES if size <= largest][:8]
    seconds = progress.options["time_limit"]
    model = kind(
        sizes,
        None,
        settings.loss_for(data.target.task),
        data.roles.groups,
        standardize=settings.standardize,
        tol=GAP if settings.gap == DEFAULTS.tol else settings.gap,
        time_limit=SECONDS if seconds is None else seconds,
        within=settings.within,
        observers=[partial(_show_search, progress)],
        **data.parameters,
    )
    return model if settings.proves else model.skip_proof()


def _show_search(progress: ProgressPrinter, record: SubsetRecord) -> None:
    """Print the best objective so far and the lower bound of a branch-and-bound search.

    ``record`` is one of its records. ``progress`` is the printer of progress.
    """
    # ``line`` overwrites a line of the terminal, and returns False if there is no terminal.
    if not progress.line(f"{progress.doing}: {line_of(record)}"):
        progress.say(f"  {line_of(record)}")


def count_folds(data: TrainingData) -> int:
    """Return the number of folds: 5, or the size of the smallest class if that is smaller.

    ``data`` holds the rows of the fit. For survival data the number of events takes the place of
    the size of the smallest class. A CommandError is raised if it is less than 2.
    """
    target = data.target
    subject = "the target"
    smallest = data.y.size
    if target.is_survival:
        subject = "the event"
        smallest = int(data.y["event"].sum())
    elif target.classes is not None:
        counts = np.bincount(data.y, minlength=len(target.classes))
        subject = f"class {target.classes[counts.argmin()]!r}"
        smallest = int(counts.min())
    if smallest < 2:
        raise CommandError(
            f"{subject} has {smallest} row to fit on, and cross-validation needs at least 2; give "
            "--alpha, or join classes with --positive"
        )
    return int(min(DEFAULTS.cv, smallest))


def _splitter(data: TrainingData, seed: int) -> Any:
    """Return the ``cv`` parameter of a search: a shuffled (stratified) k-fold splitter.

    If rows have groups or an order, return the number of folds only, and the estimator builds
    grouped or chronological folds. ``data`` are the rows of the fit and ``seed`` is the random
    seed.
    """
    n_folds = count_folds(data)
    if any(values is not None for values in data.roles.dependence.values()):
        return n_folds
    kind = KFold if data.target.codes is None else StratifiedKFold
    return kind(n_folds, shuffle=True, random_state=seed)
