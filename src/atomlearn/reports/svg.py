"""SVG of a page: what matplotlib draws, with the colors of the page and text that stays text.

Browsers set the text in the font of the page, and screen readers can read it.
"""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import Any

from atomlearn.reports.drawing import GRID, INK, OTHERS, SERIES, Display


def page_style() -> dict[str, Any]:
    """Return the settings of matplotlib for pictures of a page."""
    from cycler import cycler

    soft = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), OTHERS)
    dark = dict.fromkeys(("text.color", "axes.labelcolor"), INK)
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    off = dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False)
    sizes = dict.fromkeys(("axes.titlesize", "axes.labelsize"), "medium")
    grid = {"axes.grid": True, "grid.color": GRID, "axes.axisbelow": True}
    lines = {"axes.prop_cycle": cycler(color=SERIES), "lines.markersize": 4}
    text = {"svg.fonttype": "none", "font.size": 9.0}
    return {**soft, **dark, **clear, **off, **sizes, **grid, **lines, **text}


def svg_of(display: Display) -> str:
    """Return the picture of a display for a page, with its title for screen readers."""
    from matplotlib import rc_context, rcdefaults
    from matplotlib.figure import Figure

    stream = io.StringIO()
    # Letters that matplotlib's font lacks are letters that the browser's font may have.
    with rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rcdefaults()
        with rc_context(page_style()):  # type: ignore[arg-type]
            figure = Figure(figsize=display.size, layout="constrained")
            display.plot(ax=figure.subplots())
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(stream, format="svg", metadata=nothing)
    head, inside = re.split(r"<svg[^>]*>", stream.getvalue(), maxsplit=1)[-2:]
    box = re.search(r'viewBox="[^"]*"', stream.getvalue())
    assert box is not None, head
    inside = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", inside, count=1, flags=re.DOTALL)
    inside = re.sub(r"<[^>]*>", _for_a_page, re.sub(r">\s+<", "><", inside))
    return f'<svg class="plot" {box[0]} role="img" aria-label="{escape(display.title)}">{inside}'


def _for_a_page(tag: re.Match[str]) -> str:
    """Return a tag with short numbers and the colors of the page, without the names of parts."""
    text = re.sub(r' id="\w*[a-z]_\d+"| font-family: [^;]*;|xlink:(?=href)|\n', "", tag[0])
    if "base64" in text:
        return text
    names = [*(f"series-{place}" for place in range(len(SERIES))), "ink", "grid", "soft"]
    for color, name in zip([*SERIES, INK, GRID, OTHERS], names, strict=True):
        text = text.replace(color, f"var(--{name})")
    return re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}", text)
