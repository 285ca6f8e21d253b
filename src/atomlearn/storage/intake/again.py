"""read_again: the columns that a model knows, of new data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.storage.formats.messages import listed, near_names
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.encode import encode
from atomlearn.storage.intake.frame import Frame, transposed
from atomlearn.storage.intake.problems import Problems


@dataclass(frozen=True, slots=True)
class Again:
    """Columns of new rows, by name."""

    columns: dict[str, NDArray[np.float64]]
    n_rows: int


def frame_again(
    path: Path,
    form: TextForm,
    sheet: str | None = None,
    on_its_side: bool = False,
    id: str | None = None,
) -> tuple[Frame, list[str] | None] | None:
    """Return the frame of new data and names of its rows; None where it is no table of cells."""
    kind = format_of(path)
    if kind.cells is None:
        return None
    named = form if id is None else replace(form, labels=frozenset({id}))
    frame = kind.cells(path, named, sheet).frame()
    return transposed(frame) if on_its_side else (frame, None)


def encoded_again(frame: Frame, plans: Sequence[ColumnPlan]) -> Again:
    """Return the columns that these plans make of new cells.

    A missing value counts as it did when the model was fitted; where it was refused then it is
    refused now, with all such columns in one message.
    """
    used = [plan for plan in plans if plan.is_used]
    problems = Problems(frame.path)
    lost = [plan.name for plan in used if plan.name not in frame.header]
    if lost:
        hint = near_names(lost[0], frame.header) if len(lost) == 1 else ""
        told = "is no column" if len(lost) == 1 else "are no columns"
        first = frame.texts.get(frame.header[0])
        turned = first is not None and not set(lost).isdisjoint(first.tolist())
        if turned:
            hint = "; they are in its first column"
        problems.add(
            f"there {told} {listed(lost)}, which the model reads{hint}",
            "--transpose" if turned else "",
        )
    gaps = [
        plan.name
        for plan in used
        if plan.fill is None
        and plan.use != "words"
        and plan.name not in lost
        and frame.missing(plan.name).any()
    ]
    if gaps:
        row = int(np.flatnonzero(frame.missing(gaps[0]))[0])
        problems.add(
            f"{listed(gaps)}: values are missing, the first on {frame.line(row)}, and the model "
            "has no rule for them: fill them in, or fit it with --missing median"
        )
    problems.refuse()
    made = encode(frame, used)
    X = made.X.tocsc() if is_sparse(made.X) else made.X
    columns = {name: _column(X, place) for place, name in enumerate(made.names)}
    return Again(columns, frame.n_rows)


def _column(X: Any, place: int) -> NDArray[np.float64]:
    column = X[:, place]
    return np.asarray(column.toarray().ravel() if is_sparse(X) else column, dtype=np.float64)
