"""Selections of fits to random halves of the rows, and the spread of their curves.

A fit to half of the rows deviates from the fit to all rows about as much as the latter deviates
from the truth, if rows are independent. So the spread over the halves is drawn as the uncertainty
(half-sampling).
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

#: Minimum number of halves for a band of their curves.
FEWEST_HALVES = 6
#: Halves are fitted by default if the data has at most SMALL entries. All halves together may
#: process MOST_WORK entries, about two seconds; the number of halves does not depend on a clock, so
#: that results are reproducible.
SMALL = 1_000_000
MOST_WORK = 60_000_000


@dataclass(frozen=True, slots=True)
class Half:
    """The selection of a fit to half of the rows.

    ``columns``, shape (m,), are the columns of the feature map with a nonzero coefficient, and
    ``weights``, shape (n_outputs, m), their coefficients.
    """

    map: FeatureMap
    columns: Columns
    weights: Array

    @property
    def terms(self) -> list[int]:
        """The indices of the features with a nonzero coefficient."""
        return np.unique(self.map.term_of(self.columns)).tolist()  # type: ignore[no-any-return]


def fitted_halves(
    y: NDArray[Any],
    entries: int,
    rng: int,
    fitted: Callable[[Rows], Half],
    n_halves: int | None = None,
    fits: int = 1,
    **dependence: Any,
) -> list[Half]:
    """Return the results of ``fitted`` on random complementary halves of the rows.

    ``n_halves`` is the number of halves. If it is None, up to 20 halves are fitted as long as the
    work is small: ``entries`` is the number of entries of the data, and ``fits`` the number of
    solver runs per half. The list is empty if the work allows fewer halves than an uncertainty band
    needs, or if a half lacks a class. ``rng`` is the random seed, and ``dependence`` holds the
    arguments ``groups`` and ``order`` of dependent rows.
    """
    # A fit to half of the rows costs entries / 2 and the constant A_FIT. Halves come in pairs.
    affordable = 2 * int(MOST_WORK / ((entries / 2 + A_FIT) * fits) / 2)
    usual = min(20, affordable) if entries <= SMALL and affordable >= FEWEST_HALVES else 0
    count = usual if n_halves is None else n_halves
    codes = codes_of(y)
    generator = np.random.default_rng(rng)
    if len(y) < 8 or (codes is not None and np.bincount(codes).min() < 2):
        return []  # a half may lack a class or have too few rows
    halves: list[Half] = []
    with warnings.catch_warnings(action="ignore"):
        while len(halves) < count:
            try:
                both_halves = halves_of_rows(len(y), generator, codes, **dependence)
                halves += [fitted(rows) for rows in both_halves]
            except ValueError:  # a half lacks a class or has no events
                return []
    return halves


def shares(halves: Sequence[Half]) -> dict[int, float]:
    """Return a map from feature to its selection frequency, without features of frequency 0.

    ``halves`` are the selections on halves of the rows.
    """
    counts = Counter(term for half in halves for term in half.terms)
    return {term: count / len(halves) for term, count in counts.items()}


def band_of(
    term: int, levels: Array, n_outputs: int, halves: Sequence[Half]
) -> tuple[Array, Array] | tuple[None, None]:
    """Return the pointwise 10% and 90% quantiles of the curves of a term over the halves.

    Both have shape (n_outputs, n_levels). The curve of a half that did not select the term is zero.
    The result is (None, None) with fewer than ``FEWEST_HALVES`` halves. ``levels`` are the values
    of the input at which curves are compared.
    """
    if len(halves) < FEWEST_HALVES:
        return None, None
    curves = np.zeros((len(halves), n_outputs, levels.size))
    for index, half in enumerate(halves):
        levels_of_half, values = curve_of(half.map, half.columns, half.weights, term)
        curves[index] = [np.interp(levels, levels_of_half, row) for row in values]
    low, high = np.quantile(curves, [0.1, 0.9], axis=0)
    return low, high


def curve_of(map: FeatureMap, columns: Columns, weights: Array, input: int) -> tuple[Array, Array]:
    """Return the levels (values) of the input number ``input``, and each output's curve there.

    The shapes are (n_levels,) and (n_outputs, n_levels). ``weights``, shape (n_outputs, m), are the
    coefficients of the basis columns ``columns``, shape (m,). ``map`` is the feature map of an
    additive model.
    """
    all_coefficients = np.zeros((len(weights), map.n_columns))
    all_coefficients[:, columns] = weights
    pairs = [map.curve(input, row) for row in all_coefficients]
    values = np.array([np.asarray(row, dtype=np.float64) for _, row in pairs])
    return np.asarray(pairs[0][0], dtype=np.float64), values
