"""From the cells of a table to columns of numbers: text becomes one column for each value."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.formats.table import Schema, require_name, tidy_target

Array = NDArray[np.float64]


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number; Python reads 1_000 as one, in a data file it is a name."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_missing(cell: str) -> bool:
    """Tell whether a cell stands for a value that is not known."""
    return cell.strip().casefold() in {"", "na", "n/a", "#n/a", "nan", "null", "?"}


@dataclass(frozen=True, slots=True)
class RawTable:
    """The cells of a file: ``numbers`` (rows, columns of numbers) and lists of text.

    slots : for each name of a column of numbers, its position in ``numbers``; texts : the cells
    of each column of text; lines : the line of the file on which each row ends, for messages.
    """

    path: Path
    header: list[str]
    slots: dict[str, int]
    numbers: Array
    texts: dict[str, list[str]]
    lines: array[int]

    def require(self, name: str) -> None:
        """Raise ValueError with near matches where there is no such column."""
        require_name(name, self.header, self.path)

    def cells(self, name: str) -> list[str]:
        """Return a column of text, complete."""
        cells = self.texts[name]
        self._refuse_missing(name, [row for row, cell in enumerate(cells) if is_missing(cell)])
        return cells

    def values(self, name: str) -> Array:
        """Return a column of numbers, complete."""
        values = self.numbers[:, self.slots[name]]
        self._refuse_missing(name, np.flatnonzero(~np.isfinite(values)))
        return values

    def target(self, name: str) -> NDArray[np.generic]:
        """Return a column as a target."""
        self.require(name)
        column = np.array(self.cells(name)) if name in self.texts else self.values(name)
        return tidy_target(column, f"column {name!r} of {self.path}")

    def _refuse_missing(self, name: str, rows: Sequence[int] | NDArray[np.int64]) -> None:
        if len(rows):
            raise ValueError(
                f"column {name!r} of {self.path} has {len(rows)} values that are missing or not "
                f"finite, the first on line {self.lines[rows[0]]}; fill them in, drop those "
                "lines, or leave the column out"
            )


def encode(raw: RawTable, columns: list[str]) -> tuple[Array, Schema]:
    """Return X and its schema: numbers as they are, text one-hot as ``column=value``."""
    if not columns:
        raise ValueError(f"{raw.path} has no column left for X besides the target")
    if list(raw.slots) == columns:
        # The common case, without a copy: every column is a number and a feature.
        for name in columns if not np.isfinite(raw.numbers).all() else ():
            raw.values(name)
        return raw.numbers, Schema(len(columns), tuple(columns))
    parts: list[Array] = []
    names: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    for column in columns:
        if column in raw.texts:
            cells = raw.cells(column)
            categories[column] = _categories(raw, column, cells)
            shown = _shown(categories[column])
            names += [f"{column}={value}" for value in shown]
            parts += _indicators(cells, shown)
        else:
            names.append(column)
            parts.append(raw.values(column))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns of {raw.path} would both be called {twice!r}; rename one")
    X = np.empty((len(raw.lines), len(names)), order="F")
    for j, part in enumerate(parts):
        X[:, j] = part
    return X, Schema(len(names), tuple(names), categories)


def encode_like(raw: RawTable, schema: Schema) -> Array:
    """Return the columns that ``schema`` names, in its order; other columns are left out."""
    if schema.names is None:
        raise ValueError(
            f"{raw.path} has named columns, but the model was fitted to columns without names; "
            "give it data in the format it was fitted to"
        )
    X = np.empty((len(raw.lines), schema.n_features), order="F")
    makers = _makers(raw, schema)
    for j, name in enumerate(schema.names):
        if name in makers:
            X[:, j] = makers[name]()
            continue
        raw.require(name)
        if name in raw.texts:
            cells = raw.cells(name)
            row = next(row for row, cell in enumerate(cells) if not is_number(cell))
            raise ValueError(
                f"column {name!r} of {raw.path} held numbers when the model was fitted; found "
                f"{cells[row]!r} on line {raw.lines[row]}"
            )
        X[:, j] = raw.values(name)
    return X


def _makers(raw: RawTable, schema: Schema) -> dict[str, Callable[[], Array]]:
    """Return, for each one-hot name of the schema, what makes that column."""
    makers: dict[str, Callable[[], Array]] = {}
    for column, known in schema.categories.items():
        raw.require(column)
        if column not in raw.texts:
            raise ValueError(
                f"column {column!r} of {raw.path} holds numbers; when the model was fitted its "
                f"values were {', '.join(map(repr, known[:5]))}"
            )
        cells = raw.cells(column)
        unknown = set(cells).difference(known)
        if unknown:
            row = next(row for row, cell in enumerate(cells) if cell in unknown)
            raise ValueError(
                f"column {column!r} of {raw.path} holds {cells[row]!r} on line "
                f"{raw.lines[row]}, which did not occur when the model was fitted; known are "
                f"{', '.join(map(repr, known))}"
            )
        for value in known:
            makers[f"{column}={value}"] = partial(_indicator, cells, value)
    return makers


def _categories(raw: RawTable, column: str, cells: list[str]) -> tuple[str, ...]:
    """Return the distinct values of a text column, ascending, or raise ValueError."""
    distinct = sorted(set(cells))
    stray = next(row for row, cell in enumerate(cells) if not is_number(cell))
    where = f"column {column!r} of {raw.path}"
    if len(distinct) > LIMITS.most_categories:
        raise ValueError(
            f"{where} is text ({cells[stray]!r} on line {raw.lines[stray]}) with "
            f"{len(distinct)} distinct values; at most {LIMITS.most_categories} are one-hot "
            "encoded. Leave the column out, group its values, or turn it into numbers"
        )
    if any(is_number(value) for value in distinct):
        raise ValueError(
            f"{where} mixes numbers with text ({cells[stray]!r} on line {raw.lines[stray]}); "
            "correct that cell, or put a letter before the numbers if they are categories"
        )
    return tuple(distinct)


def _shown(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values that get a column: of two, the second says it all."""
    return values[1:] if len(values) == 2 else values


def _indicators(cells: list[str], values: Sequence[str]) -> list[Array]:
    return [_indicator(cells, value) for value in values]


def _indicator(cells: list[str], value: str) -> Array:
    indicator: Array = (np.array(cells) == value).astype(np.float64)
    return indicator
