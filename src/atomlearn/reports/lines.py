"""Drawings of evidence: ROC, precision-recall, calibration, validation curve, path, boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from atomlearn.reports import svg
from atomlearn.reports.evidence import Boxes, CurveOf, PathOf, Validation
from atomlearn.reports.style import STYLE
from atomlearn.reports.tables import shortened


def legend(labels: Sequence[str]) -> str:
    """Return the names of series beside their colors, as a paragraph of the page."""
    if len(labels) < 2:
        return ""
    n_colors = len(STYLE.series)
    keys = "".join(
        f'<span><span class="key series-key-{number % n_colors}"></span>{escape(label)}</span>'
        for number, label in enumerate(labels)
    )
    return f'<div class="legend">{keys}</div>'


def share_plot(curves: Sequence[CurveOf], x: str, y: str, title: str, diagonal: bool) -> str:
    """Return curves in the unit square, with their legend; empty where there are none."""
    if not curves:
        return ""
    frame = svg.Frame(x=(0.0, 1.0), y=(0.0, 1.0), height=300.0)
    ticks = [(value / 5, f"{value / 5:g}") for value in range(6)]
    parts = [frame.axes(ticks, ticks, x, y)]
    if diagonal:
        parts.append(svg.line(frame.across(0), frame.up(0), frame.across(1), frame.up(1), "goal"))
    for number, curve in enumerate(curves):
        style = f"series-{number % len(STYLE.series)}"
        placed = [(frame.across(a), frame.up(b)) for a, b in curve.points]
        parts.append(svg.polyline(placed, f"curve {style}"))
        if len(placed) <= 20:
            for (a, b), (at, up) in zip(curve.points, placed, strict=True):
                parts.append(
                    svg.dot(at, up, 3.5, f"{curve.label}: {a:.3g}, {b:.3g}", f"dot {style}")
                )
    return legend([curve.label for curve in curves]) + svg.drawing(
        "".join(parts), title, height=300
    )


def roc_plot(curves: Sequence[CurveOf]) -> str:
    """Return the ROC curves of held-out rows."""
    return share_plot(curves, "false positive rate", "true positive rate", "ROC curve", True)


def precision_recall_plot(curves: Sequence[CurveOf]) -> str:
    """Return the precision-recall curves of held-out rows."""
    return share_plot(curves, "recall", "precision", "Precision and recall", False)


def calibration_plot(curves: Sequence[CurveOf]) -> str:
    """Return the share that is true against the probability that was told."""
    return share_plot(curves, "told probability", "share that is true", "Calibration", True)


def _places(levels: Sequence[float]) -> list[float]:
    """Return where levels stand: large ones, with few features, on the left."""
    return [-math.log10(level) for level in levels]


def _level_ticks(places: Sequence[float]) -> list[tuple[float, str]]:
    least, greatest = -max(places), -min(places)
    ticks = []
    for power in range(math.floor(least), math.ceil(greatest) + 1):
        for digit in (1, 2, 5):
            at = power + math.log10(digit)
            if least - 1e-9 <= at <= greatest + 1e-9:
                ticks.append((-at, f"{digit * 10.0**power:.3g}"))
    return ticks if len(ticks) <= 7 else ticks[:: math.ceil(len(ticks) / 7)]


def _padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    least, greatest = min(values), max(values)
    margin = share * (greatest - least) or 0.5 * abs(greatest) or 1.0
    return least - margin, greatest + margin


def _mark_chosen(frame: svg.Frame, chosen: float) -> list[str]:
    if not chosen > 0:
        return []
    at = frame.across(min(max(-math.log10(chosen), frame.x[0]), frame.x[1]))
    floor = frame.height - frame.bottom
    near = at > frame.width - 90
    return [
        svg.line(at, frame.top, at, floor, "goal"),
        svg.text(at - 4 if near else at + 4, frame.top + 10, "chosen", "note",
                 "end" if near else "start"),
    ]  # fmt: skip


def validation_plot(found: Validation) -> str:
    """Return the mean held-out score along the levels, with its standard errors."""
    logs = _places(found.levels)
    low = [m - e for m, e in zip(found.mean, found.error, strict=True)]
    high = [m + e for m, e in zip(found.mean, found.error, strict=True)]
    finite = [value for value in (*low, *high) if math.isfinite(value)]
    if len(logs) < 2 or not finite:
        return ""
    frame = svg.Frame(x=_padded(logs, 0.02), y=_padded(finite))
    parts = [frame.axes(_level_ticks(logs), svg.round_ticks(*frame.y), "alpha", found.name)]
    parts += _mark_chosen(frame, found.chosen)
    points = []
    for place, at in enumerate(logs):
        if not math.isfinite(found.mean[place]):
            continue
        x, y = frame.across(at), frame.up(found.mean[place])
        points.append((x, y))
        parts.append(svg.line(x, frame.up(low[place]), x, frame.up(high[place]), "error"))
        count = f", {found.n_selected[place]:g} features" if found.n_selected else ""
        title = f"alpha {found.levels[place]:.4g}: {found.mean[place]:.5g}{count}"
        parts.append(svg.dot(x, y, 3.0, title, "dot series-0"))
    parts.append(svg.polyline(points, "curve series-0"))
    return svg.drawing("".join(parts), "Held-out score along the path")


def path_plot(found: PathOf) -> str:
    """Return coefficients per standard deviation along the levels, the largest ones labelled."""
    logs = _places(found.levels)
    values = [value for row in found.coefficients for value in row]
    if len(logs) < 2 or not values:
        return ""
    frame = svg.Frame(x=_padded(logs, 0.02), y=_padded([*values, 0.0]), right=104.0)
    parts = [
        frame.axes(_level_ticks(logs), svg.round_ticks(*frame.y), "alpha",
                   "coefficient per st. dev.")
    ]  # fmt: skip
    parts += _mark_chosen(frame, found.chosen)
    last = max(range(len(logs)), key=lambda at: logs[at])
    taken: list[float] = []
    for number, (name, row) in enumerate(zip(found.names, found.coefficients, strict=True)):
        style = f"series-{number % len(STYLE.series)}"
        placed = [(frame.across(x), frame.up(y)) for x, y in zip(logs, row, strict=True)]
        parts.append(svg.polyline(placed, f"curve thin {style}", name))
        y = frame.up(row[last])
        if len(taken) < 12 and all(abs(y - other) > 11 for other in taken):
            taken.append(y)
            label = shortened(name, 12)
            parts.append(svg.text(frame.width - frame.right + 4, y + 4, label, "tick"))
    return svg.drawing("".join(parts), "Coefficients along the path")


def boxes_plot(boxes: Sequence[Boxes]) -> str:
    """Return small panels: quantiles of a feature in each class."""
    panels = []
    for item in boxes:
        values = [value for _, row in item.boxes for value in row]
        if not values:
            continue
        height = 30.0 + 22.0 * len(item.boxes)
        frame = svg.Frame(
            x=_padded(values), y=(0.0, 1.0), left=84.0, right=12.0, top=20.0, bottom=20.0,
            width=320.0, height=height,
        )  # fmt: skip
        parts = [svg.text(8, 13, shortened(item.name, 40), "label")]
        for value, label in svg.round_ticks(*frame.x, about=4):
            parts.append(svg.text(frame.across(value), height - 4, label, "tick", "middle"))
        for place, (label, row) in enumerate(item.boxes):
            y = 30.0 + 20.0 * place
            five, quarter, half, three, most = (frame.across(value) for value in row)
            style = f"series-{place % len(STYLE.series)}"
            middle = f"half within {row[1]:.4g} to {row[3]:.4g}"
            title = f"{item.name}, {label}: median {row[2]:.4g}, {middle}"
            parts.append(svg.text(78, y + 4, shortened(label, 12), "tick", "end"))
            parts.append(svg.line(five, y, most, y, "axis"))
            parts.append(
                svg.bar(quarter, y - 6, max(three - quarter, 1.0), 12, title, f"box {style}")
            )
            parts.append(svg.line(half, y - 7, half, y + 7, "median"))
        panels.append(svg.drawing("".join(parts), f"{item.name} in each class", 320.0, height))
    return f'<div class="panels">{"".join(panels)}</div>' if panels else ""


def residual_plot(truth: Sequence[float], predicted: Sequence[float]) -> str:
    """Return what the model missed, against what it predicted."""
    stride = max(1, math.ceil(len(truth) / STYLE.most_points))
    pairs = [(z, y - z) for y, z in zip(truth, predicted, strict=True)][::stride]
    if not pairs:
        return ""
    frame = svg.Frame(x=_padded([a for a, _ in pairs]), y=_padded([b for _, b in pairs] + [0.0]))
    parts = [
        frame.axes(svg.round_ticks(*frame.x), svg.round_ticks(*frame.y), "predicted value",
                   "true minus predicted")
    ]  # fmt: skip
    zero = frame.up(0.0)
    parts.append(svg.line(frame.left, zero, frame.width - frame.right, zero, "goal"))
    for a, b in pairs:
        title = f"predicted {a:.6g}, off by {b:.4g}"
        parts.append(svg.dot(frame.across(a), frame.up(b), 3.0, title, "dot faint series-0"))
    return svg.drawing("".join(parts), "Residuals of held-out rows")
