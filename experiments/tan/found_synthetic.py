"""[T] Figures 1 to 6: what the results on random matrices say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from experiments.common.claims import (
    NOT_RUN,
    Found,
    Judged,
    all_of,
    close,
    faster,
    more,
    spread,
    untried,
)
from experiments.common.runs import Kept
from experiments.tan.found import FGM, L1, apart, better, comparable, means, reached, unbiased
from experiments.tan.methods import at

#: Numbers of features at which curves are compared.
SMALL, LARGE = (150, 200, 300, 400), (150, 200, 300)
PAIR = ("PROX-SLR", "l1-LR")


def found(results: Mapping[str, Kept]) -> Found:
    """Return Figures 1 to 6 but for real data."""
    whole, large = list(results["small"]), list(results["large"])
    two: Found = {} if not whole else _figure_2(whole)
    three: Found = {}
    if large:
        three = {
            "Figure 3a": (
                means(large, "accuracy", (*FGM, *L1), LARGE),
                better(large, "accuracy", LARGE, " points"),
            ),
            "Figure 3b": (
                means(large, "hits", (*FGM, *L1), LARGE),
                better(large, "hits", LARGE, " features"),
            ),
            **unbiased("Figure 3c", large, LARGE),
        }
    return {
        **_figure_1(results["inexact"]),
        **two,
        **_mkl(list(results["mkl"])),
        **three,
        **_figure_4(results["density"], results["times"], results["sparse_times"]),
        **_shift(list(results["shift"]), results["real"].of(data="imdb")),
    }


def _figure_1(kept: Kept) -> Found:
    batches = sorted({int(n.split("=")[1]) for one in kept for n in one["curves"]})

    def of(name: str, batch: int, what: str) -> list[float]:
        return [one["curves"][f"{name}, B={batch}"][what][-1] for one in kept]

    def words(what: str, form: str) -> str:
        pairs = [(b, *(spread(of(n, b, what))[0] for n in ("inexact", "exact"))) for b in batches]
        return "; ".join(f"B={b}: {i:{form}} against {e:{form}}" for b, i, e in pairs)

    def less(first: Sequence[float], second: Sequence[float]) -> list[float]:
        return [a - b for a, b in zip(first, second, strict=True)]

    ends = {b: of("inexact", b, "values") for b in batches}
    fewer = [faster(of("inexact", b, "steps"), of("exact", b, "steps"), 1.5) for b in batches]
    alike = [close(less(ends[b], of("exact", b, "values")), 0.01, " of F_0") for b in batches]
    sooner = [more(less(ends[s], ends[t]), 0.001, " of F_0") for s, t in pairwise(batches)]
    return {
        "Figure 1a": (f"APG iterations {words('steps', '.0f')}", all_of(fewer)),
        "Figure 1b, objective": (f"F / F_0 at the end {words('values', '.4f')}", all_of(alike)),
        "Figure 1b, B": (f"F / F_0 at the end {words('values', '.4f')}", all_of(sooner)),
    }


def _figure_2(whole: Sequence[Any]) -> Found:
    machines = {
        n: [one["all features"][n]["accuracy"] for one in whole] for n in ("CD-SVM", "CD-LR")
    }

    def over(name: str) -> list[float]:
        return [
            at(one["rows"][name], "accuracy", 250) - max(values)
            for one, *values in zip(whole, *machines.values(), strict=True)
        ]

    sgd = "SGD-SLR, its optimum"

    def best(one: Any, name: str) -> float:
        return float(max(row["accuracy"] for row in one["rows"][name]))

    below = [min(best(one, n) for n in (*FGM, *L1)) - best(one, sgd) for one in whole]
    fewest = min(row["features"] for one in whole for row in one["rows"][sgd])
    all_words = ", ".join(f"{n} {spread(v)[0]:.1f}" for n, v in machines.items())
    return {
        "Figure 2a": (
            means(whole, "accuracy", (*FGM, *L1), SMALL),
            better(whole, "accuracy", SMALL, " points"),
        ),
        "Figure 2a, all features": (
            f"{means(whole, 'accuracy', FGM, (250,))}; {all_words}",
            all_of([more(over(name), 5.0, " points") for name in FGM]),
        ),
        "Figure 2a, SGD-SLR": (
            f"the worst of the others is {spread(below)[0]:+.1f} points above its optimum, which "
            f"selects {fewest} features or more, where the paper's curve ends at about 600",
            more(below, 0.0, " points"),
        ),
        "Figure 2b": (
            means(whole, "hits", (*FGM, *L1), SMALL),
            better(whole, "hits", SMALL, " features"),
        ),
        **unbiased("Figure 2c", whole, (200, 300, 400)),
        "Figure 2d": (
            means(whole, "seconds", (*FGM, *L1), (200, 400)),
            comparable(whole, (200, 400)),
        ),
    }


def _mkl(whole: Sequence[Any]) -> Found:
    if not whole:
        return {}
    primal = [one["primal"] for one in whole]
    off = max(one["objective"] / one["dual"][-1]["value"] - 1.0 for one in whole)
    words = [f"PROX-FGM {spread(primal)[0]:.2g} s, {off:.0e} above the dual's value at most"]
    judged = []
    for runs in zip(*(one["dual"] for one in whole), strict=True):
        dual = [None if one["cut"] else one["seconds"] for one in runs]
        judged.append(faster(primal, dual, 100.0, limit=max(one["seconds"] for one in runs)))
        gap, machines, seconds = (
            spread([one[what] for one in runs])[0] for what in ("gap", "machines", "seconds")
        )
        words.append(f"MKL {seconds:.2g} s to a gap of {gap:.0e}, {machines:.0f} SVMs")
    return {"Figure 2d, MKL": ("; ".join(words), judged[-1])}


def _figure_4(kept: Kept, times: Kept, sparse: Kept) -> Found:
    made: Found = {}
    shares = sorted({one["density"] for one in kept})
    pairs = {
        share: [(one["PROX-SLR"]["accuracy"], one["l1-LR"]["accuracy"]) for one in whole]
        for share in shares
        if (whole := kept.of(density=share))
    }
    if pairs:
        judged = [more([a - b for a, b in of], 0.0, " points") for of in pairs.values()]
        words = (
            f"density {share:g}: {spread([a for a, _ in of])[0]:.1f} against "
            f"{spread([b for _, b in of])[0]:.1f}"
            for share, of in pairs.items()
        )
        made["Figure 4a"] = ("; ".join(words), all_of(judged))
    dense = times.of(density=1.0)
    if dense:
        sides = ([at(one["rows"][n], "seconds", 200) for one in dense] for n in PAIR)
        made["Figure 3d"] = (means(dense, "seconds", PAIR, (200,)), faster(*sides))
    if len(sparse):
        thin = list(sparse)
        slr, lr = ([at(one["rows"][n], "seconds", 200) for one in thin] for n in PAIR)
        copies = spread([one["copies"] for one in thin])[0]
        ratio = spread(_ratios(dense))[0] if dense else math.nan
        made["Figure 4b"] = (
            f"density {thin[0]['density']:g}, at 200 features: PROX-SLR {spread(slr)[0]:.2f} s, "
            f"l1-LR {spread(lr)[0]:.1f} s, LIBLINEAR's copies alone {copies:.1f} s; density 1 at "
            f"4096 x 8192, without copies: l1-LR takes {ratio:.1f} times as long",
            all_of([faster(slr, lr, 0.5), faster(lr, slr, 0.5)]),
        )
    return made


def _ratios(whole: Sequence[Any]) -> list[float]:
    """Return how many times as long l1-LR takes to 200 features as PROX-SLR."""
    return [
        at(one["rows"]["l1-LR"], "seconds", 200) / at(one["rows"]["PROX-SLR"], "seconds", 200)
        for one in whole
    ]


def _shift(whole: Sequence[Any], text: Sequence[Any]) -> Found:
    if not whole:
        return {}
    names = ("FGM", "FGM-SHIFT", "l1-SVM", "l1-SVM-SHIFT")

    def objectives(name: str, i: int) -> list[float]:
        return [one["rows"][name][i]["objective"] for one in whole]

    def above(first: str, *others: str) -> Judged:
        counts = (200, 300, 400)
        gaps = [apart(whole, "accuracy", first, others, n) for n in counts]
        return all_of([more(of, 0.0, " points") for of in gaps])

    rows = range(len(whole[0]["rows"]["FGM"]))
    means_of = {
        n: [
            math.exp(sum(math.log(r["objective"]) for r in one["rows"][n]) / len(rows))
            for one in whole
        ]
        for n in names[:2]
    }
    values = "; ".join(
        f"{whole[0]['rows']['FGM'][i]['features']} features: "
        f"{spread(objectives('FGM-SHIFT', i))[0]:.3g} against {spread(objectives('FGM', i))[0]:.3g}"
        for i in rows
    )
    words = means(whole, "accuracy", names, (200, 300, 400))
    judged, last = untried(NOT_RUN), ()
    if text:
        last = reached(text, ("PROX-FGM", "FGM-SHIFT"), range(50, 301, 50))[-1:]
        gains = apart(text, "accuracy", "FGM-SHIFT", ("PROX-FGM",), max(last, default=0))
        judged = more([0.5 - d for d in gains])
    return {
        "Figure 5a": (values, faster(means_of["FGM-SHIFT"], means_of["FGM"], 1.2)),
        "Figure 6a": (words, above("FGM-SHIFT", "l1-SVM", "l1-SVM-SHIFT")),
        "Figure 6a, counterparts": (
            words,
            all_of([above("FGM", "l1-SVM"), above("FGM-SHIFT", "l1-SVM-SHIFT")]),
        ),
        "Figure 6c": (means(text, "accuracy", ("PROX-FGM", "FGM-SHIFT"), last), judged),
    }
