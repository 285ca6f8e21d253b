"""Cards: what a notebook shows of a result, a path, an estimator. Plain HTML, nothing to load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

#: Lines of a small path picture, and its size.
MOST_LINES, WIDTH, HEIGHT = 40, 320.0, 120.0


def card(title: str, facts: Iterable[tuple[str, str]], picture: str = "") -> str:
    """Return a small table of facts under a title, with a picture beneath."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        f'<div class="atomlearn-card"><strong>{escape(title)}</strong>'
        f"<table>{rows}</table>{picture}</div>"
    )


def small_path(levels: Sequence[float], rows: Sequence[Sequence[float]]) -> str:
    """Return lines of coefficients, one a row, over levels on a logarithmic scale."""
    values = [value for row in rows[:MOST_LINES] for value in row]
    if len(levels) < 2 or not values:
        return ""
    places = [-math.log(level) for level in levels]
    least, most = min(*values, 0.0), max(*values, 0.0)
    span, width = (most - least) or 1.0, (max(places) - min(places)) or 1.0
    lines = []
    for row in rows[:MOST_LINES]:
        points = " ".join(
            f"{WIDTH * (x - min(places)) / width:.1f},{HEIGHT * (most - y) / span:.1f}"
            for x, y in zip(places, row, strict=True)
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="#2f6fd6"/>')
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" role="img" '
        f'aria-label="Coefficients along the path">{"".join(lines)}</svg>'
    )
