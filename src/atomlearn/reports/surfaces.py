"""What two inputs add together: one picture a selected product, or pair of an additive model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.reports.content import SelectedFeature
from atomlearn.reports.data_displays import SurfaceDisplay
from atomlearn.reports.view import View, dense_columns

#: Pictures of a page, cells of a side, and inputs beyond which none is made: the model is asked at
#: rows of all inputs.
MOST_PAIRS, CELLS, MOST_INPUTS = 6, 24, 2000


def surfaces_of(view: View, selected: Sequence[SelectedFeature]) -> list[SurfaceDisplay]:
    """Return the surfaces of the strongest pairs; none for several outputs."""
    pairs = [feature.factors for feature in selected if feature.is_product]
    n_inputs = view.inputs.shape[1]
    if not pairs or n_inputs > MOST_INPUTS or view.outputs > 1:
        return []
    data = dense_columns(view.inputs, np.arange(n_inputs))
    place = {name: j for j, name in enumerate(view.names)}
    middle = np.median(data, axis=0)
    found = []
    for pair in pairs[:MOST_PAIRS]:
        at = [place[name] for name in pair]
        across, up = (_levels(data[:, j]) for j in at)
        first, second = np.meshgrid(across, up)
        rows = np.tile(middle, (first.size + 1, 1))
        rows[:-1, at[0]], rows[:-1, at[1]] = first.ravel(), second.ravel()
        told = view.map.apply(rows).gather(view.columns).dot(view.weights[0])
        values = (told[:-1] - told[-1]).reshape(first.shape)
        found.append(SurfaceDisplay(pair[0], pair[1], across, up, values))
    return found


def _levels(values: Array) -> Array:
    """Return two values as they are, else levels over the middle 96% of the rows."""
    known = np.unique(values)
    if known.size == 2:
        return known
    least, greatest = np.quantile(values, [0.02, 0.98])
    return np.linspace(*((least, greatest) if greatest > least else (known[0], known[-1])), CELLS)
