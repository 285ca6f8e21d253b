"""Drawings of a report: functions of a history or of the selected features, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from atomlearn.core.problem.result import Record
from atomlearn.reports import svg
from atomlearn.reports.content import Curve, SelectedFeature
from atomlearn.reports.lines import legend
from atomlearn.reports.style import STYLE
from atomlearn.reports.tables import shortened


def certificate_plot(
    histories: Sequence[Sequence[Record]], labels: Sequence[str], goal: float
) -> str:
    """Return the proved relative gap against passes over the data, one line a fit.

    y is logarithmic; the dashed line is the requested accuracy ``goal``.
    """
    lines = [
        [(record.passes, _exponent(record.relative_gap), record) for record in history]
        for history in histories
    ]
    exponents = [point[1] for points in lines for point in points] + [math.log10(goal)]
    passes = [point[0] for points in lines for point in points]
    # Before the first step a gap can be any size: nothing is learnt from more than 10^4.
    highest = min(max(math.ceil(max(exponents)), -1), 4)
    lowest = math.floor(min(exponents))
    last = max(*passes, 1.0) if passes else 1.0
    frame = svg.Frame(x=(0.0, last * 1.02), y=(float(lowest), float(max(highest, lowest + 1))))
    parts = [
        frame.axes(
            svg.whole_ticks(0, math.ceil(last)),
            svg.power_ticks(lowest, highest),
            "passes over the data",
            "proved relative gap",
        )
    ]
    at = frame.up(math.log10(goal))
    parts.append(svg.line(frame.left, at, frame.width - frame.right, at, "goal"))
    parts.append(svg.text(frame.left + 6, at - 6, f"asked for {goal:.0e}", "note"))
    for number, (points, label) in enumerate(zip(lines, labels, strict=True)):
        placed = [(frame.across(x), frame.up(min(y, highest))) for x, y, _ in points]
        told = [f"gap {r.relative_gap:.2e}, {r.n_columns} columns" for _, _, r in points]
        parts += _line_of(number, label, placed, [r for _, _, r in points], told)
    return svg.drawing("".join(parts), "Proved relative gap against passes over the data")


def objective_plot(
    histories: Sequence[Sequence[Record]], labels: Sequence[str], unit: str = "features"
) -> str:
    """Return the objective against the number of columns in use, one line a fit.

    ``unit`` : what a column is; curves have several each.
    """
    highest = max(record.objective for history in histories for record in history)
    most = max(record.n_columns for history in histories for record in history)
    frame = svg.Frame(x=(0.0, max(most, 1) * 1.02), y=(0.0, highest * 1.05 or 1.0))
    parts = [
        frame.axes(
            svg.whole_ticks(0, max(most, 1)),
            svg.round_ticks(0.0, highest),
            f"{unit} selected",
            "objective",
        )
    ]
    for number, (history, label) in enumerate(zip(histories, labels, strict=True)):
        placed = [(frame.across(float(r.n_columns)), frame.up(r.objective)) for r in history]
        told = [f"{r.n_columns} {unit}, objective {r.objective:.5g}" for r in history]
        parts += _line_of(number, label, placed, history, told)
    return svg.drawing("".join(parts), f"Objective against the number of selected {unit}")


def _line_of(
    number: int,
    label: str,
    placed: list[tuple[float, float]],
    history: Sequence[Record],
    told: list[str],
) -> list[str]:
    """Return the line of one fit, with a dot a step that tells what was reached by then."""
    style = f"series-{number % len(STYLE.series)}"
    parts = [svg.polyline(placed, f"curve {style}")]
    for (x, y), record, words in zip(placed, history, told, strict=True):
        when = f"after {record.passes:g} passes and {record.seconds:.2f} s"
        parts.append(svg.dot(x, y, 3.5, f"{label}: {when}, {words}", f"dot {style}"))
    return parts


def _exponent(gap: float) -> float:
    return math.log10(min(max(gap, STYLE.least_gap), 1e300))


def selection_plot(features: Sequence[SelectedFeature]) -> str:
    """Return the coefficients in the order in which the features were found, a shade a round.

    Heights are |coefficient| per standard deviation; at most ``STYLE.most_bars`` are drawn.
    """
    known = [feature for feature in features if feature.found is not None]
    ordered = sorted(known, key=lambda feature: (feature.found or 0, feature.rank))[
        : STYLE.most_bars
    ]
    highest = max((feature.size for feature in ordered), default=0.0) or 1.0
    frame = svg.Frame(x=(0.0, float(max(len(ordered), 1))), y=(0.0, highest * 1.12))
    parts = [
        frame.axes(
            svg.whole_ticks(1, len(ordered)) if len(ordered) > 1 else [],
            svg.round_ticks(0.0, highest),
            "features in the order found",
            "|standardized coefficient|",
        )
    ]
    step = (frame.width - frame.left - frame.right) / max(len(ordered), 1)
    previous, free = None, 0.0
    for position, feature in enumerate(ordered):
        x, y = frame.across(float(position)), frame.up(feature.size)
        if feature.found != previous:
            previous = feature.found
            parts.append(svg.line(x, frame.top, x, frame.height - frame.bottom, "grid"))
            if step * 3 > 6 and x >= free:  # they would write over each other
                free = x + 44.0
                parts.append(svg.text(x + 3, frame.top + 10, f"pass {feature.found}", "note"))
        title = f"{feature.name}: found in pass {feature.found}, rank {feature.rank}"
        height = max(frame.height - frame.bottom - y, 0.8)
        style = "bar even" if (feature.found or 0) % 2 else "bar odd"
        gap = min(1.5, step * 0.2)
        parts.append(svg.bar(x + gap / 2, y, max(step - gap, 0.4), height, title, style))
    return svg.drawing("".join(parts), "Coefficients in the order in which features were found")


def prediction_plot(
    truth: Sequence[float], predicted: Sequence[float], most: int = STYLE.most_points
) -> str:
    """Return predicted against true values of held-out rows, with the line of equality."""
    stride = max(1, math.ceil(len(truth) / most))
    pairs = list(zip(truth, predicted, strict=True))[::stride]
    values = [value for pair in pairs for value in pair]
    least, greatest = min(values), max(values)
    margin = 0.04 * (greatest - least) or 1.0
    least, greatest = least - margin, greatest + margin
    frame = svg.Frame(x=(least, greatest), y=(least, greatest), height=320.0)
    ticks = svg.round_ticks(least, greatest)
    parts = [frame.axes(ticks, ticks, "true value", "predicted value")]
    parts.append(
        svg.line(
            frame.across(least), frame.up(least), frame.across(greatest), frame.up(greatest), "goal"
        )
    )
    for true, guess in pairs:
        title = f"true {true:.6g}, predicted {guess:.6g}"
        parts.append(svg.dot(frame.across(true), frame.up(guess), 3.0, title, "dot faint series-0"))
    return svg.drawing("".join(parts), "Predicted against true values of held-out rows", height=320)


def curves_plot(curves: Sequence[Curve], outputs: Sequence[str]) -> str:
    """Return one panel a curve, all on one scale, a line an output.

    At most ``STYLE.most_curves`` are drawn.
    """
    shown = curves[: STYLE.most_curves]
    values = [
        value for c in shown for rows in (c.values, c.low, c.high) for row in rows for value in row
    ]
    least, greatest = min(*values, 0.0), max(*values, 0.0)
    margin = 0.06 * (greatest - least) or 1.0
    panels = [
        svg.drawing(
            _curve_panel(curve, outputs, (least - margin, greatest + margin), STYLE.panel),
            f"What {curve.name} adds",
            STYLE.panel,
            STYLE.panel_height,
        )
        for curve in shown
    ]
    return legend(list(outputs)) + f'<div class="panels">{"".join(panels)}</div>'


def _curve_panel(
    curve: Curve, outputs: Sequence[str], scale: tuple[float, float], width: float
) -> str:
    first, last = curve.levels[0], curve.levels[-1]
    if last <= first:
        first, last = first - 0.5, last + 0.5
    frame = svg.Frame(
        x=(first, last), y=scale, left=46.0, right=14.0, top=26.0, bottom=30.0,
        width=width, height=STYLE.panel_height,
    )  # fmt: skip
    floor = frame.height - frame.bottom
    parts = [svg.text(frame.left, 13, shortened(curve.name, STYLE.name), "label")]
    for value, label in svg.round_ticks(*scale, about=3):
        at = frame.up(value)
        parts.append(svg.line(frame.left, at, width - frame.right, at, "grid"))
        parts.append(svg.text(frame.left - 4, at + 4, label, "tick", "end"))
    two = [(value, f"{value:.4g}") for value in curve.levels]
    for value, label in two if len(two) == 2 else svg.round_ticks(first, last):
        ends = "start" if value == first and len(two) == 2 else "middle"
        ends = "end" if value == last and len(two) == 2 else ends
        parts.append(svg.text(frame.across(value), frame.height - 8, label, "tick", ends))
    for value in curve.deciles:
        at = frame.across(min(max(value, first), last))
        parts.append(svg.line(at, floor, at, floor - 4, "axis"))
    several = len(curve.values) > 1
    for number, (low, high) in enumerate(zip(curve.low, curve.high, strict=True)):
        if not several:  # bands of several outputs could not be told apart
            edge = _path(curve, high) + _path(curve, low)[::-1]
            placed = [(frame.across(x), frame.up(y)) for x, y in edge]
            parts.append(svg.area(placed, f"band series-{number % len(STYLE.series)}"))
    for number, row in enumerate(curve.values):
        points = [(frame.across(x), frame.up(y)) for x, y in _path(curve, row)]
        parts.append(svg.polyline(points, f"curve series-{number % len(STYLE.series)}"))
        place = max(range(len(row)), key=lambda at, row=row: abs(row[at]))  # type: ignore[misc]
        title = f"{curve.name}: adds {row[place]:.4g} at {curve.levels[place]:.6g}"
        if several:
            title = f"{outputs[number]}, {title}"
        x, y = frame.across(curve.levels[place]), frame.up(row[place])
        parts.append(svg.dot(x, y, 2.5, title, f"dot series-{number % len(STYLE.series)}"))
    return "".join(parts)


def _path(curve: Curve, row: Sequence[float]) -> list[tuple[float, float]]:
    """Return the points of the line; a step stands in the middle between two levels."""
    if not curve.steps:
        return list(zip(curve.levels, row, strict=True))
    points = [(curve.levels[0], row[0])]
    for at in range(1, len(row)):
        middle = 0.5 * curve.levels[at - 1] + 0.5 * curve.levels[at]
        points += [(middle, row[at - 1]), (middle, row[at])]
    return [*points, (curve.levels[-1], row[-1])]


def distribution_plot(values: Sequence[float], n_bins: int = 24) -> str:
    """Return a histogram of a numeric target."""
    least, greatest = min(values), max(values)
    if greatest <= least:
        greatest = least + 1.0
    counts = [0] * n_bins
    for value in values:
        counts[min(int((value - least) / (greatest - least) * n_bins), n_bins - 1)] += 1
    frame = svg.Frame(x=(least, greatest), y=(0.0, max(counts) * 1.05), height=220.0)
    parts = [
        frame.axes(
            svg.round_ticks(least, greatest), svg.round_ticks(0.0, max(counts), 4), "target", "rows"
        )
    ]
    width = (greatest - least) / n_bins
    for position, count in enumerate(counts):
        left = least + position * width
        x, right, y = frame.across(left), frame.across(left + width), frame.up(float(count))
        title = f"{count} rows from {left:.4g} to {left + width:.4g}"
        height = frame.height - frame.bottom - y
        parts.append(svg.bar(x + 0.5, y, right - x - 1.0, height, title, "bar odd"))
    return svg.drawing("".join(parts), "Distribution of the target", height=220)
