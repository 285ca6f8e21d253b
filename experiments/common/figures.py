"""Figures as vector graphics, drawn as the papers draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

plt.switch_backend("svg")
plt.rcParams["svg.hashsalt"] = "atomlearn"


def lines(
    path: Path,
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    x: str,
    y: str,
    title: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """Draw curves by name and write them as SVG."""
    figure, axes = plt.subplots(figsize=(5.2, 3.6))
    for (name, (xs, ys)), marker in zip(curves.items(), "os^vD*xP+<>" * 3, strict=False):
        axes.plot(xs, ys, marker=marker if len(xs) < 40 else None, ms=4, lw=1.2, label=name)
    axes.set(xlabel=x, ylabel=y, title=title)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    saved(figure, path)


def images(path: Path, pictures: Mapping[str, Any]) -> None:
    """Draw arrays as grey images side by side."""
    figure, axes = plt.subplots(1, len(pictures), figsize=(3.0 * len(pictures), 3.4))
    for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture, aspect="auto", cmap="gray_r", interpolation="none")
        ax.set(title=name, xticks=[], yticks=[])
    saved(figure, path)


def saved(figure: Any, path: Path) -> None:
    """Write the figure as SVG, without a date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)
