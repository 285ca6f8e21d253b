"""[A]: what the kept results say of each sentence of quotes.toml."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from experiments.common.claims import Found, Judged, all_of, close, more, never, spread, untried
from experiments.common.runs import Kept

METHODS = ("lasso", "elastic net", "k-support")
#: What Table 1 prints for the synthetic data, each with a standard error of 0.02.
PRINTED = dict(zip(METHODS, (0.2685, 0.2274, 0.2143), strict=True))


def found(results: Mapping[str, Kept]) -> Found:
    """Return the numbers and judgements of all claims."""
    return {
        **_proved(results["compared"], results["prox"]),
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
        example = ratios["example"]
        rising = all(b > a for a, b in pairwise(example))
        words = ", ".join(f"{ratio:.4f}" for ratio in example)
        made["Section 3, example"] = (words, never(int(not rising), len(example), ""))
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


def _joined(pieces: Sequence[Any], what: str) -> dict[str, list[Any]]:
    return {name: [v for one in pieces for v in one[what][name]] for name in METHODS}


def _synthetic(kept: Kept) -> Found:
    whole = kept.of(variance=0.01)
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
            f"{np.median(errors[name]):.4f} at variance 0.01; of the three methods at variance "
            f"{study}",
            untried("the variance is not stated"),
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
    draws = len(mse["lasso"])
    # The paper's own standard error and ours: the difference of two medians.
    errors = {n: math.hypot(0.005, 1.2533 * spread(mse[n])[1]) for n in METHODS}
    near = all(abs(medians[n] - 0.18) <= 2 * errors[n] for n in METHODS)
    printed = Judged(
        "holds" if near else "does not hold", "", draws, "2 standard errors, theirs and ours"
    )
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
        "Table 1, heart, accuracy": (said, untried("the threshold is not stated")),
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
