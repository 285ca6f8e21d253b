"""Displays: figures of fitted estimators with matplotlib, in the manner of scikit-learn.

``Display.from_estimator(estimator, X, y)`` computes what is drawn and draws it, ``plot`` draws it
again. X and y can be left out where a fitted estimator tells all that is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.interfaces import Array
from atomlearn.reports.evidence import Points, calibration_points, validation_of
from atomlearn.reports.style import STYLE
from atomlearn.reports.view import View, target_names, view_of


def _axes(ax: Any) -> Any:
    """Return the axes to draw on, new ones where none are given."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('displays need matplotlib: pip install "atomlearn[report]"') from error
    return plt.subplots()[1] if ax is None else ax


@dataclass
class Display:
    """What all displays share: after ``plot``, ``ax_`` and ``figure_`` hold the drawing."""

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, *, ax: Any = None, **options: Any) -> Self:
        """Draw on ``ax``, or on axes of its own; ``options`` go to matplotlib."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, options)
        return self

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        raise NotImplementedError


@dataclass
class PathDisplay(Display):
    """Coefficients along the levels of the penalty.

    levels : (n_levels,); coefficients : (n_levels, m); names : (m,); chosen : level, or None.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, reports
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AtomicRegressor(alpha=0.5).fit(X, y)
    >>> display = reports.PathDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_xlabel()
    'alpha'
    """

    levels: Array
    coefficients: Array
    names: Sequence[str]
    chosen: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_levels: int = 30, feature_names: Any = None,
        ax: Any = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Fit the path of a regressor or a classifier of two classes, and draw it."""
        from atomlearn.paths import path

        check_is_fitted(estimator)
        view = view_of(estimator, X, feature_names)
        model = view.model
        target = np.asarray(y)
        if view.classes is not None:
            target = np.where(target == view.classes[-1], 1.0, -1.0)
        alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
        found = path(
            view.design, target, loss=getattr(model, "loss", "squared"),
            norm=getattr(model, "norm_", getattr(model, "norm", "l1")),
            form=getattr(model, "form", "penalized"), n_levels=n_levels,
            intercept=bool(getattr(model, "fit_intercept", True)), gap=1e-4,
        )  # fmt: skip
        names = view.map.names(found.columns, view.names)
        chosen = None if alpha is None or np.ndim(alpha) else float(alpha)
        return cls(found.levels / len(target), found.coefs, names, chosen).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        self.lines_ = ax.plot(self.levels, self.coefficients, **options)
        largest = np.argsort(-np.abs(self.coefficients[-1]))[:10]
        for place in np.sort(largest):
            self.lines_[place].set_label(self.names[place])
        ax.set_xscale("log")
        ax.invert_xaxis()
        if self.chosen is not None:
            ax.axvline(self.chosen, color="0.4", linestyle="--")
        ax.set(xlabel="alpha", ylabel="coefficient")
        ax.legend(fontsize="x-small", title="largest")


@dataclass
class ValidationDisplay(Display):
    """Held-out scores of a cross-validation along its levels, with standard errors.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressorCV, reports
    >>> model = AtomicRegressorCV(n_alphas=5, cv=3).fit(*load_diabetes(return_X_y=True))
    >>> reports.ValidationDisplay.from_estimator(model).mean.shape
    (5,)
    """

    levels: Array
    mean: Array
    error: Array
    chosen: float

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, **options: Any
    ) -> Self:
        """Draw what a cross-validated estimator chose its level by."""
        found = validation_of(estimator)
        if found is None:
            raise TypeError(
                f"{type(estimator).__name__} was not chosen by cross-validation; fit "
                "AtomicRegressorCV or AtomicClassifierCV"
            )
        arrays = (np.array(found.levels), np.array(found.mean), np.array(found.error))
        return cls(*arrays, found.chosen).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        self.errorbar_ = ax.errorbar(
            self.levels, self.mean, self.error, **{"marker": "o", "markersize": 3, **options}
        )
        ax.set_xscale("log")
        ax.invert_xaxis()
        ax.axvline(self.chosen, color="0.4", linestyle="--", label="chosen")
        ax.set(xlabel="alpha", ylabel="held-out score")
        ax.legend()


@dataclass
class ConvergenceDisplay(Display):
    """Proved relative gap after each pass over the data, one line an output.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, reports
    >>> model = AtomicRegressor(alpha=0.5).fit(*load_diabetes(return_X_y=True))
    >>> reports.ConvergenceDisplay.from_estimator(model).ax_.get_yscale()
    'log'
    """

    passes: list[Array]
    gaps: list[Array]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the history of an estimator, or of a result of ``solve``."""
        results = getattr(estimator, "results_", None) or [estimator]
        if not hasattr(results[0], "history"):
            raise TypeError(f"{type(estimator).__name__} has no history of gaps; fit one of ours")
        passes = [np.array([record.passes for record in r.history]) for r in results]
        gaps = [np.array([record.relative_gap for record in r.history]) for r in results]
        return cls(passes, gaps).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        self.lines_ = [
            ax.plot(x, np.maximum(y, STYLE.least_gap), **{"marker": "o", **options})[0]
            for x, y in zip(self.passes, self.gaps, strict=True)
        ]
        ax.set_yscale("log")
        ax.set(xlabel="passes over the data", ylabel="proved relative gap")


@dataclass
class StabilityDisplay(Display):
    """Share of random halves of the rows that select each feature, the largest ones.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, StabilitySelector, reports
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = StabilitySelector(AtomicRegressor(alpha=0.5), 6, rng=0).fit(X, y)
    >>> reports.StabilityDisplay.from_estimator(selector).probabilities.shape
    (10,)
    """

    probabilities: Array
    threshold: float
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, feature_names: Any = None,
        n_features: int = 30, ax: Any = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the probabilities of a fitted ``StabilitySelector``."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "selection_probabilities_"):
            raise TypeError(f"{type(estimator).__name__} knows no shares of halves; fit a "
                            "StabilitySelector around it")  # fmt: skip
        shares = np.asarray(estimator.selection_probabilities_)
        given = feature_names if feature_names is not None else getattr(
            estimator, "feature_names_in_", None)  # fmt: skip
        names = [f"x{j}" for j in range(shares.size)] if given is None else list(given)
        order = np.argsort(-shares, kind="stable")[:n_features]
        chosen = [str(names[j]) for j in order]
        return cls(shares[order], float(estimator.threshold), chosen).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        places = np.arange(len(self.names))
        self.bars_ = ax.barh(places, self.probabilities, **options)
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.axvline(self.threshold, color="0.4", linestyle="--", label="threshold")
        ax.set(xlabel="share of halves that select it", xlim=(0, 1))
        ax.legend()


@dataclass
class CoefficientDisplay(Display):
    """The largest coefficients, per unit or per standard deviation of the columns of X.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, reports
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = AtomicRegressor(alpha=0.5).fit(X, y)
    >>> reports.CoefficientDisplay.from_estimator(model, X).names[:2]
    ['bmi', 's5']
    """

    values: Array
    names: Sequence[str]
    outputs: Sequence[str] = ("",)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, n_features: int = 20,
        feature_names: Any = None, ax: Any = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the coefficients of a fitted linear model; with X per standard deviation."""
        from atomlearn.core.data.coefficients import nonzero_coefficients
        from atomlearn.core.data.standardized import moments_of

        check_is_fitted(estimator)
        if X is not None:
            view: View = view_of(estimator, X, feature_names)
            columns, weights = view.columns, view.weights * moments_of(view.design, view.columns)[1]
            names = view.map.names(columns, view.names)
        else:
            columns, weights = nonzero_coefficients(estimator.coef_)
            given = getattr(estimator, "feature_names_in_", None)
            given = given if feature_names is None else feature_names
            names = [f"x{j}" if given is None else str(given[j]) for j in columns]
        order = np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")[:n_features]
        known = [str(name) for name in getattr(estimator, "classes_", target_names(y))]
        if len(known) != len(weights):
            known = [f"y[{place}]" for place in range(len(weights))]
        outputs = [""] if len(weights) == 1 else known
        shown = [str(names[at]) for at in order]
        return cls(weights[:, order], shown, outputs).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        places, n_outputs = np.arange(len(self.names)), len(self.values)
        height = 0.8 / max(n_outputs, 1)
        for place, (row, output) in enumerate(zip(self.values, self.outputs, strict=True)):
            ax.barh(places + (place - (n_outputs - 1) / 2) * height, row, height,
                    label=output or None, **options)  # fmt: skip
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.axvline(0.0, color="0.4", linewidth=0.8)
        ax.set_xlabel("coefficient")
        if n_outputs > 1:
            ax.legend()


@dataclass
class CalibrationDisplay(Display):
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

    points: list[Points]
    labels: Sequence[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the calibration on these rows: not those that the estimator was fitted to."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} tells no probabilities; fit a classifier "
                            "whose loss has some, such as AtomicClassifier()")  # fmt: skip
        told = np.asarray(estimator.predict_proba(X))
        classes = np.asarray(estimator.classes_)
        wanted = [1] if classes.size == 2 else list(range(classes.size))
        truth = np.asarray(y)
        points = [calibration_points(truth == classes[at], told[:, at]) for at in wanted]
        return cls(points, [str(classes[at]) for at in wanted]).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        ax.plot([0, 1], [0, 1], linestyle="--", color="0.4")
        for points, label in zip(self.points, self.labels, strict=True):
            ax.plot(*np.array(points).T, **{"marker": "o", "label": label, **options})
        ax.set(xlabel="told probability", ylabel="share that is true", xlim=(0, 1), ylim=(0, 1))
        ax.legend()
