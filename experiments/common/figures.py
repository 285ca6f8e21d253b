"""Figures as vector graphics, drawn from kept results with the papers' axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

plt.switch_backend("svg")
plt.rcParams["svg.hashsalt"] = "atomlearn"
plt.rcParams["svg.fonttype"] = "none"

Curve = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Panel:
    """Curves by name on one pair of axes; ``images`` instead of curves are drawn in grey."""

    title: str
    x: str
    y: str
    curves: Mapping[str, Curve]
    log_x: bool = False
    log_y: bool = False
    image: Any = None


def panels(path: Path, shown: Sequence[Panel]) -> None:
    """Draw panels side by side, three a row, and write them as SVG without a date."""
    shown = [one for one in shown if one.curves or one.image is not None]
    if not shown:
        return
    columns = min(3 if len(shown) != 4 else 2, len(shown))
    rows = -(-len(shown) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.0 * columns, 3.2 * rows), squeeze=False)
    for ax, panel in zip(axes.ravel(), shown, strict=False):
        _draw(ax, panel)
    for ax in axes.ravel()[len(shown) :]:
        ax.remove()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)


def _draw(ax: Any, panel: Panel) -> None:
    ax.set_title(panel.title, fontsize=10)
    if panel.image is not None:
        ax.imshow(panel.image, aspect="auto", cmap="gray_r", interpolation="none")
        ax.set(xlabel=panel.x, ylabel=panel.y)
        return
    for (name, (xs, ys)), marker in zip(panel.curves.items(), "os^vD*xP+<>" * 3, strict=False):
        few = len(xs) < 20
        ax.plot(xs, ys, marker=marker if few else None, ms=3.5, lw=1.1, label=name)
    ax.set(xlabel=panel.x, ylabel=panel.y)
    ax.set_xscale("log" if panel.log_x else "linear")
    ax.set_yscale("log" if panel.log_y else "linear")
    ax.legend(fontsize=6.5)
    ax.grid(alpha=0.3)


def averaged(rows: Sequence[Sequence[Mapping[str, float]]], x: str, y: str) -> Curve:
    """Return means over draws, point by point from the end: draws may lack the first points."""
    count = min((len(of) for of in rows), default=0)
    if not count:
        return [], []

    def mean(what: str) -> list[float]:
        return np.mean([[row[what] for row in of[-count:]] for of in rows], axis=0).tolist()

    return mean(x), mean(y)
