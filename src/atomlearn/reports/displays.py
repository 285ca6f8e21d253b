"""Displays: figures of fitted estimators with matplotlib, in the manner of scikit-learn.

``Display.from_estimator(estimator, X, y)`` computes what is drawn and draws it, ``plot`` draws it
again. X and y can be left out where a fitted estimator tells all that is drawn. The pages of
``report`` are made of the same displays: each says under which title, and what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from atomlearn.core import EPS, Array, Record, Standardized, moments_of, nonzero_coefficients
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.reports.drawing import (
    MOST_BESIDE,
    MOST_NAMED,
    OTHERS,
    Display,
    label_of,
    levels_on,
    names_on,
    signed_colors,
    span_of,
)
from atomlearn.reports.view import (
    View,
    level_of,
    names_of_columns,
    objective_of,
    results_of,
    target_names,
    view_of,
)


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
    title = "Coefficients along the path"
    part = "solving"
    about = "Per standard deviation. A smaller alpha lets more features in."

    needs = (
        "has no path; fit a model of ours with a level (alpha) and one output, in the form "
        "'penalized' or 'squared'"
    )

    @classmethod
    def of_estimator(cls, estimator: Any, X: Any, y: Any, names: Any) -> Self | None:
        """Fit the path around the level of a model of ours of one output."""
        view = view_of(estimator, X, names)
        return cls.of_view(view, view.codes_of(np.asarray(y)))

    @classmethod
    def of_view(cls, view: View, y: Any, sample_weight: Any = None, **options: Any) -> Self | None:
        """Return the path at levels around that of a model, per standard deviation.

        None where there is none, as of several outputs. y : codes of classes, or what the loss
        takes; options : what ``path`` takes more.
        """
        from atomlearn.core import path

        model = view.model
        alpha = level_of(view.model)
        options = objective_of(view.model) | options
        if not alpha or view.outputs > 1 or options.get("form", "constrained") == "constrained":
            return None
        alphas = alpha * np.geomspace(8.0, 0.5, 16)
        options |= {"fit_intercept": model.fit_intercept, "sample_weight": sample_weight}
        target = y if view.classes is None else np.where(y > 0, 1.0, -1.0)
        design = view.design
        try:
            if options.pop("standardize", False):
                center = model.fit_intercept and not design.is_sparse
                design = Standardized(design, center=center, weight=sample_weight)
            found = path(design, target, alphas=alphas, tol=1e-4, max_iter=200, **options)
        except (TypeError, ValueError):  # this model is not one of a path
            return None
        if not found.columns.size:
            return None
        coefs = found.coefs * moments_of(design, found.columns)[1]
        order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:MOST_NAMED]
        names = view.map.names(found.columns[order], view.names)
        return cls(found.alphas, coefs[:, order], names, alpha)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        self.lines_ = ax.plot(self.levels, self.coefficients, **options)
        largest = np.sort(np.argsort(-np.abs(self.coefficients[-1]))[:10])
        levels_on(ax, self.chosen)
        ax.set_ylabel("coefficient")
        ax.legend(
            [self.lines_[place] for place in largest],
            [label_of(self.names[place], 16) for place in largest],
            title="largest",
            fontsize="x-small",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )


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
    title = "How the level was chosen"
    part = "solving"
    about = (
        "Mean held-out score of the folds at each alpha, with standard errors: larger is better."
    )

    needs = "was not chosen by cross-validation; fit AtomicRegressorCV or AtomicClassifierCV"

    @classmethod
    def of_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, names: Any = None
    ) -> Self | None:
        """Return what a cross-validated estimator of ours chose its level by."""
        if not isinstance(estimator, CrossValidatedModel):
            return None
        table = estimator.cv_results_
        mine = [
            repr(norm) == repr(estimator.norm_) and ratio == estimator.l1_ratio_
            for norm, ratio in zip(table["param_norm"], table["param_l1_ratio"], strict=True)
        ]
        keys = ("param_alpha", "mean_test_score", "standard_error")
        levels, mean, error = (np.asarray(table[key], dtype=np.float64)[mine] for key in keys)
        return cls(levels, mean, error, float(estimator.alpha_))

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        self.errorbar_ = ax.errorbar(
            self.levels, self.mean, self.error, **{"marker": "o", **options}
        )
        levels_on(ax, self.chosen)
        ax.set_ylabel("held-out score")
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

    histories: Sequence[Sequence[Record]]
    goal: float | None = None
    labels: Sequence[str] = ()
    title = "How the proof came about"
    part = "solving"
    about = (
        "After each pass over the data: how far from the optimum the coefficients can be at most. "
        "The dashed line is what was asked for."
    )

    needs = "has no history of gaps; fit one of ours"

    @classmethod
    def of_estimator(cls, estimator: Any, X: Any, y: Any, names: Any) -> Self | None:
        """Return the history of an estimator, or of a result of ``solve``."""
        try:
            return cls([result.history for result in results_of(estimator) or [estimator]])
        except AttributeError:
            return None

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        # before the first step a gap can be any size
        least = EPS
        most = 1e4
        self.lines_ = [
            ax.plot(
                [record.passes for record in history],
                np.clip([record.relative_gap for record in history], least, most),
                **{"marker": "o", **options},
            )[0]
            for history in self.histories
        ]
        if len(self.labels) > 1:
            ax.legend(self.lines_, [label_of(label) for label in self.labels], fontsize="x-small")
        if self.goal:
            ax.axhline(self.goal, color=OTHERS, linestyle="--")
        ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
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
    >>> selector = StabilitySelector(AtomicRegressor(alpha=0.5), 6, random_state=0).fit(X, y)
    >>> reports.StabilityDisplay.from_estimator(selector).probabilities.shape
    (10,)
    """

    probabilities: Array
    threshold: float
    names: Sequence[str]

    needs = "knows no shares of halves; fit a StabilitySelector around it"

    @classmethod
    def of_estimator(cls, estimator: Any, X: Any, y: Any, names: Any) -> Self | None:
        """Return the largest probabilities of a fitted ``StabilitySelector``."""
        try:
            shares = np.asarray(estimator.selection_probabilities_)
        except AttributeError:
            return None
        order = np.argsort(-shares, kind="stable")[:MOST_NAMED]
        threshold = float(estimator.threshold)
        return cls(shares[order], threshold, names_of_columns(estimator, order, names))

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        self.bars_ = ax.barh(names_on(ax, self.names), self.probabilities, **options)
        ax.axvline(self.threshold, color=OTHERS, linestyle="--", label="threshold")
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
    title = "Coefficients of each output"
    about = "Per standard deviation of the feature, the largest ones."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing on a page: as high as there are bars."""
        bars = self.values.size if len(self.outputs) <= MOST_BESIDE else 2 * len(self.names)
        return (5.2, 1.0 + 0.12 * bars)

    @classmethod
    def of_estimator(cls, estimator: Any, X: Any, y: Any, names: Any) -> Self:
        """Return the coefficients of a fitted linear model; with X per standard deviation."""
        if X is None:
            columns, weights = nonzero_coefficients(estimator.coef_)
            known = names_of_columns(estimator, columns, names)
        else:
            view = view_of(estimator, X, names)
            columns = view.columns
            weights = view.weights * moments_of(view.design, view.columns)[1]
            known = view.map.names(columns, view.names)
        order = np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")[:MOST_NAMED]
        given = estimator.classes_ if is_classifier(estimator) else target_names(y)
        outputs = [str(name) for name in given]
        if len(outputs) != len(weights):
            outputs = [f"y[{place}]" for place in range(len(weights))]
        outputs = [""] if len(weights) == 1 else outputs
        return cls(weights[:, order], [known[at] for at in order], outputs)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        n_outputs = len(self.outputs)
        if n_outputs > MOST_BESIDE:
            ax.imshow(self.values.T, **{"aspect": "auto", **signed_colors(self.values), **options})
            names_on(ax, self.names)
            labels = [label_of(output) for output in self.outputs]
            ax.set_xticks(range(n_outputs), labels, rotation=90)
            ax.set_title(span_of(self.values), fontsize="small")
            return
        height = 0.8 / n_outputs
        places = names_on(ax, self.names)
        for place, (row, output) in enumerate(zip(self.values, self.outputs, strict=True)):
            at = places + (place - (n_outputs - 1) / 2) * height
            ax.barh(at, row, height, label=label_of(output), **options)
        ax.axvline(0.0, color=OTHERS, linewidth=0.8)
        ax.set_xlabel("coefficient")
        if n_outputs > 1:
            ax.legend()
