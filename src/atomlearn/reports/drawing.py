"""What all displays share: their base, colors, names, and colors of images.

On a page each color below stands for a variable of report.css, so that one picture serves light and
dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from atomlearn.core.interfaces import Array, Columns

RAISES, LOWERS, OTHERS = "#2f6fd6", "#d1603d", "#666666"
INK, GRID = "#1a1f2b", "#e8ebf0"
#: Colors of lines, one after the other.
SERIES = (RAISES, LOWERS, "#2a9d72", "#a35bd0", "#c79a1b", "#3aa3b8")
#: Rows of a table and points of a picture; more make a page slow.
MOST_POINTS = 300
#: Bars, names and lines of a picture that can be told apart.
MOST_NAMED = 30


@dataclass
class Display:
    """What all displays share: after ``plot``, ``ax_`` and ``figure_`` hold the drawing.

    On a page: title and about; size, of the drawing in inches; wide : whether it takes a whole row.
    """

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    wide: ClassVar[bool] = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing on a page, in inches."""
        return (5.2, 3.0)

    @property
    def explained(self) -> str:
        """What the page says of the drawing."""
        return self.about

    @classmethod
    def of_estimator(cls, estimator: Any, X: Any, y: Any, names: Any) -> Self:
        """Return what is drawn of a fitted estimator."""
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a fitted estimator; X and y where it does not tell all that is drawn."""
        return cls.of_estimator(estimator, X, y, feature_names).plot(ax=ax, **options)

    def plot(self, *, ax: Any = None, **options: Any) -> Self:
        """Draw on ``ax``, or on axes of its own; ``options`` go to matplotlib."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    'displays need matplotlib: pip install "atomlearn[report]"'
                ) from error
            ax = plt.subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax, options)
        return self

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        raise NotImplementedError


def names_on(ax: Any, names: Sequence[str]) -> Columns:
    """Give each bar a name, the first on top; return their places."""
    ax.set_yticks(range(len(names)), [label_of(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    return np.arange(len(names), dtype=np.int64)


def levels_on(ax: Any, chosen: float | None) -> None:
    """Make the axis one of levels, large ones on the left, and mark the chosen one."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("alpha")
    if chosen:
        ax.axvline(chosen, color=OTHERS, linestyle="--", label="chosen")


def label_of(name: object, width: int = 24) -> str:
    """Return a name as matplotlib draws it: cut, on one line, and never read as a formula."""
    return shortened(str(name), width).replace("$", r"\$")


def shortened(name: str, width: int) -> str:
    """Return the name without control characters, cut to a width."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    return printable if len(printable) <= width else printable[: width - 1] + "…"


def signed_colors(values: Array) -> dict[str, Any]:
    """Return the colors of an image: blue for what raises, red for what lowers, clear for 0."""
    from matplotlib.colors import LinearSegmentedColormap

    most = float(np.abs(values).max(initial=0.0)) or 1.0
    ends = [(0.0, LOWERS), (0.5, f"{LOWERS}00"), (0.5, f"{RAISES}00"), (1.0, RAISES)]
    colors = LinearSegmentedColormap.from_list("signed", ends)
    return {"cmap": colors, "vmin": -most, "vmax": most}


def span_of(values: Array) -> str:
    """Return in words what the colors of an image stand for."""
    return f"{values.min():.3g} (red) to {values.max():.3g} (blue)"
