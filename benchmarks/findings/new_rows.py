"""What ``monitor`` says of new rows: how often it errs, how near its bound is, what a re-fit costs.

    python benchmarks/findings/new_rows.py --draws 200 --seconds 280
    python benchmarks/findings/new_rows.py --summary

A row is a draw of old rows, new rows and a fit (results/new_rows.csv); draws that are there are not
repeated. ``told`` : whether new rows are told to differ (p <= 0.05); ``bound`` and ``true`` : the
gap that is proved and the true one, by a fit to all rows, as shares of the objective; ``held`` :
whether the bound held; ``warm``, ``cold`` : processor seconds of a re-fit that begins at the old
model, and of one that does not. The summary has standard errors (results/new_rows_summary.csv).
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from coverage import columns_of
from scipy.special import expit
from sklearn.base import clone

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV
from atomlearn.findings import keep, monitor
from atomlearn.findings.new_rows import _at_chosen_level

RESULTS = Path(__file__).parents[1] / "results"
NUMBERS = ("told", "bound", "true", "held", "warm", "cold")
#: Name: old rows, new rows, columns, what is fitted, what is different in the new rows.
SETTINGS: dict[str, tuple[int, int, int, str, str]] = {
    "same, 20 new": (300, 20, 100, "squared", ""),
    "same, 200 new": (300, 200, 100, "squared", ""),
    "same, n < p": (150, 50, 400, "squared", ""),
    "same, alpha searched": (300, 100, 100, "search", ""),
    "same, spread grows with x": (300, 100, 100, "spread", ""),
    "same, t3 noise": (300, 100, 100, "t3", ""),
    "same, classes": (300, 100, 100, "logistic", ""),
    "same, counts": (300, 100, 100, "poisson", ""),
    "mean + 0.3": (300, 100, 100, "squared", "mean"),
    "noise x 1.5": (300, 100, 100, "squared", "noise"),
    "an effect is gone": (300, 100, 100, "squared", "effect"),
    "a third of the labels by chance": (300, 100, 100, "logistic", "labels"),
    "same, 10,000 old and 100 new": (10_000, 100, 200, "squared", ""),
}


def one(name: str, seed: int) -> list[float]:
    n, n_new, p, kind, change = SETTINGS[name]
    rng = np.random.default_rng([seed, 9, list(SETTINGS).index(name)])
    X, fresh = columns_of(0.5, n + n_new, p, rng), np.arange(n + n_new) >= n
    effects = np.array([1.0, -0.8, 0.6, -0.4, 0.3])
    score, noise = X[:, :5] @ effects, rng.standard_normal(n + n_new)
    if kind == "t3":
        noise = rng.standard_t(3, n + n_new)
    if kind == "spread":
        noise *= np.exp(0.5 * X[:, 0])
    score -= (change == "effect") * fresh * X[:, 0]
    y: Any = score + noise * np.where(fresh & (change == "noise"), 1.5, 1.0)
    y += 0.3 * fresh * (change == "mean")
    model: Any = AtomicRegressor(alpha=0.1)
    if kind == "search":
        model = AtomicRegressorCV(n_alphas=10, tol=1e-4)
    elif kind == "logistic":
        y = (rng.random(n + n_new) < expit(2 * score)).astype(int)
        chance = fresh & (change == "labels") & (rng.random(n + n_new) < 1 / 3)
        y[chance] = rng.integers(0, 2, chance.sum())
        model = AtomicClassifier(alpha=0.02)
    elif kind == "poisson":
        y = rng.poisson(np.exp(0.5 * score)).astype(float)
        model = AtomicRegressor(loss="poisson", alpha=0.05)
    model.fit(X[:n], y[:n])
    found = monitor(model, X[n:], y[n:], keep(model, X[:n], y[:n], rng=seed), rng=seed)
    times, fits = [], []
    for warm in (True, False):
        again = clone(_at_chosen_level(model)).set_params(warm_start=warm, tol=1e-6)
        if warm:
            again.results_ = model.results_
            if hasattr(model, "classes_"):
                again.classes_ = model.classes_
        began = time.process_time()
        fits.append(again.fit(X, y))
        times.append(time.process_time() - began)
    value = objective(model, fits[1], X, y)
    true = (value - fits[1].objective_) / value
    # The fit to all rows has a gap of its own.
    return [found.p_value <= 0.05, found.gap, true, true <= found.gap + 2e-6, *times]


def objective(model: Any, same: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the objective of the old model over all rows, by formulas."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    z = X @ w + b
    if same.loss == "logistic":
        losses = np.logaddexp(0.0, np.where(y == 1, -z, z))
    elif same.loss == "poisson":
        # Of the deviance's kind: 0 where the mean is the count.
        at = np.where(y > 0, y * np.log(np.maximum(y, 1)), 0.0)
        losses = np.exp(z) - y * z - y + at
    else:
        losses = 0.5 * (y - z) ** 2
    alpha = same.alpha
    return float(losses.mean() + alpha * np.abs(w).sum())


def summary(rows: list[dict[str, str]]) -> None:
    out = []
    for name in SETTINGS:
        mine = [row for row in rows if row["setting"] == name]
        for key in NUMBERS if mine else ():
            values = np.array([float(row[key]) for row in mine])
            error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
            out.append([name, key, f"{values.mean():.4g}", f"{error:.2g}", values.size])
    with (RESULTS / "new_rows_summary.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["setting", "number", "mean", "error", "draws"], *out])
    for line in out:
        print(*line, sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=280.0)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    path, ended = RESULTS / "new_rows.csv", time.monotonic() + options.seconds
    known = list(csv.DictReader(path.open())) if path.exists() else []
    if options.summary:
        return summary(known)
    done = {(row["setting"], int(row["seed"])) for row in known}
    if not path.exists():
        path.write_text(",".join(["setting", "seed", *NUMBERS]) + "\n")
    warnings.simplefilter("ignore")
    for seed in range(options.draws):
        for name in options.settings:
            if (name, seed) in done:
                continue
            if time.monotonic() > ended:
                return None
            numbers = one(name, seed)
            with path.open("a", newline="") as stream:
                csv.writer(stream).writerow([name, seed, *(f"{float(v):.4g}" for v in numbers)])
    return None


if __name__ == "__main__":
    main()
