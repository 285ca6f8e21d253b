"""Displays of classes: how well held-out rows are told apart, and features in each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_recall_curve, roc_curve

from atomlearn.core.interfaces import Array
from atomlearn.reports.drawing import OTHERS, SERIES, Display, label_of, names_on


@dataclass
class SharesDisplay(Display):
    """Curves in the unit square, one a class: what ROC, precision and calibration share."""

    points: list[tuple[Array, Array]]
    labels: Sequence[str]
    across: ClassVar[str]
    up: ClassVar[str]
    diagonal: ClassVar[bool] = True
    marker: ClassVar[str] = ""

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        if self.diagonal:
            ax.plot([0, 1], [0, 1], linestyle="--", color=OTHERS)
        drawn = {"marker": self.marker, **options}
        lines = [ax.plot(x, y, **drawn)[0] for x, y in self.points]
        ax.set(xlabel=self.across, ylabel=self.up, xlim=(0, 1.01), ylim=(0, 1.01))
        ax.legend(lines, [label_of(label) for label in self.labels])


@dataclass
class RocDisplay(SharesDisplay):
    """True against false positives of held-out rows."""

    title = "ROC on held-out rows"
    about = "The dashed line is a guess."
    across, up = "false positive rate", "true positive rate"


@dataclass
class PrecisionDisplay(SharesDisplay):
    """Precision against recall of held-out rows."""

    title = "Precision and recall on held-out rows"
    about = "Of those called so, how many are; of those that are, how many were called so."
    across, up, diagonal = "recall", "precision", False


@dataclass
class CalibrationDisplay(SharesDisplay):
    """Share of rows that are of a class, against the probability that was told.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from atomlearn import AtomicClassifier, reports
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AtomicClassifier(alpha=0.05).fit(scale(X), y)
    >>> len(reports.CalibrationDisplay.from_estimator(model, scale(X), y).points)
    1
    """

    title = "Calibration on held-out rows"
    about = "Bins of equally many rows: on the dashed line told probabilities are right."
    across, up, marker = "told probability", "share that is true", "o"

    needs = "tells no probabilities; fit a classifier whose loss has some: AtomicClassifier()"

    @classmethod
    def of_estimator(cls, estimator: Any, X: Any, y: Any, names: Any) -> Self | None:
        """Return the calibration on these rows: not those that the estimator was fitted to."""
        try:
            told = np.asarray(estimator.predict_proba(X))
        except AttributeError:
            return None
        classes, truth = np.asarray(estimator.classes_), np.asarray(y)
        wanted = [1] if classes.size == 2 else list(range(classes.size))
        points = [calibration_points(truth == classes[at], told[:, at]) for at in wanted]
        return cls(points, [str(classes[at]) for at in wanted])


def calibration_points(truth: NDArray[np.bool_], probability: Array) -> tuple[Array, Array]:
    """Return mean probability and share that is true, of bins with equally many rows."""
    n_bins = max(1, min(10, truth.size // 10))
    shares, means = calibration_curve(truth, probability, n_bins=n_bins, strategy="quantile")
    return means, shares


def curves_of_classes(
    codes: NDArray[np.int64], decisions: Array, labels: Sequence[str], probabilities: Any = None
) -> list[Display]:
    """Return ROC, precision-recall and calibration of held-out rows, one curve a class.

    ``labels`` : of the outputs, one for two classes.
    """
    outputs = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    truths = [codes == code for code in outputs]
    known = [place for place, truth in enumerate(truths) if truth.any() and not truth.all()]
    if not known:
        return []
    names, roc, precision, calibration = [labels[place] for place in known], [], [], []
    for place in known:
        truth, value = truths[place], decisions[:, place]
        roc.append(roc_curve(truth, value)[:2])
        precise, recall, _ = precision_recall_curve(truth, value, drop_intermediate=True)
        precision.append((recall, precise))
        if probabilities is not None:
            told = np.asarray(probabilities)[:, outputs[place]]
            calibration.append(calibration_points(truth, told))
    found: list[Display] = [RocDisplay(roc, names), PrecisionDisplay(precision, names)]
    return [*found, CalibrationDisplay(calibration, names)] if calibration else found


@dataclass
class BoxesDisplay(Display):
    """The values of one feature in each class that has rows."""

    name: str
    labels: Sequence[str]
    values: Sequence[Array]
    title = "Selected features in each class"
    about = (
        "Boxes hold the middle half of the rows of a class, lines 90% of them; the mark is the "
        "median. The largest features are drawn."
    )

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing on a page: as high as there are classes."""
        return (3.4, 0.8 + 0.2 * len(self.labels))

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        shares = [0.05, 0.25, 0.5, 0.75, 0.95]
        least, low, middle, high, most = np.array([np.quantile(x, shares) for x in self.values]).T
        places = names_on(ax, self.labels)
        colors = [SERIES[place % len(SERIES)] for place in places]
        ax.hlines(places, least, most, color=OTHERS, linewidth=1.0)
        ax.barh(places, high - low, 0.6, low, color=colors, alpha=0.7, **options)
        ax.plot(middle, places, "|", color=OTHERS, markersize=12)
        ax.set_title(label_of(self.name, 40))
