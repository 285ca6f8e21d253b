"""Displays of rows: held-out predictions, ROC and calibration, box plots, curves of features.

``names_on(ax, names)`` labels the y axis with names, and returns their positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_recall_curve, roc_curve

from atomlearn.core import Array
from atomlearn.reports.drawing import (
    MOST_BESIDE,
    MOST_POINTS,
    OTHERS,
    SERIES,
    Display,
    label_of,
    names_on,
)

#: Minimum numbers of rows for coverage by deciles (fewer rows are divided into quintiles), and for
#: a display of coverage.
MANY_ROWS = 100
ENOUGH_ROWS = 50


@dataclass
class SharesDisplay(Display):
    """The base class of displays with one curve per class in the unit square.

    ROC, precision-recall and calibration curves are such displays. ``points`` holds (x, y) arrays,
    one pair per curve, with the ``labels`` of the legend. ``across`` and ``up`` are the axis
    labels, ``diagonal`` is whether to draw the identity line, and ``marker`` is the matplotlib
    marker.
    """

    points: list[tuple[Array, Array]]
    labels: Sequence[str]
    across: ClassVar[str]
    up: ClassVar[str]
    part = "prediction"
    diagonal: ClassVar[bool] = True
    marker: ClassVar[str] = ""

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw one curve per class, with the identity line if ``diagonal``.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        if self.diagonal:
            ax.plot([0, 1], [0, 1], linestyle="--", color=OTHERS)
        style = {"marker": self.marker, **options}
        lines = [ax.plot(x, y, **style)[0] for x, y in self.points]
        ax.set(xlabel=self.across, ylabel=self.up, xlim=(0, 1.01), ylim=(0, 1.01))
        outside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "fontsize": "x-small"}
        names = [label_of(label) for label in self.labels]
        ax.legend(lines, names, **(outside if len(lines) > MOST_BESIDE else {}))


@dataclass
class RocDisplay(SharesDisplay):
    """ROC curves: true positive rate against false positive rate of held-out rows."""

    title = "ROC on held-out rows"
    about = "The dashed line is a guess."
    across = "false positive rate"
    up = "true positive rate"


@dataclass
class PrecisionDisplay(SharesDisplay):
    """Precision-recall curves of held-out rows."""

    title = "Precision and recall on held-out rows"
    about = (
        "Recall: the share of the class that is found. Precision: the share of what is found that "
        "is of the class."
    )
    across = "recall"
    up = "precision"
    diagonal = False


@dataclass
class CalibrationDisplay(SharesDisplay):
    """Calibration curves: the frequency of a class against its predicted probability.

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
    about = "Bins of equally many rows. On the dashed line the predicted probabilities are right."
    across = "predicted probability"
    up = "share that is true"
    marker = "o"


def calibration_points(truth: NDArray[np.bool_], probability: Array) -> tuple[Array, Array]:
    """Return the mean predicted probability and the true frequency in quantile bins.

    ``truth``, shape (n_rows,), is whether a row is of the class, and ``probability`` its predicted
    probability.
    """
    n_bins = max(1, min(10, truth.size // 10))
    shares, means = calibration_curve(truth, probability, n_bins=n_bins, strategy="quantile")
    return means, shares


def curves_of_classes(
    codes: NDArray[np.int64], decisions: Array, labels: Sequence[str], probabilities: Any = None
) -> list[Display]:
    """Return ROC, precision-recall and calibration displays with one curve per class.

    ``codes`` holds the class codes of held-out rows, ``decisions``, shape (n_rows, n_outputs), the
    decision values, ``labels`` the names of the outputs (one for two classes), and
    ``probabilities``, shape (n_rows, n_classes), the class probabilities or None. Multiclass curves
    are one-vs-rest.
    """
    outputs = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    truths = [codes == code for code in outputs]
    # Curves need rows inside and outside of the class.
    usable_outputs = [
        output for output, truth in enumerate(truths) if truth.any() and not truth.all()
    ]
    if not usable_outputs:
        return []
    names = [labels[output] for output in usable_outputs]
    roc = []
    precision = []
    calibration = []
    for output in usable_outputs:
        truth = truths[output]
        decision_values = decisions[:, output]
        roc.append(roc_curve(truth, decision_values)[:2])
        precisions, recall, _ = precision_recall_curve(
            truth, decision_values, drop_intermediate=True
        )
        precision.append((recall, precisions))
        if probabilities is not None:
            shares = np.asarray(probabilities)[:, outputs[output]]
            calibration.append(calibration_points(truth, shares))
    displays: list[Display] = [RocDisplay(roc, names), PrecisionDisplay(precision, names)]
    return [*displays, CalibrationDisplay(calibration, names)] if calibration else displays


@dataclass
class BoxesDisplay(Display):
    """Box plots of one feature, one box per class that has rows.

    ``values`` holds the values of the feature in each class, and ``labels`` the names of the
    classes.
    """

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
        """Width and height of the drawing on a page; the height grows with the classes."""
        return (3.4, 0.8 + 0.2 * len(self.labels))

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw horizontal boxes, whiskers from the 5% to the 95% quantile, and medians.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        shares = [0.05, 0.25, 0.5, 0.75, 0.95]
        lower_whisker, q1, middle, q3, upper_whisker = np.array(
            [np.quantile(x, shares) for x in self.values]
        ).T
        positions = names_on(ax, self.labels)
        colors = [SERIES[index % len(SERIES)] for index in positions]
        ax.hlines(positions, lower_whisker, upper_whisker, color=OTHERS, linewidth=1.0)
        ax.barh(positions, q3 - q1, 0.6, q1, color=colors, alpha=0.7, **options)
        ax.plot(middle, positions, "|", color=OTHERS, markersize=12)
        ax.set_title(label_of(self.name, 40))


@dataclass
class CurveDisplay(Display):
    """The curve of one input: its term in the prediction of an additive model.

    ``levels``, shape (n_levels,), are values of the input, and ``values``, shape (n_outputs,
    n_levels), is the term at each of them. ``deciles`` are those of the input over the rows.
    ``steps`` is whether the curve is a step function. ``low`` and ``high`` have the shape of
    ``values`` and bound the middle 80% of the curves of fits to random halves of the rows, or are
    None. ``scale`` holds the limits of the y axis, which all curves of a page share.
    """

    name: str
    levels: Array
    values: Array
    deciles: Sequence[float] | Array = ()
    steps: bool = False
    low: Array | None = None
    high: Array | None = None
    outputs: Sequence[str] = ("",)
    scale: tuple[float, float] | None = None
    title = "What each feature adds"
    about = (
        "One curve a feature, all on one scale: the change of the prediction from what it is at "
        "the feature's origin (0, or the value nearest to it). Marks below are deciles of the "
        "rows. The largest are drawn."
    )
    wide = True

    @property
    def explained(self) -> str:
        """The explanation below the drawing on the page."""
        if self.low is None or len(self.values) > 1:
            return self.about
        return (
            f"{self.about} Shades hold the middle 80% of the curves of fits to random halves of "
            "the rows, which stray as much as a fit to all rows may stray from the truth."
        )

    size = (3.4, 2.2)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the curves, the band, and the deciles as ticks on the x axis.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        style = {"drawstyle": "steps-mid"} if self.steps else {}
        lines = ax.plot(self.levels, self.values.T, **{**style, **options})
        if self.low is not None and self.high is not None and len(lines) == 1:
            step = "mid" if self.steps else None
            ax.fill_between(self.levels, self.low[0], self.high[0], step=step, alpha=0.2)
        ground = np.zeros(len(self.deciles))
        ax.plot(self.deciles, ground, "|", color=OTHERS, transform=ax.get_xaxis_transform())
        if self.scale is not None:
            ax.set_ylim(*self.scale)
        if len(self.levels) == 2:
            ax.set_xticks(self.levels)
        ax.set_title(label_of(self.name, 40))
        if len(lines) > 1:
            names = [label_of(name) for name in self.outputs]
            ax.legend(lines, names, fontsize="x-small")


@dataclass
class PredictionDisplay(Display):
    """Predicted against true values of held-out rows, with the identity line."""

    truth: Array
    predicted: Array
    title = "Predicted and true values of held-out rows"
    about = "On the dashed line predictions are right."
    part = "prediction"

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the predictions, subsampled to at most ``MOST_POINTS`` points.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        subsample = slice(None, None, -(-len(self.truth) // MOST_POINTS))
        truth = np.asarray(self.truth)[subsample]
        predicted = np.asarray(self.predicted)[subsample]
        ends = [np.min([truth, predicted]), np.max([truth, predicted])]
        ax.plot(ends, ends, color=OTHERS, linestyle="--")
        ax.scatter(truth, predicted, **{"s": 12, "alpha": 0.5, "lw": 0, **options})
        ax.set(xlabel="true value", ylabel="predicted value")


@dataclass
class CoverageDisplay(Display):
    """Empirical coverage of prediction intervals, by decile of the prediction.

    ``predicted`` and ``held``, both of shape (n_rows,), are the predictions and whether the target
    is in its interval. ``share`` is the nominal coverage.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressorCV, reports
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = AtomicRegressorCV(n_alphas=5).fit(X[:300], y[:300])
    >>> reports.CoverageDisplay.from_estimator(search, X[300:], y[300:]).shares.size
    10
    """

    predicted: Array
    held: NDArray[np.bool_]
    share: float = 0.9
    title = "Intervals by tenths of the prediction"
    about = (
        "Held-out rows from the lowest tenth of predictions to the highest: the share of targets "
        "within the interval that holds 90% of all of them, with a standard error. Where a part "
        "is below the dashed line, intervals of such rows say too much."
    )
    part = "prediction"

    @classmethod
    def of_errors(cls, truth: Array, predicted: Array) -> Self:
        """Return the coverage of intervals of constant width.

        The half width is the 0.9 quantile of the absolute errors of these rows. ``truth`` are the
        targets of held-out rows and ``predicted`` their predictions.
        """
        errors = np.abs(truth - predicted)
        return cls(predicted, errors <= np.quantile(errors, 0.9, method="higher"))

    @property
    def parts(self) -> list[NDArray[np.int64]]:
        """The row indices of each decile; of each quintile with fewer than 100 rows."""
        count = 10 if len(self.predicted) >= MANY_ROWS else 5
        return np.array_split(np.argsort(self.predicted, kind="stable"), count)

    @property
    def shares(self) -> Array:
        """The empirical coverage in each part."""
        return np.array([np.mean(self.held[rows]) for rows in self.parts])

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the coverage of each part with its binomial standard error.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        shares = self.shares
        sizes = np.array([len(rows) for rows in self.parts])
        errors = np.sqrt(self.share * (1 - self.share) / sizes)
        middles = [float(np.mean(self.predicted[rows])) for rows in self.parts]
        positions = np.arange(shares.size)
        ax.errorbar(positions, shares, errors, **{"fmt": "o", "color": SERIES[0], **options})
        ax.axhline(self.share, linestyle="--", color=OTHERS)
        ax.set_xticks(positions, [f"{value:.3g}" for value in middles], fontsize="x-small")
        ax.set(xlabel="mean prediction of the part", ylabel="share inside", ylim=(0, 1.05))
