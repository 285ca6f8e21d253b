"""[V]: Figures 2 to 7, from kept results of the first draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from experiments.common.figures import Panel, panels
from experiments.common.runs import Kept
from experiments.vinyes.found import OURS


def draw(results: Mapping[str, Kept], out: Path) -> None:
    """Draw all figures."""
    shares = sorted({one["share"] for one in results["figure_2"]}, reverse=True)
    groups = [(f"lambda {s:g} of the largest", results["figure_2"].of(share=s)) for s in shares]
    panels(out / "figure_2.svg", [_raced(title, pieces) for title, pieces in groups])
    both = results["figures_3_4"]
    forms = ("penalized", "constrained")
    panels(out / "figure_3.svg", [_raced(form, both.of(form=form)) for form in forms])
    panels(out / "figure_4.svg", _pivots(both.of(form="penalized")))
    panels(out / "figure_5.svg", [_raced("weak hierarchy", list(results["figure_5"]), False)])
    housing = results["table_1"].of(**{"lambda": 1e-3})
    panels(out / "figure_6.svg", [_raced("lambda 1e-3", housing, True, "gap of the mean loss")])
    pieces = list(results["figure_7"])
    panels(out / "figure_7.svg", [_raced("sparse PCA", pieces, True, "F / F best - 1")])


def _raced(
    title: str, pieces: Sequence[Any], log_x: bool = True, y: str = "relative duality gap"
) -> Panel:
    methods = pieces[0]["methods"] if pieces else {}
    curves = {name: tuple(one["curve"]) for name, one in methods.items()}
    return Panel(title, "processor seconds", y, curves, log_x=log_x, log_y=True)


def _pivots(pieces: Sequence[Mapping[str, Any]]) -> list[Panel]:
    if not pieces:
        return []
    mine = pieces[0]["methods"][OURS]
    total, atoms = mine["pivots"], mine["atoms"]
    steps = list(range(len(total)))
    calls = [b - a for a, b in pairwise(total)]
    return [
        Panel("pivots a call", "iteration", "pivots", {"in this call": (steps[1:], calls)}),
        Panel("pivots in all", "iteration", "pivots", {"so far": (steps, total)}),
        Panel("active atoms", "iteration", "atoms", {"active": (steps, atoms)}),
    ]
