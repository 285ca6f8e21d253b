"""Plans of the columns of a frame, and faults that prevent columns from becoming numbers.

A plan (``ColumnPlan``) says which kind a column of a file is, how it is used, and how it is encoded
as columns of X.
"""

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

#: Number of times that a negative number must occur in a column to count as a code of missing
#: values, in files with many columns of negative numbers.
LEAST_CODES = 4
#: Maximum number of distinct non-numeric cells of a numeric column for which --na is suggested.
MOST_STRAYS = 8


def plans_of(frame: Frame, reading: Reading) -> list[ColumnPlan]:
    """Return a plan for each column of a frame, in the order of the frame.

    A plan says which kind a column is, how it is used, and how it is encoded. ``reading`` decides
    the plan of columns with a role, such as target or weights, and of columns to leave out. Other
    columns have the plan of the schema in ``reading``, or else one that is detected from the cells.
    """
    # Roles by the name of their column; plans of the schema by name.
    roles = {name: role for role, name in reading.named_roles().items()}
    fixed = {plan.name: plan for plan in reading.schema}
    role_columns = [name for name in frame.header if name in roles or name in reading.drop]
    unknown = [name for name in frame.header if name not in role_columns and name not in fixed]
    proposed = as_asked(
        described(frame, unknown),
        frame,
        text=reading.text,
        dates=reading.dates,
        categories=reading.categories,
    )
    plans = {plan.name: plan for plan in proposed} | fixed
    # Columns that are no features.
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
    """Detect the column with the role ``rows_of``, and return the updated choices and plans.

    Rows with the same value in this column belong together, such as rows of one patient, and stay
    in one fold. The column is an identifier whose values repeat. If there are several, the column
    of row names is preferred, then one that identifies persons, then the one with fewest values. A
    column that the user leaves out is considered, too. Nothing is detected if the user names
    ``rows_of`` or ``order``. ``frame`` has the cells, ``reading`` the choices of the user, and
    ``plans`` are those of all columns.
    """
    if {"rows_of", "order"} & {*reading.named_roles(), *reading.roles}:
        return reading, list(plans)
    dropped = described(frame, [name for name in frame.header if name in reading.drop])
    # Sorted in this order: the column of row names, columns of persons, fewest values.
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
    # The column of row names keeps its use.
    rows_of = reading.role("rows_of")
    id_column = reading.role("id")
    return reading, [
        replace(plan, use="rows_of") if plan.name == rows_of != id_column else plan
        for plan in plans
    ]


def _with_values(frame: Frame, plan: ColumnPlan) -> ColumnPlan:
    """Return the plan of a column, with labels from ``frame`` if it is a category without labels.

    A schema that a person wrote may declare a category and not list its labels.
    """
    if plan.use in ("category", "ordered") and not plan.values:
        labels = sorted({cell for cell in frame.cells(plan.name).tolist() if cell})
        return replace(plan, values=tuple(labels))
    return plan


def with_references(
    frame: Frame, plans: Sequence[ColumnPlan], reading: Reading
) -> tuple[list[ColumnPlan], list[str]]:
    """Return the plans of columns with reference levels of categories, and notes for the user.

    The notes are about covariates. ``frame`` is for messages. A reference level gets no column. The
    user names them in ``reading``. A covariate needs one: it has no penalty, and columns of all of
    its levels add up to a constant column.
    """
    # ``references`` has the level by the name of the column.
    texts = [part for text in reading.reference for part in text.split(",")]
    references = dict[str, str]()
    for text in texts:
        name, _, references[name] = text.partition("=")
        plan = next((plan for plan in plans if plan.name == name), None)
        levels = () if plan is None or plan.use != "category" else plan.values
        if references[name] not in levels:
            finding = f"{name} has {listing(levels)}" if levels else f"{name!r} is no category"
            raise ValueError(
                f"--reference {text}: expected NAME=LEVEL with a level of a category of "
                f"{frame.path}; {finding}"
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
    """Return ``reading`` with lists and patterns of names replaced by columns of ``frame``."""
    return replace(
        reading,
        drop=spread(reading.drop, frame.header),
        covariates=spread(reading.covariates, frame.header),
        text=spread(reading.text, frame.header),
        categories=spread(reading.categories, frame.header),
    )


def require(frame: Frame, reading: Reading) -> None:
    """Refuse choices in ``reading`` that name columns which ``frame`` does not have.

    If the rows of the table seem to be features, the message says how to transpose it. The target
    must have no other role.
    """
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
        # The table seems to be transposed if the name is in its first column, or if this is the
        # only column of text, without repetitions.
        first = frame.header[0]
        labels = frame.columns[first]
        texts = [*filter(frame.is_text, frame.columns)]
        # A note says that the names may be on another line: this is likelier than a transposition.
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
    """Raise one ValueError with all faults that prevent columns from becoming numbers.

    ``plans`` are those of the columns of ``frame``, and ``reading`` has the choices of the user,
    such as how missing values are treated.
    """
    problems = faults_of(frame, plans, reading)
    # Missing values are a fault only if they are to be refused and have no imputed value. A missing
    # text has no words, so it is no fault.
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
    """Return the faults of columns other than missing values, each with an option or "".

    The option, of the command line, remedies the fault. ``plans`` are those of the columns of
    ``frame``, and ``reading`` has the choices of the user.
    """
    problems = list[tuple[str, str]]()
    # Numbers that may be codes of missing values, such as -9, in columns of numbers.
    roles = ("target", "weights", "offset", "exposure", "time", "event", "entry")
    numeric = [plan.name for plan in plans if plan.is_used or plan.use in roles]
    codes = {} if reading.keep_codes else codes_in(frame, numeric)
    if codes:
        distinct = sorted({code for codes_of_column in codes.values() for code in codes_of_column})
        cells = [f"{code:.0f}" for code in distinct]
        text = f"is {' or '.join(cells)} in {listing(list(codes))} a missing value? If not, type "
        problems.append((f"{text}--keep-codes", typed("--na", cells)))
    mixed = [plan for plan in plans if plan.kind == "mixed" and plan.use == "leave out"]
    if mixed:
        problems += _mixed(mixed)
    if not any(plan.is_used for plan in plans):
        problems.append(_nothing_used(plans))
    return problems


def _nothing_used(plans: Sequence[ColumnPlan]) -> tuple[str, str]:
    """Return the fault that no column is used, and an option that would use some, or "".

    The option uses columns of text or of dates, if ``plans`` has any.
    """
    # Each unused column with its kind, which is the reason.
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
    """Return the faults of columns of numbers that have other cells, with options as remedies.

    ``plans`` are those of such columns; their ``values`` are the other cells. Limits of detection
    such as <0.5 can be read as numbers (--limits). A few other cells, such as "unknown", may mean
    missing values (--na). If there are more, the numbers may be labels (--categories). If there are
    too many, the column has to be mended or left out (--drop).
    """
    # Cells that are no numbers, by column, for each of the four remedies.
    limits = dict[str, list[str]]()
    rare_words = dict[str, list[str]]()
    labels = dict[str, list[str]]()
    too_many = dict[str, list[str]]()
    for plan in plans:
        detection = [cell for cell in plan.values if is_numeric([without_limits(cell)])]
        words = [cell for cell in plan.values if cell not in detection]
        # A cell with a comma would be parsed as two in the value of an option.
        can_be_listed = len(words) <= MOST_STRAYS and "," not in "".join(words)
        others = labels if plan.distinct <= INTAKE.many_values else too_many
        if can_be_listed:
            others = rare_words
        for cells, cells_of in ((detection, limits), (words, others)):
            cells_of |= {plan.name: cells} if cells else {}
    strays = [cell for cells in rare_words.values() for cell in cells]
    drop = typed("--drop", [*too_many])
    problems = list[tuple[str, str]]()
    # Each remedy that any column needs is a fault, which names the columns and their cells.
    for cells_of, fault, option in (
        (rare_words, "among numbers", typed("--na", sorted({*strays}))),
        (limits, "among numbers: limits of detection", "--limits"),
        (labels, "among numbers, as labels have", typed("--categories", [*labels])),
        (too_many, "among numbers: mend them, or leave the column out", drop),
    ):
        if cells_of:
            distinct = list(dict.fromkeys(cell for cells in cells_of.values() for cell in cells))
            problems.append((f"{listing([*cells_of])}: {listing(distinct)} {fault}", option))
    return problems


def codes_in(frame: Frame, names: Iterable[str]) -> dict[str, list[float]]:
    """Return the numbers, such as -9, that may mean a missing value, by column, if it has any.

    Only the columns ``names`` of ``frame`` are searched. If most columns with negative numbers have
    ordinary ones, only numbers that occur several times in a column are reported.
    """
    # ``below`` are the columns with negative candidates, ``negative`` all with negative numbers.
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
    """Return the numbers of the columns of X that are made of the file's columns ``names``.

    ``plans`` say which columns of X each column of the file makes.
    """
    sources = [plan.name for plan in plans if plan.is_used for _ in plan.made()]
    return tuple(column for column, name in enumerate(sources) if name in names)


def left_out(plans: Sequence[ColumnPlan]) -> list[str]:
    """Return notes about the columns that are left out, one for each kind of column.

    Dates whose order of day and month is a guess get a note, too.
    """
    notes = [f"dates of {plan.name!r} read as {DOUBT}" for plan in plans if plan.why == DOUBT]
    for kind in dict.fromkeys(plan.kind for plan in plans if plan.use == "leave out"):
        if kind == "as asked":
            continue
        same = [plan for plan in plans if plan.use == "leave out" and plan.kind == kind]
        why = f" ({same[0].why})" if len(same) == 1 and same[0].why else ""
        notes.append(f"left out as {kind}: {listing([plan.name for plan in same])}{why}")
    return notes
