"""[T]: what the kept results say of each sentence of quotes.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.common.claims import Found, Judged, all_of, faster, more, spread, untried
from experiments.common.runs import Kept
from experiments.tan.methods import at

FGM, L1 = ("PROX-FGM", "PROX-SLR"), ("l1-SVM", "l1-LR")


def found(results: Mapping[str, Kept]) -> Found:
    """Return the numbers and judgements of all claims."""
    from experiments.tan import found_groups, found_real, found_synthetic, found_theorems

    return {
        key: value
        for room in (found_synthetic, found_real, found_groups, found_theorems)
        for key, value in room.found(results).items()
    }


def apart(
    kept: Sequence[Any], what: str, ours: str, theirs: Sequence[str], count: int
) -> list[float]:
    """Return for each draw how far ``ours`` is above the best of ``theirs`` at so many features."""
    return [
        at(one["rows"][ours], what, count)
        - float(np.max([at(one["rows"][n], what, count) for n in theirs]))
        for one in kept
    ]


def reached(kept: Sequence[Any], names: Sequence[str], among: Sequence[int]) -> tuple[int, ...]:
    """Return those numbers of features that the curves of these methods reach in all draws."""
    curves = [[row["features"] for row in one["rows"][n]] for one in kept for n in names]
    most, least = min(max(curve) for curve in curves), max(min(curve) for curve in curves)
    return tuple(n for n in among if least <= n <= most)


def means(kept: Sequence[Any], what: str, names: Sequence[str], counts: Sequence[int]) -> str:
    """Return the means over draws at so many features in words."""
    form = ".2f" if what == "seconds" else ".1f"
    unit = " s" if what == "seconds" else ""

    def of(name: str, count: int) -> str:
        mean, error = spread([at(one["rows"][name], what, count) for one in kept])
        sure = f" ± {2 * error:{form}}" if error < 1e9 else ""
        return f"{name} {mean:{form}}{sure}{unit}"

    if not kept:
        return "not run"
    return "; ".join(f"at {n}: " + ", ".join(of(name, n) for name in names) for n in counts)


def better(kept: Sequence[Any], what: str, counts: Sequence[int], unit: str) -> Judged:
    """Judge that both FGMs have more than both l1 methods at each of these numbers of features."""
    pairs = [(name, n) for n in counts for name in FGM]
    return all_of([more(apart(kept, what, name, L1, n), 0.0, unit) for name, n in pairs])


def comparable(kept: Sequence[Any], counts: Sequence[int]) -> Judged:
    """PROX-FGM beside l1-SVM and PROX-SLR beside l1-LR: at most twice the time."""
    if not kept:
        return untried("not run")
    judged = []
    for count in counts:
        for names in zip(FGM, L1, strict=True):
            times = ([at(one["rows"][n], "seconds", count) for one in kept] for n in names)
            judged.append(faster(*times, 0.5))
    return all_of(judged)


def unbiased(key: str, kept: Sequence[Any], counts: Sequence[int]) -> Found:
    """The two halves of the sentence on de-biasing."""
    names = ("l1-SVM", "l1-SVM-debias", "PROX-FGM", "PROX-FGM-debias")
    words = means(kept, "accuracy", names, counts)
    # "In general": the mean over the numbers of features.
    gains = zip(*(apart(kept, "accuracy", names[1], names[:1], n) for n in counts), strict=True)
    gain = more([sum(of) / len(of) for of in gains], 1.0, " points")
    losses = [
        more([d + 1.0 for d in apart(kept, "accuracy", names[2], (names[3], names[1]), n)])
        for n in counts
    ]
    return {f"{key}, l1": (words, gain), key: (words, all_of(losses))}
