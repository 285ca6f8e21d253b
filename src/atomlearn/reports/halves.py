"""What fits to random halves of the rows select, and how their curves spread.

A fit to half of the rows strays from the fit to all of them about as much as that one strays from
the truth, where the rows are independent: so the spread of halves is drawn as the uncertainty.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Rows
from atomlearn.estimators.dependent_rows import halves as halves_of_rows
from atomlearn.findings.stability import codes_of
from atomlearn.reports.content import Curve
from atomlearn.reports.style import STYLE


@dataclass(frozen=True, slots=True)
class Half:
    """What a fit to some rows selected: terms by number, and curves as (levels, values)."""

    terms: frozenset[int]
    curves: dict[int, tuple[Array, Array]] = field(default_factory=dict)


def halves(
    y: NDArray[Any], count: int, rng: int, fitted: Callable[[Rows], Half], seconds: float = np.inf,
    groups: Any = None, order: Any = None,
) -> list[Half]:  # fmt: skip
    """Return ``fitted`` of so many random halves of the rows, in complementary pairs.

    ``seconds`` : to take; fewer than a band needs where these take longer. ``groups``, ``order`` :
    of rows that belong together.
    """
    generator, began = np.random.default_rng(rng), time.monotonic()
    found: list[Half] = []
    while len(found) < count:
        took = time.monotonic() - began
        if took * max(1.0, STYLE.fewest_halves / max(len(found), 1)) > seconds:
            break  # over, or there will not be enough of them
        parts = halves_of_rows(len(y), generator, codes_of(y), groups, order)
        found += [fitted(rows) for rows in parts]
    return found


def shares(found: Sequence[Half]) -> dict[int, float]:
    """Return the share of the halves that selected each term; those of no half are not in it."""
    counts = Counter(term for half in found for term in half.terms)
    return {term: count / len(found) for term, count in counts.items()}


def with_band(curve: Curve, term: int, found: Sequence[Half]) -> Curve:
    """Return the curve with the middle of the curves of the halves; no curve counts as zero."""
    if len(found) < STYLE.fewest_halves:
        return curve
    levels = np.asarray(curve.levels)
    all_values = np.zeros((len(found), len(curve.values), levels.size))
    for place, half in enumerate(found):
        if term in half.curves:
            own, values = half.curves[term]
            all_values[place] = [np.interp(levels, own, row) for row in values]
    low, high = np.quantile(all_values, STYLE.band, axis=0)
    return replace(curve, low=_rows(low), high=_rows(high))


def _rows(values: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.tolist())


def at_own_values(curve: Curve, values: Iterable[float]) -> Curve:
    """Return the curve as steps at the values of an input that has two at most."""
    known = np.unique(np.asarray(list(values), dtype=np.float64))
    if known.size > 2:
        return curve
    levels = np.asarray(curve.levels)

    def moved(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(np.interp(known, levels, row).tolist()) for row in rows)

    return replace(
        curve, levels=tuple(known.tolist()), values=moved(curve.values), low=moved(curve.low),
        high=moved(curve.high), deciles=(), steps=True,
    )  # fmt: skip
