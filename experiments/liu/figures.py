"""[L]: Figures 1 to 3 and the rate of Theorem 1, from kept results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common.figures import Panel, panels
from experiments.common.runs import Kept
from experiments.liu.found import at_the_chosen

#: Processor seconds after which a method was cut, which stand for it where it was.
CUT = {"mnist": 12.0, "usps": 120.0}


def draw(results: Mapping[str, Kept], out: Path) -> None:
    """Draw all figures."""
    tenth, million, pursuit = results["logistic"], results["million"], results["pursuit"]
    first = [_times(million, "p = 1,000,000", 60.0), _times(tenth, "p = 100,000", 8.0)]
    panels(out / "figure_1a.svg", first)
    panels(out / "figure_1a_levels.svg", _levels(tenth))
    curves = [
        _converging(at_the_chosen(kept, k), f"k = {k}, {p} columns")
        for kept, p in ((million, "1,000,000"), (tenth, "100,000"))
        for k in (2000, 10000)
    ]
    panels(out / "figure_1b.svg", curves)
    sets = [n for n in ("mnist", "usps") if pursuit.of(data=n)]
    panels(out / "figure_2.svg", [_pursued(pursuit, n, CUT[n]) for n in sets])
    shown = []
    for name in sets:
        for k in (4000, 12000):
            pieces = [one["methods"] for one in pursuit.of(data=name, k=k)]
            shown.append(_converging(pieces, f"{name}, k = {k}"))
    panels(out / "figure_3.svg", shown)
    rates = {f"draw {i}": one["errors"] for i, one in enumerate(results["rate"])}
    lines = {name: (list(range(len(of))), of) for name, of in rates.items()}
    panels(
        out / "theorem_1.svg",
        [Panel("Theorem 1", "iteration", "F / F* - 1", lines, log_y=True)],
    )


def _mean(values: Sequence[float | None], cut: float) -> float:
    return float(np.mean([cut if v is None else v for v in values]))


def _times(kept: Kept, title: str, cut: float) -> Panel:
    ks = sorted({one["k"] for one in kept})
    parts = {k: at_the_chosen(kept, k) for k in ks}
    names = list(parts[ks[0]][0]) if ks else []
    curves = {
        n: (ks, [_mean([one[n]["seconds"] for one in parts[k]], cut) for k in ks]) for n in names
    }
    return Panel(f"{title}, cut at {cut:g} s", "k", "processor seconds", curves, log_y=True)


def _levels(kept: Kept) -> list[Panel]:
    """Seconds at every level looked at, for the least and the largest k."""
    shown = []
    for k in sorted({one["k"] for one in kept})[:: max(len({one["k"] for one in kept}) - 1, 1)]:
        pieces = kept.of(k=k)
        shares = sorted({share for one in pieces for share in one["levels"]}, key=float)
        curves: dict[str, Any] = {}
        for name in ("our default", "k-FCFW", "FISTA, AS"):
            values = [
                _mean(
                    [one["levels"][s][name]["seconds"] for one in pieces if s in one["levels"]], 8
                )
                for s in shares
            ]
            curves[name] = ([float(s) for s in shares], values)
        title, x = f"k = {k}, 100,000 columns", "share of the largest level"
        shown.append(Panel(title, x, "processor seconds", curves, log_x=True, log_y=True))
    return shown


def _converging(pieces: Sequence[Mapping[str, Any]], title: str) -> Panel:
    curves = {}
    for name in pieces[0] if pieces else ():
        iterations, _, above = pieces[0][name]["curve"]
        curves[name] = ([i + 1 for i in iterations], [max(v, 1e-9) for v in above])
    return Panel(title, "iteration", "F / F* - 1", curves, log_x=True, log_y=True)


def _pursued(kept: Kept, name: str, cut: float) -> Panel:
    ks = sorted({one["k"] for one in kept.of(data=name)})
    parts = {k: [one["methods"] for one in kept.of(data=name, k=k)] for k in ks}
    curves = {
        n: (ks, [_mean([one[n]["seconds"] for one in parts[k]], cut) for k in ks])
        for n in parts[ks[0]][0]
    }
    return Panel(f"{name}, cut at {cut:g} s", "k", "processor seconds", curves, log_y=True)
