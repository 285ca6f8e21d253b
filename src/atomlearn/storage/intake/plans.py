"""Plans of the columns of a frame, and the faults that keep columns from becoming numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from atomlearn.storage.formats.messages import listing, refuse_all, spread, typed
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import (
    DOUBT,
    as_asked,
    described,
    is_of_persons,
)
from atomlearn.storage.intake.reading import Reading


def plans_of(frame: Frame, reading: Reading) -> list[ColumnPlan]:
    """Return a plan for each column of a frame: from the schema, the request, or its cells."""
    roles = {name: role for role, name in reading.named_roles().items()}
    given = {plan.name: plan for plan in reading.schema}
    named = [name for name in frame.header if name in roles or name in reading.drop]
    looked_at = [name for name in frame.header if name not in named and name not in given]
    found = as_asked(
        described(frame, looked_at),
        frame,
        text=reading.text,
        dates=reading.dates,
        categories=reading.categories,
    )
    plans = {plan.name: plan for plan in found} | given
    for name in named:
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
    found = [
        (plan.use != "id", not is_of_persons(plan.name), plan.distinct, plan.name)
        for plan in (*plans, *dropped)
        if plan.kind == "identifier" or plan.use == "id"
    ]
    for *_, name in sorted(found):
        known = frame.cells(name)[~frame.missing(name)]
        if 1 < np.unique(known.astype(str)).size < known.size:
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
        is_row = first in texts and name in labels
        if is_row or (texts == [first] and np.unique(labels.astype(str)).size == frame.n_rows):
            raise ValueError(
                f"{frame.path} has no column {name!r}. If its rows are features (as "
                f"{name if is_row else labels[0]!r}) and its columns samples, type --transpose; "
                f"a target in another file comes in by --pheno FILE --pheno-name {name}"
            )
        frame.require([name])
    wanted = [*reading.drop, *reading.text, *reading.categories]
    if reading.covar is None:
        wanted += reading.covariates
    frame.require(wanted)


def refuse(
    path: Path,
    plans: Sequence[ColumnPlan],
    missing: Mapping[str, int],
    where: Callable[[str], str],
) -> None:
    """Raise one error with all faults that keep these columns from becoming numbers.

    Parameters
    ----------
    path : Path
        File to name in the message.
    plans : sequence of ColumnPlan
        Plans of the columns.
    missing : mapping
        Number of missing values by column, for columns that may not have any.
    where : callable
        Returns the place of the first missing value of a column.
    """
    problems = list[tuple[str, str]]()
    mixed = [plan for plan in plans if plan.kind == "mixed" and plan.use == "leave out"]
    if mixed:
        cells = sorted({value for plan in mixed for value in plan.values})
        names = listing([plan.name for plan in mixed])
        problems.append((f"{names}: {listing(cells)} among numbers", f"--na {typed(cells[:5])}"))
    used = [plan for plan in plans if plan.is_used and plan.use != "words" and plan.fill is None]
    gaps = [plan.name for plan in used if missing.get(plan.name)]
    if gaps:
        columns = f"{len(gaps)} columns" if len(gaps) > 1 else "column"
        count = sum(missing[name] for name in gaps)
        text = f"{count} values are missing or not finite, the first on {where(gaps[0])}"
        remedy = "--missing median (or indicator, or drop)"
        problems.append((f"{columns} {listing(gaps)}: {text}", remedy))
    if not any(plan.is_used for plan in plans):
        left = []
        for plan in plans:
            lack = f", {plan.missing} values missing or not finite" if plan.missing else ""
            if plan.use == "leave out":
                left.append(f"{plan.name!r} ({plan.kind}{lack})")
        text = ", ".join(left[:4]) or "nothing else was there"
        text = (
            f"no column is left for X besides the target; left out: {text}; give a file with "
            "columns to predict from, or say by --schema what is to be made of these"
        )
        problems.append((text, ""))
    refuse_all(path, problems)


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
