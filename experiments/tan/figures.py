"""[T]: Figures 1 to 17, from kept results: means over draws, curves of the first draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common.figures import Panel, averaged, panels
from experiments.common.runs import Kept
from experiments.tan.found import FGM, L1

COUNT, ACCURACY, SECONDS = "selected features", "testing accuracy (%)", "processor seconds"
DEBIASED = ("PROX-FGM", "PROX-FGM-debias", "l1-SVM", "l1-SVM-debias")
TEXTS = {"rcv1_small": "rcv1 in part", "imdb": "IMDb", "newsgroups": "20 newsgroups"}


def draw(results: Mapping[str, Kept], out: Path) -> None:
    """Draw all figures."""
    _convergence(results["inexact"], out)
    small, large = (list(results[part]) for part in ("small", "large"))
    seconds = _curves(small, "(d) training time", (*FGM, *L1), "seconds", SECONDS)
    panels(out / "figure_2.svg", [*_compared(small), seconds])
    # At 8192 x 65,536 the l1 problems are solved by other means than LIBLINEAR.
    pieces, names = results["times"].of(density=1.0), ("PROX-SLR", "l1-LR")
    seconds = _curves(pieces, "(d) training time, 4096 x 8192", names, "seconds", SECONDS)
    panels(out / "figure_3.svg", [*_compared(large), seconds])
    _density(results, out)
    real = results["real"]
    shift = list(results["shift"])
    sets = {"synthetic, b = 4": shift, **{label: real.of(data=n) for n, label in TEXTS.items()}}
    panels(out / "figure_5.svg", [_objectives(label, of) for label, of in sets.items() if of])
    shown = []
    for label, of in sets.items():
        names = ("FGM", "FGM-SHIFT", "l1-SVM", "l1-SVM-SHIFT")
        if of is not shift:
            names = ("PROX-FGM", *names[1:])
        shown.append(_curves(of, label, names, "accuracy", ACCURACY))
    panels(out / "figure_6.svg", shown)
    for number, what, label in (("7", "accuracy", ACCURACY), ("8", "seconds", SECONDS)):
        panels(
            out / f"figure_{number}.svg",
            [
                _curves(real.of(data=n), title, (*FGM, *L1), what, label)
                for n, title in TEXTS.items()
            ],
        )
    panels(
        out / "figure_9.svg",
        [
            _curves(real.of(data=n), title, DEBIASED, "accuracy", ACCURACY)
            for n, title in TEXTS.items()
        ],
    )
    _sensitive(list(results["sensitivity"]), out)
    _products(results, out)
    _groups(results, out)


def _curves(pieces: Sequence[Any], title: str, names: Sequence[str], what: str, y: str) -> Panel:
    names = [n for n in names if pieces and n in pieces[0]["rows"]]
    curves = {n: averaged([one["rows"][n] for one in pieces], "features", what) for n in names}
    return Panel(title, COUNT, y, curves, log_y=what == "seconds")


def _convergence(kept: Kept, out: Path) -> None:
    if not len(kept):
        return
    first: Mapping[str, Any] = next(iter(kept))["curves"]
    steps = {n: (of["steps"], of["values"]) for n, of in first.items()}
    rounds = {n: (list(range(len(of["values"]))), of["values"]) for n, of in first.items()}
    y = "relative objective"
    panels(
        out / "figure_1.svg",
        [Panel("(a)", "APG iterations", y, steps), Panel("(b)", "outer iterations", y, rounds)],
    )


def _compared(pieces: Sequence[Any]) -> list[Panel]:
    if not pieces:
        return []
    names = (*FGM, *L1)
    return [
        _curves(pieces, "(a) testing accuracy", names, "accuracy", ACCURACY),
        _curves(pieces, "(b) recovered features", names, "hits", "true features"),
        _curves(pieces, "(c) de-biased", DEBIASED, "accuracy", ACCURACY),
    ]


def _density(results: Mapping[str, Kept], out: Path) -> None:
    kept, times = results["density"], results["times"]
    names = ("PROX-SLR", "l1-LR")
    shares = sorted({one["density"] for one in kept})
    best = {
        n: (shares, [_mean([one[n]["accuracy"] for one in kept.of(density=s)]) for s in shares])
        for n in names
    }
    spans = sorted({one["density"] for one in times})
    quick = {
        n: (
            spans,
            [
                _mean([r["seconds"] for one in times.of(density=s) for r in one["rows"][n]])
                for s in spans
            ],
        )
        for n in names
    }
    panels(
        out / "figure_4.svg",
        [
            Panel("(a) 8192 x 65,536", "density", ACCURACY, best if shares else {}),
            Panel("(b) 4096 x 8192", "density", SECONDS, quick if spans else {}, log_y=True),
        ],
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _objectives(title: str, pieces: Sequence[Any]) -> Panel:
    first = pieces[0]["curves"]
    curves = {n: (of["steps"], of["values"]) for n, of in first.items()}
    return Panel(title, "APG iterations", "relative objective", curves)


def _sensitive(whole: Sequence[Any], out: Path) -> None:
    if not whole:
        return
    title = "20 newsgroups"
    by_c = {
        n: averaged([one["by C"][n] for one in whole], "features", "accuracy")
        for n in whole[0]["by C"]
    }
    panels(out / "figure_10.svg", [Panel(title, COUNT, ACCURACY, by_c)])
    ways = (("features", COUNT), ("accuracy", ACCURACY), ("seconds", SECONDS))
    shown = []
    for (what, label), part in zip(ways, "abc", strict=True):
        curves = {
            n: averaged([one["stops"][n] for one in whole], "B", what) for n in whole[0]["stops"]
        }
        shown.append(Panel(f"({part})", "B", label, curves))
    panels(out / "figure_11.svg", shown)
    shown = []
    for (what, label), part in zip((ways[2], ways[1]), "ab", strict=True):
        curve = averaged([one["until"] for one in whole], "B", what)
        logs = {"log_x": True, "log_y": what == "seconds"}
        shown.append(Panel(f"({part})", "B", label, {"until 400 features": curve}, **logs))
    panels(out / "figure_12.svg", shown)


def _products(results: Mapping[str, Kept], out: Path) -> None:
    digits, text = list(results["polynomial"]), list(results["real_products"])
    names = ("PROX-PFGM", "PROX-FGM")
    sides = (("mnist38", digits), ("IMDb", text))
    time = [_curves(of, title, names, "seconds", SECONDS) for title, of in sides]
    stored = list(results["stored"])
    if stored:
        whole = [one["l1-PSVM"] for one in stored]
        point = [_mean([one[what] for one in whole]) for what in ("features", "seconds")]
        time[0] = replace(time[0], curves={**time[0].curves, "l1-PSVM": ([point[0]], [point[1]])})
    for one in results["kddb"]:
        curve = averaged([one["curve"]], "features", "seconds")
        title = f"random, {one['rows']:,} x {one['columns']:,}"
        time.append(Panel(title, COUNT, SECONDS, {"PROX-PFGM": curve}))
    panels(out / "figure_13.svg", time)
    panels(
        out / "figure_14.svg",
        [_curves(of, title, names, "accuracy", ACCURACY) for title, of in sides],
    )


def _groups(results: Mapping[str, Kept], out: Path) -> None:
    whole, slow = list(results["groups"]), list(results["group_times"])
    names = list(whole[0]["rows"]) if whole else []
    full = "4096 x 400,000"
    race = _curves(whole, f"(c) {full}", [n for n in names if "FGM" in n], "seconds", SECONDS)
    raced = list(results["group_race"])
    rivals = _curves(raced, "", list(raced[0]["rows"])[1:] if raced else [], "seconds", SECONDS)
    shown = [
        _curves(whole, f"(a) {full}", names, "accuracy", ACCURACY),
        _curves(whole, f"(b) {full}", names, "hits", "true groups"),
        replace(race, curves={**race.curves, **rivals.curves}),
    ]
    for title, what, y in (
        ("accuracy, 1024 x 10,000", "accuracy", ACCURACY),
        ("time, 1024 x 10,000", "seconds", SECONDS),
    ):
        shown.append(_curves(slow, title, list(slow[0]["rows"]) if slow else [], what, y))
    panels(out / "figure_15.svg", [replace(one, x="selected groups") for one in shown])
    kept = results["kernels"]
    for number, what, label in (("16", "accuracy", ACCURACY), ("17", "seconds", SECONDS)):
        shown = []
        for name in ("rcv1_small", "california"):
            pieces = kept.of(data=name)
            for kernel in pieces[0]["maps"] if pieces else ():
                rows = [{"rows": one["maps"][kernel]} for one in pieces]
                title = f"{TEXTS.get(name, name)}, {kernel}"
                panel = _curves(rows, title, list(rows[0]["rows"]), what, label)
                shown.append(replace(panel, x="selected groups"))
        panels(out / f"figure_{number}.svg", shown)
