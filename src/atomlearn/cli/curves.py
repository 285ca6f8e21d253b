"""The curves of an additive model: what the report draws and the model file keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.fitting import Fitted
from atomlearn.maps.levels import codes_of
from atomlearn.reports.content import Curve, SelectedFeature
from atomlearn.reports.model import ModelCurve

Array = NDArray[np.float64]


def _values(fitted: Fitted, j: int) -> tuple[Array, Array]:
    """Return the levels of input j and the curve of each output at them."""
    design = fitted.additive
    assert design is not None
    mine = np.flatnonzero(design.input_of(fitted.columns) == j)
    weights = np.zeros((len(fitted.coefficients), int(design.map.sizes[j])))
    weights[:, fitted.columns[mine] - design.starts[j]] = fitted.coefficients[:, mine]
    return design.map.levels.of(j), np.stack([design.map.values(j, row) for row in weights])


def _at_rows(fitted: Fitted, j: int) -> tuple[Array, Array]:
    """Return input j, rounded to its levels, and the curve of each output, at the rows fitted."""
    design = fitted.additive
    assert design is not None
    levels, values = _values(fitted, j)
    codes = codes_of(design.codes, design.map.levels.zero, np.array([j]))[:, 0]
    return levels[codes], values[:, codes]


def selected_inputs(names: list[str], fitted: Fitted) -> tuple[SelectedFeature, ...]:
    """Return the inputs by the size of their curve.

    ``coefficients`` : the slope of the line nearest to the curve over the rows; ``standardized`` :
    the standard deviation of the curve over the rows, with the sign of that slope.
    """
    found = []
    for j in fitted.units.tolist():
        x, curves = _at_rows(fitted, j)
        centered = x - x.mean()
        variance = float(centered @ centered)
        slopes = curves @ centered / variance if variance > 0 else np.zeros(len(curves))
        sizes = np.where(slopes < 0, -1.0, 1.0) * curves.std(axis=1)
        found.append((j, slopes, sizes))
    found.sort(key=lambda entry: -float(np.abs(entry[2]).max()))
    passes = dict(zip(fitted.units.tolist(), _first_pass(fitted), strict=True))
    return tuple(
        SelectedFeature(
            rank=rank,
            name=names[j],
            index=j,
            coefficients=tuple(slopes.tolist()),
            standardized=tuple(sizes.tolist()),
            scaling=None,
            found=passes[j] or None,
        )
        for rank, (j, slopes, sizes) in enumerate(found, start=1)
    )


def _first_pass(fitted: Fitted) -> list[int]:
    design = fitted.additive
    assert design is not None
    inputs = design.input_of(fitted.columns)
    return [
        min((int(step) for step in fitted.found[inputs == j] if step), default=0)
        for j in fitted.units
    ]


def curves_of(names: list[str], fitted: Fitted) -> tuple[Curve, ...]:
    """Return the curves of the selected inputs, largest first; none where there are lines."""
    if fitted.additive is None:
        return ()
    curves = []
    for feature in selected_inputs(names, fitted):
        levels, values = _values(fitted, feature.index)
        x, _ = _at_rows(fitted, feature.index)
        shares = np.quantile(x, np.linspace(0.1, 0.9, 9), method="nearest")
        curves.append(
            Curve(
                feature.name,
                tuple(levels.tolist()),
                tuple(tuple(row) for row in values.tolist()),
                tuple(shares.tolist()),
                steps=fitted.additive.map.is_thermometer,
            )
        )
    return tuple(curves)


def model_curve(fitted: Fitted, j: int) -> ModelCurve | None:
    """Return what the model file keeps of the curve of input j."""
    if fitted.additive is None:
        return None
    levels, values = _values(fitted, j)
    return ModelCurve(levels, values)
