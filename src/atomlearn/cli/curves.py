"""The curves of an additive model: what the report draws and the model file keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.fitting import Fitted
from atomlearn.core.interfaces import Array
from atomlearn.maps.levels import codes_of
from atomlearn.reports.content import Curve, SelectedFeature
from atomlearn.reports.halves import Half, at_own_values, with_band
from atomlearn.reports.model import ModelCurve


def curve_at(fitted: Fitted, j: int) -> tuple[Array, Array, NDArray[Any]]:
    """Return the levels of input j, the curve of each output at them, and the level of each row."""
    design = fitted.additive
    assert design is not None
    mine = np.flatnonzero(design.input_of(fitted.columns) == j)
    weights = np.zeros((len(fitted.coefficients), int(design.map.sizes[j])))
    weights[:, fitted.columns[mine] - design.starts[j]] = fitted.coefficients[:, mine]
    values = np.stack([design.map.values(j, row) for row in weights])
    codes = codes_of(design.codes, design.map.levels.zero, np.array([j]))[:, 0]
    return design.map.levels.of(j), values, codes


def selected_inputs(names: list[str], fitted: Fitted) -> tuple[SelectedFeature, ...]:
    """Return the inputs by the size of their curve.

    ``coefficients`` : the slope of the line nearest to the curve over the rows; ``standardized`` :
    the standard deviation of the curve over the rows, with the sign of that slope.
    """
    assert fitted.additive is not None
    inputs = fitted.additive.input_of(fitted.columns)
    found = []
    for j in fitted.units.tolist():
        levels, values, codes = curve_at(fitted, j)
        x, curves = levels[codes], values[:, codes]
        centered = x - x.mean()
        variance = float(centered @ centered)
        slopes = curves @ centered / variance if variance > 0 else np.zeros(len(curves))
        sizes = np.where(slopes < 0, -1.0, 1.0) * curves.std(axis=1)
        first = min((int(step) for step in fitted.found[inputs == j] if step), default=None)
        found.append((j, slopes, sizes, first))
    found.sort(key=lambda entry: -float(np.abs(entry[2]).max()))
    return tuple(
        SelectedFeature(
            rank=rank,
            name=names[j],
            index=j,
            coefficients=tuple(slopes.tolist()),
            standardized=tuple(sizes.tolist()),
            scaling=None,
            found=first,
        )
        for rank, (j, slopes, sizes, first) in enumerate(found, start=1)
    )


def curves_of(names: list[str], fitted: Fitted, found: Sequence[Half] = ()) -> tuple[Curve, ...]:
    """Return the curves of the selected inputs, largest first; none where there are lines.

    ``found`` : fits to halves of the rows, for bands.
    """
    if fitted.additive is None:
        return ()
    curves = []
    for feature in selected_inputs(names, fitted):
        levels, values, codes = curve_at(fitted, feature.index)
        shares = np.quantile(levels[codes], np.linspace(0.1, 0.9, 9), method="nearest")
        curve = Curve(
            feature.name,
            tuple(levels.tolist()),
            tuple(tuple(row) for row in values.tolist()),
            tuple(shares.tolist()),
            steps=fitted.additive.map.is_thermometer,
        )
        known = np.unique(levels[codes]).tolist()
        curves.append(at_own_values(with_band(curve, feature.index, found), known))
    return tuple(curves)


def model_curve(fitted: Fitted, j: int) -> ModelCurve | None:
    """Return what the model file keeps of the curve of input j."""
    if fitted.additive is None:
        return None
    levels, values, _ = curve_at(fitted, j)
    return ModelCurve(levels, values)
