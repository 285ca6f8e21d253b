"""The selections of fits to random halves of the rows, and the spread of their curves.

A fit to half of the rows strays from the fit to all of them about as much as that one strays from
the truth, where the rows are independent: so the spread of halves is drawn as the uncertainty.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Columns, Rows
from atomlearn.estimators.dependent_rows import halves as halves_of_rows
from atomlearn.findings.stability import codes_of
from atomlearn.findings.trials import A_FIT
from atomlearn.maps.feature_map import FeatureMap

#: Halves that it takes for the spread of their curves to be drawn.
FEWEST_HALVES = 6
#: Entries of the data up to which halves are fitted without being asked for, and the entries that
#: they may fit to together: some two seconds. No clock decides how many there are.
SMALL = 1_000_000
MOST_WORK = 60_000_000


@dataclass(frozen=True, slots=True)
class Half:
    """The selection of a fit to half of the rows: columns of a map and their weights."""

    map: FeatureMap
    columns: Columns
    weights: Array

    @property
    def terms(self) -> list[int]:
        """The numbers of the terms in use."""
        return np.unique(self.map.term_of(self.columns)).tolist()  # type: ignore[no-any-return]


def fitted_halves(
    y: NDArray[Any],
    entries: int,
    rng: int,
    fitted: Callable[[Rows], Half],
    asked: int | None = None,
    fits: int = 1,
    **dependence: Any,
) -> list[Half]:
    """Return ``fitted`` of random halves of the rows, in complementary pairs.

    Of as many as ``asked`` for; else where the data are small up to 20, as far as all they fit to
    (``fits`` : how often each) does not count beside a selection, and none where these are fewer
    than a band needs. ``dependence`` : ``groups`` and ``order`` of rows that belong together.
    """
    affordable = 2 * int(MOST_WORK / ((entries / 2 + A_FIT) * fits) / 2)
    usual = min(20, affordable) if entries <= SMALL and affordable >= FEWEST_HALVES else 0
    count = usual if asked is None else asked
    codes = codes_of(y)
    generator = np.random.default_rng(rng)
    if len(y) < 8 or (codes is not None and np.bincount(codes).min() < 2):
        return []  # a half may lack a class, or rows
    found: list[Half] = []
    with warnings.catch_warnings(action="ignore"):
        while len(found) < count:
            try:
                parts = halves_of_rows(len(y), generator, codes, **dependence)
                found += [fitted(rows) for rows in parts]
            except ValueError:  # a half without a class, or events
                return []
    return found


def shares(found: Sequence[Half]) -> dict[int, float]:
    """Return the share of the halves that selected each term; those of no half are not in it."""
    counts = Counter(term for half in found for term in half.terms)
    return {term: count / len(found) for term, count in counts.items()}


def band_of(
    term: int, levels: Array, n_outputs: int, found: Sequence[Half]
) -> tuple[Array, Array] | tuple[None, None]:
    """Return the bounds of the middle 80% of the curves of the halves.

    The curve of a half that did not select the term is zero.
    """
    if len(found) < FEWEST_HALVES:
        return None, None
    every = np.zeros((len(found), n_outputs, levels.size))
    for place, half in enumerate(found):
        own, values = curve_of(half.map, half.columns, half.weights, term)
        every[place] = [np.interp(levels, own, row) for row in values]
    low, high = np.quantile(every, [0.1, 0.9], axis=0)
    return low, high


def curve_of(map: FeatureMap, columns: Columns, weights: Array, j: int) -> tuple[Array, Array]:
    """Return the levels of input j, and the curve of each output at them; ``weights`` of columns.

    All columns of a map of curves are few enough for one vector of them.
    """
    full = np.zeros((len(weights), map.n_columns))
    full[:, columns] = weights
    pairs = [map.curve(j, row) for row in full]
    values = np.array([np.asarray(row, dtype=np.float64) for _, row in pairs])
    return np.asarray(pairs[0][0], dtype=np.float64), values
