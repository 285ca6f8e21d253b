"""What two inputs add together, as a picture: one a selected product, or pair of an additive model.

Blue raises the prediction, red lowers it; the other inputs stand at their medians.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.reports import svg
from atomlearn.reports.content import SelectedFeature
from atomlearn.reports.evidence import Surface
from atomlearn.reports.pictures import image
from atomlearn.reports.style import STYLE
from atomlearn.reports.tables import shortened
from atomlearn.reports.view import View

#: Pictures of a page, cells of a side, and inputs beyond which none is made: the model is asked at
#: rows of all inputs.
MOST_PAIRS, CELLS, MOST_INPUTS = 6, 24, 2000
#: Share of the rows beyond each end of an axis.
TAIL = 0.02


def surfaces_of(view: View, selected: Sequence[SelectedFeature]) -> tuple[Surface, ...]:
    """Return the surfaces of the strongest pairs; none for several outputs."""
    pairs = [feature.factors for feature in selected if len(set(feature.factors)) == 2]
    n_inputs = view.inputs.shape[1]
    if not pairs or n_inputs > MOST_INPUTS or view.outputs > 1:
        return ()
    data = np.asarray(view.inputs.gather(np.arange(n_inputs)).dense(), dtype=np.float64)
    place = {name: j for j, name in enumerate(view.names)}
    middle = np.median(data, axis=0)
    found = []
    for pair in pairs[:MOST_PAIRS]:
        at = [place[name] for name in pair]
        levels = [_levels(data[:, j]) for j in at]
        first, second = np.meshgrid(*levels)
        rows = np.tile(middle, (first.size + 1, 1))
        rows[:-1, at[0]], rows[:-1, at[1]] = first.ravel(), second.ravel()
        told = view.map.apply(rows).gather(view.columns).dot(view.weights[0])
        values = (told[:-1] - told[-1]).reshape(first.shape)
        across, up = (tuple(each.tolist()) for each in levels)
        cells = tuple(tuple(row) for row in values.tolist())
        found.append(Surface(pair[0], pair[1], across, up, cells))
    return tuple(found)


def _levels(values: Array) -> Array:
    known = np.unique(values)
    if known.size <= 2:
        return known if known.size == 2 else np.array([known[0] - 0.5, known[0] + 0.5])
    least, greatest = np.quantile(values, [TAIL, 1.0 - TAIL])
    return np.linspace(*((least, greatest) if greatest > least else (known[0], known[-1])), CELLS)


def pairs_plot(surfaces: Sequence[Surface]) -> str:
    """Return one panel a pair."""
    return "".join(
        ['<div class="panels">', *(_panel(surface) for surface in surfaces), "</div>"]
        if surfaces
        else []
    )


def _panel(surface: Surface) -> str:
    x, y = surface.across, surface.up
    frame = svg.Frame(
        x=(x[0], x[-1]), y=(y[0], y[-1]), left=58.0, right=14.0, top=26.0, bottom=44.0,
        width=STYLE.panel, height=260.0,
    )  # fmt: skip
    table = np.array(surface.values)
    most = float(np.abs(table).max(initial=0.0))
    width, height = frame.width - frame.left - frame.right, frame.height - frame.top - frame.bottom
    parts = [
        svg.text(8, 13, f"{table.min():+.3g} (red) to {table.max():+.3g} (blue)", "tick"),
        frame.axes(
            svg.round_ticks(*frame.x, about=4), svg.round_ticks(*frame.y, about=4),
            shortened(surface.first, 30), shortened(surface.second, 24),
        ),
        image(_colored(table, most)[::-1], frame.left, frame.top, width, height),
    ]  # fmt: skip
    title = f"What {surface.first} and {surface.second} add together"
    return svg.drawing("".join(parts), title, frame.width, frame.height)


def _colored(table: Array, most: float) -> NDArray[np.uint8]:
    """Return blue for what raises and red for what lowers, the fainter the nearer to zero."""
    pixels = np.empty((*table.shape, 4))
    pixels[..., :3] = np.where((table > 0)[..., None], (47, 111, 214), (209, 96, 61))
    pixels[..., 3] = 255.0 * np.abs(table) / (most or 1.0)
    return np.asarray(pixels.round().astype(np.uint8))
