"""A Manhattan plot: the correlation of each feature with the target, along the chromosomes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn.core import Array, Design, column_moments
from atomlearn.reports.drawing import LOWERS, MOST_POINTS, OTHERS, RAISES, Display

#: Matches names that contain a genomic position: chr1:752566_A, 1:752566, X_1234_A_G.
_PLACED = re.compile(r"^(?:chr)?(\d{1,2}|[XYMZW]|MT)[:_](\d+)(?:\D|$)", re.IGNORECASE)

#: The chromosome of each feature, "" if it is not known, and its position on the chromosome.
Places = tuple[Sequence[str], ArrayLike]


def places_in(names: Sequence[str]) -> Places | None:
    """Return chromosomes and positions parsed from names such as ``chr1:752566_A``.

    The result is None if most of the names have no position.
    """
    matches = [_PLACED.match(name) for name in names]
    if len(names) < 2 or sum(map(bool, matches)) * 2 < len(names):
        return None
    chromosomes = ["" if match is None else match[1].upper() for match in matches]
    return chromosomes, [-1 if match is None else int(match[2]) for match in matches]


@dataclass
class ChromosomesDisplay(Display):
    """A Manhattan plot of all features, with the selected features highlighted.

    ``chromosomes`` maps each chromosome to its middle on the axis. ``places`` and ``heights`` are
    the positions and absolute correlations with the target of the strongest feature in each bin of
    the axis. ``shades`` is 0 or 1, alternating by chromosome. ``selected`` maps the name of each
    selected feature to its (place, height).
    """

    chromosomes: dict[str, float]
    places: Array
    heights: Array
    shades: NDArray[np.int64]
    selected: dict[str, tuple[float, float]]
    title = "Along the chromosomes"
    about = (
        "How strongly each feature alone goes with the target: dots stand for the strongest "
        "feature at a place, large ones for the selected features. What is selected together need "
        "not be strong alone."
    )
    wide = True
    size = (10.5, 3.0)

    @classmethod
    def of(
        cls, design: Design, targets: Array, places: Places, selected: dict[str, int]
    ) -> Self | None:
        """Return the display of the absolute correlation of each feature with the target.

        ``targets`` has shape (n_targets, n_rows); the largest correlation with any of them counts.
        ``places`` holds the chromosomes and positions of the features, and ``selected`` maps the
        name of each selected feature to its column. The data is read once. The result is None if
        fewer than two positions are known. ``design`` is the matrix of columns.
        """
        labels = np.asarray(places[0])
        positions = np.asarray(places[1], dtype=np.float64)
        known = np.flatnonzero((positions >= 0) & (labels != ""))
        if known.size < 2:
            return None
        # Chromosomes are numbered in the order 1, 2, ..., 22, X, Y.
        chromosomes, chromosome_numbers = np.unique(labels[known], return_inverse=True)
        names = sorted(chromosomes.tolist(), key=lambda name: (not name.isdigit(), name.zfill(2)))
        chromosome_numbers = np.array([*map(names.index, chromosomes)])[chromosome_numbers]
        known_positions = positions[known]
        # Chromosomes are joined end to end on the axis, each as long as its range of positions.
        # ``ends`` is one beyond the last place of each chromosome on the axis.
        first, last = np.full((2, len(names)), [[np.inf], [-np.inf]])
        np.minimum.at(first, chromosome_numbers, known_positions)
        np.maximum.at(last, chromosome_numbers, known_positions)
        ends = np.cumsum(last - first + 1.0)
        axis_positions = known_positions - last[chromosome_numbers] + ends[chromosome_numbers] - 1.0
        height = _correlations(design, targets)[known]
        # Only the strongest feature in each bin of the axis is drawn, to keep the picture small.
        bins = (axis_positions * (MOST_POINTS / ends[-1])).astype(np.int64)
        strongest = np.lexsort((-height, bins))
        drawn = strongest[np.unique(bins[strongest], return_index=True)[1]]
        chosen = {
            name: (float(axis_positions[index]), float(height[index]))
            for name, column in selected.items()
            for index in np.flatnonzero(known == column)
        }
        middles = dict(zip(names, (ends - 0.5 * (last - first + 1.0)).tolist(), strict=True))
        return cls(
            middles, axis_positions[drawn], height[drawn], chromosome_numbers[drawn] % 2, chosen
        )

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the correlations as dots, the selected features as large dots.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        for shade, color in enumerate((RAISES, OTHERS)):
            is_shade = self.shades == shade
            style = {"color": color, "alpha": 0.6, "markersize": 3, **options}
            ax.plot(self.places[is_shade], self.heights[is_shade], ".", **style)
        ax.plot(*np.array([*self.selected.values()]).reshape(-1, 2).T, "o", color=LOWERS)
        gap = np.nanmax(self.places) / 40
        labels = dict[str, float]()
        last_middle = -np.inf
        for label, middle in self.chromosomes.items():
            if middle - last_middle > gap:  # labels of small chromosomes would overlap
                labels[label] = last_middle = middle
        ax.set_xticks([*labels.values()], [*labels])
        ax.grid(visible=False, axis="x")
        ax.set(xlabel="chromosome", ylabel="|correlation with the target|")


def _correlations(design: Design, targets: Array) -> Array:
    """Return the largest absolute correlation of each column with any of the targets.

    ``targets`` has shape (n_targets, n_rows). ``design`` is the matrix of columns.
    """
    centered = targets - targets.mean(axis=1, keepdims=True)
    norms = np.sqrt((centered**2).sum(axis=1))
    scale = column_moments(design)[1] * np.sqrt(design.shape[0])
    scale[scale == 0] = np.inf  # constant columns get 0
    correlations = np.zeros(design.shape[1])
    for scores in design.scores_many(centered[norms > 0].T / norms[norms > 0]):
        correlations = np.maximum(correlations, np.abs(scores.full()) / scale)
    return correlations
