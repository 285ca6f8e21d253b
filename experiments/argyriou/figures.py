"""[A]: Figures 1 and 2, and the sensitivity study of Table 1, from kept results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.argyriou.found import METHODS, PRINTED, VARIANCE
from experiments.common.figures import Panel, panels
from experiments.common.runs import Kept


def draw(results: Mapping[str, Kept], out: Path) -> None:
    """Draw all figures."""
    balls = results["compared"].pieces.get("balls")
    if balls:
        shown = []
        for label in ("(1, 1, 0) / sqrt 2 and e_3", "e_1 and e_2"):
            curves = {
                name: tuple(balls["curves"][f"{name}, {label}"])
                for name in ("2-support", "elastic net")
            }
            first, second = label.split(" and ")
            shown.append(Panel("unit balls on R^3, k = 2", first, second, curves))
        panels(out / "figure_1.svg", shown)
    kept = results["synthetic"]
    whole = kept.of(variance=VARIANCE)
    pictures = []
    for name in ("k-support", "lasso", "elastic net") if whole else ():
        image = np.array([row for one in whole for row in one["rows"][name]])
        pictures.append(Panel(name, "variable", "data set", {}, image=image))
    panels(out / "figure_2.svg", pictures)
    variances = sorted({one["variance"] for one in kept} - {0.0})
    curves = {}
    for name in METHODS:
        medians = [
            float(np.median([v for one in kept.of(variance=x) for v in one["errors"][name]]))
            for x in variances
        ]
        curves[name] = (variances, medians)
        curves[f"{name}, paper"] = (variances[:: max(len(variances) - 1, 1)], [PRINTED[name]] * 2)
    if len(variances) > 1:
        title, x = "Table 1, synthetic", "variance within a group"
        panels(out / "table_1.svg", [Panel(title, x, "median MSE", curves, log_x=True)])
