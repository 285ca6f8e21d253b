"""The network of selected interactions: columns of the data, joined where a product is selected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from atomlearn.reports import svg
from atomlearn.reports.content import SelectedFeature
from atomlearn.reports.style import STYLE
from atomlearn.reports.tables import shortened


def network_plot(selected: Sequence[SelectedFeature]) -> str:
    """Return columns on a circle, a line for each selected product of two of them.

    Lines are as thick as the standardized coefficient is large, dots as large as that of the
    column itself, rings as that of its square; blue raises the prediction, red lowers it. Empty
    where no product of two different columns is selected.
    """
    products = [feature for feature in selected if len(set(feature.factors)) == 2]
    if not products:
        return ""
    nodes = _nodes(products)
    largest = max(feature.size for feature in selected) or 1.0
    place = {name: _place(number, len(nodes)) for number, name in enumerate(nodes)}
    pieces = []
    for feature in reversed(products):  # the strongest on top
        if all(name in place for name in feature.factors):
            pieces.append(_edge(feature, place, largest))
    alone = {f.factors[0]: f for f in selected if len(f.factors) == 1}
    squares = {f.factors[0]: f for f in selected if len(f.factors) == 2 and len(set(f.factors)) < 2}
    for number, name in enumerate(nodes):
        pieces.append(_node(name, place[name], alone.get(name), squares.get(name), largest))
        pieces.append(_label(name, number, len(nodes)))
    return svg.drawing(
        "".join(pieces), "Network of selected interactions", STYLE.network, STYLE.network
    )


def left_out(selected: Sequence[SelectedFeature]) -> int:
    """Return how many products of two columns are not drawn."""
    products = [feature for feature in selected if len(set(feature.factors)) == 2]
    nodes = set(_nodes(products))
    return sum(not nodes.issuperset(feature.factors) for feature in products)


def _nodes(products: Sequence[SelectedFeature]) -> list[str]:
    """Return the columns to draw, so that joined ones lie near each other where possible."""
    kept: list[str] = []
    for feature in products:  # strongest first
        new = [name for name in feature.factors if name not in kept]
        if len(kept) + len(new) <= STYLE.most_nodes:
            anchor = next((name for name in feature.factors if name in kept), None)
            position = len(kept) if anchor is None else kept.index(anchor) + 1
            kept[position:position] = new
    return kept


def _place(number: int, count: int, beyond: float = 0.0) -> tuple[float, float]:
    """Return the place of a column on the circle, or so far beyond it."""
    angle, radius = 2 * math.pi * number / count - math.pi / 2, STYLE.network_radius + beyond
    middle = STYLE.network / 2
    return middle + radius * math.cos(angle), middle + radius * math.sin(angle)


def _sign(value: float) -> str:
    return "plus" if value > 0 else "minus"


def _edge(feature: SelectedFeature, place: dict[str, tuple[float, float]], largest: float) -> str:
    (x1, y1), (x2, y2) = (place[name] for name in feature.factors)
    value = feature.strongest
    # Bent towards the middle: lines between neighbors stay visible.
    middle = tuple(0.35 * STYLE.network + 0.15 * (a + b) for a, b in ((x1, x2), (y1, y2)))
    path = " ".join(svg.number(v) for v in (x1, y1)), " ".join(svg.number(v) for v in middle)
    end = " ".join(svg.number(v) for v in (x2, y2))
    width = svg.number(1.0 + 7.0 * abs(value) / largest)
    title = escape(f"{feature.name}: {value:+.4g}")
    return (
        f'<path class="link {_sign(value)}" d="M {path[0]} Q {path[1]} {end}" '
        f'stroke-width="{width}"><title>{title}</title></path>'
    )


def _node(
    name: str,
    place: tuple[float, float],
    alone: SelectedFeature | None,
    square: SelectedFeature | None,
    largest: float,
) -> str:
    pieces = []
    if square is not None:
        value = square.strongest
        radius = 9.0 + 7.0 * abs(value) / largest
        pieces.append(
            svg.dot(*place, radius, f"{square.name}: {value:+.4g}", f"ring {_sign(value)}")
        )
    if alone is None:
        pieces.append(svg.dot(*place, 4.0, f"{name}: in products only", "node"))
    else:
        value = alone.strongest
        radius = 4.0 + 7.0 * abs(value) / largest
        pieces.append(svg.dot(*place, radius, f"{name}: {value:+.4g}", f"node {_sign(value)}"))
    return "".join(pieces)


def _label(name: str, number: int, count: int) -> str:
    """Return the name along the ray from the middle: names of neighbors never meet."""
    x, y = _place(number, count, beyond=20.0)
    angle = math.degrees(math.atan2(y - STYLE.network / 2, x - STYLE.network / 2))
    text = shortened(name, STYLE.name)
    turn, anchor = (180.0, "end") if x < STYLE.network / 2 - 1.0 else (0.0, "start")
    return svg.turned(x, y, text, angle + turn, anchor, 4.0)
