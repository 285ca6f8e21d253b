"""Columns of categories for knockoffs: a group of 0/1 columns each, which is told as one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.convert import readable
from atomlearn.core.data.frames import as_table, table_names
from atomlearn.core.interfaces import Array, Columns
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.encode import encode_columns
from atomlearn.storage.intake.kinds import days_of
from atomlearn.storage.intake.typed import frame_of


def indicators_of(estimator: Any, X: Any) -> tuple[Array, Columns | None]:
    """Return X as an array, and which columns of it are of one column of X; None: each its own.

    Sets what scikit-learn's ``validate_data`` sets.
    """
    table = as_table(X)
    if table_names(table):
        frame = frame_of(table)
        labels = {name: set(frame.cells(name)) for name in filter(frame.is_text, frame.header)}
        # A table with dates is refused below, as elsewhere.
        if labels and all(days_of(list(cells)) is None for cells in labels.values()):
            return _encoded(estimator, X, frame, labels)
    array: Any = validate_data(
        estimator, readable(X), dtype=np.float64, accept_sparse="csc", ensure_min_samples=2
    )
    return (array.toarray() if is_sparse(array) else array), None


def _encoded(
    estimator: Any, X: Any, frame: Any, labels: dict[str, set[str]]
) -> tuple[Array, Columns]:
    validate_data(estimator, X, skip_check_array=True)
    many = [name for name in labels if len(labels[name]) > INTAKE.many_values]
    gaps = [name for name in frame.header if frame.missing(name).any()]
    for names, what, remedy in (
        (many, f"more than {INTAKE.many_values} different values", "group them, or leave it out"),
        (gaps, "missing values", "fill them in, for example by datasets.read(missing='median')"),
    ):
        if names:
            raise ValueError(f"column {names[0]!r} of X has {what}; {remedy}")
    plans = [
        ColumnPlan(name, "category", "category", tuple(sorted(labels[name])))
        if name in labels
        else ColumnPlan(name)
        for name in frame.header
    ]
    made = encode_columns(frame, plans)
    own = np.arange(len(plans))
    return made.X, np.repeat(own, [len(plan.made()) for plan in plans])
