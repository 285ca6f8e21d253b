"""[A]: what the kept results say of each sentence of quotes.toml."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from experiments.common.claims import (
    FAILS,
    HOLDS,
    Found,
    Judged,
    all_of,
    close,
    more,
    never,
    spread,
    untried,
)
from experiments.common.runs import Kept

METHODS = ("lasso", "elastic net", "k-support")
#: The variance within a group at which the numbers of Table 1 are met.
VARIANCE = 1e-5
#: What Table 1 prints for the synthetic data, each with a standard error of 0.02.
PRINTED = dict(zip(METHODS, (0.2685, 0.2274, 0.2143), strict=True))


def found(results: Mapping[str, Kept]) -> Found:
    """Return the numbers and judgements of all claims."""
    return {
        **_proved(results["compared"], results["prox"]),
        **_theorems(results["theorems"].pieces),
        **_synthetic(results["synthetic"]),
        **_heart(results["heart"]),
        **_newsgroups(results["newsgroups"]),
    }


def _proved(compared: Kept, prox: Kept) -> Found:
    made: Found = {}
    ratios, balls = compared.pieces.get("ratios"), compared.pieces.get("balls")
    if ratios:
        outside = int(ratios["least"] < 1 - 1e-12) + int(ratios["most"] >= math.sqrt(2.0))
        words = f"{ratios['least']:.6f} to {ratios['most']:.6f} over {ratios['vectors']:,} vectors"
        made["Proposition 3.1"] = (words, never(outside, ratios["vectors"], ""))
        example, root = ratios["example"], math.sqrt(2.0)
        words = ", ".join(f"{ratio:.4f}" for ratio in example)
        bounds = (root / (1.0 + 1.0 / math.sqrt(k)) for k in ratios["ks"])
        bad = sum(not low < x < root for low, x in zip(bounds, example, strict=True))
        bad += sum(b <= a for a, b in pairwise(example))
        made["Section 3, example"] = (words, never(bad, len(example), ""))
    if balls:
        outside, widest = 0, 1.0
        for label in ("(1, 1, 0) / sqrt 2 and e_3", "e_1 and e_2"):
            sizes = (
                np.hypot(*np.array(balls["curves"][f"{name}, {label}"]))
                for name in ("2-support", "elastic net")
            )
            inner, outer = sizes
            outside += int(np.sum(inner > outer * (1 + 1e-12)))
            widest = max(widest, float(np.max(outer / inner)))
        words = f"inside at all 122 directions drawn; the elastic net's reaches {widest:.3f} as far"
        made["Figure 1"] = (words, never(outside, 122, ""))
    one = prox.pieces.get("against whole numbers")
    if one:
        for key, names in (("Algorithm 1", ("Algorithm 1",)), ("BS", ("BS", "AS", "BN"))):
            worst = max(one["worst"][n] for n in names)
            bad = sum(one["failed"][n] for n in names)
            words = f"{bad} failures of {one['vectors']:,}, largest error {worst:.1e} of max |v|"
            made[key] = (words, never(bad, one["vectors"], ""))
    return made


def _theorems(pieces: Mapping[str, Any]) -> Found:
    made: Found = {}
    if nested := pieces.get("nested"):
        off = max(nested["rises"], nested["ends"])
        words = (
            f"largest rise with k {nested['rises']:.1e}, largest difference from l1 and l2 "
            f"{nested['ends']:.1e}, over {nested['vectors']:,} vectors"
        )
        made["Section 2, nested"] = (words, never(int(off > 1e-12), nested["vectors"], ""))
    if kinks := pieces.get("kinks"):
        below, least, points = kinks["below"], kinks["least"], kinks["points"]
        bad = int(below["k-support"] >= 0.01) + int(kinks["at"] <= 0.1)
        made["Section 2, differentiable"] = (
            f"largest jump of the slope below cardinality k {below['k-support']:.1e}, least at "
            f"cardinality k {kinks['at']:.2f}",
            never(bad, points, ""),
        )
        made["Section 2, unlike the elastic net"] = (
            f"least jump of the l1 norm {least['lasso']:.2f}, largest of the elastic-net norm "
            f"{below['elastic net']:.1e}",
            never(int(min(least["lasso"], least["elastic net"]) <= 0.1), points, ""),
        )
    return made


def _joined(pieces: Sequence[Any], what: str) -> dict[str, list[Any]]:
    return {name: [v for one in pieces for v in one[what][name]] for name in METHODS}


def _synthetic(kept: Kept) -> Found:
    whole = kept.of(variance=VARIANCE)
    if not whole:
        return {}
    errors = _joined(whole, "errors")
    study = "; ".join(
        f"{v:g}: " + ", ".join(f"{np.median(values):.3f}" for values in of.values())
        for v in sorted({one["variance"] for one in kept})
        if (of := _joined(kept.of(variance=v), "errors"))
    )
    made: Found = {
        f"Table 1, synthetic, {name}": (
            f"{np.median(errors[name]):.4f} at variance {VARIANCE:g}; of the three methods at "
            f"variance {study}",
            _as_printed(errors[name], PRINTED[name], 0.02),
        )
        for name in METHODS
    }
    better = [
        more([a - b for a, b in zip(errors[worse], errors[good], strict=True)])
        for worse, good in (("lasso", "elastic net"), ("elastic net", "k-support"))
    ]
    medians = " > ".join(f"{np.median(errors[name]):.3f}" for name in METHODS)
    edges = sum(one["edges"][name] for one in whole for name in METHODS)
    made["Table 1, synthetic, order"] = (
        f"medians {medians}; {edges} of {3 * len(errors['lasso'])} choices at an edge of the grid",
        all_of(better),
    )
    return made | _figure_2(_joined(whole, "rows"))


def _as_printed(values: Sequence[float], printed: float, error: float) -> Judged:
    """Judge that the median is the printed one, within two standard errors, theirs and ours."""
    allowed = 2.0 * math.hypot(error, 1.2533 * spread(values)[1])  # of a median
    off = float(np.median(values)) - printed
    verdict = HOLDS if abs(off) <= allowed else FAILS
    return Judged(verdict, f"difference {off:+.3g}", len(values), f"within {allowed:.2g}")


def _figure_2(rows: Mapping[str, Sequence[Any]]) -> Found:
    found = {name: np.array(of) for name, of in rows.items()}
    inside = {n: of[:, :15].mean(axis=1) for n, of in found.items()}
    outside = {n: of[:, 15:].mean(axis=1) for n, of in found.items()}
    uneven = {n: of[:, :15].std(axis=1) for n, of in found.items()}
    used = {n: (of > 0).sum(axis=1) for n, of in found.items()}
    told = [more(list(inside[n] - 10.0 * outside[n])) for n in METHODS]
    ratios = ", ".join(f"{n} {inside[n].mean() / outside[n].mean():.0f}" for n in METHODS)
    less = [more(list(uneven[n] - uneven["elastic net"])) for n in ("lasso", "k-support")]
    words = ", ".join(f"{n} {v.mean():.3f}" for n, v in uneven.items())
    return {
        "Figure 2, relevant variables": (f"mean |w| inside over outside: {ratios}", all_of(told)),
        "Figure 2, evenness": (
            f"mean sd of |w| within: {words}; the lasso's less the elastic net's: "
            f"{less[0].words}; k-support's less the elastic net's: {less[1].words}",
            all_of(less),
        ),
        "Section 6": (
            ", ".join(f"{n} {v.mean():.1f}" for n, v in used.items()) + " of 40 weights in use",
            more([float(v) for v in used["k-support"] - used["elastic net"]]),
        ),
    }


def _heart(kept: Kept) -> Found:
    if not len(kept):
        return {}
    mse, accuracy = _joined(list(kept), "mse"), _joined(list(kept), "accuracy")
    medians = {n: float(np.median(v)) for n, v in mse.items()}
    shares = {n: float(np.median(v)) for n, v in accuracy.items()}
    printed = all_of([_as_printed(mse[n], 0.18, 0.005) for n in METHODS])
    alike = [
        close([a - b for a, b in zip(mse[one], mse[other], strict=True)], 0.005)
        for one, other in combinations(METHODS, 2)
    ]
    right = [
        close([a - b for a, b in zip(accuracy[one], accuracy[other], strict=True)], 0.53, " points")
        for one, other in combinations(METHODS, 2)
    ]
    said = ", ".join(f"{n} {v:.2f}" for n, v in shares.items())
    return {
        "Table 1, heart, MSE": (", ".join(f"{n} {v:.3f}" for n, v in medians.items()), printed),
        "Table 1, heart, accuracy": (
            said,
            all_of([_as_printed(accuracy[n], 66.41, 0.53) for n in METHODS]),
        ),
        "Table 1, heart, equal": (
            "mean differences of MSE: "
            + "; ".join(one.words for one in alike)
            + "; of accuracy: "
            + "; ".join(one.words for one in right),
            all_of(alike),
        ),
    }


def _newsgroups(kept: Kept) -> Found:
    if not len(kept):
        return {}
    words = {
        what: ", ".join(f"{one['method']} {one[what]:.3g}" for one in kept)
        for what in ("mse", "accuracy")
    }
    other = untried("other data")
    return {
        "Table 1, newsgroups, MSE": (words["mse"], other),
        "Table 1, newsgroups, order": (words["accuracy"], other),
    }
