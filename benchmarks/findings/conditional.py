"""How often p-values of features without an effect are small, and those of others.

    python benchmarks/findings/conditional.py --draws 200 --seconds 280
    python benchmarks/findings/conditional.py --methods hidimstat --draws 10
    python benchmarks/findings/conditional.py --summary

A row is a draw of data and a method (results/conditional.csv); draws that are there are not
repeated, so that the command can be given again until it is done. ``small`` and ``tiny`` : share
of the columns without an effect with p <= 0.05 and p <= 0.001; ``false`` and ``power`` : share of
false ones among those selected at a false discovery rate of 0.1, and share of the true ones that
is selected. Methods: ``p_values`` (conditional randomization with re-fit), ``importance`` (of a
lasso), ``hidimstat`` and ``hidimstat_importance`` (D0CRT and CFI, where it is installed).
The summary has the standard error over draws (results/conditional_summary.csv).
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from coverage import SETTINGS, columns_of, draw
from error_control import Data
from scipy.stats import false_discovery_control

from atomlearn import AtomicClassifier, AtomicRegressor
from atomlearn.findings import conditional_importance, p_values

RESULTS = Path(__file__).parents[1] / "results"
NUMBERS = ("small", "tiny", "false", "power", "seconds")
#: Fifty true columns of 1,000 and 500 rows, as in ``error_control.py``: kind of columns, loss.
LARGE = {
    "500 x 1000, AR 0": ("0", "squared"),
    "500 x 1000, AR .5": ("0.5", "squared"),
    "500 x 1000, AR .8": ("0.8", "squared"),
    "500 x 1000, factors": ("factors", "squared"),
    "500 x 1000, AR .5, classes": ("0.5", "logistic"),
}
OTHER = ("noise only", "spread grows", "survival", "three classes", "blocks of .95", "clusters")


def data(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and which columns have an effect."""
    if name in SETTINGS:
        X, y, truth = draw(name, seed)
        return X, y, truth != 0
    if name in LARGE:
        kind, loss = LARGE[name]
        one = Data(500, 1000, kind, loss, seed)
        return one.X, one.y, one.true
    rng = np.random.default_rng([seed, 5, OTHER.index(name)])
    n, p = 300, 200
    X = columns_of(0.5, n, p, rng)
    if name in ("blocks of .95", "clusters"):  # twenty columns a block are all correlated
        blocks = np.repeat(rng.standard_normal((n, 20)), 10, axis=1)
        share = 0.95 if name == "blocks of .95" else 0.98
        X = np.sqrt(share) * blocks + np.sqrt(1 - share) * X
    true = np.zeros(p, dtype=bool)
    true[rng.choice(p, 0 if name == "noise only" else 5, replace=False)] = True
    score = X[:, true].sum(axis=1)
    noise = rng.standard_normal(n)
    if name == "survival":
        time, end = rng.exponential(np.exp(-0.5 * score)), rng.exponential(2, n)
        kinds = [("event", bool), ("time", float)]
        return X, np.array([*zip(time <= end, np.minimum(time, end), strict=True)], kinds), true
    if name == "three classes":
        signs = np.array([[1.0, 0.0, -1.0]]) * score[:, None]
        return X, (signs + rng.gumbel(size=(n, 3))).argmax(axis=1), true
    if name == "spread grows":
        return X, 0.4 * score + noise * np.exp(0.5 * X[:, 0]), true
    return X, 0.4 * score + noise, true


def ours(X, y, name, seed):
    loss = SETTINGS[name][3] if name in SETTINGS else "auto"
    found = p_values(X, y, groups="auto" if name == "clusters" else None, loss=loss)
    return found.units, found.p_values


def ours_of_rows(X, y, name, seed):
    model = AtomicClassifier(alpha=0.02) if np.unique(y).size == 2 else AtomicRegressor(alpha=0.1)
    found = conditional_importance(model, X, y, rng=seed)
    return found.units, found.p_values


def hidimstat(X, y, name, seed):
    from hidimstat import D0CRT
    from sklearn.linear_model import LassoCV, LogisticRegressionCV

    given = {"random_state": seed}
    if np.unique(y).size == 2:
        lasso = LogisticRegressionCV(
            Cs=5, l1_ratios=(1,), solver="liblinear", cv=3, use_legacy_attributes=False
        )
        given["lasso_screening"] = lasso
        test = D0CRT(lasso, fit_y=False, **given)
    else:
        test = D0CRT(LassoCV(alphas=10, cv=5), **given)
    test.fit_importance(X, y)
    return [np.array([j]) for j in range(X.shape[1])], np.ravel(test.pvalues_)


def hidimstat_of_rows(X, y, name, seed):
    from hidimstat import CFI
    from sklearn.linear_model import LassoCV

    order = np.random.default_rng(seed).permutation(len(y))
    test, train = np.split(order, [int(0.3 * len(y))])
    model = LassoCV(alphas=20).fit(X[train], y[train])
    found = CFI(model, imputation_model_continuous=LassoCV(alphas=10), random_state=seed)
    found.fit(X[train], y[train])
    found.importance(X[test], y[test])
    return [np.array([j]) for j in range(X.shape[1])], np.ravel(found.pvalues_)


METHODS = {
    "p_values": ours, "importance": ours_of_rows, "hidimstat": hidimstat,
    "hidimstat_importance": hidimstat_of_rows,
}  # fmt: skip


def row_of(name: str, method: str, seed: int) -> list[float]:
    X, y, true = data(name, seed)
    began = time.process_time()
    units, values = METHODS[method](X, y, name, seed)
    seconds = time.process_time() - began
    has = np.array([true[unit].any() for unit in units])
    chosen = false_discovery_control(np.clip(values, 0, 1)) <= 0.1
    false = (chosen & ~has).sum() / max(chosen.sum(), 1)
    power = chosen[has].mean() if has.any() else np.nan
    none = values[~has]
    return [np.mean(none <= 0.05), np.mean(none <= 0.001), false, power, seconds]


def summary(rows: list[dict[str, str]]) -> None:
    """Write means and standard errors over draws."""
    out = []
    for name, method in dict.fromkeys((row["setting"], row["method"]) for row in rows):
        mine = [r for r in rows if (r["setting"], r["method"]) == (name, method)]
        for key in NUMBERS:
            values = np.array([float(row[key]) for row in mine])
            error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
            out.append([name, method, key, f"{values.mean():.4g}", f"{error:.2g}", values.size])
    with (RESULTS / "conditional_summary.csv").open("w", newline="") as stream:
        head = ["setting", "method", "number", "mean", "error", "draws"]
        csv.writer(stream).writerows([head, *out])
    for line in out:
        print(*line, sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=280.0)
    parser.add_argument("--methods", nargs="*", default=["p_values"], choices=METHODS)
    parser.add_argument("--settings", nargs="*", default=[*SETTINGS, *OTHER, *LARGE])
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    path, ended = RESULTS / "conditional.csv", time.monotonic() + options.seconds
    known = list(csv.DictReader(path.open())) if path.exists() else []
    if options.summary:
        return summary(known)
    done = {(row["setting"], row["method"], int(row["seed"])) for row in known}
    if not path.exists():
        path.write_text(",".join(["setting", "method", "seed", *NUMBERS]) + "\n")
    warnings.simplefilter("ignore")
    for seed in range(options.draws):
        for name in options.settings:
            for method in options.methods:
                if (name, method, seed) in done:
                    continue
                if time.monotonic() > ended:
                    return None
                numbers = row_of(name, method, seed)
                with path.open("a", newline="") as stream:
                    row = [name, method, seed, *(f"{value:.4g}" for value in numbers)]
                    csv.writer(stream).writerow(row)
    return None


if __name__ == "__main__":
    main()
