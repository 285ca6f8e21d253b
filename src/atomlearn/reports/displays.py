"""Displays of fitted models: paths, validation, convergence, stability, coefficients, bounds.

A display holds the numbers that it draws. ``Display.from_estimator`` makes it from a fitted
estimator with the functions of ``reports/registry.py``, and ``plot`` draws it again. ``names_on``
labels the y axis with names, and returns their positions. ``levels_on`` makes the x axis one of
alphas, and marks the chosen one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn._support import EPS
from atomlearn.core import Array, Mask, Record
from atomlearn.reports.drawing import (
    MOST_BESIDE,
    OTHERS,
    RAISES,
    Display,
    label_of,
    levels_on,
    names_on,
    signed_colors,
    span_of,
)


@dataclass
class PathDisplay(Display):
    """Coefficients along the regularization path.

    ``alphas``, shape (n_alphas,), are those of the path. ``coefficients``, shape (n_alphas,
    m), are standardized, and ``names``, length m, name their features. ``chosen`` is the alpha of
    the model, or None.

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

    alphas: Array
    coefficients: Array
    names: Sequence[str]
    chosen: float | None = None
    title = "Coefficients along the path"
    part = "solving"
    about = "Per standard deviation. A smaller alpha lets more features in."

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw all paths; the legend names the ten features with the largest final coefficients.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        self.lines_ = ax.plot(self.alphas, self.coefficients, **options)
        largest = np.sort(np.argsort(-np.abs(self.coefficients[-1]))[:10])
        levels_on(ax, self.chosen)
        ax.set_ylabel("coefficient")
        ax.legend(
            [self.lines_[index] for index in largest],
            [label_of(self.names[index], 16) for index in largest],
            title="largest",
            fontsize="x-small",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )


@dataclass
class ValidationDisplay(Display):
    """Cross-validation scores along alpha, with their standard errors over the folds.

    ``mean`` and ``error`` are the mean score and its standard error at each of ``alphas``, and
    ``chosen`` is the alpha of the model.

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

    alphas: Array
    mean: Array
    error: Array
    chosen: float
    title = "How the level was chosen"
    part = "solving"
    about = (
        "Mean held-out score of the folds at each alpha, with standard errors: larger is better."
    )

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the mean scores with error bars.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        self.errorbar_ = ax.errorbar(
            self.alphas, self.mean, self.error, **{"marker": "o", **options}
        )
        levels_on(ax, self.chosen)
        ax.set_ylabel("held-out score")
        ax.legend()


@dataclass
class ConvergenceDisplay(Display):
    """Relative duality gap after each pass over the data, one line per output.

    ``histories`` holds the solver records of each output, labeled with ``labels``; ``tol`` is the
    tolerance, drawn as a dashed line.

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
    tol: float | None = None
    labels: Sequence[str] = ()
    title = "How the proof came about"
    part = "solving"
    about = (
        "After each pass over the data: how far from the optimum the coefficients can be at most. "
        "The dashed line is what was asked for."
    )

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the gaps on a logarithmic axis, and the tolerance.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        # The gap before the first step can be arbitrarily large, so gaps are clipped.
        smallest = EPS
        largest = 1e4
        self.lines_ = [
            ax.plot(
                [record.passes for record in history],
                np.clip([record.relative_gap for record in history], smallest, largest),
                **{"marker": "o", **options},
            )[0]
            for history in self.histories
        ]
        if len(self.labels) > 1:
            ax.legend(self.lines_, [label_of(label) for label in self.labels], fontsize="x-small")
        if self.tol:
            ax.axhline(self.tol, color=OTHERS, linestyle="--")
        ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="passes over the data", ylabel="proved relative gap")


@dataclass
class StabilityDisplay(Display):
    """Selection frequencies of the most stable features over random halves of the rows.

    ``probabilities`` are the frequencies, in decreasing order, of the features ``names``.

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

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw one bar per feature, and the selection threshold.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        self.bars_ = ax.barh(names_on(ax, self.names), self.probabilities, **options)
        ax.axvline(self.threshold, color=OTHERS, linestyle="--", label="threshold")
        ax.set(xlabel="share of halves that select it", xlim=(0, 1))
        ax.legend()


@dataclass
class CoefficientDisplay(Display):
    """The largest coefficients, per unit or per standard deviation of the columns of X.

    ``values`` has shape (n_outputs, m), with the names of the features and of the outputs.

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
        """Width and height of the drawing on a page; the height grows with the bars."""
        bars = self.values.size if len(self.outputs) <= MOST_BESIDE else 2 * len(self.names)
        return (5.2, 1.0 + 0.12 * bars)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw bars grouped by feature, or an image if there are many outputs.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        n_outputs = len(self.outputs)
        if n_outputs > MOST_BESIDE:
            ax.imshow(self.values.T, **{"aspect": "auto", **signed_colors(self.values), **options})
            names_on(ax, self.names)
            labels = [label_of(output) for output in self.outputs]
            ax.set_xticks(range(n_outputs), labels, rotation=90)
            ax.set_title(span_of(self.values), fontsize="small")
            return
        height = 0.8 / n_outputs
        positions = names_on(ax, self.names)
        for index, (row, output) in enumerate(zip(self.values, self.outputs, strict=True)):
            bar_positions = positions + (index - (n_outputs - 1) / 2) * height
            ax.barh(bar_positions, row, height, label=label_of(output), **options)
        ax.axvline(0.0, color=OTHERS, linewidth=0.8)
        ax.set_xlabel("coefficient")
        if n_outputs > 1:
            ax.legend()


@dataclass
class NearBestDisplay(Display):
    """Ranges of coefficients over all models within a share of the best objective.

    ``lower`` and ``upper``, shape (m,), are proved; ``least`` and ``most`` are attained.
    ``always`` marks the features with a nonzero coefficient in all of these models. ``values`` are
    the coefficients of the model, ``within`` is the share, and ``complete`` is whether the ranges
    are proved for all of these models.

    References
    ----------
    L. Semenova, C. Rudin, R. Parr. On the existence of simpler machine learning models. FAccT 2022.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, reports
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = AtomicRegressor(alpha=10.0, standardize=True).fit(X, y)
    >>> reports.NearBestDisplay.from_estimator(model, X, y).names
    ['bmi', 's5', 'bp', 's3']
    """

    names: Sequence[str]
    values: Array
    lower: Array
    upper: Array
    least: Array
    most: Array
    always: Mask
    within: float
    complete: bool = True
    #: Whether the features are those of all near-best subsets.
    of_subsets: bool = False
    title = "Near-best models"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing on a page; the height grows with the features."""
        return (5.2, 1.2 + 0.24 * len(self.names))

    @property
    def explained(self) -> str:
        """The explanation below the drawing on the page."""
        share = f"{100.0 * self.within:.3g}%"
        models = "all models" if self.complete else "the models of the subsets that were found"
        return (
            f"The range of each coefficient over {models} whose objective is within {share} of "
            "the best one on these rows, proved. Filled: the feature is in all of them. Hollow: "
            "only in some, and a model without it does about as well. A feature that is not shown "
            "is "
            f"{'in none of them' if self.complete and self.of_subsets else 'not examined'}. This "
            "says nothing about the truth, and nothing about other rows."
        )

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw a proved range as a line, the attained part thicker, and the coefficient.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        positions = names_on(ax, self.names)
        ax.hlines(positions, self.lower, self.upper, color=OTHERS, linewidth=1.0)
        ax.hlines(positions, self.least, self.most, color=RAISES, linewidth=4.0, alpha=0.5)
        for mask, is_filled in ((self.always, True), (~self.always, False)):
            fill_color = RAISES if is_filled else "none"
            label = "in all near-best models" if is_filled else "in some of them"
            style = {"facecolors": fill_color, "edgecolors": RAISES, "zorder": 3, **options}
            if mask.any():
                ax.scatter(self.values[mask], positions[mask], label=label, **style)
        ax.axvline(0.0, color=OTHERS, linewidth=0.8)
        ax.set_xlabel("coefficient")
        ax.legend(loc="best", fontsize="small")


@dataclass
class BoundsDisplay(Display):
    """Objective and lower bound of a best subset search over time.

    ``objective`` is the best objective found after each of ``seconds``, and ``lower_bound`` is the
    lower bound on the objective of every subset.

    References
    ----------
    H. Hazimeh, R. Mazumder, A. Saab. Sparse regression at scale: branch-and-bound rooted in
    first-order optimization. Mathematical Programming 196 (2022) 347-388.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import SubsetRegressor, reports
    >>> model = SubsetRegressor(n_features=4, standardize=True).fit(*load_diabetes(return_X_y=True))
    >>> reports.BoundsDisplay.from_estimator(model).ax_.get_xlabel()
    'seconds'
    """

    seconds: Array
    objective: Array
    lower_bound: Array
    title = "How the proof came about"
    part = "proof"
    about = (
        "The objective of the best subset found so far, and the bound below which no subset lies. "
        "Where the lines meet, the subset is proved to be the best."
    )

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the objective and the lower bound as step functions.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        kind = {"drawstyle": "steps-post", "marker": "o", "markevery": [-1], **options}
        self.lines_ = [
            ax.plot(self.seconds, values, label=label, **kind)[0]
            for values, label in (
                (self.objective, "best subset found"),
                (self.lower_bound, "bound on all subsets"),
            )
        ]
        ax.set(xlabel="seconds", ylabel="objective")
        ax.legend(loc="center left")
