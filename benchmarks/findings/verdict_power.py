"""How often tests of "better than a guess" say so, by the strength of the signal.

    python benchmarks/findings/verdict_power.py --tables 60

The verdict (one hold-out, permuted labels), the same joined over nine hold-outs, the corrected t
of Nadeau and Bengio over two times five folds, the t over five folds, and for classes the binomial
test of held-out accuracy. Rows are written as they come; those that are there are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from verdict import SHAPES, table

from atomlearn.findings import held_out_verdict

SHOWN = ("classes 150 x 1500", "regression 100 x 3000")


def score(model, X, y, classes: bool) -> float:
    if classes:
        return float(roc_auc_score(y, model.decision_function(X))) - 0.5
    told = model.predict(X)
    return float(np.corrcoef(told, y)[0, 1]) if np.ptp(told) > 0 else 0.0


def of_folds(model, X, y, classes: bool, seed: int) -> list[float]:
    kind = StratifiedKFold if classes else KFold
    folds = kind(5, shuffle=True, random_state=seed).split(X, y)
    return [score(clone(model).fit(X[a], y[a]), X[b], y[b], classes) for a, b in folds]


def p_of_t(scores: list[float], share: float) -> float:
    """Of the mean over folds; ``share`` : test rows over training rows, 0 for the naive one."""
    values = np.array(scores)
    spread = values.std(ddof=1) * np.sqrt(1 / values.size + share)
    if spread == 0:
        return 1.0
    return float(stats.t.sf(values.mean() / spread, values.size - 1))


def p_values(X, y, model, classes: bool, seed: int) -> dict[str, float]:
    first = of_folds(model, X, y, classes, seed)
    found = {
        "verdict": held_out_verdict(model, X, y, rng=seed).p_value,
        "verdict, nine splits": held_out_verdict(model, X, y, rng=seed, n_splits=9).p_value,
        "corrected t": p_of_t(first + of_folds(model, X, y, classes, seed + 500), 0.25),
        "naive t": p_of_t(first, 0.0),
    }
    if classes:
        a, b = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
        told = clone(model).fit(X[a], y[a]).predict(X[b])
        most = float(np.bincount(y[b]).max() / b.size)
        right = int((told == y[b]).sum())
        found["binomial"] = float(stats.binomtest(right, b.size, most, "greater").pvalue)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--strengths", type=float, nargs="*", default=[0.0, 0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/verdict_power.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: dict[tuple[str, ...], list[int]] = {}
    if options.out.exists():
        with options.out.open(encoding="utf-8") as stream:
            counts = {tuple(r[:3]): [int(v) for v in r[3:]] for r in list(csv.reader(stream))[1:]}
    for repetition in range(options.tables):
        for strength in options.strengths:
            for number, (name, n, p, kind) in enumerate(SHAPES):
                if (
                    name not in SHOWN
                    or counts.get((name, f"{strength:g}", "verdict"), [0])[0] > repetition
                ):
                    continue
                rng = np.random.default_rng([number, repetition, round(100 * strength), 7])
                X, y, model = table(n, p, kind, strength, rng)
                for test, p_value in p_values(X, y, model, kind == "binary", repetition).items():
                    cell = counts.setdefault((name, f"{strength:g}", test), [0, 0])
                    cell[0] += 1
                    cell[1] += p_value <= 0.05
        with options.out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["shape", "strength", "test", "tables", "better"])
            writer.writerows([*key, *value] for key, value in sorted(counts.items()))


if __name__ == "__main__":
    main()
