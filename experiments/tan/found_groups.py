"""[T] Figures 15 to 17, Remark 2 and the searches: what the results say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common.claims import BRIEF, Found, all_of, faster, more, never, spread
from experiments.common.runs import Kept
from experiments.tan.found import apart, means, reached
from experiments.tan.methods import at

OPTIMUM = "group lasso, optimum"
#: Numbers of groups at which curves are compared.
COUNTS = (3, 5, 7, 10, 12, 15, 20, 30, 40, 50, 60, 80, 100, 120, 200, 240)


def found(results: Mapping[str, Kept]) -> Found:
    """Return Figures 15 to 17, Lemma 1, sections 2.3 and 4.3."""
    groups, slow = list(results["groups"]), list(results["group_race"])
    return {
        **(_figure_15(groups) if groups else {}),
        **(_figure_15c(slow) if slow else {}),
        **_maps(results["kernels"]),
        **_search(results["trees"], results["optima"]),
    }


def _figure_15(whole: Sequence[Any]) -> Found:
    ours = [n for n in whole[0]["rows"] if n.startswith("FGM")]
    # Each FGM beside the group lasso, at the numbers of groups that these two reach.
    counts = {name: reached(whole, (name, OPTIMUM), COUNTS) for name in ours}
    made: Found = {}
    for key, what, unit in (("Figure 15a", "accuracy", " points"), ("Figure 15b", "hits", "")):
        judged = [
            more(apart(whole, what, name, (OPTIMUM,), n), 0.0, unit)
            for name, looked_at in counts.items()
            for n in looked_at
        ]
        words = [means(whole, what, (name, OPTIMUM), n) for name, n in counts.items() if n]
        made[key] = ("; ".join(words) or "no number of groups that both reach", all_of(judged))
    return made


def _figure_15c(whole: Sequence[Any]) -> Found:
    names = list(whole[0]["rows"])
    limit = float(whole[0]["limit"])

    def last(name: str, what: str) -> list[float]:
        return [one["rows"][name][-1][what] for one in whole]

    def times(name: str) -> list[float | None]:
        return [None if second > limit else second for second in last(name, "seconds")]

    words = ", ".join(
        f"{n} {spread(last(n, 'seconds'))[0]:.3g} s for {spread(last(n, 'features'))[0]:.0f} groups"
        + (f" ({times(n).count(None)} cut)" if None in times(n) else "")
        for n in names
    )
    fgm = [n for n in names if n.startswith("FGM")][-1]
    judged = [
        faster(times(fgm), times(n), limit=limit) for n in names if not n.startswith(("FGM", "UFO"))
    ]
    return {"Figure 15c": (words, all_of(judged))}


def _maps(kept: Kept) -> Found:
    """Accuracies and seconds on maps, each FGM beside the group lasso, where both have points."""
    words: dict[str, list[str]] = {"accuracy": [], "seconds": []}
    better: dict[str, list[Any]] = {"accuracy": [], "seconds": []}
    for name in ("rcv1_small", "california"):
        pieces = kept.of(data=name)
        for kernel in pieces[0]["maps"] if pieces else ():
            whole = [{"rows": one["maps"][kernel]} for one in pieces]
            fgm, *_, fista, bcd, active = whole[0]["rows"]
            names = (fgm, fista, bcd, active)
            counts = reached(whole, names, COUNTS)[-1:]
            for what, said in words.items():
                at_most = means(whole, what, names, counts) or "no number of groups that all reach"
                said.append(f"{name}, {kernel} {at_most}")
            for n in counts:
                better["accuracy"].append(
                    more(apart(whole, "accuracy", fgm, (fista, bcd), n), 0.0, " points")
                )
                times = ([at(one["rows"][m], "seconds", n) for one in whole] for m in (fgm, active))
                better["seconds"].append(faster(*times, brief=BRIEF))
    return {
        key: ("; ".join(words[what]), all_of(better[what]))
        for key, what in (("Figure 16", "accuracy"), ("Figure 17", "seconds"))
        if words[what]
    }


def _search(trees: Kept, optima: Kept) -> Found:
    made: Found = {}
    pruned, listed = trees.pieces.get("pruned"), trees.pieces.get("enumerated")
    if pruned:
        most, sets = max(pruned["visited"]), pruned["sets"]
        made["Remark 2"] = (
            f"at most {most} of {sets:,} groups looked at",
            never(sum(v > 0.05 * sets for v in pruned["visited"]), len(pruned["visited"]), ""),
        )
    for name, key in (("groups", "Section 2.3"), ("trees", "Section 4.3")):
        if listed:
            worst, cases = listed["worst"][name], listed["cases"]
            words = f"largest difference from enumeration {worst:.1e} in {cases} cases"
            made[key] = (words, never(int(worst > 1e-12), cases, ""))
        one = optima.pieces.get(name)
        if one:
            bad = int(one["worst"] > 5e-6) + one["cases"] - one["converged"]
            made[f"{key}, optima"] = (
                f"largest relative difference from CVXPY {one['worst']:.1e}; {one['converged']} of "
                f"{one['cases']} proved to 1e-7; {one['left out']} more left out, where the cone "
                "solver called its own optimum inaccurate",
                never(bad, one["cases"], ""),
            )
    both = [one for one in optima if "rounds" in one]
    if both:
        rounds = sum(one["rounds"] for one in both)
        off = max(one["outside"] for one in both)
        made["Lemma 1"] = (
            f"over {rounds:,} rounds the optimum is at most {off:.0e} of itself outside, and F_t "
            f"rises by {max(one['rises'] for one in both):.0e} at most",
            never(sum(one["broken"] for one in both), rounds, ""),
        )
    return made
