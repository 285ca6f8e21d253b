"""Markers: for each class the selected features, with their values inside and outside of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.reports.content import SelectedFeature
from atomlearn.reports.drawing import printable
from atomlearn.reports.view import View

#: Maximum number of features of each class on the page and in the terminal; the file has all.
MOST_ON_PAGE = 8
MOST_IN_TERMINAL = 4
#: Maximum number of classes in the terminal.
MOST_CLASSES = 30


@dataclass(frozen=True, slots=True)
class Marker:
    """The role of one selected feature in one class.

    ``feature`` is the selected feature. ``coefficient`` is that of this class, per unit of the
    data, and ``standardized`` per standard deviation; a positive one speaks for the class.
    ``mean`` and ``mean_elsewhere`` are the means over the rows inside and outside of the class,
    ``share`` and ``share_elsewhere`` the shares of these rows with a value other than zero.
    """

    feature: SelectedFeature
    coefficient: float
    standardized: float
    mean: float
    mean_elsewhere: float
    share: float
    share_elsewhere: float

    @property
    def is_higher(self) -> bool:
        """Whether it speaks for the class and its mean is larger inside of it, as of a marker."""
        return self.standardized > 0 and self.mean > self.mean_elsewhere


def markers_of(
    view: View, codes: NDArray[Any], selected: Sequence[SelectedFeature]
) -> dict[str, tuple[Marker, ...]]:
    """Return the markers of each class, those with the largest coefficients first.

    The result is empty for a model without a coefficient for each class. ``codes``, shape
    (n_rows,), are class codes. ``view`` is the fitted model with its inputs and ``selected`` are
    the selected features.
    """
    labels = view.labels
    if labels is None or view.outputs != len(labels) or not selected:
        return {}
    class_indicators = np.equal.outer(np.arange(len(labels)), codes).astype(np.float64)
    counts = np.maximum(class_indicators.sum(axis=1), 1.0)
    others = np.maximum(codes.size - class_indicators.sum(axis=1), 1.0)
    by_class: dict[str, list[Marker]] = {label: [] for label in labels}
    for feature in selected:
        values = view.design.gather(np.array([feature.index])).dense()[:, 0]
        # ``sums`` (n_classes, 2): for each class, the sum of the values and the number of nonzero
        # ones over its rows.
        values_and_presence = np.array([values, values != 0], dtype=np.float64)
        sums = class_indicators @ values_and_presence.T
        inside = sums / counts[:, None]
        outside = (values_and_presence.sum(axis=1) - sums) / others[:, None]
        for index, label in enumerate(labels):
            means = inside[index, 0], outside[index, 0], inside[index, 1], outside[index, 1]
            numbers = feature.coefficients[index], feature.standardized[index], *means
            by_class[label].append(Marker(feature, *map(float, numbers)))
    return {
        label: tuple(sorted(markers, key=lambda marker: -marker.standardized))
        for label, markers in by_class.items()
    }


def marker_rows(markers: Mapping[str, Sequence[Marker]]) -> Iterator[list[Any]]:
    """Yield the header and the lines of markers.csv: one for each class and selected feature."""
    yield [
        *("class", "rank", "feature", "symbol", "coefficient", "standardized_coefficient"),
        *("mean_in_class", "mean_elsewhere", "nonzero_in_class", "nonzero_elsewhere"),
    ]
    for label, markers_of_class in markers.items():
        for rank, marker in enumerate(markers_of_class, start=1):
            feature = marker.feature
            numbers = marker.coefficient, marker.standardized, marker.mean, marker.mean_elsewhere
            shares = marker.share, marker.share_elsewhere
            yield [label, rank, feature.name, feature.symbol, *numbers, *shares]


def marker_lines(markers: Mapping[str, Sequence[Marker]]) -> list[str]:
    """Return the lines of the terminal: the markers of each class with the largest coefficients."""
    if not markers:
        return []
    lines = ["", "  markers of each class, with coefficients per standard deviation"]
    for label, markers_of_class in [*markers.items()][:MOST_CLASSES]:
        words = [
            f"{printable(marker.feature.shown, 30)} {marker.standardized:+.2f}"
            for marker in [marker for marker in markers_of_class if marker.is_higher][
                :MOST_IN_TERMINAL
            ]
        ]
        lines.append(f"    {printable(label, 48)}: {', '.join(words) or 'none'}")
    if len(markers) > MOST_CLASSES:
        lines.append(f"    ... and {len(markers) - MOST_CLASSES} more classes: markers.csv")
    return lines
