"""What lies behind a report's pictures: points of curves as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from atomlearn.core.interfaces import Array
from atomlearn.reports.manhattan import Manhattan

Points = tuple[tuple[float, float], ...]

#: Points of a curve that a drawing can show; bins of probabilities; and lines of a path.
MOST_POINTS, N_BINS, MOST_LINES = 200, 10, 40


@dataclass(frozen=True, slots=True)
class CurveOf:
    """One labelled line of points (x, y)."""

    label: str
    points: Points


@dataclass(frozen=True, slots=True)
class Validation:
    """Held-out scores along the levels of a cross-validation: mean, standard error, selected."""

    levels: tuple[float, ...]
    mean: tuple[float, ...]
    error: tuple[float, ...]
    n_selected: tuple[float, ...]
    chosen: float
    name: str = "held-out score"


@dataclass(frozen=True, slots=True)
class PathOf:
    """Coefficients along levels: one row a feature, the largest ones; chosen : the fitted level."""

    levels: tuple[float, ...]
    names: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]
    chosen: float


@dataclass(frozen=True, slots=True)
class Boxes:
    """Five quantiles (5, 25, 50, 75, 95%) of one feature in each class."""

    name: str
    boxes: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class Surface:
    """What two inputs add: values[i][j] at the i-th level of the second, the j-th of the first."""

    first: str
    second: str
    across: tuple[float, ...]
    up: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Curves on held-out rows, distributions, and warnings about the data.

    parts : a drawing of groups and what they add, or ""; of_parts : what it shows.
    """

    roc: tuple[CurveOf, ...] = ()
    precision_recall: tuple[CurveOf, ...] = ()
    calibration: tuple[CurveOf, ...] = ()
    validation: Validation | None = None
    path: PathOf | None = None
    boxes: tuple[Boxes, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    manhattan: Manhattan | None = None
    parts: str = ""
    of_parts: str = "How much each group adds: the length of its coefficients."
    warnings: tuple[str, ...] = ()


def curves_of_classes(
    codes: NDArray[np.int64], decisions: Array, labels: Sequence[str], probabilities: Any = None
) -> Evidence:
    """Return ROC, precision-recall and calibration of held-out rows, one curve a class.

    ``labels`` : of the outputs, one for two classes.
    """
    outputs = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    roc, precision_recall, calibration = list[CurveOf](), list[CurveOf](), list[CurveOf]()
    for place, code in enumerate(outputs):
        truth = codes == code
        if truth.all() or not truth.any():
            continue
        value = decisions[:, place]
        false, true, _ = roc_curve(truth, value)
        precise, recall, _ = precision_recall_curve(truth, value)
        roc.append(CurveOf(labels[place], thinned(false, true)))
        precision_recall.append(CurveOf(labels[place], thinned(recall, precise)))
        if probabilities is not None:
            shares = calibration_points(truth, np.asarray(probabilities)[:, code])
            calibration.append(CurveOf(labels[place], shares))
    return Evidence(tuple(roc), tuple(precision_recall), tuple(calibration))


def calibration_points(truth: NDArray[np.bool_], probability: Array) -> Points:
    """Return (mean probability, share that is true) of bins with equally many rows."""
    order = np.argsort(probability, kind="stable")
    n_bins = int(max(1, min(N_BINS, truth.size // 10)))
    parts = np.array_split(order, n_bins)
    return tuple((float(probability[p].mean()), float(truth[p].mean())) for p in parts if p.size)


def thinned(x: Array, y: Array) -> Points:
    """Return at most MOST_POINTS of the points of a curve, the ends among them."""
    places = np.unique(np.linspace(0, x.size - 1, min(x.size, MOST_POINTS)).round().astype(int))
    return tuple((float(x[at]), float(y[at])) for at in places)


def validation_of(estimator: Any) -> Validation | None:
    """Return the scores that a cross-validated estimator chose its level by, or None."""
    table = getattr(estimator, "cv_results_", None)
    if table is not None and "param_alpha" in table:
        norms = [repr(norm) for norm in table["param_norm"]]
        mine = np.array([name == repr(estimator.norm_) for name in norms])
        mine = mine if mine.any() else np.ones(len(norms), dtype=bool)

        def column(key: str) -> tuple[float, ...]:
            return tuple(np.asarray(table[key], dtype=np.float64)[mine].tolist())

        return Validation(
            column("param_alpha"),
            column("mean_test_score"),
            column("standard_error"),
            column("mean_n_selected"),
            float(estimator.alpha_),
        )
    scores = getattr(estimator, "mse_path_", None)
    if scores is not None and np.ndim(scores) == 2:
        mean, error = -scores.mean(axis=1), scores.std(axis=1) / np.sqrt(scores.shape[1])
        levels = np.asarray(estimator.alphas_, dtype=float)
        return Validation(
            tuple(levels.tolist()), tuple(mean.tolist()), tuple(error.tolist()), (),
            float(estimator.alpha_), "minus the held-out squared error",
        )  # fmt: skip
    return None


def boxes_of(
    values: Array, names: Sequence[str], codes: NDArray[np.int64], labels: Sequence[str]
) -> tuple[Boxes, ...]:
    """Return the quantiles of columns (n, m) in each class."""
    found = []
    for place, name in enumerate(names):
        rows = []
        for code, label in enumerate(labels):
            mine = values[codes == code, place]
            if mine.size:
                quantiles = np.quantile(mine, [0.05, 0.25, 0.5, 0.75, 0.95])
                rows.append((label, tuple(quantiles.tolist())))
        found.append(Boxes(name, tuple(rows)))
    return tuple(found)
