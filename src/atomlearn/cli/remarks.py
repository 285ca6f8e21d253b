"""Remarks on rows to predict: values outside of the training range, and cells that were filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from atomlearn.core import Mask
from atomlearn.reports.model import SavedModel

#: Maximum number of columns whose remarks the terminal lists; the file has all of them.
MOST_COLUMNS = 12


def remarks_on(
    model: SavedModel,
    X: Any,
    filled: Mapping[str, tuple[Mask, Any]],
    ids: Sequence[Sequence[str]] | None,
) -> tuple[list[str], list[str]]:
    """Return a remark for each row, "" if there is none, and notes with the columns.

    ``X``, shape (n_rows, n_inputs), holds the inputs of the model. ``filled`` maps a column of the
    file to the mask of its missing cells and the value that replaces them. ``ids`` are the row
    identifiers or None.
    """
    n_rows = X.shape[0]
    remarks_of_rows: list[list[str]] = [[] for _ in range(n_rows)]
    notes = []

    def row_in_words(row: int) -> str:
        """Return the words for a row: its identifier, or its number counted from 1."""
        return f"row {row + 1}" if ids is None else f"id {' '.join(map(str, ids[row]))}"

    # Values outside of the range of the training rows.
    for index, item in enumerate(model.inputs):
        low = item.low
        high = item.high
        if low is None or high is None:
            continue
        values = X[:, index]
        outside = np.flatnonzero((values < low) | (values > high))
        span = f"{low:g} to {high:g}"
        for row in outside.tolist():
            remarks_of_rows[row].append(f"{item.name} {values[row]:g} is outside {span}")
        if outside.size:
            first = f"{values[outside[0]]:g} of {row_in_words(int(outside[0]))}"
            notes.append(
                f"{item.name}: {outside.size:,} of {n_rows:,} values are outside {span}, the range "
                f"of the training rows, such as {first}"
            )
    # Cells that were missing and have been filled.
    for name, (is_missing, fill) in filled.items():
        rows = np.flatnonzero(is_missing)
        fill_text = f"{fill:g}" if type(fill) is float else repr(fill)
        for row in rows.tolist():
            remarks_of_rows[row].append(f"{name} is missing, filled with {fill_text}")
        if rows.size:
            notes.append(
                f"{name}: {rows.size:,} of {n_rows:,} values are missing, such as that of "
                f"{row_in_words(int(rows[0]))}; filled with {fill_text}, as in the fit"
            )
    n_more = len(notes) - MOST_COLUMNS
    notes = [*notes[:MOST_COLUMNS], *([f"and {n_more} more columns"] if n_more > 0 else [])]
    return ["; ".join(texts) for texts in remarks_of_rows], notes
