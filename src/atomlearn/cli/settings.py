"""SelectionSettings: the options of a selection, checked before any data is read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from atomlearn.cli.options import CommandError
from atomlearn.core import L1, Form, Groups, KSupport, Norm, Task, as_loss, as_norm, loss_names
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.estimators.subsets import NEAR

#: Number of matrix entries above which the report skips the inspection of the data, and selectors
#: that hold all columns in memory raise an error.
LARGE = 200_000_000
#: Names of the norms over groups of columns.
OF_GROUPS = ("groups", "latentgroups", "latentksupport")
#: The values of --norm, as the user types them.
USABLE = """l1, l2, linf, ksupport, ksupport:k=20, elasticnet:k=20, chains:length=5, and with
groups: groups, latentgroups, latentksupport:k=3"""
#: Maps each option to the option that it requires.
NEEDED = {"time": "event", "event": "time", "entry": "time", "stratum": "time"}
NEEDED |= {"competing": "event", "at": "time", "power": "fdr", "best_subset": "n_features"}
NEEDED["within"] = "best_subset"
NEEDED |= dict.fromkeys(("alpha", "cv", "form", "one_se"), "norm")
_SELECTORS = ("n_features", "norm", "alpha", "C", "batch", "additive", "interactions")
_NO_TARGET = ("target", "positive", "class_weight", "fdr", "stability", "pheno", "exposure", "task")
#: Tuples of an option, the options that it excludes, and the reason.
EXCLUSIVE = (
    (
        "additive",
        ("interactions", "covariates", "covar", "pcs"),
        "curves are of single columns, all of them with a penalty",
    ),
    ("groups", ("interactions",), "groups are of columns, and interactions of products"),
    ("enrichment", ("interactions",), "sets are of columns, and interactions are of products"),
    ("p_values", ("additive", "interactions"), "p-values are of columns, given the others"),
    ("fdr", ("stability", *_SELECTORS), "both decide which features are selected"),
    ("stability", _SELECTORS, "both decide which features are selected"),
    ("time", _NO_TARGET, "the target is made of --time and --event"),
    ("norm", ("n_features", "C", "batch"), "that is of feature generation, which has its own norm"),
    ("best_subset", ("norm", "C", "batch", "additive", "interactions"), "it is of columns"),
    ("best_subset", ("time",), "of survival times, use atomlearn.solve_subset"),
    ("alpha", ("cv", "one_se"), "it gives what cross-validation would choose"),
)
#: The pair (option, value) that is the default of --task, which does not count as given.
_NO_TASK = ("task", "auto")
DEFAULTS = FeatureGenerator(standardize=True)


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """The options of a selection; the defaults are those of the command line.

    Attributes
    ----------
    n_features, C, batch
        Parameters of ``FeatureGenerator`` or of the best subset search; ignored if ``norms`` is
        not empty.
    norms : tuple of Norm
        The norms to fit; cross-validation chooses one if there are several.
    alpha : float or None
        Regularization strength; None if cross-validation chooses it.
    loss : str or None
        Name of the loss; None for the default of the task.
    form, standardize
        Parameters of the estimators: how the norm enters the problem, and whether features are
        divided by their standard deviations.
    gap : float
        Relative duality gap at which the solver stops.
    seed : int
        Random seed of the train-test split and of the cross-validation folds.
    additive : str or None
        The kernel of ``designs.Additive`` for an additive model, else None.
    chosen_by : str
        How an earlier fit chose alpha, in words, or "".
    one_se : bool
        Whether cross-validation takes the sparsest model within one standard error of the best.
    norm : str or None
        The text of --norm.
    time : str or None
        The column of survival times.
    fdr, stability
        Target false discovery rate of knockoffs or None, and whether to use stability selection.
    power : bool
        Whether to estimate the power of the knockoffs.
    intervals : bool
        Whether the covariates are estimated with intervals.
    p_values : bool
        Whether each column is tested for conditional independence of the target.
    at : tuple of float
        Times at which risks of survival models are predicted and checked.
    best_subset, proves : bool
        Whether to search for the best subset, and whether to prove its optimality.
    within : float
        Share of the objective within which all subsets are listed.

    Examples
    --------
    >>> from atomlearn.cli.settings import SelectionSettings
    >>> settings = SelectionSettings(n_features=20)
    >>> settings.generates, settings.loss_for("regression"), settings.loss_for("classification")
    (True, 'squared', 'logistic')
    """

    n_features: int | str | None = DEFAULTS.n_features
    C: float | tuple[float, float] | str = DEFAULTS.C
    batch: int | None = None
    norms: tuple[Norm, ...] = ()
    alpha: float | None = None
    form: Form = "penalized"
    loss: str | None = None
    gap: float = DEFAULTS.tol
    standardize: bool = DEFAULTS.standardize
    seed: int = 0
    additive: str | None = None
    chosen_by: str = ""
    one_se: bool = False
    norm: str | None = None
    time: str | None = None
    fdr: float | None = None
    stability: bool = False
    power: bool = False
    p_values: bool = False
    intervals: bool = False
    at: tuple[float, ...] = ()
    best_subset: bool = False
    within: float = NEAR
    proves: bool = True

    def for_refits(self, gap: float = 0.0) -> SelectionSettings:
        """Return settings for fits of which only the selection is used.

        The tolerance is at least ``gap``, and power analysis, p-values and proofs are turned off.
        """
        return replace(self, gap=max(self.gap, gap), power=False, p_values=False, proves=False)

    @property
    def is_survival(self) -> bool:
        """Whether the target is a right-censored survival time."""
        return self.time is not None

    def with_groups(self, groups: Any, overlap: bool = False) -> SelectionSettings:
        """Return settings whose norms use these groups of columns.

        ``overlap`` is whether a column belongs to two groups, which only latent group norms accept.
        A CommandError is raised if the norm needs groups and ``groups`` is None.
        """
        if self.norm is None or self.additive:
            return self
        return replace(self, norms=norms_of(self.norm, groups, overlap))

    @property
    def generates(self) -> bool:
        """Whether a fixed number of features is selected, by generation or as best subset."""
        return not self.norms and not self.controls

    @property
    def of_groups(self) -> bool:
        """Whether whole groups are selected: those of --groups or of categories."""
        name = (self.norm or "groups").partition(":")[0].lower().replace("-", "").replace("_", "")
        return not self.controls and name in (*OF_GROUPS, "ksupport")

    @property
    def controls(self) -> bool:
        """Whether knockoffs or stability selection screen the features."""
        return self.fdr is not None or self.stability

    @property
    def cross_validates(self) -> bool:
        """Whether cross-validation chooses alpha, and the norm if there are several."""
        return bool(self.norms) and self.alpha is None

    def loss_for(self, task: str) -> str:
        """Return the name of the loss for this task, by default the usual loss of the task.

        A CommandError is raised if --loss does not fit the task.
        """
        usual = {"regression": "squared", "survival": "cox"}
        name = self.loss or usual.get(task, "logistic")
        own_task = as_loss(name).task
        if own_task != task:
            others = " or ".join(loss_names(cast(Task, task)))
            raise CommandError(
                f"--loss {name} does not fit a {task}; use --loss {others}, or --task {own_task}"
            )
        return name


def read_settings(options: argparse.Namespace) -> SelectionSettings:
    """Return the settings; a CommandError is raised if options contradict each other."""
    values_by_name = vars(options)
    _check_pairs(
        [name for name, value in values_by_name.items() if value and (name, value) != _NO_TASK]
    )
    if options.loss is not None:
        as_loss(options.loss)
    chosen: dict[str, Any] = {}
    if options.norm is not None:
        # Groups are not read yet, so the parameters of the norm are checked with a placeholder: one
        # group of one column. Without --alpha, k may be open, and the first candidate is checked.
        norms = norms_of(options.norm, [[0]])
        for norm in norms:
            (norm if options.alpha else norm.candidates(1, 1)[0]).on(1)
        if options.additive:
            norms = tuple(_over_inputs(norm) for norm in norms_of(options.norm, None))
        if len(norms) > 1 and options.alpha is not None:
            raise CommandError(
                f"--norm {options.norm} gives {len(norms)} candidates, which takes "
                "cross-validation; leave --alpha out, or give one k"
            )
        chosen = {"norms": norms, "n_features": None, "form": norms[0].usual_form}
    values = {field.name: values_by_name.get(field.name) for field in fields(SelectionSettings)}
    return SelectionSettings(
        **chosen | {name: value for name, value in values.items() if value is not None}
    )


def _check_pairs(names: Sequence[str]) -> None:
    """Raise a CommandError for options that need or exclude each other.

    ``names`` are the names of the options on the command line.
    """
    for name, needed in NEEDED.items():
        if name in names and needed not in names:
            raise CommandError(
                f"{_option(name)} goes with {_option(needed)} NAME; give both, or leave "
                f"{_option(name)} out"
            )
    for name, others, why in EXCLUSIVE:
        for other in others:
            if name in names and other in names:
                raise CommandError(
                    f"{_option(other)} does not go with {_option(name)}: {why}; leave one of the "
                    "two out"
                )


def _option(name: str) -> str:
    """Return the option as it is typed: ``p_values`` becomes ``--p-values``."""
    return "--" + name.replace("_", "-")


def norms_of(text: str, groups: Any, overlap: bool = False) -> tuple[Norm, ...]:
    """Return the norms of a text such as ``l1``, ``ksupport:k=20`` or ``ksupport:k=5,10``.

    Several values of a parameter give several norms, the Cartesian product over the parameters.
    ``groups`` are the groups of columns or None, and ``overlap`` is whether they overlap.
    """
    name, *options = text.split(":")
    name = name.lower().replace("-", "").replace("_", "")
    candidates: list[dict[str, Any]] = [{}]
    if name in OF_GROUPS or (name == "ksupport" and groups is not None):
        if groups is None:
            raise CommandError(
                f"--norm {name} needs groups, and no column is a category; give --groups FILE"
            )
        if overlap and not name.startswith("latent"):
            raise CommandError(
                f"--norm {name} takes groups without a column in common, and some of --groups "
                f"have one; type latent{name} in its place, or keep each column in one group"
            )
        candidates = [{"groups": groups}]
    try:
        # Each further parameter multiplies the candidates by its number of values.
        for part in options:
            key, _, texts = part.partition("=")
            values_of_key = [
                int(number) if number.isdecimal() else float(number) for number in texts.split(",")
            ]
            candidates = [
                {**others, key: value} for others in candidates for value in values_of_key
            ]
        return tuple(as_norm(name, **parameters) for parameters in candidates)
    except (TypeError, ValueError) as error:
        raise CommandError(f"--norm {text!r}: {error}. Type one of {USABLE}") from error


def _over_inputs(norm: Norm) -> Norm:
    """Return the norm over the groups of basis columns that belong to one input each.

    It is used by additive models, which select whole inputs.
    """
    if isinstance(norm, KSupport):
        return KSupport(norm.k, "inputs")
    return Groups("inputs") if norm == L1() else norm
