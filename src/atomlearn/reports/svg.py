"""Small pieces of inline SVG: escaped text, axes with round ticks, and nothing to install.

Colors come from the style sheet of the page (classes, not values), so that one drawing serves
light and dark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from atomlearn.reports.style import STYLE


@dataclass(frozen=True, slots=True)
class Frame:
    """The box that data is drawn in, and the maps from data to it.

    x, y : (least, greatest) of the data on each axis, already as logarithms where the axis is
    logarithmic.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    left: float = 64.0
    right: float = 14.0
    top: float = 14.0
    bottom: float = 44.0
    width: float = STYLE.width
    height: float = STYLE.height

    def across(self, value: float) -> float:
        """Return the horizontal position of a value."""
        least, greatest = self.x
        share = (value - least) / (greatest - least)
        return self.left + share * (self.width - self.left - self.right)

    def up(self, value: float) -> float:
        """Return the vertical position of a value."""
        least, greatest = self.y
        share = (value - least) / (greatest - least)
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)

    def axes(
        self,
        x_ticks: list[tuple[float, str]],
        y_ticks: list[tuple[float, str]],
        x_label: str,
        y_label: str,
    ) -> str:
        """Return grid lines, tick texts and the two labels."""
        floor = self.height - self.bottom
        parts = []
        for value, label in y_ticks:
            at = self.up(value)
            parts.append(line(self.left, at, self.width - self.right, at, "grid"))
            parts.append(text(self.left - 7, at + 4, label, "tick", "end"))
        for value, label in x_ticks:
            parts.append(text(self.across(value), floor + 17, label, "tick", "middle"))
        parts.append(line(self.left, floor, self.width - self.right, floor, "axis"))
        middle = (self.left + self.width - self.right) / 2
        parts.append(text(middle, self.height - 8, x_label, "label", "middle"))
        height = (self.top + floor) / 2
        parts.append(
            f'<text class="label" text-anchor="middle" '
            f'transform="translate(11 {number(height)}) rotate(-90)">{escape(y_label)}</text>'
        )
        return "".join(parts)


def drawing(
    content: str, title: str, width: float = STYLE.width, height: float = STYLE.height
) -> str:
    """Return a whole drawing that scales with its place on the page."""
    return (
        f'<svg class="plot" viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-label="{escape(title)}">{content}</svg>'
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Return one line."""
    return (
        f'<line class="{style}" x1="{number(x1)}" y1="{number(y1)}" '
        f'x2="{number(x2)}" y2="{number(y2)}"/>'
    )


def text(x: float, y: float, content: str, style: str, anchor: str = "start") -> str:
    """Return one escaped text."""
    return (
        f'<text class="{style}" x="{number(x)}" y="{number(y)}" '
        f'text-anchor="{anchor}">{escape(content)}</text>'
    )


def turned(
    x: float, y: float, content: str, angle: float, anchor: str = "end", below: float = 0.0
) -> str:
    """Return one escaped text beside a mark, turned by an angle in degrees.

    It ends there, or starts; ``below`` : how far under its line the mark lies.
    """
    return (
        f'<text class="tick" text-anchor="{anchor}" y="{number(below)}" '
        f'transform="translate({number(x)} {number(y)}) rotate({number(angle)})">'
        f"{escape(content)}</text>"
    )


def dot(x: float, y: float, radius: float, title: str, style: str) -> str:
    """Return a dot that tells its meaning to a pointer resting on it."""
    return (
        f'<circle class="{style}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}">'
        f"<title>{escape(title)}</title></circle>"
    )


def bar(
    x: float, y: float, width: float, height: float, title: str, style: str, fill: str = "",
    opacity: float = 0.85,
) -> str:  # fmt: skip
    """Return a bar that tells its meaning to a pointer resting on it; ``fill`` : a color."""
    color = f'fill="{fill}" fill-opacity="{opacity:.3g}" ' if fill else ""
    return (
        f'<rect {color}class="{style}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}"><title>{escape(title)}</title></rect>'
    )


def polyline(points: list[tuple[float, float]], style: str, title: str = "") -> str:
    """Return a line through points, which may tell its name to a pointer resting on it."""
    joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<polyline class="{style}" points="{joined}">{told}</polyline>'


def area(points: list[tuple[float, float]], style: str) -> str:
    """Return a filled shape."""
    joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polygon class="{style}" points="{joined}"/>'


def number(value: float) -> str:
    """Return a coordinate with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def round_ticks(least: float, greatest: float, about: int = 5) -> list[tuple[float, str]]:
    """Return ticks at 1, 2 or 5 times a power of ten within the range."""
    span = greatest - least
    if not (math.isfinite(span) and span > 0):
        return [(least, f"{least:.4g}")]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw)
    first, last = math.ceil(least / step - 1e-9), math.floor(greatest / step + 1e-9)
    return [(index * step, f"{index * step:.6g}") for index in range(first, last + 1)]


def whole_ticks(least: int, greatest: int, about: int = 8) -> list[tuple[float, str]]:
    """Return ticks at whole numbers."""
    step = max(1, math.ceil((greatest - least) / about))
    for pretty in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000):
        if pretty >= step:
            step = pretty
            break
    first = math.ceil(least / step) * step
    return [(float(value), str(value)) for value in range(first, greatest + 1, step)]


def power_ticks(least: int, greatest: int, about: int = 6) -> list[tuple[float, str]]:
    """Return ticks at whole powers of ten; positions are the exponents."""
    step = max(1, math.ceil((greatest - least) / about))
    return [
        (
            float(exponent),
            "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")),
        )
        for exponent in range(greatest, least - 1, -step)
    ]
