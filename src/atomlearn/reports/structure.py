"""Drawings of structured models: which groups were selected, and what coefficients consist of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.lift import Part
from atomlearn.reports import svg
from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.style import STYLE
from atomlearn.reports.tables import shortened


class Drawing(str):
    """An SVG picture: notebooks show it, ``save`` writes a file of its own."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str | Path) -> Path:
        """Write the picture to ``path``, whole or not at all."""
        target = Path(path)
        write_text(target, str(self))
        return target


def groups_plot(parts: Sequence[Part], top: int = STYLE.most_groups) -> Drawing:
    """Return one bar a selected group, ||z_B||_2, largest first, with its name.

    Parameters
    ----------
    parts : list of Part
        ``model.parts_`` or ``result.parts``.
    top : int
        Groups drawn at most.
    """
    _check(parts)
    return bars_plot(
        [label_of(part) for part in parts],
        [float(np.linalg.norm(part.weights)) for part in parts],
        [part.columns.size for part in parts],
        top,
    )


def bars_plot(
    names: Sequence[str], sizes: Sequence[float], counts: Sequence[int] = (),
    top: int = STYLE.most_groups,
) -> Drawing:  # fmt: skip
    """Return one bar a group, the largest first; ``counts`` : features of each."""
    order = np.argsort(-np.asarray(sizes), kind="stable")[:top].tolist()
    labels = [shortened(names[place], 24) for place in order]
    left = 24.0 + 6.2 * max((len(label) for label in labels), default=0)
    height = 44.0 + STYLE.row * len(labels)
    highest = max(sizes, default=0.0) or 1.0
    frame = svg.Frame(x=(0.0, highest * 1.05), y=(0.0, 1.0), left=left, top=8.0, height=height)
    floor = frame.height - frame.bottom
    pieces = []
    for value, label in svg.round_ticks(0.0, highest):
        at = frame.across(value)
        pieces.append(svg.line(at, frame.top, at, floor, "grid"))
        pieces.append(svg.text(at, floor + 16, label, "tick", "middle"))
    for row, place in enumerate(order):
        y = frame.top + row * (floor - frame.top) / max(len(labels), 1)
        title = f"{names[place]}: norm {sizes[place]:.4g}"
        title += f", {counts[place]} features" if counts else ""
        width = max(frame.across(sizes[place]) - frame.left, 0.5)
        pieces.append(
            svg.bar(frame.left, y + 2, width, STYLE.row - 6, title, "part", STYLE.series[0])
        )
        pieces.append(svg.text(frame.left - 6, y + 13, labels[row], "tick", "end"))
    pieces.append(svg.line(frame.left, frame.top, frame.left, floor, "axis"))
    middle = (frame.left + frame.width - frame.right) / 2
    pieces.append(svg.text(middle, frame.height - 8, "norm of the part", "label", "middle"))
    return drawing_of(pieces, "Selected groups", frame.width, frame.height)


def bars_on_page(names: Sequence[str], sizes: Sequence[float]) -> str:
    """Return the bars for a page that has a style sheet of its own, and allows no other."""
    return on_page(bars_plot(names, sizes))


def on_page(drawing: str) -> str:
    """Return a drawing without the style sheet that it has where it stands alone."""
    return drawing.replace(f"<style>{STYLE.sheet}</style>", "")


def parts_plot(
    parts: Sequence[Part], names: Sequence[str] | None = None, top: int = STYLE.most_groups
) -> Drawing:
    """Return what the coefficients are sums of: a column a feature, a colored piece a group.

    Pieces above the line are positive, pieces below negative; the mark is their sum, the
    coefficient. Features in use only, in their order, the largest ``STYLE.most_columns`` of them.

    Parameters
    ----------
    parts : list of Part
        ``model.parts_`` or ``result.parts``.
    names : list of str, optional
        Of all features; by default their numbers.
    top : int
        Groups with a color of their own; the smaller rest is gray.
    """
    _check(parts)
    sizes = np.array([np.linalg.norm(part.weights) for part in parts])
    largest = set(np.argsort(-sizes, kind="stable")[:top].tolist())
    features = np.unique(np.concatenate([part.columns for part in parts]))
    table = np.zeros((len(parts), features.size))
    for row, part in enumerate(parts):
        table[row, np.searchsorted(features, part.columns)] = part.weights
    reach = np.abs(table).sum(axis=0)
    shown = np.sort(np.argsort(-reach, kind="stable")[: STYLE.most_columns])
    table, features = table[:, shown], features[shown]
    above, below = np.maximum(table, 0.0).sum(axis=0), np.minimum(table, 0.0).sum(axis=0)
    high, low = float(above.max(initial=0.0)), float(below.min(initial=0.0))
    margin = 0.05 * (high - low) or 1.0
    frame = svg.Frame(x=(0.0, float(features.size)), y=(low - margin, high + margin), bottom=60.0)
    pieces = [frame.axes([], svg.round_ticks(low, high), "", "coefficient")]
    for column, feature in enumerate(features):
        name = str(feature) if names is None else str(names[int(feature)])
        pieces += _column(frame, column, table[:, column], parts, largest, name)
        if features.size <= 24:
            middle = frame.across(column + 0.5)
            pieces.append(svg.turned(middle, frame.height - frame.bottom + 12, name, -40))
    zero = frame.up(0.0)
    pieces.append(svg.line(frame.left, zero, frame.width - frame.right, zero, "axis"))
    return drawing_of(pieces, "Coefficients as sums of parts", frame.width, frame.height)


def label_of(part: Part) -> str:
    """Return the name of the part's group, or its number."""
    return part.name or f"group {part.group}"


def _column(
    frame: svg.Frame, column: int, values: Array, parts: Sequence[Part], largest: set[int],
    name: str,
) -> list[str]:  # fmt: skip
    left, right = frame.across(column + 0.12), frame.across(column + 0.88)
    pieces, tops, colors = [], {1: 0.0, -1: 0.0}, STYLE.series
    for row in np.flatnonzero(values):
        sign = 1 if values[row] > 0 else -1
        start, tops[sign] = tops[sign], tops[sign] + float(values[row])
        upper, lower = frame.up(max(start, tops[sign])), frame.up(min(start, tops[sign]))
        color = colors[int(row) % len(colors)] if int(row) in largest else STYLE.rest
        title = f"{name}: {values[row]:.4g} in {label_of(parts[int(row)])}"
        high = max(lower - upper, 0.5)
        pieces.append(svg.bar(left, upper, max(right - left, 0.5), high, title, "part", color))
    at = frame.up(float(values.sum()))
    pieces.append(svg.line(left - 1, at, right + 1, at, "axis"))
    return pieces


def drawing_of(pieces: list[str], title: str, width: float, height: float) -> Drawing:
    inside = f"<style>{STYLE.sheet}</style>" + "".join(pieces)
    whole = svg.drawing(inside, title, width, height)
    return Drawing(whole.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def _check(parts: object) -> None:
    if parts is None:
        raise ValueError(
            "there are no parts to draw: only norms with latent groups (LatentGroups, Chains, "
            "Trees, Hierarchy, Union, Operators) have them"
        )
    if not isinstance(parts, Sequence) or not all(isinstance(part, Part) for part in parts):
        raise TypeError("parts must be the list result.parts, or model.parts_ (of one class)")
    if not parts:
        raise ValueError("the model selected no group; lower alpha (the level)")


def matrix_of_parts(parts: Sequence[Part], n_features: int) -> Array:
    """Return the parts as a dense array (n_parts, n_features), for plots of one's own."""
    _check(parts)
    dense = np.zeros((len(parts), n_features))
    for row, part in enumerate(parts):
        dense[row, part.columns] = part.weights
    return dense
