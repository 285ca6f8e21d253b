"""The base class of displays, colors and labels, and SVG pictures for a page.

On a page, CSS variables of report.css replace the colors below, so that one picture serves light
and dark pages.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from atomlearn.core import Array, Columns

RAISES = "#2f6fd6"
LOWERS = "#d1603d"
OTHERS = "#666666"
INK = "#1a1f2b"
GRID = "#e8ebf0"
#: Colors of lines, in the order in which they are used.
SERIES = (
    *(RAISES, LOWERS, "#2a9d72", "#a35bd0", "#c79a1b", "#3aa3b8", "#d0589b", "#6f7f2c"),
    *("#7a5640", "#4b4fa8"),
)
#: Maximum number of table rows and of points in a picture; more of them make a page slow.
MOST_POINTS = 300
#: Maximum number of bars, names or lines in a picture that readers can distinguish.
MOST_NAMED = 30
#: Maximum number of classes whose bars or lines are drawn side by side.
MOST_BESIDE = 4


@dataclass(frozen=True, slots=True)
class FittedEstimator:
    """A fitted estimator with the data that a display may need.

    ``names`` are the names of the columns of X.
    """

    estimator: Any
    X: Any = None
    y: Any = None
    names: Any = None


@dataclass
class Display:
    """The base class of displays; after ``plot``, ``ax_`` and ``figure_`` hold the drawing.

    On a page, ``title`` and ``about`` are the heading and the explanation, ``size`` is the size of
    the drawing in inches, ``wide`` is whether it spans the page, and ``part`` is the section of the
    page: "features", "proof", "prediction" or "solving".
    """

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    wide: ClassVar[bool] = False
    part: ClassVar[str] = "features"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing on a page, in inches."""
        return (5.2, 3.0)

    @property
    def explained(self) -> str:
        """The explanation below the drawing on the page."""
        return self.about

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
        """Draw the display of a fitted estimator; some displays need X and y.

        ``ax`` is the matplotlib axes to draw on; ``options`` are passed to matplotlib.
        ``feature_names`` are the names of the columns of X, or None.
        """
        with suppress(TypeError):  # a result of ``solve`` is no estimator
            check_is_fitted(estimator)
        if cls not in MAKERS:
            names = ", ".join(sorted(kind.__name__ for kind in MAKERS))
            raise TypeError(
                f"{cls.__name__} is not made from an estimator; construct it, or use {names}"
            )
        make, needs = MAKERS[cls]
        display = make(FittedEstimator(estimator, X, y, feature_names))
        if display is None:
            raise TypeError(f"{type(estimator).__name__} {needs}")
        return cast(Self, display.plot(ax=ax, **options))

    def plot(self, *, ax: Any = None, **options: Any) -> Self:
        """Draw on ``ax``, or on new axes if it is None; ``options`` are passed to matplotlib."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError("displays need matplotlib: pip install matplotlib") from error
            ax = plt.subplots()[1]
        self.ax_ = ax
        self.figure_ = ax.figure
        self._draw(ax, options)
        return self

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw on ``ax``; each subclass implements this method.

        ``options`` are further arguments of matplotlib.
        """
        raise NotImplementedError


#: Maps each display to a function that makes it from a fitted estimator (or returns None), and to
#: the rest of the error message, which begins with the name of the estimator.
MAKERS: dict[type[Display], tuple[Callable[[FittedEstimator], Display | None], str]] = {}


def names_on(ax: Any, names: Sequence[str]) -> Columns:
    """Label the bars of a horizontal bar chart, the first on top; return their positions.

    ax : the matplotlib axes; names : one per bar.
    """
    ax.set_yticks(range(len(names)), [label_of(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    return np.arange(len(names), dtype=np.int64)


def levels_on(ax: Any, chosen: float | None) -> None:
    """Make x a logarithmic axis of alpha, large values on the left, and mark the chosen one.

    ax : the matplotlib axes; chosen : the alpha to mark, or None.
    """
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
    """Return a name as a one-line label, truncated and with $ escaped for matplotlib.

    ``width`` is the maximum number of characters.
    """
    return printable(str(name), width).replace("$", r"\$")


def percent(share: float) -> str:
    """Return a share in percent without an exponent, such as 0.0000031%, and never as 0."""
    size = max(100.0 * share, 1e-7)
    return np.format_float_positional(size, 3, unique=False, fractional=False, trim="-") + "%"


def printable(name: str, width: int) -> str:
    """Return the name with control characters replaced by "?", truncated to ``width``.

    A longer name is truncated in the middle, because long names often differ at their ends.
    """
    letters = "".join(letter if letter.isprintable() else "?" for letter in name)
    end = width // 2
    return letters if len(letters) <= width else f"{letters[: width - end - 1]}…{letters[-end:]}"


def signed_colors(values: Array) -> dict[str, Any]:
    """Return imshow options of a diverging colormap: blue for positive, red for negative.

    ``values`` are the numbers of the image, whose largest absolute value gets the full color.
    """
    from matplotlib.colors import LinearSegmentedColormap

    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    ends = [(0.0, LOWERS), (0.5, f"{LOWERS}00"), (0.5, f"{RAISES}00"), (1.0, RAISES)]
    colors = LinearSegmentedColormap.from_list("signed", ends)
    return {"cmap": colors, "vmin": -largest, "vmax": largest}


def span_of(values: Array) -> str:
    """Return the range of the values and their colors, as the caption of an image."""
    return f"{values.min():.3g} (red) to {values.max():.3g} (blue)"


def page_style() -> dict[str, Any]:
    """Return the matplotlib rcParams for pictures on a page."""
    from cycler import cycler

    # Groups of settings that have the same value.
    axes = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), OTHERS)
    letters = dict.fromkeys(("text.color", "axes.labelcolor"), INK)
    transparent = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    switched_off = dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False)
    sizes = dict.fromkeys(("axes.titlesize", "axes.labelsize"), "medium")
    grid = {"axes.grid": True, "grid.color": GRID, "axes.axisbelow": True}
    cycle = cycler(linestyle=["-", "--", ":"]) * cycler(color=SERIES)
    lines = {"axes.prop_cycle": cycle, "lines.markersize": 4}
    # The padding leaves room for characters that are wider in the font of the browser.
    text = {"svg.fonttype": "none", "font.size": 9.0, "figure.constrained_layout.w_pad": 0.1}
    return {**axes, **letters, **transparent, **switched_off, **sizes, **grid, **lines, **text}


def svg_of(display: Display) -> str:
    """Return the display as an SVG element with its title as the ARIA label."""
    from matplotlib import rc_context, rcdefaults
    from matplotlib.figure import Figure

    stream = io.StringIO()
    # Warnings about glyphs that are missing in the font of matplotlib are ignored, because the
    # browser draws the text in another font.
    with rc_context(), warnings.catch_warnings(action="ignore"):
        rcdefaults()
        with rc_context(page_style()):  # type: ignore[arg-type]
            figure = Figure(figsize=display.size, layout="constrained")
            display.plot(ax=figure.subplots())
            no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(stream, format="svg", metadata=no_metadata)
    # The size in inches is dropped, so that the page scales the picture; only the view box is kept.
    head, body = re.split(r"<svg[^>]*>", stream.getvalue(), maxsplit=1)[-2:]
    view_box = re.search(r'viewBox="[^"]*"', stream.getvalue())
    assert view_box is not None, head
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", _for_a_page, re.sub(r">\s+<", "><", body))
    return f'<svg class="plot" {view_box[0]} role="img" aria-label="{escape(display.title)}">{body}'


#: Maps each color of a picture to the CSS variable of report.css that replaces it.
_VARIABLES = {
    color: f"var(--{name})"
    for color, name in zip(
        [*SERIES, INK, GRID, OTHERS],
        [*(f"series-{number}" for number in range(len(SERIES))), "ink", "grid", "soft"],
        strict=True,
    )
}
_COLOR = re.compile("|".join(_VARIABLES))
_NUMBER = re.compile(r"\d+\.\d{2,}")
_NAMES_OF_PARTS = re.compile(r' id="\w*[a-z]_\d+"| font-family: [^;]*;|xlink:(?=href)|\n')


def _for_a_page(tag: re.Match[str]) -> str:
    """Return the SVG tag of a match in shortened form.

    Numbers are rounded, colors become CSS variables, and ids and fonts of matplotlib are removed.
    Embedded images are left unchanged.
    """
    text = _NAMES_OF_PARTS.sub("", tag[0])
    if "base64" in text:
        return text
    text = _COLOR.sub(lambda color: _VARIABLES[color[0]], text)
    return _NUMBER.sub(lambda number: f"{float(number[0]):.1f}", text)
