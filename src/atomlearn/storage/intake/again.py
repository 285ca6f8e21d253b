"""encoded_again: the columns that a model knows, of new data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Array
from atomlearn.storage.formats.messages import listed, near_names
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.encode import encode
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.problems import Problems


def encoded_again(frame: Frame, plans: Sequence[ColumnPlan]) -> dict[str, Array]:
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
    X = as_design(made.X)
    return {name: X.gather(np.array([j])).dense()[:, 0] for j, name in enumerate(made.names)}
