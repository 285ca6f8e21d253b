"""[T] Figures 7 to 14: what the results on text, digits and their products say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common.claims import Found, all_of, close, faster, more, spread, untried
from experiments.common.runs import Kept
from experiments.tan.found import FGM, L1, apart, comparable, means, reached, unbiased
from experiments.tan.methods import at

TEXTS = ("rcv1_small", "imdb", "newsgroups")
#: Numbers of features at which curves are compared.
COUNTS = (50, 100, 150, 200, 250, 300)


def found(results: Mapping[str, Kept]) -> Found:
    """Return Figures 7 to 14."""
    sensitive = list(results["sensitivity"])
    return {
        **_real(results["real"]),
        **(_figures_10_11(sensitive) if sensitive else {}),
        **(_figure_12(sensitive) if sensitive else {}),
        **_products(results),
    }


def _real(kept: Kept) -> Found:
    parts = {n: kept.of(data=n) for n in TEXTS if kept.of(data=n)}
    if not parts:
        return {}

    all_four = {n: reached(of, (*FGM, *L1), COUNTS)[-1:] for n, of in parts.items()}

    def words(what: str) -> str:
        return "; ".join(
            f"{n} {means(of, what, (*FGM, *L1), all_four[n])}" for n, of in parts.items()
        )

    judged = [
        more([d + 0.5 for d in apart(of, "accuracy", "PROX-FGM", L1, count)], 0.0, " points")
        for of in parts.values()
        for count in reached(of, ("PROX-FGM", *L1), COUNTS)
    ]
    made: Found = {
        "Figure 7": (words("accuracy"), all_of(judged)),
        "Figure 8": (
            words("seconds"),
            all_of([comparable(of, all_four[n]) for n, of in parts.items()]),
        ),
    }
    for name, of in parts.items():
        debiased = ("PROX-FGM", "PROX-FGM-debias", "l1-SVM", "l1-SVM-debias")
        made |= unbiased(f"Figure 9, {name}", of, reached(of, debiased, COUNTS)[-1:])
    return made


def _figures_10_11(whole: Sequence[Any]) -> Found:
    names = [n for n in whole[0]["by C"] if n.startswith("C=")]
    curves = [{"rows": one["by C"]} for one in whole]
    count = max(reached(curves, (*names, "l1-SVM"), range(10, 301, 10)), default=0)

    def of_c(name: str) -> list[float]:
        return [at(one["by C"][name], "accuracy", count) for one in whole]

    words = ", ".join(f"{n} {spread(of_c(n))[0]:.2f}" for n in (*names, "l1-SVM"))
    least, five, fifty, most = (of_c(n) for n in names)
    middle = [min(pair) for pair in zip(five, fifty, strict=True)]

    def stop(name: str, what: str) -> list[float]:
        return [spread([row[what] for row in one["stops"][name]])[0] for one in whole]

    stops = ("eps 0.005", "eps 0.001", "T = 10")
    said = (
        f"{n}: {spread(stop(n, 'features'))[0]:.0f} features, "
        f"{spread(stop(n, 'accuracy'))[0]:.2f}, {spread(stop(n, 'seconds'))[0]:.2f} s"
        for n in stops
    )
    off = zip(*(stop(n, "accuracy") for n in stops[:2]), strict=True)
    quicker = faster(*(stop(n, "seconds") for n in stops[:2]))
    return {
        "Figure 10": (
            f"at {count} features {words}",
            more([b - a for a, b in zip(least, five, strict=True)], 0.0, " points"),
        ),
        "Figure 10, large C": (
            f"at {count} features {words}",
            more([a - b for a, b in zip(middle, most, strict=True)], 1.0, " points"),
        ),
        "Figure 11": (
            ", ".join(said),
            all_of([close([b - a for a, b in off], 1.0, " points"), quicker]),
        ),
    }


def _figure_12(whole: Sequence[Any]) -> Found:
    until: dict[int, list[Any]] = {}
    for one in whole:
        for row in one["until"]:
            until.setdefault(row["B"], []).append(row)

    def of(batch: int, what: str) -> list[float]:
        return [row[what] for row in until[batch]]

    words = ", ".join(
        f"B={b}: {spread(of(b, 'features'))[0]:.0f} features, {spread(of(b, 'seconds'))[0]:.2f} s, "
        f"{spread(of(b, 'accuracy'))[0]:.2f}"
        for b in until
    )
    batches = sorted(until)
    small, forty, large = batches[0], batches[min(2, len(batches) - 1)], batches[-1]
    fallen = zip(of(forty, "accuracy"), of(large, "accuracy"), strict=True)
    return {
        "Figure 12a": (words, faster(of(forty, "seconds"), of(small, "seconds"), 10.0)),
        "Figure 12b": (words, more([a - b for a, b in fallen], 1.0, " points")),
    }


def _products(results: Mapping[str, Kept]) -> Found:
    digits, stored = list(results["polynomial"]), list(results["stored"])
    made: Found = {}
    if digits:
        names = ("PROX-PFGM", "PROX-FGM")
        # In each draw one row for each number of features.
        columns = list(
            zip(*(zip(*(d["rows"][n] for n in names), strict=True) for d in digits), strict=True)
        )
        words, judged = [], []
        for column in columns:
            ours, plain = ([pair[i]["accuracy"] for pair in column] for i in (0, 1))
            count = column[0][0]["features"]
            words.append(f"{count}: {spread(ours)[0]:.2f} against {spread(plain)[0]:.2f}")
            judged.append(more([a - b for a, b in zip(ours, plain, strict=True)], 0.3, " points"))
        made["Figure 14a"] = ("; ".join(words), all_of(judged))
    if stored:
        said = (
            f"PROX-PFGM {one['PROX-PFGM']['seconds']:.1f} s for {one['PROX-PFGM']['features']}, "
            f"l1-PSVM {one['l1-PSVM']['seconds']:.0f} s{' or more' * one['l1-PSVM']['cut']} for "
            f"{one['l1-PSVM']['features']}"
            for one in stored
        )
        pairs = ([one[n]["seconds"] for one in stored] for n in ("PROX-PFGM", "l1-PSVM"))
        made["Figure 13a"] = ("; ".join(said), faster(*pairs, 2.0))
    for one in results["kddb"]:
        words_of = (
            f"{one['products']:.2g} products: {one['selected']} selected in {one['seconds']:.0f} s "
            f"({one['status']})"
        )
        made["Figure 13c"] = (words_of, untried("one draw of a stand-in"))
    text = list(results["real_products"])
    if text:
        at_each = zip(*(one["rows"]["PROX-PFGM"] for one in text), strict=True)
        plain = zip(*(one["rows"]["PROX-FGM"] for one in text), strict=True)
        said = (
            f"{mine[0]['features']}: {spread([row['accuracy'] for row in mine])[0]:.2f} against "
            f"{spread([row['accuracy'] for row in theirs])[0]:.2f}"
            for mine, theirs in zip(at_each, plain, strict=True)
        )
        made["Figure 14c"] = ("; ".join(said), untried("a stand-in"))
    return made
