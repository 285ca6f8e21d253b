"""[T] Figures 15 to 17, Remark 2 and the searches: what the results say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common.claims import Found, all_of, faster, more, never, spread, untried
from experiments.common.runs import Kept
from experiments.tan.found import apart, means

OPTIMUM = "group lasso, optimum"


def found(results: Mapping[str, Kept]) -> Found:
    """Return Figures 15 to 17, Table 3, sections 2.3 and 4.3."""
    groups, slow = list(results["groups"]), list(results["group_times"])
    listed = ("our maps are never stored: codes of one byte an entry", untried("not at hand"))
    return {
        **(_figure_15(groups) if groups else {}),
        **(_figure_15c(slow) if slow else {}),
        **_maps(results["kernels"]),
        "Table 3, aut-avn": listed,
        "Table 3, rcv1": listed,
        **_search(results["trees"], results["optima"]),
    }


def _figure_15(whole: Sequence[Any]) -> Found:
    ours = [n for n in whole[0]["rows"] if n.startswith("FGM")]
    # Each FGM beside the group lasso, at the numbers of groups that these two reach.
    counts = {name: _common(whole, (name, OPTIMUM)) for name in ours}
    made: Found = {}
    for key, what, unit in (("Figure 15a", "accuracy", " points"), ("Figure 15b", "hits", "")):
        judged = [
            more(apart(whole, what, name, (OPTIMUM,), n), 0.0, unit)
            for name, reached in counts.items()
            for n in reached
        ]
        words = [means(whole, what, (name, OPTIMUM), n) for name, n in counts.items() if n]
        made[key] = ("; ".join(words) or "no number of groups that both reach", all_of(judged))
    return made


def _common(whole: Sequence[Any], names: Sequence[str]) -> tuple[int, ...]:
    """Return numbers of groups that all curves of all draws reach."""
    curves = [[row["features"] for row in one["rows"][n]] for one in whole for n in names]
    most, least = min(max(curve) for curve in curves), max(min(curve) for curve in curves)
    return tuple(n for n in (10, 20, 30, 40, 50, 60, 80, 100, 120, 200, 240) if least <= n <= most)


def _figure_15c(whole: Sequence[Any]) -> Found:
    names = list(whole[0]["rows"])

    def last(name: str, what: str) -> list[float]:
        return [one["rows"][name][-1][what] for one in whole]

    words = ", ".join(
        f"{n} {spread(last(n, 'seconds'))[0]:.2f} s for {spread(last(n, 'features'))[0]:.0f} "
        f"groups, {spread(last(n, 'accuracy'))[0]:.1f}%"
        for n in names
    )
    fgm = [n for n in names if n.startswith("FGM")][-1]
    judged = [
        faster(last(fgm, "seconds"), last(n, "seconds"))
        for n in names
        if not n.startswith(("FGM", "UFO"))
    ]
    return {"Figure 15c": (words, all_of(judged))}


def _maps(kept: Kept) -> Found:
    parts = {n: kept.of(data=n) for n in ("rcv1_small", "california") if kept.of(data=n)}

    def words(what: str) -> str:
        return "; ".join(
            f"{name}: "
            + ", ".join(
                f"{m} {spread([one['maps'][m][what] for one in of])[0]:.2f}" for m in of[0]["maps"]
            )
            for name, of in parts.items()
        )

    nobody = untried("the rivals were not run on maps")
    return {
        "Figure 16": (f"accuracy of FGM {words('accuracy')}", nobody),
        "Figure 17": (f"seconds of FGM {words('seconds')}", nobody),
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
    return made
