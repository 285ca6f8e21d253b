"""Displays of what a model adds, of targets, and of the course of fits: pictures of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.reports.drawing import MOST_POINTS, OTHERS, Display, label_of, signed_colors, span_of


@dataclass
class CurveDisplay(Display):
    """What one input adds to the prediction of an additive model.

    levels : values of the input; values : one row an output, the addition at each level; deciles :
    of the input over the rows; steps : whether the curve jumps between levels; low, high : like
    values, between which most curves of halves of the rows lie, or empty; scale : least and
    greatest value of all curves of a page.
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
        """What the page says of the drawing."""
        if self.low is None or len(self.values) > 1:
            return self.about
        return (
            f"{self.about} Shades hold the middle 80% of the curves of fits to random halves of "
            "the rows, which stray as much as a fit to all rows may stray from the truth."
        )

    size = (3.4, 2.2)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
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
            names = [label_of(name, 12) for name in self.outputs]
            ax.legend(lines, names, fontsize="x-small")


@dataclass
class SurfaceDisplay(Display):
    """What two inputs add: values[i, j] at the i-th level of the second, the j-th of the first."""

    first: str
    second: str
    across: Array
    up: Array
    values: Array
    title = "What pairs add together"
    about = (
        "The change of the decision value, for numbers of the prediction, when two columns move "
        "and all others stay at their medians: blue raises it, red lowers it. Axes hold the "
        "middle 96% of the rows."
    )
    wide = True
    size = (3.4, 2.8)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        drawn = {"shading": "nearest", "rasterized": True, **signed_colors(self.values), **options}
        ax.grid(visible=False)
        self.image_ = ax.pcolormesh(self.across, self.up, self.values, **drawn)
        ax.set(xlabel=label_of(self.first, 30), ylabel=label_of(self.second, 24))
        ax.set_title(span_of(self.values), fontsize="small")


@dataclass
class PredictionDisplay(Display):
    """Predicted against true values of held-out rows, with the line of equality."""

    truth: Array
    predicted: Array
    title = "Predicted and true values of held-out rows"
    about = "On the dashed line predictions are right."

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        some = slice(None, None, -(-len(self.truth) // MOST_POINTS))
        truth, predicted = np.asarray(self.truth)[some], np.asarray(self.predicted)[some]
        ends = [np.min([truth, predicted]), np.max([truth, predicted])]
        ax.plot(ends, ends, color=OTHERS, linestyle="--")
        ax.scatter(truth, predicted, **{"s": 12, "alpha": 0.5, "lw": 0, **options})
        ax.set(xlabel="true value", ylabel="predicted value")


@dataclass
class TargetDisplay(Display):
    """Histogram of a numeric target."""

    values: Array
    title = "Distribution of the target"
    about = "All rows."

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        ax.hist(self.values, **{"bins": 24, "rwidth": 0.95, **options})
        ax.set(xlabel="target", ylabel="rows")
