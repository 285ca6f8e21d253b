"""Targets and other numbers of rows: which rows have them, and in which type they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.table import tidy_target
from atomlearn.storage.intake.columns import OPTIONAL


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a target (or another role) has no value."""
    if values.dtype.kind in "OUS":
        return np.array([str(cell) == "" for cell in values.tolist()], dtype=bool)
    return ~np.isfinite(values.astype(np.float64, copy=False))


def known_rows(
    y: NDArray[Any] | None, name: str | None, extras: Mapping[str, NDArray[Any]], n_rows: int
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows that have a target and all roles, and notes about the others."""
    kept, notes = np.ones(n_rows, dtype=bool), []
    given = {} if y is None else {f"the target {name!r}": y}
    given |= {role: values for role, values in extras.items() if role not in OPTIONAL}
    for what, values in given.items():
        gaps = absent(values)
        if gaps.all():
            raise ValueError(f"{what} has no value in any row; choose another column")
        if gaps.any():
            notes.append(f"{int(gaps.sum())} of {n_rows} rows lack {what} and are left out")
            kept &= ~gaps
    if not kept.any():
        raise ValueError("no row has both a target and all other numbers that were asked for")
    return np.flatnonzero(kept), notes


def tidy(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Return a target as int64, float64 or text."""
    if values.dtype.kind == "O":
        values = np.array([str(cell) for cell in values.tolist()], dtype=np.str_)
    return tidy_target(values, where)
