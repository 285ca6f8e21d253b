"""[L]: what the kept results say of each sentence of quotes.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.common.claims import (
    BRIEF,
    Found,
    all_of,
    faster,
    more,
    never,
    spread,
    untried,
)
from experiments.common.runs import Kept

RIVAL = "FISTA, AS"


def found(results: Mapping[str, Kept]) -> Found:
    """Return the numbers and judgements of all claims."""
    return {
        **_logistic(results["million"], results["logistic"]),
        **_published(results["published"]),
        **_proxes(results["proxes"]),
        **_pursuit(results["pursuit"]),
        **_rate(list(results["rate"])),
        **_theorems(list(results["theorems"])),
    }


def at_the_chosen(kept: Kept, k: int) -> list[dict[str, Any]]:
    """Return for each draw what the methods did at the level that validation chose."""
    return [one["levels"][one["chosen"]] for one in kept.of(k=k)]


def _of(pieces: Sequence[Mapping[str, Any]], name: str, what: str) -> list[float | None]:
    return [one[name][what] for one in pieces]


def _at_least(pieces: Sequence[Mapping[str, Any]], name: str, what: str) -> list[float]:
    """Return seconds or iterations; of who was cut those until then."""
    place = ("iterations", "seconds").index(what)
    return [one[name][what] or one[name]["curve"][place][-1] for one in pieces]


def _said(pieces: Sequence[Mapping[str, Any]], names: Sequence[str], what: str, unit: str) -> str:
    """Return the mean of each method in words, and how many never came near."""
    words = []
    for name in names:
        values = [v for v in _of(pieces, name, what) if v is not None]
        missed = len(pieces) - len(values)
        mean = f"{spread(values)[0]:.3g}{unit}" if values else "none came near"
        words.append(f"{name} {mean}" + (f" ({missed} cut)" if missed and values else ""))
    return ", ".join(words)


def _logistic(million: Kept, tenth: Kept) -> Found:
    made: Found = {}
    ks = sorted({one["k"] for one in million})
    if ks:
        parts = {k: at_the_chosen(million, k) for k in ks}
        names = ("k-FCFW", RIVAL, "our default")

        def words(what: str, unit: str) -> str:
            return "; ".join(f"k={k}: {_said(of, names, what, unit)}" for k, of in parts.items())

        for key, what, unit, brief in (
            ("Figure 1a", "seconds", " s", BRIEF),
            ("Figure 1b", "iterations", "", 0.0),
        ):
            judged = [
                faster(_at_least(of, "k-FCFW", what), _at_least(of, RIVAL, what), brief=brief)
                for of in parts.values()
            ]
            made[key] = (words(what, unit), all_of(judged))
        said, judged_all = made["Figure 1a"]
        every = [one for of in parts.values() for one in of]
        made["Figure 1a"] = (f"{said}; by the paper's stop: {_own_stops(every, names)}", judged_all)
    if len(tenth):
        made["Figure 1a, every level"] = _every_level(tenth)
    return made


def _published(kept: Kept) -> Found:
    if not len(kept):
        return {}
    pieces = [one["levels"][one["chosen"]] for one in kept]
    names = ("k-FCFW", f"plain {RIVAL}", RIVAL)
    return {
        f"{key}, FISTA as published": (
            _said(pieces, names, what, unit),
            faster(*(_at_least(pieces, name, what) for name in names[:2])),
        )
        for key, what, unit in (
            ("Figure 1a", "seconds", " s"),
            ("Figure 1b", "iterations", ""),
        )
    }


def _own_stops(pieces: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return when the last change of each was first below 1e-4, and how far off it then was."""
    words = []
    for name in names:
        stops = [one[name]["own stop"] for one in pieces if one[name]["own stop"]]
        if stops:
            seconds, above = (spread(column)[0] for column in zip(*stops, strict=True))
            words.append(f"{name} {seconds:.3g} s at {above:.1g} above")
    return ", ".join(words)


def _every_level(kept: Kept) -> Any:
    shares = sorted({share for one in kept for share in one["levels"]}, key=float, reverse=True)
    words, judged = [], []
    for share in shares:
        pieces = [one["levels"][share] for one in kept if share in one["levels"]]
        one = faster(_of(pieces, "k-FCFW", "seconds"), _of(pieces, RIVAL, "seconds"), limit=8.0)
        words.append(f"{float(share):.3g}: {one.words} in {one.draws}")
        judged.append(one)
    return "share of the largest level: " + "; ".join(words), all_of(judged)


def _proxes(kept: Kept) -> Found:
    if not len(kept):
        return {}

    def of(name: str) -> list[float | None]:
        return [one["seconds"][name] for one in kept]

    words = ", ".join(f"{n} {1000 * spread(of(n))[0]:.0f} ms" for n in ("AS", "BS", "BN"))
    apart = max(one["apart"] for one in kept)
    judged = [faster(of("AS"), of(name), brief=BRIEF) for name in ("BS", "BN")]
    return {"Figure 1a, AS": (f"{words}; they differ by {apart:.0e} at most", all_of(judged))}


def _pursuit(kept: Kept) -> Found:
    made: Found = {}
    for name, figure in (("mnist", "2a"), ("usps", "2b")):
        ks = sorted({one["k"] for one in kept.of(data=name)})
        if not ks:
            continue
        parts = {k: [one["methods"] for one in kept.of(data=name, k=k)] for k in ks}
        names = list(parts[ks[0]][0])
        words = "; ".join(f"k={k}: {_said(of, names, 'seconds', ' s')}" for k, of in parts.items())
        times = {k: {n: _of(of, n, "seconds") for n in names} for k, of in parts.items()}
        quick = [faster(of["k-FCFW"], of[RIVAL], limit=120.0, brief=BRIEF) for of in times.values()]
        made[f"Figure {figure}, fastest"] = (words, all_of(quick))
        made[f"Figure {figure}, lead"] = _leads(times)
    return made


def _leads(times: Mapping[int, Mapping[str, list[float | None]]]) -> Any:
    """How far k-FCFW is ahead at each k, counted both ways, and whether both grow to the last k."""
    pairs = {
        k: np.array([(a, b) for a, b in zip(of["k-FCFW"], of[RIVAL], strict=True) if a and b])
        for k, of in times.items()
    }
    if not all(map(len, pairs.values())):
        return "one of them was cut", untried("one of them was cut")
    factors = {k: both[:, 1] / both[:, 0] for k, both in pairs.items()}
    seconds = {k: both[:, 1] - both[:, 0] for k, both in pairs.items()}
    words = "lead over FISTA, AS " + ", ".join(
        f"k={k}: {factors[k].mean():.1f} times, {seconds[k].mean():.2f} s" for k in times
    )
    if len(times) < 2:
        return words, untried("one k alone: whether the lead grows cannot be seen")
    first, *_, last = times
    grows = [
        more([late / soon - 1.0 for late, soon in zip(lead[last], lead[first], strict=False)], 0.1)
        for lead in (factors, seconds)
    ]
    return words, all_of(grows)


def _rate(whole: Sequence[Any]) -> Found:
    if not whole:
        return {}
    bad = sum(not (one["rate"] < 1 and one["R2"] > 0.8) for one in whole)
    words = ", ".join(f"{one['rate']:.3f} (R^2 {one['R2']:.2f})" for one in whole)
    return {"Theorem 1": (f"factor a step {words}", never(bad, len(whole), ""))}


def _theorems(whole: Sequence[Any]) -> Found:
    if not whole:
        return {}
    steps = sum(one["steps"] for one in whole)
    first, last = (max(one["zeta"][i] for one in whole) for i in (0, -1))
    ends = ", ".join(f"{one['errors'][-1]:.0e}" for one in whole)
    # Only an accuracy that exact steps pass in the first half can be kept in the second.
    reached = [
        (float(share), late, one["errors"][one["steps"] // 2])
        for one in whole
        for share, late in one["inexact"].items()
    ]
    tried = [(share, late) for share, late, exact in reached if exact <= share]
    words = ", ".join(
        f"eps {share:g}: {max(late for s, late in tried if s == share) / share:.2g} eps"
        for share in sorted({share for share, _ in tried}, reverse=True)
    )
    bad = sum(late > 10.0 * share for share, late in tried)
    return {
        "Theorem 1, constant": (
            f"zeta at most {first:.1g} at the first step and {last:.0e} at the last, as atoms come "
            f"near to dependence; after {whole[0]['steps']} steps F is {ends} of F* above it",
            never(sum(one["broken"] for one in whole), steps, ""),
        ),
        "Remark 2": (f"at most {words} above F*", never(bad, len(tried), "")),
    }
