"""Where features lie along chromosomes: what each tells alone, and which were selected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.standardized import column_moments
from atomlearn.core.interfaces import Array, Design
from atomlearn.reports import svg
from atomlearn.reports.style import STYLE

#: Names that say where a feature lies: chr1:752566_A, 1:752566, X_1234_A_G.
_PLACED = re.compile(r"^(?:chr)?(\d{1,2}|[XYMZW]|MT)[:_](\d+)(?:\D|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Manhattan:
    """Features along chromosomes: all of them thinned, and the selected ones with their names.

    chromosomes : (label, first, last) along the axis, from 0 to 1; others, selected : (place,
    |correlation with the target|, number of the chromosome or name).
    """

    chromosomes: tuple[tuple[str, float, float], ...]
    others: tuple[tuple[float, float, int], ...]
    selected: tuple[tuple[float, float, str], ...]


def places_in(names: Sequence[str]) -> tuple[list[str], NDArray[np.int64]] | None:
    """Return chromosomes and positions that names tell, -1 where one does not; None for others."""
    found = [_PLACED.match(name) for name in names[:2000]]
    if len(found) < 2 or sum(match is not None for match in found) < STYLE.enough_places * len(
        found
    ):
        return None
    found += [_PLACED.match(name) for name in names[2000:]]
    chromosomes = ["" if match is None else match[1].upper() for match in found]
    positions = [-1 if match is None else int(match[2]) for match in found]
    return chromosomes, np.array(positions, dtype=np.int64)


def manhattan_of(
    design: Design, targets: Array, chromosomes: Sequence[str], positions: NDArray[np.int64],
    selected: Sequence[int], names: Sequence[str],
) -> Manhattan | None:  # fmt: skip
    """Return |correlation| of every feature with the target, (n_outputs, n), along chromosomes.

    One reading of the data; of several outputs the largest. ``names`` : of the selected ones.
    """
    labels = np.asarray(chromosomes)[: design.shape[1]]
    known = np.flatnonzero((positions[: labels.size] >= 0) & (labels != ""))
    if known.size < 2:
        return None
    order = sorted(set(labels[known].tolist()), key=_rank)
    height = _correlations(design, targets)
    place, spans = np.full(labels.size, np.nan), []
    lengths = [float(np.ptp(positions[known][labels[known] == label])) or 1.0 for label in order]
    space = 0.01 * sum(lengths)
    whole, begin = sum(lengths) + space * (len(order) - 1), 0.0
    number = np.zeros(labels.size, dtype=np.int64)
    for at, (label, length) in enumerate(zip(order, lengths, strict=True)):
        mine = known[labels[known] == label]
        place[mine] = (begin + positions[mine] - positions[mine].min()) / whole
        number[mine] = at
        spans.append((label, begin / whole, (begin + length) / whole))
        begin += length + space
    bins = np.minimum((place[known] * STYLE.most_places).astype(np.int64), STYLE.most_places - 1)
    strongest = known[np.lexsort((-height[known], bins))]
    first = np.unique(np.sort(bins), return_index=True)[1]
    others = tuple((float(place[j]), float(height[j]), int(number[j])) for j in strongest[first])
    chosen = tuple(
        (float(place[j]), float(height[j]), name)
        for j, name in zip(selected, names, strict=True)
        if j < labels.size and np.isfinite(place[j])
    )
    return Manhattan(tuple(spans), others, chosen)


def _rank(label: str) -> tuple[int, str]:
    return (int(label), "") if label.isdigit() else (10**6, label)


def _correlations(design: Design, targets: Array) -> Array:
    centered = targets - targets.mean(axis=1, keepdims=True)
    spread = np.sqrt((centered**2).sum(axis=1))
    scale = column_moments(design)[1] * np.sqrt(design.shape[0])
    found = np.zeros(design.shape[1])
    for row, size in zip(centered, spread, strict=True):
        if size > 0:
            z = np.abs(np.asarray(design.scores(row / size).full(), dtype=np.float64))
            found = np.maximum(found, np.divide(z, scale, out=np.zeros_like(z), where=scale > 0))
    return found


def manhattan_plot(found: Manhattan) -> str:
    """Return all features as faint dots, shades by chromosome, and the selected ones on top."""
    highest = max((height for _, height, _ in (*found.others, *found.selected)), default=0.0)
    frame = svg.Frame(x=(0.0, 1.0), y=(0.0, 1.08 * highest or 1.0), width=960.0, height=300.0)
    parts, last = [], -1e9
    ticks = []
    for label, first, end in found.chromosomes:
        at = frame.across(0.5 * (first + end))
        if at - last > 9.0 + 6.5 * len(label):  # small ones would write over each other
            ticks.append((0.5 * (first + end), label))
            last = at
    parts.append(frame.axes(ticks, svg.round_ticks(*frame.y), "chromosome",
                            "|correlation with the target|"))  # fmt: skip
    for x, y, number in found.others:
        style = f"place-{number % 2}"
        parts.append(
            f'<circle class="{style}" cx="{svg.number(frame.across(x))}" '
            f'cy="{svg.number(frame.up(y))}" r="1.6"/>'
        )
    for x, y, name in found.selected:
        title = f"{name}: |correlation| {y:.3g}, selected"
        parts.append(svg.dot(frame.across(x), frame.up(y), 4.0, title, "dot series-1"))
    return svg.drawing("".join(parts), "Features along chromosomes", 960.0, 300.0)
