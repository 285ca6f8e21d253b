"""How often intervals of predictions and sets of labels hold the target they are asked to hold.

    python benchmarks/findings/prediction_coverage.py made --draws 200 --seconds 280
    python benchmarks/findings/prediction_coverage.py real --draws 20 --seconds 280
    python benchmarks/findings/prediction_coverage.py full --draws 1000 --seconds 280
    python benchmarks/findings/prediction_coverage.py times --draws 1000 --seconds 280
    python benchmarks/findings/prediction_coverage.py summary

Asked for 90%. A row is a draw: a fit to training rows, and the share of 500 new rows (real: of the
rows left out) that the set holds, with its mean width (size of the set). Draws that are there are
not repeated. Results: prediction_coverage.csv (full and times: in build/), and
prediction_coverage_summary.csv. Full: full
conformal intervals of five new rows by a lasso at one alpha, with CV+ and a split at the same alpha
on the same rows. Times: lower bounds of survival times, half of which are not seen, beside those of
the fitted survival functions alone; the width is the mean of the bounds.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn import datasets
from sklearn.model_selection import LeaveOneOut
from sklearn.preprocessing import StandardScaler

from atomlearn import (
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvivalCV,
)
from atomlearn.findings import full_conformal
from atomlearn.losses import survival_target

RESULTS = Path(__file__).parents[1] / "results"
SHARE = 0.9


def made(name: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return X, y of 500 new rows beside those of the fit, an estimator, and more for its fit."""
    n, p = {"n < p": (80, 300), "jackknife+": (60, 30)}.get(name, (150, 40))
    X = rng.standard_normal((n + 500, p))
    score, more = X[:, :5] @ np.array([1.0, -1.0, 0.7, 0.5, 0.3]), {}
    noise = rng.standard_normal(n + 500)
    y: np.ndarray = score + noise
    model: Any = AtomicRegressorCV(n_alphas=12, tol=1e-4)
    if name == "t3 noise":
        y = score + rng.standard_t(3, n + 500)
    elif name == "spread grows":
        y = score + noise * np.exp(0.5 * X[:, 0])
    elif name == "jackknife+":
        model.cv = LeaveOneOut()
    elif name == "Poisson":
        y = rng.poisson(np.exp(0.6 + 0.4 * score)).astype(float)
        model.loss = "poisson"
    elif name == "groups of five":
        groups = np.arange(n + 500) // 5
        X += rng.standard_normal((groups[-1] + 1, p))[groups]
        y = X[:, 0] + 2 * rng.standard_normal(groups[-1] + 1)[groups] + noise
        more = {"groups": groups[:n]}
    elif name.startswith("two classes"):
        y = (rng.random(n + 500) < expit(1.5 * score)).astype(float)
        model = AtomicClassifierCV(n_alphas=8, tol=1e-4)
    elif name.startswith("four classes"):
        y = (2 * X[:, :4] + rng.gumbel(size=(n + 500, 4))).argmax(axis=1).astype(float)
        model = AtomicClassifierCV(n_alphas=8, tol=1e-4)
    if name.endswith("30 folds"):
        model.cv = 30
    return X, y, n, model, more


MADE = (
    "normal noise", "t3 noise", "spread grows", "n < p", "jackknife+", "Poisson",
    "groups of five", "two classes", "four classes",
    "two classes, 30 folds", "four classes, 30 folds",
)  # fmt: skip


def of_digits(*, target: int) -> Any:
    """Return a number that the digits' other pixels predict: the ink of one row of pixels."""

    def read() -> Any:
        X, _ = datasets.load_digits(return_X_y=True)
        mine = np.arange(8 * target, 8 * target + 8)
        return np.delete(X, mine, axis=1)[:600], X[:600, mine].sum(axis=1)

    return read


def one_column_of(load: Any, column: int) -> Any:
    """Return one measurement of a table, to be predicted from the others."""

    def read() -> Any:
        X, _ = load(return_X_y=True)
        return np.delete(X, column, axis=1), X[:, column]

    return read


#: Ten targets of real tables that come with scikit-learn.
REAL: dict[str, Any] = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "linnerud, weight": lambda: (lambda d: (d.data, d.target[:, 0]))(datasets.load_linnerud()),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "digits": lambda: tuple(part[:600] for part in datasets.load_digits(return_X_y=True)),
    "wine, alcohol": one_column_of(datasets.load_wine, 0),
    "breast cancer, texture": one_column_of(datasets.load_breast_cancer, 1),
    "iris, petal width": one_column_of(datasets.load_iris, 3),
    "digits, ink of a row": of_digits(target=3),
}


def real(name: str, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return a real table with a random third of the rows at the end, and an estimator."""
    X, y = REAL[name]()
    order = rng.permutation(len(y))
    X, y, n = X[order].astype(float), y[order].astype(float), (2 * len(y)) // 3
    X = StandardScaler().fit(X[:n]).transform(X)
    search = AtomicClassifierCV if "," not in name and name != "diabetes" else AtomicRegressorCV
    return X, y, n, search(n_alphas=8, tol=1e-3), {}


def held(kind: str, name: str, seed: int) -> dict[str, float]:
    """Return how often the set holds the target, and how wide it is."""
    names = MADE if kind == "made" else tuple(REAL)
    rng = np.random.default_rng([seed, names.index(name), kind == "real"])
    X, y, n, model, more = (made if kind == "made" else real)(name, rng)
    began = time.process_time()
    model.fit(X[:n], y[:n], **more)
    fitted = time.process_time()
    found = model.predict(X[n:], interval=SHARE)
    row = {"seconds_fit": fitted - began, "seconds_interval": time.process_time() - fitted}
    if isinstance(model, AtomicClassifierCV):
        places = np.searchsorted(model.classes_, y[n:])
        covered, width = found[1][np.arange(len(places)), places], found[1].sum(axis=1)
    else:
        covered, width = (found[1] <= y[n:]) & (y[n:] <= found[2]), found[2] - found[1]
    return {"covered": float(covered.mean()), "width": float(width.mean()), **row}


#: Settings of full conformal intervals, and the alpha of the lasso.
FULL = {"normal noise": 0.1, "t3 noise": 0.1, "n < p": 0.25}
WAYS = ("full", "CV+", "split")


def held_by_three(name: str, seed: int) -> dict[str, dict[str, float]]:
    """Return how often full conformal, CV+ and split intervals hold the target, and widths."""
    rng = np.random.default_rng([seed, MADE.index(name), 3])
    X, y, n, _, _ = made(name, rng)
    X, y, new = X[:n], y[:n], (X[n : n + 5], y[n : n + 5])
    plain = {"alphas": [FULL[name]], "tol": 1e-4}
    halves = [(np.arange(n // 2), np.arange(n // 2, n))]
    found = {}
    for way in WAYS:
        began = time.process_time()
        if way == "full":
            model: Any = AtomicRegressor(alpha=FULL[name], tol=1e-4).fit(X, y)
            fitted = time.process_time()
            low, high = full_conformal(model, X, y, new[0], SHARE)
        else:
            own = {} if way == "CV+" else {"cv": halves, "refit": False}
            model = AtomicRegressorCV(**plain, **own).fit(X, y)
            fitted = time.process_time()
            low, high = model.predict(new[0], interval=SHARE)[1:]
        inside = (low <= new[1]) & (new[1] <= high)
        found[way] = {
            "covered": float(inside.mean()), "width": float((high - low).mean()),
            "seconds_fit": fitted - began, "seconds_interval": time.process_time() - fitted,
        }  # fmt: skip
    return found


#: Settings of survival times: the law of times, and what leaving depends on.
TIMES = (
    "hazards, leaving at random", "hazards, leaving by columns", "other law, leaving by columns",
    "other law, both by what is not seen",
)  # fmt: skip


def held_times(name: str, seed: int) -> dict[str, dict[str, float]]:
    """Return how often times are at least their lower bounds, and the mean of these."""
    rng = np.random.default_rng([seed, TIMES.index(name), 4])
    n = 300
    X = rng.standard_normal((n + 200, 20))
    score = X[:, :3] @ np.array([0.8, -0.6, 0.4])
    times = rng.exponential(np.exp(-score))
    if name.startswith("other"):  # lognormal, and more spread where column 0 is far from 0
        spread = 0.5 + 0.4 * np.abs(X[:, 0])
        times = np.exp(spread * rng.standard_normal(n + 200) - score)
    leaving = np.zeros(n + 200)
    if name.endswith("by columns"):
        leaving = 0.8 * X[:, 0] - 0.6 * X[:, 5]
    elif name.endswith("not seen"):
        times *= np.exp(0.7 * (1 - X[:, 4] ** 2))
        leaving = X[:, 4] ** 2 - 1
    left = rng.exponential(1.2 * np.exp(-leaving))
    y = survival_target(times <= left, np.minimum(times, left))
    began = time.process_time()
    model = AtomicSurvivalCV(n_alphas=8, tol=1e-4).fit(X[:n], y[:n])
    fitted = time.process_time()
    low = model.predict(X[n:], interval=SHARE)[1]
    seconds = {"seconds_fit": fitted - began, "seconds_interval": time.process_time() - fitted}
    curves = model.predict_survival_function(X[n:], return_array=True)
    alone = np.append(model.unique_times_, np.inf)[np.sum(curves >= SHARE, axis=1)]
    return {
        way: {
            "covered": float(np.mean(times[n:] >= bound)),
            "width": float(bound.mean()),
            **seconds,
        }
        for way, bound in (("weighted", low), ("alone", alone))
    }


#: Kinds whose draws have several ways to compare.
SEVERAL = {"full": (FULL, WAYS, held_by_three), "times": (TIMES, ("weighted", "alone"), held_times)}


def path_of(kind: str) -> Path:
    """Return the file of the draws: of several ways it is too large to be kept but as a summary."""
    if kind in SEVERAL:
        return RESULTS.parents[1] / "build" / f"prediction_coverage_{kind}.csv"
    return RESULTS / "prediction_coverage.csv"


def run(kind: str, draws: int, seconds: float) -> None:
    """Write a row a draw until all are there, or the time is out: all settings in turns."""
    path = path_of(kind)
    path.parent.mkdir(exist_ok=True)
    known = list(csv.DictReader(path.open())) if path.exists() else []
    done = {(row["kind"], row["setting"].split(": ")[0], int(row["seed"])) for row in known}
    ended = time.monotonic() + seconds
    for seed in range(draws):
        for name in {"made": MADE, "real": REAL, "full": FULL, "times": TIMES}[kind]:
            if (kind, name, seed) in done:
                continue
            if time.monotonic() > ended:
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if kind in SEVERAL:
                    ways = SEVERAL[kind][2](name, seed)
                    rows = {f"{name}: {way}": found for way, found in ways.items()}
                else:
                    rows = {name: held(kind, name, seed)}
            fresh = not path.exists()
            with path.open("a", newline="") as stream:
                for setting, found in rows.items():
                    row = {"kind": kind, "setting": setting, "seed": seed}
                    row |= {key: f"{value:.4g}" for key, value in found.items()}
                    writer = csv.DictWriter(stream, list(row))
                    if fresh:
                        writer.writeheader()
                        fresh = False
                    writer.writerow(row)


def summary() -> None:
    """Write the means over draws and the standard error of the coverage."""
    paths = {path_of(kind) for kind in ("made", "real", *SEVERAL)}
    known = [row for path in paths if path.exists() for row in csv.DictReader(path.open())]
    kept = RESULTS / "prediction_coverage_summary.csv"
    before, rows = list(csv.reader(kept.open()))[1:], []
    several = {
        kind: [f"{name}: {way}" for name in names for way in ways]
        for kind, (names, ways, _) in SEVERAL.items()
    }
    for kind, names in ({"made": MADE, "real": REAL} | several).items():
        for name in names:
            mine = [row for row in known if (row["kind"], row["setting"]) == (kind, name)]
            if mine:
                values = {key: np.array([float(row[key]) for row in mine]) for key in
                          ("covered", "width", "seconds_fit", "seconds_interval")}  # fmt: skip
                error = values["covered"].std(ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else 0
                means = [f"{value.mean():.4g}" for value in values.values()]
                rows.append([kind, name, len(mine), means[0], f"{error:.2g}", *means[1:]])
    rows += [row for row in before if row[0] not in {row["kind"] for row in known}]
    head = ["kind", "setting", "draws", "covered", "error", "width", "s_fit", "s_interval"]
    with kept.open("w", newline="") as stream:
        csv.writer(stream).writerows([head, *rows])
    for row in rows:
        print(*row, sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["made", "real", "full", "times", "summary"])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=280.0)
    options = parser.parse_args()
    if options.kind == "summary":
        summary()
    else:
        run(options.kind, options.draws, options.seconds)


if __name__ == "__main__":
    main()
