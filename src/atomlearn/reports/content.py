"""The content of a report: plain records that tables and pages read."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from atomlearn.core import Columns, Mask, Record, Status
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
    """One line of the answer.

    rank : 1 for the largest standardized coefficient; index : among all features, from 0;
    coefficients : one an output, per unit of the data; standardized : the same per standard
    deviation of the feature; factors : the one or two columns of the
    data that it is the product of; stability : the share of halves of the rows that select it, or
    None; twins : columns that could replace it, in words; group : its group, or ""; about :
    what else is known of it, as (header, value).
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

    @property
    def output(self) -> int:
        """The output that the feature matters most to."""
        return max(range(len(self.standardized)), key=lambda at: abs(self.standardized[at]))

    @property
    def strongest(self) -> float:
        """The standardized coefficient of that output."""
        return self.standardized[self.output]

    @property
    def size(self) -> float:
        """Largest |standardized coefficient| over the outputs."""
        return abs(self.strongest)

    @property
    def deviation(self) -> float | None:
        """One standard deviation of the feature, in its units; None if it is not known."""
        coefficient = self.coefficients[self.output]
        return abs(self.strongest / coefficient) if coefficient else None

    def effect(self, scale: str) -> str:
        """What one standard deviation more does: to the odds, say, or to the target itself."""
        if not scale:
            return f"{self.strongest:+.3g}"
        return f"{scale} \u00d7 {np.exp(min(self.strongest, 700.0)):.3g}"

    @property
    def is_product(self) -> bool:
        """Whether it is the product of two different columns."""
        return len(set(self.factors)) == 2


#: A number as the terminal and the page show it: name, number, and the number to compare with.
Figure = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """A score on held-out rows, and the score of a guess without features."""

    name: str
    value: float
    baseline: float
    baseline_name: str
    is_share: bool

    @property
    def figure(self) -> Figure:
        """The score as people read it: 95.1% for a share, four digits for any other."""
        form = ".1%" if self.is_share else ".4g"
        guess = f"{self.baseline_name}: {self.baseline:{form}}"
        return self.name, f"{self.value:{form}}", guess


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The fit of one output: its proved gap, its status, and its history.

    gap_on_selected : if it ended at the number of features, the proved relative gap of the
    coefficients over the selected features.
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
        """Return the summary of a result, of vectors or of matrices."""
        # Relative to an objective that is 0 up to rounding there is no gap: what a float can tell.
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
    """The scores of the model of the training rows on the held-out rows.

    Where the verdict is of a cross-validation, so are scores, classes confused and displays: of the
    same rows, by the same models. confusion[i][j] : rows of class i that were called class j
    (classification); overlap : features that the model of the training rows shares with the final
    one, covariates not counted; refitted : False where the final model is that very model;
    verdict : whether the model predicts better than a guess; warnings : sentences on these rows.
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
    def of(cls, n_train: int, known: Mask, found: Columns, of_final: Columns, **more: Any) -> Self:
        """Return the record of a model by its selected columns and those of the final model.

        known : which held-out rows are training rows too; more : the other fields.
        """
        overlap = int(np.intersect1d(found, of_final).size)
        more = (
            {"scores": ()}
            | more
            | {"n_selected": int(found.size), "overlap": overlap, "warnings": recurring(known)}
        )
        return cls(n_train=n_train, n_test=known.size, **more)


@dataclass(frozen=True, slots=True)
class SelectedGroup:
    """A group of which members were selected: by how many members it has, and their weight."""

    name: str
    n_members: int
    n_selected: int
    weight: float


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def without_covariates(
    found: Sequence[SelectedFeature], free: Collection[int]
) -> tuple[tuple[SelectedFeature, ...], tuple[SelectedFeature, ...]]:
    """Return the selected features, ranked, and the covariates, whose numbers are ``free``."""
    selected = [item for item in found if item.index not in free]
    ranked = tuple(replace(item, rank=rank) for rank, item in enumerate(selected, start=1))
    return ranked, tuple(item for item in found if item.index in free)


@dataclass(frozen=True, slots=True, repr=False)
class Content:
    """Everything that a report tells about one selection; ``title`` : the headline, where given.

    Printed, it is the headline and the verdict. chosen_first : whether features were chosen before
    the fit, which is over these alone; covariates : columns that every model has, which are counted
    neither in ``selected`` nor in ``n_features``; evidence : pictures made with the data; scale :
    what coefficients are logarithms of, such as "odds", or ""; terms : how many of how many units
    were selected, where a unit has several columns, and unit : their name; groups : those with a
    selected member; questions : what the reader alone can answer; considered : features that the
    search took up, and whose coefficient is zero; columns : an overview of the data, and rows :
    facts about them; proof : what is proved of a best subset.
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
    considered: tuple[str, ...] = ()
    columns: Sequence[Profile] = ()
    rows: str = ""
    proof: SubsetProof | None = None

    def __repr__(self) -> str:
        return f"{self.headline}\n{self.verdict if self.task != 'matrix' else self.data}"

    @property
    def verdict(self) -> Verdict:
        """Whether the model predicts held-out rows better than a guess."""
        if self.held_out is None:
            return no_verdict("no rows were held out, so nobody knows whether the model predicts")
        return self.held_out.verdict

    @property
    def count(self) -> int:
        """The number of selected units: those with a coefficient other than zero."""
        return self.terms[0] if self.terms else len(self.selected)

    @property
    def headline(self) -> str:
        """The result in one sentence that claims no more than the verdict."""
        if self.title:
            return self.title
        count = self.count
        total = self.terms[1] if self.terms else self.n_features
        of = f"{total:,} {self.unit}s"
        verdict = self.verdict
        unit = self.unit
        if self.terms and total != self.n_features:
            of += f" ({len(self.selected):,} of {_counted(self.n_features, 'column')})"
        covariates = ""
        if self.covariates:
            covariates = f" beside {_counted(len(self.covariates), 'covariate')}"
        if not count:
            return f"No {unit} of {total:,} was selected for {self.target}{covariates}"
        if self.held_out is None:
            return f"{count:,} of {of} selected for {self.target}{covariates}, not tested"
        were = "was" if count == 1 else "were"
        first = f"{count:,} of {of} {were} selected{covariates}{self.again}"
        model = f"a model of {_counted(self.held_out.n_selected, unit)}"
        if verdict.n_folds:
            model = "a model selected in this way"
        if not self.held_out.refitted:
            model = "this model"
        if verdict.better:
            more = f" better than {verdict.guess}" if self.covariates else ""
            return f"{first}; {model} predicts {self.target}{more}"
        if verdict.verdict == "no better":
            return f"{first}; {model} predicts {self.target} no better than {verdict.guess}"
        return f"{first}; too few rows to tell whether {model} predicts {self.target}"

    @property
    def again(self) -> str:
        """The number of features selected again without the held-out rows, after a comma."""
        held_out = self.held_out
        if held_out is None or not held_out.refitted or not self.selected:
            return ""
        share = 100 * held_out.n_test / (held_out.n_test + held_out.n_train)
        return f", {held_out.overlap:,} of them again when {share:.0f}% of the rows were left out"

    @property
    def figures(self) -> list[Figure]:
        """The scores in addition to the verdict, on the terminal and on the page."""
        scores = () if self.held_out is None else self.held_out.scores
        others = [score.figure for score in scores if score.name != self.verdict.score_name]
        kind = self.verdict.kind
        return [(f"{kind} {name}", shown, against) for name, shown, against in others]

    @property
    def recalls(self) -> list[tuple[str, int, float]]:
        """Of each class its held-out rows, and the share of them that was called so."""
        table = () if self.held_out is None else self.held_out.confusion
        labels = [label for label, _ in self.class_counts]
        return [
            (label, sum(row), row[at] / sum(row) if any(row) else float("nan"))
            for at, (label, row) in enumerate(zip(labels, table, strict=False))
        ]

    @property
    def displays(self) -> list[Display]:
        """All pictures of the page, in their order."""
        several = len(self.outputs) > 1 and len(self.selected) > 0
        held_out = self.held_out
        found: list[Display] = [*self.curves, *self.evidence]
        found += self.proof.bounds if self.proof else []
        if several:
            first = self.selected[:12]
            values = np.transpose([item.standardized for item in first])
            found.append(CoefficientDisplay(values, [item.name for item in first], self.outputs))
        if held_out is not None:
            found += held_out.displays
        products = [item for item in self.selected if len(item.factors) == 2]
        if any(item.is_product for item in products):
            sizes = [item.strongest for item in products]
            found.append(InteractionsDisplay.of([item.factors for item in products], sizes))
        drawn = [fit for fit in self.fits if len(fit.history) > 1]  # one point is no line
        if drawn and self.is_bounded:
            histories = [fit.history for fit in drawn]
            labels = [fit.label for fit in drawn]
            found.append(ConvergenceDisplay(histories, self.goal, labels))
        return found

    @property
    def gap_on_selected(self) -> float | None:
        """The largest proved relative gap on the selected features, None if it is over all."""
        gaps = [fit.gap_on_selected for fit in self.fits if fit.gap_on_selected is not None]
        return None if all(fit.converged for fit in self.fits) or not gaps else max(gaps)

    @property
    def over(self) -> str:
        """The set of the gap of the headline, in words."""
        if self.task == "matrix":
            return "all matrices"
        if self.proof is not None:
            return self.proof.over
        some = self.chosen_first or self.gap_on_selected is not None
        return "the selected features" if some else "all features"

    @property
    def headline_gap(self) -> float:
        """The gap on the selected features if their number was given, else on all."""
        gap = self.gap_on_selected
        return self.relative_gap if gap is None else gap

    @property
    def relative_gap(self) -> float:
        """The largest proved relative gap of all fits."""
        return max((fit.relative_gap for fit in self.fits), default=float("inf"))

    @property
    def is_bounded(self) -> bool:
        """Whether the gap bounds anything that matters."""
        return self.relative_gap < 0.9
