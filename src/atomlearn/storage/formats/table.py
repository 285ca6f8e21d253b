"""DataTable and Schema: what a data file holds, and how to read the next one like it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_NAMES_LISTED = 10


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of X: enough to read another file into the same columns.

    n_features : number of columns; names : their names, None where the file has none (they are
    then called x0, x1, ... counting from ``first_index``, which is 1 for a libsvm file that counts
    from one); categories : for each one-hot encoded column of the file, all its values.
    """

    n_features: int
    names: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    first_index: int = 0

    def name(self, column: int) -> str:
        """Return the name of a column of X."""
        return f"x{column + self.first_index}" if self.names is None else self.names[column]

    def restricted_to(self, columns: Sequence[int] | NDArray[np.int64]) -> Schema:
        """Return the schema of these columns only: enough for a model that uses no others.

        Only named columns can be read without the rest, so a schema without names is refused.
        """
        if self.names is None:
            raise ValueError("only a schema with column names can be restricted; keep it whole")
        names = tuple(self.names[column] for column in columns)
        kept = set(names)
        categories = {
            column: values
            for column, values in self.categories.items()
            if any(f"{column}={value}" in kept for value in values)
        }
        return Schema(len(names), names, categories, self.first_index)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, numbers and strings, for JSON."""
        return {
            "n_features": self.n_features,
            "names": None if self.names is None else list(self.names),
            "categories": {name: list(values) for name, values in self.categories.items()},
            "first_index": self.first_index,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Schema:
        """Return the schema that ``to_dict`` stored."""
        names = stored["names"]
        return cls(
            int(stored["n_features"]),
            None if names is None else tuple(str(name) for name in names),
            {str(name): tuple(values) for name, values in stored["categories"].items()},
            int(stored["first_index"]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """A data file in memory.

    X : (n_samples, n_features) float array or CSR/CSC matrix, all finite; y : (n_samples,) as the
    file has it (int64, float64 or strings), None where no target was asked for; target_name : the
    column or key it came from; schema : the columns of X; source : the file.
    """

    X: Any
    y: NDArray[Any] | None
    schema: Schema
    target_name: str | None
    source: str

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns of X, None where the file has none."""
        return self.schema.names


def tidy_target(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Return a target as int64 where all numbers are whole, else float64, or strings as they are.

    Raises ValueError where a number is NaN or infinite.
    """
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"{where} has shape {values.shape}; expected one target per sample")
    if values.dtype.kind in "US":
        return values.astype(np.str_)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{where} has type {values.dtype}; expected numbers or strings")
    numbers = values.astype(np.float64)
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise ValueError(
            f"{where} has {int(bad.sum())} values that are NaN or infinite, the first for sample "
            f"{int(np.argmax(bad))} (counting from 0); drop those samples or fill them in"
        )
    if np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2.0**53):
        return numbers.astype(np.int64)
    return numbers


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Return "; did you mean ...?" or a list of what there is, for error messages."""
    known = list(names)
    folded = {name.casefold(): name for name in reversed(known)}
    near = difflib.get_close_matches(wanted.casefold(), folded, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(repr(folded[name]) for name in near)}?"
    listed = ", ".join(repr(name) for name in known[:_MOST_NAMES_LISTED])
    more = f", ... ({len(known)} in all)" if len(known) > _MOST_NAMES_LISTED else ""
    return f"; there are {listed}{more}" if known else "; there are none"
