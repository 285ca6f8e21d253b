"""What a report tells, apart from how it looks: plain records that tables and pages read."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from atomlearn.core.problem.result import Record, Result, Status
from atomlearn.findings.verdict import Verdict, no_verdict
from atomlearn.reports.evidence import Evidence


@dataclass(frozen=True, slots=True)
class SelectedFeature:
    """One line of the answer.

    rank : 1 for the largest standardized coefficient; index : among all features, from 0;
    coefficients : one an output, per unit of the data; standardized : the same per standard
    deviation of the feature; scaling : d_j in [0, 1], the share the norm gives it, or None;
    found : the pass over the data that found it, or None; factors : the one or two columns of the
    data that it is the product of; stability : the share of halves of the rows that select it, or
    None; twins : columns that could have stood for it, in words; group : its group, or ""; about :
    what else is known of it, as (header, value).
    """

    rank: int
    name: str
    index: int
    coefficients: tuple[float, ...]
    standardized: tuple[float, ...]
    scaling: float | None
    found: int | None
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


@dataclass(frozen=True, slots=True)
class Score:
    """A figure of merit on rows that no fit has seen, beside that of a guess without features."""

    name: str
    value: float
    baseline: float
    baseline_name: str
    is_share: bool

    @property
    def shown(self) -> str:
        """The value as people read it."""
        return self.format(self.value)

    @property
    def baseline_shown(self) -> str:
        """The value of the guess as people read it."""
        return self.format(self.baseline)

    def format(self, value: float) -> str:
        """Return 95.1% for a share, four digits for any other figure."""
        if self.is_share:
            return f"{100 * value:.1f}%"
        # What is as good as nothing beside what such figures are is not told in many digits.
        return (
            "0"
            if abs(value) < 5e-4 * max(abs(self.value), abs(self.baseline))
            else (f"{value:.4g}")
        )


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The fit of one output: what it proved, why it stopped, and how it went.

    complete : whether it ended as asked, by the proof or by the number of features;
    gap_on_selected : where it ended by that number, the proved relative gap of the coefficients
    with the features as selected.
    """

    label: str
    status: str
    converged: bool
    objective: float
    gap: float
    relative_gap: float
    passes: float
    seconds: float
    history: Sequence[Record] = ()
    complete: bool = True
    gap_on_selected: float | None = None

    @classmethod
    def of(cls, label: str, result: Result, gap_on_selected: float | None) -> FitSummary:
        """Return what a result tells."""
        return cls(
            label,
            str(result.status),
            result.converged,
            result.objective,
            result.gap,
            result.relative_gap,
            result.passes,
            result.seconds,
            tuple(result.history),
            complete=result.converged or result.status is Status.COLUMN_LIMIT,
            gap_on_selected=gap_on_selected,
        )


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the model of the training rows did on the held-out rows.

    confusion[i][j] : rows of class i that were called class j (classification); truth and
    predicted : the numbers (regression); overlap : features that the model of the training rows
    shares with the final one, covariates not counted; refitted : False where the final model is
    that very model; verdict : whether the model predicts better than a guess; evidence : curves on
    these rows.
    """

    n_train: int
    n_test: int
    scores: tuple[Score, ...]
    confusion: tuple[tuple[int, ...], ...] = ()
    truth: tuple[float, ...] = ()
    predicted: tuple[float, ...] = ()
    n_selected: int = 0
    overlap: int = 0
    refitted: bool = True
    verdict: Verdict | None = None
    evidence: Evidence = field(default_factory=Evidence)


@dataclass(frozen=True, slots=True)
class Curve:
    """What one input adds to the prediction of an additive model.

    levels : values of the input; values : one row an output, the addition at each level; deciles :
    of the input over the rows; steps : whether the curve jumps between levels; low, high : like
    values, between which most curves of halves of the rows lie, or empty.
    """

    name: str
    levels: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    deciles: tuple[float, ...] = ()
    steps: bool = False
    low: tuple[tuple[float, ...], ...] = ()
    high: tuple[tuple[float, ...], ...] = ()


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def without_covariates(
    found: Sequence[SelectedFeature], free: Collection[int]
) -> tuple[tuple[SelectedFeature, ...], tuple[SelectedFeature, ...]]:
    """Return what was selected, ranked anew, and the covariates, by their numbers ``free``."""
    selected = [item for item in found if item.index not in free]
    ranked = tuple(replace(item, rank=rank) for rank, item in enumerate(selected, start=1))
    return ranked, tuple(item for item in found if item.index in free)


@dataclass(frozen=True, slots=True, repr=False)
class Content:
    """Everything that a report tells about one selection; ``title`` : the headline, where given.

    Printed, it is the headline and the verdict. chosen_first : whether features were chosen before
    the fit, which is over these alone; covariates : columns that every model has, which are counted
    neither in ``selected`` nor in ``n_features``.
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
    target_values: tuple[float, ...] = ()
    curves: tuple[Curve, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    details: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""
    python: str = ""
    scorer: str = ""
    versions: str = ""
    files: tuple[str, ...] = field(default=("selected.csv", "model.json"))
    title: str = ""
    chosen_first: bool = False
    covariates: tuple[SelectedFeature, ...] = ()

    def __repr__(self) -> str:
        return f"{self.headline}\n{self.verdict if self.task != 'matrix' else self.data}"

    @property
    def verdict(self) -> Verdict:
        """Whether the model predicts better than a guess; rows held out are what it is known by."""
        if self.held_out is None or self.held_out.verdict is None:
            return no_verdict("no rows were held out, so nobody knows whether the model predicts")
        return self.held_out.verdict

    @property
    def headline(self) -> str:
        """What was found, in words that claim no more than the verdict does."""
        if self.title:
            return self.title
        count, of, verdict = len(self.selected), f"{self.n_features:,}", self.verdict
        beside = f" beside {_counted(len(self.covariates), 'covariate')}" if self.covariates else ""
        if not count:
            return f"No feature of {of} was selected for {self.target}{beside}"
        if self.held_out is None:
            return f"{count:,} of {of} features selected for {self.target}{beside}, not tested"
        were = "was" if count == 1 else "were"
        first = f"{count:,} of {of} features {were} selected{beside}{self.again}"
        model = f"a model of {_counted(self.held_out.n_selected, 'feature')}"
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
        """How many features were selected again without the held-out rows, after a comma."""
        held_out = self.held_out
        if held_out is None or not held_out.refitted or not self.selected:
            return ""
        share = 100 * held_out.n_test / (held_out.n_test + held_out.n_train)
        return f", {held_out.overlap:,} of them again when {share:.0f}% of the rows were left out"

    @property
    def converged(self) -> bool:
        """True where every fit proved the accuracy it was asked for."""
        return all(fit.converged for fit in self.fits)

    @property
    def complete(self) -> bool:
        """True where every fit ended as asked, by the proof or by the number of features."""
        return all(fit.complete for fit in self.fits)

    @property
    def gap_on_selected(self) -> float | None:
        """The largest proved relative gap on the selected features, None where all are in it."""
        gaps = [fit.gap_on_selected for fit in self.fits if fit.gap_on_selected is not None]
        return None if self.converged or not gaps else max(gaps)

    @property
    def over(self) -> str:
        """What the headline gap is over."""
        if self.task == "matrix":
            return "all matrices"
        some = self.chosen_first or self.gap_on_selected is not None
        return "the selected features" if some else "all features"

    @property
    def headline_gap(self) -> float:
        """The gap that answers what was asked: on the selected features, or on all."""
        gap = self.gap_on_selected
        return self.relative_gap if gap is None else gap

    @property
    def relative_gap(self) -> float:
        """The largest proved relative gap of all fits.

        Relative to an objective that is 0 up to rounding there is none: there it is what a float
        can tell at all.
        """
        perfect, least = str(Status.PERFECT_FIT), sys.float_info.epsilon
        gaps = (least if fit.status == perfect else fit.relative_gap for fit in self.fits)
        return max(gaps, default=float("inf"))
