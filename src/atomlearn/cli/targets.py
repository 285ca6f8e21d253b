"""Prepare the target column for a loss: the task, the classes, and y as numbers or class codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.arguments import event_column
from atomlearn.cli.options import CommandError
from atomlearn.reports.model import Label
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.columns import INTAKE
from atomlearn.survival.events import Events, read_events
from atomlearn.survival.target import survival_records


@dataclass(frozen=True, slots=True)
class Target:
    """The target of all rows, prepared for a loss.

    ``classes`` are the labels in the order of their codes, or None for regression and survival.
    ``values``, shape (n_samples,), are float64 numbers, int64 codes that index ``classes``, or a
    structured array of ``losses.survival_target``. ``guessed`` says how the task was inferred from
    the values, or is "" if it was given. ``events`` says how the labels of a status column were
    read, or is None. ``strata`` are the labels of the strata in the order of their codes.
    """

    name: str
    classes: tuple[Label, ...] | None
    values: NDArray[Any]
    guessed: str = ""
    events: Events | None = None
    strata: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """The task: ``classification``, ``regression`` or ``survival``."""
        if self.is_survival:
            return "survival"
        return "regression" if self.classes is None else "classification"

    @property
    def is_survival(self) -> bool:
        """Whether the values are right-censored survival times."""
        return self.values.dtype.names is not None

    @property
    def event_counts(self) -> str:
        """The events and strata of survival data in words, "" for other targets."""
        if not self.is_survival:
            return ""
        coding = "" if self.events is None else f"; {self.events.words}"
        return (
            f"; {int(self.values['event'].sum()):,} of all {self.values.size:,} have an event"
            f" (strata: {np.unique(self.values['stratum']).size}){coding}"
        )

    @property
    def codes(self) -> NDArray[np.int64] | None:
        """The labels for stratified splits: class codes, event indicators, or None.

        The event indicator of a survival time is 1 for an observed event and 0 for a censored row.
        """
        if self.is_survival:
            return np.asarray(self.values["event"], dtype=np.int64)
        return None if self.classes is None else self.values

    @property
    def labels(self) -> list[str] | None:
        """The class labels as text, or None for regression and survival."""
        return None if self.classes is None else [str(label) for label in self.classes]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the model outputs.

        Two classes have one output, named after the positive class; more classes have one output
        each; other targets have one output, named after the target.
        """
        labels = self.labels or [self.name]
        return tuple(labels[1:] if len(labels) == 2 else labels)


def prepare_target(y: NDArray[Any], name: str, task: str, positive: str | None) -> Target:
    """Return the target for this task; ``auto`` infers the task from the values.

    ``y``, shape (n_samples,), is the target column, ``name`` its name for error messages, and
    ``positive`` the comma-separated labels of the positive class (one-vs-rest), or None.
    """
    values = np.asarray(y)
    if values.ndim != 1 or values.size == 0:
        raise CommandError(
            f"target {name!r} must be one column with at least one row, got shape {values.shape}"
        )
    guessed = ""
    if positive is not None:
        if task == "regression":
            raise CommandError(
                "--positive makes a classification; leave it or --task regression out"
            )
        return _one_against_rest(values, name, positive)
    # The task is inferred from the values if it is not given.
    if task == "auto":
        task, guessed = _inferred_task(values, name)
    if task == "regression":
        remedy = "; a regression needs numbers: use --task classification, or another --target"
        return Target(name, None, numbers_in(values, f"target {name!r}", remedy=remedy), guessed)
    labels, codes = _labels(values, name)
    if len(labels) < 2:
        raise CommandError(
            f"target {name!r} has the same value {labels[0]!r} in every row; there is nothing "
            "to distinguish: choose another --target (genotypes: --pheno), or rows that differ"
        )
    return Target(name, labels, codes, guessed)


def survival_of(
    times: NDArray[Any],
    events: NDArray[Any],
    time: str,
    event: str,
    entry: NDArray[Any] | None = None,
    stratum: NDArray[Any] | None = None,
    competing: str | None = None,
) -> Target:
    """Return the survival target of a column of times and a column of event labels.

    ``time`` is the name of the column of times, ``event`` the text of --event and ``competing``
    that of --competing. ``entry`` holds the times at which rows come under observation (left
    truncation), and ``stratum`` the strata of the Cox model; both may be None.
    """
    numbers = numbers_in(times, f"--time {time}", least=0.0)
    entry = None if entry is None else numbers_in(entry, "--entry")
    name, labels = event_column(event)
    modeled = competing if competing in (None, "all") else competing.split(",")
    events_read = read_events(events, name, labels, modeled)
    y = survival_records(events_read, numbers, entry, stratum)
    if not y["event"].any():
        raise CommandError(f"--event {event} says that no row has an event; name another column")
    strata = () if stratum is None else tuple(labels_in(np.unique(stratum)))
    return Target(f"{time} until {event}", None, y, events=events_read, strata=strata)


def labels_in(cells: NDArray[Any]) -> list[str]:
    """Return cells as a list of text; whole numbers have all their digits and no decimal point."""
    return [
        format(cell, ".15g" if cell % 1 else ".0f") if type(cell) is float else str(cell)
        for cell in cells.tolist()
    ]


def _inferred_task(values: NDArray[Any], name: str) -> tuple[str, str]:
    """Return the task inferred from the values, and the reason in words.

    ``name`` is that of the target. Text and few distinct integers are class labels, unless the
    integers look like counts.
    """
    if values.dtype.kind not in "iuf":
        return "classification", f"{name!r} holds labels"
    distinct = np.unique(values)
    is_whole = bool(np.all(distinct == np.round(distinct)))
    is_discrete = is_whole and distinct.size <= min(INTAKE.most_values, values.size // 2)
    if is_discrete and _looks_like_counts(values, distinct):
        span = f"from {distinct[0]:g} to {distinct[-1]:g}"
        return "regression", f"{name!r} looks like counts, {span}: --loss poisson is for those"
    if distinct.size <= 2 or is_discrete:
        return "classification", f"{name!r} has {distinct.size} different values"
    return "regression", f"{name!r} has {distinct.size} different numbers"


def _looks_like_counts(values: NDArray[Any], distinct: NDArray[Any]) -> bool:
    """Return whether the distribution of few distinct integers looks like counts.

    Counts start at 0 or 1. Their frequencies rise to the mode and then fall to a small tail, up to
    a tolerance of two standard deviations; codes of classes have no such order. ``distinct`` holds
    the sorted distinct values.
    """
    span = distinct[-1] - distinct[0]
    if distinct.size < 5 or distinct[0] not in (0, 1) or span > 2 * distinct.size:
        return False
    counts = np.bincount((values - distinct[0]).astype(np.int64))
    mode = int(np.argmax(counts))
    if mode > 2 and (distinct[0] == 1 or distinct.size < 8 or mode > span / 2):
        return False  # school grades are unimodal too, with a mode near the middle
    tolerance = 2.0 * np.sqrt(counts) + 1.0
    falls = (counts[mode + 1 :] <= (counts + tolerance)[mode:-1]).all()
    rises = (counts[:mode] <= (counts + tolerance)[1 : mode + 1]).all()
    return bool(rises and falls) and counts[-1] < 0.25 * counts[mode]


def numbers_in(
    values: NDArray[Any], subject: str, least: float = -np.inf, remedy: str = ""
) -> NDArray[np.float64]:
    """Return the values as float64; raise a CommandError unless all are finite and >= ``least``.

    ``subject`` names the values in error messages, and ``remedy`` is text that is appended to the
    message about values that are not numbers.
    """
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise CommandError(f"{subject} must be numbers ({error}){remedy}") from error
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise CommandError(
            f"{subject} is missing or infinite in {bad.size} rows, the first one is row {bad[0]} "
            "(counted from 0); leave these rows out"
        )
    if (numbers < least).any():
        expected = "positive numbers" if least > 0 else "numbers of at least 0"
        raise CommandError(f"{subject} must be {expected}, found {numbers.min():g}")
    return numbers


def _labels(values: NDArray[Any], name: str) -> tuple[tuple[Label, ...], NDArray[np.int64]]:
    """Return the sorted distinct labels and the class code of each row, shape (n_rows,).

    ``name`` is that of the target, for error messages. Whole numbers become int labels. ``values``
    is the target of all rows.
    """
    if values.dtype.kind == "f":
        values = numbers_in(values, f"target {name!r}")
        if (values == np.rint(values)).all() and (np.abs(values) < 2**53).all():
            values = values.astype(np.int64)
    distinct, codes = np.unique(values, return_inverse=True)
    return tuple(distinct.tolist()), codes.astype(np.int64)


def _one_against_rest(values: NDArray[Any], name: str, positive: str) -> Target:
    """Return the binary target whose positive class is these labels (one-vs-rest).

    ``positive`` is one label, or several labels separated by commas. ``values`` is the target of
    all rows and ``name`` its name.
    """
    labels, codes = _labels(values, name)
    code_of = {str(label): code for code, label in enumerate(labels)}
    # The whole text is compared first, because a label may contain a comma.
    listed_labels = [listed_label.strip() for listed_label in positive.split(",")]
    positive_labels = [positive] if positive in code_of else listed_labels
    for listed_label in positive_labels:
        if listed_label not in code_of:
            raise CommandError(
                f"--positive {listed_label!r} is not a label of target {name!r}; its labels are "
                f"{listing(list(code_of))}"
            )
    is_positive = np.isin(codes, [code_of[listed_label] for listed_label in positive_labels])
    if is_positive.all():
        raise CommandError(
            f"--positive {positive!r} covers every row of target {name!r}; leave a label out"
        )
    other_labels = [label for label in labels if str(label) not in positive_labels]
    positive_name = (
        labels[code_of[positive_labels[0]]]
        if len(positive_labels) == 1
        else ", ".join(positive_labels)
    )
    other = other_labels[0] if len(other_labels) == 1 else f"not {', '.join(positive_labels)}"
    return Target(name, (other, positive_name), is_positive.astype(np.int64))
