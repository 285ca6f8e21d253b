"""The content of a report, as plain records from which tables and pages are made."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Self

import numpy as np

from atomlearn.core import Columns, Mask, Record, Status, loaded
from atomlearn.findings.enrichment import EnrichedSet
from atomlearn.findings.verdict import Verdict, no_verdict
from atomlearn.reports.best_subset import SubsetProof
from atomlearn.reports.data_displays import CurveDisplay
from atomlearn.reports.displays import CoefficientDisplay, ConvergenceDisplay
from atomlearn.reports.drawing import Display
from atomlearn.reports.profile import Profile
from atomlearn.reports.structure_displays import InteractionsDisplay
from atomlearn.reports.suspects import recurring


@dataclass(frozen=True, slots=True)
class SelectedFeature:
    """A selected feature, with its coefficients.

    Attributes
    ----------
    rank : int
        1 for the largest absolute standardized coefficient.
    name : str
        The name of the column, product or curve.
    index : int
        The index among all features, from 0.
    coefficients : tuple of float
        One per output, in units of the data.
    standardized : tuple of float
        The same per standard deviation of the feature.
    factors : tuple of str
        The names of the columns whose product the feature is.
    stability : float or None
        The share of random halves of the rows that select it.
    twins : tuple of str
        Descriptions of correlated columns that could replace it.
    group : str
        The name of its group, or "".
    about : tuple of (str, str)
        Further (header, value) pairs.
    is_narrow : bool
        Whether one unit of the feature is far larger than the spread of its values.
    """

    rank: int
    name: str
    index: int
    coefficients: tuple[float, ...]
    standardized: tuple[float, ...]
    factors: tuple[str, ...] = ()
    stability: float | None = None
    twins: tuple[str, ...] = ()
    group: str = ""
    about: tuple[tuple[str, str], ...] = ()
    is_narrow: bool = False

    def fact(self, header: str) -> str:
        """Return the value of ``about`` under a header, or "" if it has none."""
        return dict(self.about).get(header, "")

    @property
    def symbol(self) -> str:
        """The gene symbol of the feature, or "" if it has none apart from its name."""
        return self.fact("symbol")

    @property
    def shown(self) -> str:
        """The name to display, with a gene symbol before it and a reference level after it."""
        reference = dict(self.about).get("reference", "")
        name = f"{self.symbol} ({self.name})" if self.symbol else self.name
        return f"{name} (vs {reference})" if reference else name

    @property
    def outputs(self) -> tuple[int, ...]:
        """The outputs whose coefficients are similar to the largest one, which comes first.

        A coefficient is similar if it has the same sign and at least half the absolute value.
        """
        strongest = self.strongest
        order = sorted(
            range(len(self.standardized)), key=lambda output: -abs(self.standardized[output])
        )
        # The ratio to the strongest coefficient is at least one half.
        return tuple(
            output
            for output in order
            if 2.0 * self.standardized[output] / (strongest or 1.0) >= 1.0
        )

    @property
    def output(self) -> int:
        """The index of the output with the largest absolute standardized coefficient."""
        return max(range(len(self.standardized)), key=lambda output: abs(self.standardized[output]))

    @property
    def strongest(self) -> float:
        """The signed standardized coefficient with the largest absolute value."""
        return self.standardized[self.output]

    @property
    def size(self) -> float:
        """The largest absolute standardized coefficient over the outputs."""
        return abs(self.strongest)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the feature in its units, or None if it is not known."""
        coefficient = self.coefficients[self.output]
        return abs(self.strongest / coefficient) if coefficient else None

    def effect(self, scale: str) -> str:
        """Return the effect of one standard deviation on the target, as text.

        For several outputs it is the effect on the output with the largest coefficient.
        ``scale`` is the name of the quantity that the effect multiplies, such as "odds" for the
        logistic loss; "" means that the effect is additive.
        """
        if not scale:
            return f"{self.strongest:+.3g}"
        return f"{scale} \u00d7 {np.exp(min(self.strongest, 700.0)):.3g}"

    @property
    def interval(self) -> str:
        """The estimate with the ends of its interval, as text, "" if it was not estimated."""
        values = dict(self.about)
        if "estimate" not in values:
            return ""
        value, low, high = (f"{float(values[end]):.4g}" for end in ("estimate", "lower", "upper"))
        return f"{value} ({low} to {high})"

    def ratio(self, scale: str) -> str:
        """Return the effect of one unit on the target, as text.

        ``scale`` is as in ``effect``. The text is "" if effects are additive, or if one unit is far
        larger than the spread of the values.
        """
        if self.is_narrow:
            return ""
        coefficient = min(self.coefficients[self.output], 700.0)
        return f"{scale} \u00d7 {np.exp(coefficient):.4g}" if scale else ""

    @property
    def is_product(self) -> bool:
        """Whether it is an interaction: the product of two different columns."""
        return len(set(self.factors)) == 2


#: A displayed score: its name, its value, and the value of the baseline.
Figure = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """A score on held-out rows, and the score of a baseline without features.

    ``value`` and ``baseline`` are the score called ``name``, of the model and of the baseline.
    ``baseline_name`` describes the baseline, and ``is_share`` is whether the score is shown in
    percent.
    """

    name: str
    value: float
    baseline: float
    baseline_name: str
    is_share: bool

    @property
    def figure(self) -> Figure:
        """The score as displayed text: a percentage for a share, else four significant digits."""
        form = ".1%" if self.is_share else ".4g"
        guess = f"{self.baseline_name}: {self.baseline:{form}}"
        return self.name, f"{self.value:{form}}", guess


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The fit of one output: its relative duality gap, status and convergence history.

    ``label`` is the name of the output, ``passes`` the number of passes over the data, and
    ``history`` the records of the solver. ``gap_on_selected`` is the relative duality gap of the
    problem restricted to the selected features, if the fit stopped at a number of features, else
    None.
    """

    label: str
    status: str
    converged: bool
    objective: float
    relative_gap: float
    passes: float
    seconds: float
    history: Sequence[Record] = ()
    gap_on_selected: float | None = None

    @classmethod
    def of(cls, label: str, result: Any, gap_on_selected: float | None = None) -> FitSummary:
        """Return the summary of ``result``, a result of ``solve`` for vectors or for matrices.

        ``label`` is the name of the output. ``gap_on_selected`` is described in the class.
        """
        # For a perfect fit the objective is 0 up to rounding errors, so the relative gap is not
        # defined; machine epsilon is shown in its place.
        perfect = result.status is Status.PERFECT_FIT
        return cls(
            label,
            str(result.status),
            result.converged,
            result.objective,
            sys.float_info.epsilon if perfect else result.relative_gap,
            result.passes,
            result.seconds,
            tuple(result.history),
            gap_on_selected,
        )


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out scores of the model that was fitted to the training rows.

    If the verdict comes from cross-validation, the scores, the confusion matrix and the displays
    are of the same test folds and models. ``confusion[i][j]`` is the number of rows of class i that
    were predicted as class j. ``overlap`` is the number of features, without covariates, that the
    training model shares with the final model; ``refitted`` is False if the two are the same model.
    ``verdict`` says whether the model predicts better than chance, and ``warnings`` are sentences
    on the held-out rows.
    """

    n_train: int
    n_test: int
    scores: tuple[Score, ...]
    verdict: Verdict
    n_selected: int
    overlap: int
    confusion: tuple[tuple[int, ...], ...] = ()
    refitted: bool = True
    displays: Sequence[Display] = ()
    warnings: Sequence[str] = ()

    @classmethod
    def of(
        cls, n_train: int, known: Mask, features: Columns, final_features: Columns, **fields: Any
    ) -> Self:
        """Return the record, with the fields that are computed from the two models.

        ``n_train`` is the number of training rows, and ``known`` (n_test,) the mask of held-out
        rows that duplicate training rows. ``features`` and ``final_features`` are the indices of
        the features selected by the training model and by the final model. ``fields`` are the other
        fields of the class.
        """
        overlap = int(np.intersect1d(features, final_features).size)
        fields = (
            {"scores": ()}
            | fields
            | {"n_selected": int(features.size), "overlap": overlap, "warnings": recurring(known)}
        )
        return cls(n_train=n_train, n_test=known.size, **fields)


@dataclass(frozen=True, slots=True)
class SelectedGroup:
    """A group with at least one selected member.

    ``weight`` is the l2 norm of the coefficients of its members.
    """

    name: str
    n_members: int
    n_selected: int
    weight: float


def _counted(count: int, noun: str) -> str:
    """Return the count with the noun, in singular or plural, such as "2 features"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def without_covariates(
    features: Sequence[SelectedFeature], free: Collection[int]
) -> tuple[tuple[SelectedFeature, ...], tuple[SelectedFeature, ...]]:
    """Divide ``features`` into the selected ones, with new ranks, and the covariates.

    ``free`` are the indices of the covariates, which are unpenalized.
    """
    selected = [item for item in features if item.index not in free]
    ranked = tuple(replace(item, rank=rank) for rank, item in enumerate(selected, start=1))
    return ranked, tuple(item for item in features if item.index in free)


@dataclass(frozen=True, slots=True, repr=False)
class Content:
    """All content of a report on one selection; its repr is the headline and the verdict.

    ``data`` and ``target`` are their names, ``outputs`` those of the classes or targets. ``goal``
    is the tolerance of the fits. ``details`` are (name, value) pairs, ``notes`` sentences,
    ``command`` and ``python`` the calls that repeat the run, and ``files`` the files of the folder.
    ``title`` replaces the headline if it is given. ``chosen_first`` is whether a selector chose the
    features before the fit. ``covariates`` are unpenalized columns, counted neither in ``selected``
    nor in ``n_features``. ``evidence`` holds displays of the data. ``scale`` is the quantity whose
    logarithm is linear in the features, such as "odds", or "". ``terms`` is the pair (number of
    selected units, number of all units) if a unit has several columns, and ``unit`` is the name of
    a unit. ``groups`` are the selected groups, and ``ungrouped`` is the pair (number of selected
    columns in no group, number of all such columns). ``enriched`` are sets with selected members,
    and ``universe`` says which columns could have been selected. ``questions`` are sentences that
    only the reader can answer. ``considered`` are names of features that the search included with a
    zero coefficient. ``markers`` maps each of several classes to its ``markers.Marker`` records.
    ``columns`` are profiles of the columns, ``rows`` is a sentence on the rows, and ``proof`` is
    the optimality proof of a best subset.
    """

    data: str
    target: str
    task: str
    n_samples: int
    n_inputs: int
    n_features: int
    outputs: tuple[str, ...]
    selected: tuple[SelectedFeature, ...]
    fits: tuple[FitSummary, ...]
    goal: float
    held_out: HeldOut | None = None
    class_counts: tuple[tuple[str, int], ...] = ()
    curves: Sequence[CurveDisplay] = ()
    evidence: Sequence[Display] = ()
    warnings: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""
    python: str = ""
    versions: str = ""
    files: tuple[str, ...] = ("summary.json",)
    title: str = ""
    chosen_first: bool = False
    covariates: tuple[SelectedFeature, ...] = ()
    scale: str = ""
    terms: tuple[int, int] | None = None
    unit: str = "feature"
    groups: Sequence[SelectedGroup] = ()
    ungrouped: tuple[int, int] | None = None
    enriched: Sequence[EnrichedSet] = ()
    universe: str = ""
    considered: tuple[str, ...] = ()
    markers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    columns: Sequence[Profile] = ()
    rows: str = ""
    proof: SubsetProof | None = None

    def __repr__(self) -> str:
        """Return the headline, and the verdict below it; of a matrix, which has none, its data."""
        return f"{self.headline}\n{self.verdict if self.task != 'matrix' else self.data}"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        page = escape(loaded("atomlearn.reports.html:report_html")(self))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 900px; border: 0"></iframe>'

    @property
    def verdict(self) -> Verdict:
        """The verdict on whether the model predicts held-out rows better than chance."""
        if self.held_out is None:
            return no_verdict("no rows were held out, so nobody knows whether the model predicts")
        return self.held_out.verdict

    @property
    def count(self) -> int:
        """The number of selected units, which are those with a nonzero coefficient."""
        return self.terms[0] if self.terms else len(self.selected)

    @property
    def headline(self) -> str:
        """The result in one sentence, which claims no more than the verdict supports."""
        if self.title:
            return self.title
        count = self.count
        total = self.terms[1] if self.terms else self.n_features
        verdict = self.verdict
        unit = self.unit
        # If some columns belong to no group, they are counted separately from the groups.
        ungrouped = ""
        if self.ungrouped and self.ungrouped[1]:
            ungrouped = f" and {self.ungrouped[0]:,} of {self.ungrouped[1]:,} columns in no group"
            count -= self.ungrouped[0]
            total -= self.ungrouped[1]
            unit = "group or column"
        candidates = f"{total:,} {self.unit}s"
        if self.terms and total != self.n_features:
            candidates += f" ({len(self.selected):,} of {_counted(self.n_features, 'column')})"
        candidates += ungrouped
        covariates = ""
        if self.covariates:
            covariates = f" beside {_counted(len(self.covariates), 'covariate')}"
        if not self.count:
            return f"No {unit} of {total:,} was selected for {self.target}{covariates}"
        # The sentence about the prediction depends on the verdict.
        if self.held_out is None:
            return f"{count:,} of {candidates} selected for {self.target}{covariates}, not tested"
        were = "was" if count == 1 and not ungrouped else "were"
        first = f"{count:,} of {candidates} {were} selected{covariates}"
        model = f"a model of {_counted(self.held_out.n_selected, unit)}"
        # The scores belong to models of other rows, which may have another number of features.
        if verdict.n_folds or self.held_out.n_selected != self.count:
            model = "a model selected in this way"
        if not self.held_out.refitted:
            model = "this model"
        if verdict.better:
            comparison = f" better than {verdict.guess}" if self.covariates else ""
            return f"{first}; {model} predicts {self.target}{comparison}"
        if verdict.verdict == "no better":
            return f"{first}; {model} predicts {self.target} no better than {verdict.guess}"
        return f"{first}; too few rows to tell whether {model} predicts {self.target}"

    @property
    def again(self) -> str:
        """The overlap with the features selected without the held-out rows, as a clause or ""."""
        held_out = self.held_out
        if held_out is None or not held_out.refitted or not self.selected:
            return ""
        share = 100 * held_out.n_test / (held_out.n_test + held_out.n_train)
        return f", {held_out.overlap:,} of them again when {share:.0f}% of the rows were left out"

    @property
    def figures(self) -> list[Figure]:
        """The scores other than that of the verdict, as displayed text."""
        scores = () if self.held_out is None else self.held_out.scores
        others = [score.figure for score in scores if score.name != self.verdict.score_name]
        kind = self.verdict.kind
        return [(f"{kind} {name}", value, against) for name, value, against in others]

    @property
    def recalls(self) -> list[tuple[str, int, float]]:
        """The label, number of held-out rows and recall of each class."""
        table = () if self.held_out is None else self.held_out.confusion
        labels = [label for label, _ in self.class_counts]
        return [
            (label, sum(row), row[index] / sum(row) if any(row) else float("nan"))
            for index, (label, row) in enumerate(zip(labels, table, strict=False))
        ]

    @property
    def displays(self) -> list[Display]:
        """All displays of the page, in their order."""
        has_outputs = len(self.outputs) > 1 and len(self.selected) > 0
        held_out = self.held_out
        displays: list[Display] = [*self.curves, *self.evidence]
        displays += self.proof.bounds if self.proof else []
        if has_outputs:
            first = self.selected[:12]
            values = np.transpose([item.standardized for item in first])
            displays.append(
                CoefficientDisplay(values, [item.shown for item in first], self.outputs)
            )
        if held_out is not None:
            displays += held_out.displays
        products = [item for item in self.selected if len(item.factors) == 2]
        if any(item.is_product for item in products):
            sizes = [item.strongest for item in products]
            displays.append(InteractionsDisplay.of([item.factors for item in products], sizes))
        traced = [fit for fit in self.fits if len(fit.history) > 1]  # a line needs two points
        if traced and self.is_bounded:
            histories = [fit.history for fit in traced]
            labels = [fit.label for fit in traced]
            displays.append(ConvergenceDisplay(histories, self.goal, labels))
        return displays

    @property
    def gap_on_selected(self) -> float | None:
        """The largest relative duality gap on the selected features.

        It is None if all fits converged on all features, or if no fit has such a gap.
        """
        gaps = [fit.gap_on_selected for fit in self.fits if fit.gap_on_selected is not None]
        return None if all(fit.converged for fit in self.fits) or not gaps else max(gaps)

    @property
    def over(self) -> str:
        """The feasible set to which the gap of the headline refers, in words."""
        if self.task == "matrix":
            return "all matrices"
        if self.proof is not None:
            return self.proof.over
        has_note = self.chosen_first or self.gap_on_selected is not None
        return "the selected features" if has_note else "all features"

    @property
    def headline_gap(self) -> float:
        """The gap on the selected features if their number was given, else on all features."""
        gap = self.gap_on_selected
        return self.relative_gap if gap is None else gap

    @property
    def relative_gap(self) -> float:
        """The largest relative duality gap of all fits."""
        return max((fit.relative_gap for fit in self.fits), default=float("inf"))

    @property
    def is_bounded(self) -> bool:
        """Whether the relative duality gap is small enough (below 0.9) to be informative."""
        return self.relative_gap < 0.9
