"""Plans of the columns of a frame, and the faults that keep columns from becoming numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from atomlearn.storage.formats.messages import listing, refuse_all, spread, typed
from atomlearn.storage.intake.cells import is_numeric
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import DOUBT, as_asked, described, is_of_persons, suspicious
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.written import without_limits

#: Number of rows from which on negative numbers are checked for being codes of missing values, in
#: any file.
LEAST_CODES = 4
#: Maximum number of distinct non-numeric cells of a numeric column for which --na is suggested.
MOST_STRAYS = 8


def plans_of(frame: Frame, reading: Reading) -> list[ColumnPlan]:
    """Return a plan for each column of a frame: from the schema, the request, or its cells."""
    roles = {name: role for role, name in reading.named_roles().items()}
    fixed = {plan.name: plan for plan in reading.schema}
    role_columns = [name for name in frame.header if name in roles or name in reading.drop]
    looked_at = [name for name in frame.header if name not in role_columns and name not in fixed]
    proposed = as_asked(
        described(frame, looked_at),
        frame,
        text=reading.text,
        dates=reading.dates,
        categories=reading.categories,
    )
    plans = {plan.name: plan for plan in proposed} | fixed
    for name in role_columns:
        use = roles.get(name, "leave out")
        why = "" if name in roles else "left out by --drop"
        kind = "identifier" if use == "rows_of" else "as asked"
        missing = int(frame.missing(name).sum())
        plans[name] = ColumnPlan(name, kind, use, missing=missing, why=why)
    return [_with_values(frame, plans[name]) for name in frame.header]


def with_rows_of(
    frame: Frame, reading: Reading, plans: Sequence[ColumnPlan]
) -> tuple[Reading, list[ColumnPlan]]:
    """Detect the grouping column ``rows_of``, whose rows stay in one fold, if none is named.

    It is an identifier whose values repeat. Returns the updated request and plans.

    Among several identifiers, one of persons comes first, then the one with the fewest values. An
    identifier that the user leaves out is considered, too: its rows still belong together.
    """
    if {"rows_of", "order"} & {*reading.named_roles(), *reading.roles}:
        return reading, list(plans)
    dropped = described(frame, [name for name in frame.header if name in reading.drop])
    candidates = [
        (plan.use != "id", not is_of_persons(plan.name), plan.distinct, plan.name)
        for plan in (*plans, *dropped)
        if plan.kind == "identifier" or plan.use == "id"
    ]
    for *_, name in sorted(candidates):
        cells = frame.cells(name)[~frame.missing(name)]
        if 1 < np.unique(cells.astype(str)).size < cells.size:
            reading = replace(reading, roles={**reading.roles, "rows_of": name})
            break
    owner = reading.role("rows_of")
    id_column = reading.role("id")
    return reading, [
        replace(plan, use="rows_of") if plan.name == owner != id_column else plan for plan in plans
    ]


def _with_values(frame: Frame, plan: ColumnPlan) -> ColumnPlan:
    """Return the plan with labels, if a schema declares a category without them."""
    if plan.use in ("category", "ordered") and not plan.values:
        labels = sorted({cell for cell in frame.cells(plan.name).tolist() if cell})
        return replace(plan, values=tuple(labels))
    return plan


def with_references(
    frame: Frame, plans: Sequence[ColumnPlan], reading: Reading
) -> tuple[list[ColumnPlan], list[str]]:
    """Return the plans with the reference levels of categories, and notes on those of covariates.

    Columns of all levels of a covariate, which has no penalty, would add up to a constant.
    """
    texts = [part for text in reading.reference for part in text.split(",")]
    references = dict[str, str]()
    for text in texts:
        name, _, references[name] = text.partition("=")
        plan = next((plan for plan in plans if plan.name == name), None)
        levels = () if plan is None or plan.use != "category" else plan.values
        if references[name] not in levels:
            there = f"{name} has {listing(levels)}" if levels else f"{name!r} is no category"
            raise ValueError(
                f"--reference {text}: expected NAME=LEVEL with a level of a category of "
                f"{frame.path}; {there}"
            )
    completed_plans = []
    notes = []
    for plan in plans:
        level = references.get(plan.name, plan.reference)
        is_free = plan.use == "category" and plan.name in reading.covariates
        if is_free and not level and len(plan.values) > 2:
            level = plan.values[0]
            notes.append(
                f"the levels of {plan.name} are compared with {level!r} (another one: --reference "
                f"{plan.name}=LEVEL)"
            )
        completed_plans.append(replace(plan, reference=level))
    return completed_plans, notes


def spread_out(frame: Frame, reading: Reading) -> Reading:
    """Return the request with lists and patterns of names expanded."""
    return replace(
        reading,
        drop=spread(reading.drop, frame.header),
        covariates=spread(reading.covariates, frame.header),
        text=spread(reading.text, frame.header),
        categories=spread(reading.categories, frame.header),
    )


def require(frame: Frame, reading: Reading) -> None:
    """Refuse names of absent columns; if the table seems to be transposed, say so."""
    roles = dict(reading.named_roles())
    if reading.pheno is not None:
        roles.pop("target", None)
    target = roles.get("target")
    others = [name for role, name in roles.items() if role != "target"]
    if target in (*others, *reading.drop, *reading.covariates):
        raise ValueError(f"{target!r} is the target, and can be nothing else beside it")
    for name in roles.values():
        if name in frame.header:
            continue
        first = frame.header[0]
        labels = frame.columns[first]
        texts = [*filter(frame.is_text, frame.columns)]
        if any("--header-row" in note for note in frame.notes):
            frame.require([name])
        is_row = first in texts and name in labels
        if is_row or (texts == [first] and np.unique(labels.astype(str)).size == frame.n_rows):
            raise ValueError(
                f"{frame.path} has no column {name!r}. If its rows are features (as "
                f"{name if is_row else labels[0]!r}) and its columns samples, type --transpose; "
                f"a target in another file comes in by --pheno FILE --pheno-name {name}"
            )
        frame.require([name])
    names = [*reading.drop, *reading.text, *reading.categories]
    if reading.covar is None:
        names += reading.covariates
    frame.require(names)


def refuse(frame: Frame, plans: Sequence[ColumnPlan], reading: Reading) -> None:
    """Raise one error with all faults that keep the columns from becoming numbers."""
    problems = faults_of(frame, plans, reading)
    used_plans = [
        plan for plan in plans if plan.is_used and plan.use != "words" and plan.fill is None
    ]
    checked = used_plans if reading.missing == "refuse" else []
    missing = {plan.name: int(frame.missing(plan.name).sum()) for plan in checked}
    gaps = [name for name, count in missing.items() if count]
    if gaps:
        columns = f"{len(gaps)} columns" if len(gaps) > 1 else "column"
        first = frame.line(int(np.argmax(frame.missing(gaps[0]))))
        text = (
            f"{sum(missing.values())} values are missing or not finite, the first on {first} "
            "(--missing indicator and drop are other ways)"
        )
        problems.append((f"{columns} {listing(gaps)}: {text}", "--missing median"))
    refuse_all(frame.path, problems)


def faults_of(frame: Frame, plans: Sequence[ColumnPlan], reading: Reading) -> list[tuple[str, str]]:
    """Return the faults of columns other than missing values, each with an option or ""."""
    problems = list[tuple[str, str]]()
    roles = ("target", "weights", "offset", "exposure", "time", "event", "entry")
    looked_at = [plan.name for plan in plans if plan.is_used or plan.use in roles]
    codes = {} if reading.keep_codes else codes_in(frame, looked_at)
    if codes:
        cells = [
            f"{code:.0f}"
            for code in sorted(
                {code for codes_of_column in codes.values() for code in codes_of_column}
            )
        ]
        text = f"is {' or '.join(cells)} in {listing(list(codes))} a missing value? If not, type "
        problems.append((f"{text}--keep-codes", typed("--na", cells)))
    mixed = [plan for plan in plans if plan.kind == "mixed" and plan.use == "leave out"]
    if mixed:
        problems += _mixed(mixed)
    if not any(plan.is_used for plan in plans):
        problems.append(_nothing_used(plans))
    return problems


def _nothing_used(plans: Sequence[ColumnPlan]) -> tuple[str, str]:
    """Return the fault that no column is used, and an option that uses columns of text or dates."""
    unused = []
    for plan in plans:
        lack = f", {plan.missing} values missing or not finite" if plan.missing else ""
        if plan.use == "leave out":
            unused.append(f"{plan.name!r} ({plan.kind}{lack})")
    fault = (
        "no column is left for X besides the target; left out: "
        f"{', '.join(unused[:4]) or 'nothing else was there'}"
    )
    texts = [plan.name for plan in plans if plan.kind == "text"]
    if texts:
        return fault, typed("--text", texts)
    if any(plan.kind == "date" for plan in plans):
        return fault, "--dates parts"
    fault += "; give a file with columns to predict from, or say by --schema what is to be made of "
    return fault + "these", ""


def _mixed(plans: Sequence[ColumnPlan]) -> list[tuple[str, str]]:
    """Return the faults of columns of numbers that have other cells, with their remedies.

    Limits of detection are numbers. Few other cells are taken for missing values if the user types
    all of them. Many may be labels; if there are too many, the column is mended or left out.
    """
    limits = dict[str, list[str]]()
    rare_words = dict[str, list[str]]()
    labels = dict[str, list[str]]()
    many = dict[str, list[str]]()
    for plan in plans:
        bare = [cell for cell in plan.values if is_numeric([without_limits(cell)])]
        words = [cell for cell in plan.values if cell not in bare]
        # A cell with a comma would be parsed as two.
        mendable = len(words) <= MOST_STRAYS and "," not in "".join(words)
        others = labels if plan.distinct <= INTAKE.many_values else many
        for cells, cells_of_plan in ((bare, limits), (words, rare_words if mendable else others)):
            cells_of_plan |= {plan.name: cells} if cells else {}
    strays = [cell for words_of_column in rare_words.values() for cell in words_of_column]
    problems = list[tuple[str, str]]()
    for cells_of_plan, fault, option in (
        (rare_words, "among numbers", typed("--na", sorted({*strays}))),
        (limits, "among numbers: limits of detection", "--limits"),
        (labels, "among numbers, as labels have", typed("--categories", [*labels])),
        (many, "among numbers: mend them, or leave the column out", typed("--drop", [*many])),
    ):
        if cells_of_plan:
            distinct_cells = list(
                dict.fromkeys(
                    cell for words_of_column in cells_of_plan.values() for cell in words_of_column
                )
            )
            problems.append(
                (f"{listing([*cells_of_plan])}: {listing(distinct_cells)} {fault}", option)
            )
    return problems


def codes_in(frame: Frame, names: Iterable[str]) -> dict[str, list[float]]:
    """Return the numbers that may stand for a missing value, by column, for columns with any.

    In a file in which most columns with negative numbers have others, rare ones are values.
    """
    numeric = [name for name in names if not frame.is_text(name)]
    suspects = {name: suspicious(frame.columns[name]) for name in numeric}
    below = [name for name, codes in suspects.items() if min(codes, default=0) < 0]
    negative = [name for name in numeric if below and (frame.columns[name] < 0).any()]
    if 2 * len(below) < len(negative):
        for name in below:
            values = frame.columns[name]
            often = [np.count_nonzero(values == code) >= LEAST_CODES for code in suspects[name]]
            suspects[name] = [
                code for code, kept in zip(suspects[name], often, strict=True) if kept
            ]
    return {name: codes for name, codes in suspects.items() if codes}


def made_of(plans: Sequence[ColumnPlan], names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the columns of X that are encoded from these columns of the file."""
    sources = [plan.name for plan in plans if plan.is_used for _ in plan.made()]
    return tuple(column for column, name in enumerate(sources) if name in names)


def left_out(plans: Sequence[ColumnPlan]) -> list[str]:
    """Return notes about the columns that are left out, one for each kind."""
    notes = [f"dates of {plan.name!r} read as {DOUBT}" for plan in plans if plan.why == DOUBT]
    for kind in dict.fromkeys(plan.kind for plan in plans if plan.use == "leave out"):
        if kind == "as asked":
            continue
        same = [plan for plan in plans if plan.use == "leave out" and plan.kind == kind]
        why = f" ({same[0].why})" if len(same) == 1 and same[0].why else ""
        notes.append(f"left out as {kind}: {listing([plan.name for plan in same])}{why}")
    return notes
