"""An overview of the data: values of each column, missing values, and repeated rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atomlearn.core import Array, Columns, Design, dense_part
from atomlearn.reports.drawing import MOST_NAMED


@dataclass(frozen=True, slots=True)
class Profile:
    """One column: how many values are missing and different, three quantiles, and a histogram.

    bars : shares of the largest bar, from the smallest value to the largest.
    """

    name: str
    missing: int
    distinct: int
    quantiles: tuple[float, float, float]
    bars: tuple[float, ...]

    @classmethod
    def of(cls, name: str, values: Array, missing: int) -> Profile:
        """Return the profile of a column without gaps; ``missing`` : those that were filled in."""
        counts = np.histogram(values, bins=16)[0]
        least, middle, most = np.quantile(values, [0.0, 0.5, 1.0]).tolist()
        bars = (counts / counts.max()).tolist()
        return cls(name, missing, np.unique(values).size, (least, middle, most), tuple(bars))


def profiles(
    design: Design, names: Sequence[str], first: Columns, missing: Mapping[str, int]
) -> list[Profile]:
    """Return the profiles of these columns, and of others as far as a page has room."""
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
    """Return in words how many rows are alike, and in how many columns values were missing."""
    n_rows, n_columns = design.shape
    sums = design.predict(np.random.default_rng(0).standard_normal(n_columns))
    alike = n_rows - np.unique(sums.round(9)).size
    gaps = sum(map(bool, missing.values()))
    return (
        f"{n_rows:,} rows, {alike or 'none'} of them like an earlier row; {n_columns:,} columns, "
        f"values were missing in {gaps or 'none'} of them"
    )
