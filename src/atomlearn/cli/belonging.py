"""Rows that belong together: whose each row is, or its place in a series, and what to say."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.errors import CommandError
from atomlearn.core.interfaces import Rows
from atomlearn.storage.formats.table import DataTable
from atomlearn.storage.intake.dates import days_of
from atomlearn.storage.intake.targets import absent


def belonging(
    table: DataTable, options: argparse.Namespace, held: NDArray[np.bool_] | None
) -> tuple[Rows | None, Rows | None, list[str]]:
    """Return the group of each row or its place in a series (or None), and what to say of it.

    held : rows that a column of the data holds out.
    """
    if "order" in table.extras:
        if options.rows_of:
            raise CommandError("--rows-of and --order are two ways to hold rows out; give one")
        order, name = _places(table.extras["order"], options.order), options.order
        told = f"the rows are a series by {name}: its end is held out, and each fold lies after "
        return None, order, [told + "the rows it is predicted from"]
    if "rows_of" not in table.extras:
        return None, None, []
    groups = _groups(table.extras["rows_of"])
    n_groups = int(groups.max()) + 1
    uses = {plan.use: plan.name for plan in table.schema.columns}
    name = options.rows_of or uses.get("rows_of") or uses.get("id")
    if n_groups == groups.size:
        return None, None, []
    if n_groups < 2:
        raise CommandError(f"--rows-of {name} has one value only; rows of it cannot be held out")
    said = (
        f"{groups.size:,} rows of {n_groups:,} different {name}: rows of one are held out, folded "
        "and halved together (--rows-of NAME or none says otherwise)"
    )
    both = 0 if held is None else np.intersect1d(groups[held], groups[~held]).size
    if both:
        said += f"; but --split-column has rows of {both:,} {name} in both parts"
    return groups, None, [said]


def _groups(cells: NDArray[Any]) -> Rows:
    """Return the number of the group of each row; where a cell is empty, one of its own."""
    gaps = absent(cells)
    codes = np.unique(cells.astype(str), return_inverse=True)[1].astype(np.int64)
    codes[gaps] = cells.size + np.arange(gaps.sum())
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _places(cells: NDArray[Any], name: str) -> Rows:
    """Return the place of each row in the series: equal dates or numbers have one place."""
    keys: Any = cells
    if cells.dtype.kind in "OUS":
        words = [str(cell) for cell in cells.tolist()]
        days = days_of(words)
        if days is None:
            raise CommandError(f"--order {name} must name a column of numbers or dates")
        times = [word.replace("T", " ").partition(" ")[2] for word in words]
        keys = [f"{day + 1e6:09.0f} {time:>32}" for day, time in zip(days, times, strict=True)]
    places = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    if places.max() == 0:
        raise CommandError(f"--order {name} has one value only, which orders nothing")
    return places
