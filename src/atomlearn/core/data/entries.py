"""What is said of entries that no design takes."""

from __future__ import annotations

from typing import Any

import numpy as np


def refuse_entry(value: Any, row: int, column: int, names: list[str] | None) -> None:
    """Raise ValueError for an entry that is not finite, with its place and the remedy."""
    what = "NaN" if np.isnan(value) else "infinity"
    name = "" if names is None else f", {names[column]!r}"
    raise ValueError(
        f"X contains {what} at (row, column) = ({row}, {column}){name}; impute missing values "
        "(for example with sklearn.impute.SimpleImputer) or leave such rows out"
    )
