"""[V]: what the kept results say of each sentence of quotes.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common.claims import BRIEF, Found, all_of, faster, more, never, spread
from experiments.common.runs import Kept

OURS = "Algorithms 1 and 2"
#: Seconds of Table 1 at each lambda: theirs, CoGEnT's and that of block coordinate descent.
TABLE: dict[float, tuple[float | None, ...]] = {
    1e-5: (27.0, None, None),
    1e-4: (1.4, None, None),
    1e-3: (0.4, 1300.0, 585.0),
    1e-2: (0.06, 14.0, 73.0),
    1e-1: (0.02, 0.2, 5.0),
}


def found(results: Mapping[str, Kept]) -> Found:
    """Return the numbers and judgements of all claims."""
    made: Found = {}
    one = results["algorithm"].pieces.get("against an own loop")
    if one:
        words = f"largest difference of an own loop with NNLS {one['worst']:.1e}"
        bad = int(one["worst"] > 1e-6)
        made["Algorithm 1 and 2"] = (words, never(bad, one["problems"], ""))
    return made | {
        **_figure_2(results["figure_2"]),
        **_figures_3_4(results["figures_3_4"]),
        **_figure_5(list(results["figure_5"])),
        **_table_1(results["table_1"]),
        **_figure_7(results["figure_7"]),
        **_theorems(results["theorems"]),
    }


def seconds(pieces: Sequence[Mapping[str, Any]], name: str) -> list[float | None]:
    """Return when a method reached the goal in each draw."""
    return [one["methods"][name]["seconds"] for one in pieces]


def said(pieces: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return the mean seconds of each method in words."""
    words = []
    for name in names:
        limit = pieces[0]["methods"][name]["limit"]
        values = [v for v in seconds(pieces, name) if v is not None]
        missed = len(pieces) - len(values)
        mean = f"{spread(values)[0]:.3g} s" if values else f"> {limit:g} s"
        words.append(f"{name} {mean}" + (f" ({missed} cut)" if missed and values else ""))
    return ", ".join(words)


def against(pieces: Sequence[Any], rivals: Sequence[str]) -> Any:
    """Judge that [V]'s method is faster than each rival."""
    mine = seconds(pieces, OURS)
    limits = {name: pieces[0]["methods"][name]["limit"] for name in rivals}
    return all_of(
        [
            faster(mine, seconds(pieces, name), limit=limit, brief=BRIEF)
            for name, limit in limits.items()
        ]
    )


def _figure_2(kept: Kept) -> Found:
    shares = sorted({one["share"] for one in kept}, reverse=True)
    names, rivals = (OURS, "BCD", "hyb-BCD", "our default"), ("BCD", "hyb-BCD")
    parts = [(share, kept.of(share=share)) for share in shares]
    words = "; ".join(f"lambda {s:g} of the largest: {said(of, names)}" for s, of in parts)
    judged = [against(of, rivals) for _, of in parts]
    return {"Figure 2": (words, all_of(judged))} if parts else {}


def _figures_3_4(kept: Kept) -> Found:
    made: Found = {}
    for form in ("penalized", "constrained"):
        pieces = kept.of(form=form)
        if not pieces:
            continue
        names = list(pieces[0]["methods"])
        judged = against(pieces, names[1:])
        made[f"Figure 3, {form}"] = (said(pieces, names), judged)
    pieces = kept.of(form="penalized")
    if pieces:
        mine = [one["methods"][OURS] for one in pieces]
        calls = [one["pivots a call"] for one in mine]
        made["Figure 4, pivots"] = (
            f"{spread(calls)[0]:.2f} a call",
            more([2.0 - value for value in calls]),
        )
        most = [max(one["atoms"]) for one in mine]
        steps = [len(one["atoms"]) for one in mine]
        words = f"at most {spread(most)[0]:.0f} of {spread(steps)[0]:.0f} that entered"
        made["Figure 4, atoms"] = (words, more([b / a for a, b in zip(most, steps, strict=True)]))
    return made


def _figure_5(pieces: Sequence[Any]) -> Found:
    if not pieces:
        return {}
    names = (OURS, "FCFW-ip", "without warm start")
    words = said(pieces, names)
    early = [_when_behind(one["methods"]) for one in pieces]
    shown = ", ".join("from the start" if one is None else f"{one:.2g} s" for one in early)
    return {
        "Figure 5, interior point": (words, against(pieces, names[1:2])),
        "Figure 5, first 200 s": (
            f"FCFW-ip is behind for good from: {shown}; {words}",
            never(early.count(None), len(early), ""),
        ),
        "Figure 5, without warm start": (words, against(pieces, names[2:])),
    }


def _when_behind(methods: Mapping[str, Any]) -> float | None:
    """Return the last second at which FCFW-ip had the smaller gap, None if it never had."""
    ours, theirs = (methods[name]["curve"] for name in (OURS, "FCFW-ip"))

    def gap_at(curve: Sequence[Sequence[float]], second: float) -> float:
        return min([g for s, g in zip(*curve, strict=True) if s <= second], default=1e9)

    ahead = [s for s in theirs[0] if gap_at(theirs, s) < gap_at(ours, s)]
    return max(ahead, default=None)


def _table_1(kept: Kept) -> Found:
    made: Found = {}
    names = (OURS, "CoGEnT", "BCD")
    for value in sorted({one["lambda"] for one in kept}):
        pieces = kept.of(**{"lambda": value})
        printed = TABLE[value]
        own = printed[0] or 1.0
        ratios = ", ".join(
            f"{n} {t / own:.0f} times" if t else f"{n} > {1000 / own:.0f} times"
            for n, t in zip(names[1:], printed[1:], strict=True)
        )
        words = f"{said(pieces, names)}; ratios {_ratios(pieces)} (paper: {ratios})"
        made[f"Table 1, lambda {value:g}"] = (words, against(pieces, names[1:]))
        if value == 1e-3:
            made["Figure 6"] = (words, against(pieces, names[1:]))
    return made


def _ratios(pieces: Sequence[Any]) -> str:
    mine = seconds(pieces, OURS)
    words = []
    for name in ("CoGEnT", "BCD"):
        judged = faster(mine, seconds(pieces, name), limit=pieces[0]["methods"][name]["limit"])
        words.append(f"{name} {judged.words}")
    return ", ".join(words)


def _figure_7(kept: Kept) -> Found:
    overlaps = sorted({one["overlap"] for one in kept})
    if not overlaps:
        return {}
    words, judged = [], []
    for overlap in overlaps:
        pieces = kept.of(overlap=overlap)
        times = {n: [one["methods"][n]["seconds"] for one in pieces] for n in pieces[0]["methods"]}
        mean = ", ".join(
            f"{n} {spread([second or 5.0 for second in of])[0]:.2g} s" for n, of in times.items()
        )
        gap = spread([one["proved gap"] for one in pieces])[0]
        words.append(f"overlap {overlap}: {mean}, proved gap {gap:.2g}")
        judged.append(faster(times[OURS], times["BCD"], limit=5.0, brief=BRIEF))
    return {
        "Figure 7": (
            f"to 1e-3 above the best objective known, {'; '.join(words)} of the objective",
            all_of(judged),
        )
    }


def _theorems(kept: Kept) -> Found:
    made: Found = {}
    rates = [one for one in kept if "rate" in one]
    if rates:
        names = {one["norm"] for one in rates}
        words = "; ".join(
            f"{name}: factor a step "
            + ", ".join(f"{one['rate']:.2f} (R^2 {one['R2']:.2f})" for one in kept.of(norm=name))
            for name in sorted(names)
        )
        bad = sum(not (one["rate"] < 1 and one["R2"] > 0.8) for one in rates)
        made["Section 3.3, linear"] = (words, never(bad, len(rates), ""))
    if one := kept.pieces.get("finite"):
        bad = one["programs"] - one["ended"] + int(one["residual"] > 1e-9)
        bad += int(not one["below 2^k"])
        made["Section 3.3, finite"] = (
            f"{one['ended']} of {one['programs']} ended, optimal to {one['residual']:.0e}, with at "
            f"most {one['pivots an atom']:.1f} pivots an atom",
            never(bad, one["programs"], ""),
        )
    if one := kept.pieces.get("updates"):
        joined, fresh = one["slopes"]
        milliseconds = ", ".join(f"{1000 * second:.2g}" for second in one["warm"])
        made["Section 3.3, updates"] = (
            f"{milliseconds} ms: power {joined:.1f} of k; from no factor power {fresh:.1f}, "
            f"{1000 * one['cold'][-1]:.2g} ms at the last k",
            never(int(not joined < min(2.5, fresh)), len(one["atoms"]), ""),
        )
    return made
