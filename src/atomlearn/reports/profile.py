"""An overview of the data: distribution of each column, missing values, and duplicate rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atomlearn.core import Array, Columns, Design, dense_part
from atomlearn.reports.drawing import MOST_NAMED


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one column: missing and distinct values, quantiles and a histogram.

    ``quantiles`` are the minimum, the median and the maximum. ``bars`` are the heights of the
    histogram bars relative to the largest bar.
    """

    name: str
    missing: int
    distinct: int
    quantiles: tuple[float, float, float]
    bars: tuple[float, ...]

    @classmethod
    def of(cls, name: str, values: Array, missing: int) -> Profile:
        """Return the profile of a column without missing values.

        ``missing`` is the number of its values that were imputed. ``name`` is the name of the
        column.
        """
        counts = np.histogram(values, bins=16)[0]
        smallest, median, largest = np.quantile(values, [0.0, 0.5, 1.0]).tolist()
        bars = (counts / counts.max()).tolist()
        return cls(name, missing, np.unique(values).size, (smallest, median, largest), tuple(bars))


def profiles(
    design: Design, names: Sequence[str], first: Columns, missing: Mapping[str, int]
) -> list[Profile]:
    """Return the profiles of the columns ``first``, followed by those of other columns.

    There are at most ``MOST_NAMED`` profiles. ``missing`` maps a column to its number of imputed
    values. ``design`` is the matrix of columns and ``names`` are the names of the columns.
    """
    others = np.setdiff1d(np.arange(min(design.shape[1], 2 * MOST_NAMED)), first)
    return [
        Profile.of(
            names[column],
            dense_part(design, np.array([column]))[:, 0],
            missing.get(names[column], 0),
        )
        for column in [*first, *others][:MOST_NAMED]
    ]


def facts_of(design: Design, missing: Mapping[str, int]) -> str:
    """Return a sentence on the numbers of rows, duplicate rows and columns with imputed values.

    ``missing`` maps a column to its number of imputed values. ``design`` is the matrix of columns.
    """
    n_rows, n_columns = design.shape
    # Equal rows have equal random combinations of their entries; unequal rows almost never have.
    sums = design.predict(np.random.default_rng(0).standard_normal(n_columns))
    n_equal = n_rows - np.unique(sums.round(9)).size
    n_gaps = sum(map(bool, missing.values()))
    return (
        f"{n_rows:,} rows, {n_equal or 'none'} of them like an earlier row; {n_columns:,} columns, "
        f"values were missing in {n_gaps or 'none'} of them"
    )
