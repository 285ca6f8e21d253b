"""An overview of the data: what values each column has, what is missing, and what stands twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Design
from atomlearn.reports.drawing import MOST_NAMED


@dataclass(frozen=True, slots=True)
class Profile:
    """One column: how many values are missing and different, three quantiles, and a histogram.

    bars : shares of the largest bar, from the least value to the greatest.
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
        low, middle, high = np.quantile(values, [0.0, 0.5, 1.0]).tolist()
        bars = tuple((counts / counts.max()).tolist())
        return cls(name, missing, int(np.unique(values).size), (low, middle, high), bars)


def profiles(
    design: Design, names: Sequence[str], first: Columns, missing: Mapping[str, int]
) -> list[Profile]:
    """Return the profiles of these columns, and of others as far as a page has room."""
    others = np.setdiff1d(np.arange(min(design.shape[1], 2 * MOST_NAMED)), first)
    found = []
    for column in [*first, *others][:MOST_NAMED]:
        values = np.asarray(design.gather(np.array([column])).dense()[:, 0], dtype=np.float64)
        found.append(Profile.of(names[column], values, missing.get(names[column], 0)))
    return found


def facts_of(design: Design, missing: Mapping[str, int]) -> str:
    """Return in words how many rows are alike, and in how many columns values were missing."""
    n_rows, n_columns = design.shape
    weights = np.random.default_rng(0).standard_normal(n_columns)
    sums = np.round(design.predict(weights), 9)
    alike = n_rows - np.unique(sums).size
    gaps = sum(count > 0 for count in missing.values())
    told = f"{n_rows:,} rows, {alike or 'none'} of them like an earlier row; "
    return told + f"{n_columns:,} columns, values were missing in {gaps or 'none'} of them"
