"""The k-support norm against the lasso, the elastic net and ridge, on bunches of like features.

python -m benchmarks.ksupport [--draws 30] [--classes] [--minutes 4]   goes on where it stopped
python -m benchmarks.ksupport --cost                                   time of a search, against l1
python -m benchmarks.ksupport --write                                  tables of docs/ksupport.md

A row of the CSV is one method on one draw: its score at 2000 other rows (R^2, or the area under the
ROC curve), the share of the true features that it found, and how many others. All methods choose
what they choose by the same folds.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import ElasticNetCV, LogisticRegressionCV, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, RepeatedKFold, StratifiedKFold

from atomlearn import AtomicClassifierCV, AtomicRegressorCV, norms
from benchmarks.ksupport_page import write

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FIELDS = ("setting", "draw", "method", "score", "found", "false", "k", "seconds")
COSTS = {"l1": "l1", "k-support": "ksupport", "elastic net norm": "elasticnet"}
RATIOS = [0.1, 0.5, 0.7, 0.9, 0.95, 1.0]
TESTED = 2000
Array = Any


@dataclass(frozen=True)
class Setting:
    """200 features in bunches of ten, or autocorrelated; noise : relative to what 1 makes, an R^2
    of 0.8 at best; active : features of each of three bunches that act, with coefficients 1."""

    n: int = 100
    rho: float = 0.7
    active: int = 10
    noise: float = 1.0
    series: bool = False

    def draw(self, name: str, seed: int) -> tuple[Array, Array, Array]:
        """Return X and y, with the rows to test at, and which features act."""
        rng = np.random.default_rng([seed, *name.encode()])
        rows, p = self.n + TESTED, 200
        noise = rng.standard_normal((rows, p))
        if self.series:
            X = noise.copy()
            for j in range(1, p):
                X[:, j] = self.rho * X[:, j - 1] + np.sqrt(1 - self.rho**2) * noise[:, j]
        else:
            common = np.repeat(rng.standard_normal((rows, p // 10)), 10, axis=1)
            X = np.sqrt(self.rho) * common + np.sqrt(1 - self.rho) * noise
        truth = np.zeros(p, dtype=bool)
        for bunch in range(3):
            first = bunch * (60 if self.series else 10)
            truth[first : first + self.active] = True
        signal = X[:, truth].sum(axis=1)
        y = signal + 0.5 * self.noise * signal.std() * rng.standard_normal(rows)
        return X, y, truth


SETTINGS = {
    "bunches .3": Setting(rho=0.3),
    "bunches .5": Setting(rho=0.5),
    "bunches .7": Setting(),
    "bunches .9": Setting(rho=0.9),
    "bunches .95": Setting(rho=0.95),
    "half active": Setting(rho=0.9, active=5),
    "single active": Setting(rho=0.9, active=1),
    "50 rows": Setting(n=50),
    "500 rows": Setting(n=500),
    "weak signal": Setting(noise=3.0),
    "strong signal": Setting(noise=0.3),
    "series .9": Setting(rho=0.9, series=True),
}


def regressors(n: int, seed: int, draw: int) -> Iterator[tuple[str, Any]]:
    """Yield the methods by name."""
    cv = KFold(5, shuffle=True, random_state=seed)
    yield "lasso", AtomicRegressorCV("l1", cv=cv)
    yield "elastic net", ElasticNetCV(cv=cv, l1_ratio=RATIOS, alphas=50, max_iter=5000)
    yield "ridge", RidgeCV(np.geomspace(1e-1, 1e5, 40))
    yield "k-support", AtomicRegressorCV("ksupport", cv=cv)
    thrice = RepeatedKFold(n_splits=5, n_repeats=3, random_state=seed)
    yield "k-support, three times five folds", AtomicRegressorCV("ksupport", cv=thrice)
    if draw < 2:  # it takes seconds
        yield "elastic net norm", AtomicRegressorCV("elasticnet", cv=cv)
    for norm in norms.KSupport().candidates(n, 200):
        yield f"k = {norm.k}", AtomicRegressorCV(norm, cv=cv)


def classifiers(n: int, seed: int, draw: int) -> Iterator[tuple[str, Any]]:
    """Yield the methods by name."""
    cv = StratifiedKFold(5, shuffle=True, random_state=seed)
    yield "lasso", AtomicClassifierCV("l1", cv=cv)
    yield "elastic net", LogisticRegressionCV(
        cv=cv, l1_ratios=RATIOS, Cs=np.geomspace(1e-2, 10, 12), solver="saga", max_iter=300,
        scoring="neg_log_loss", use_legacy_attributes=False,
    )  # fmt: skip
    yield "k-support", AtomicClassifierCV("ksupport", cv=cv)
    for k in (10, 25, 40):
        yield f"k = {k}", AtomicClassifierCV(norms.KSupport(k), cv=cv)


def rows(draws: int, classes: bool, known: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Yield the rows that are missing, one draw of all settings after the other."""
    for draw in range(draws):
        for name, setting in SETTINGS.items():
            X, y, truth = setting.draw(name, draw)
            y = (y > np.median(y)).astype(int) if classes else y
            n, scale = setting.n, X[: setting.n].std(axis=0)
            X = (X - X[:n].mean(axis=0)) / scale
            methods = (classifiers if classes else regressors)(n, draw, draw)
            for method, model in methods:
                if (name, str(draw), method) in known:
                    continue
                began = time.process_time()
                model.fit(X[:n], y[:n])
                took = time.process_time() - began
                coef = np.ravel(model.coef_)
                test = X[n:], y[n:]
                score = model.score(*test)
                if classes:
                    score = roc_auc_score(y[n:], model.decision_function(X[n:]))
                used = np.abs(coef) > 1e-9 * np.abs(coef).max(initial=0.0)
                yield {
                    "setting": name, "draw": draw, "method": method, "score": round(score, 5),
                    "found": round(used[truth].mean(), 3), "false": int(used[~truth].sum()),
                    "k": getattr(getattr(model, "norm_", None), "k", ""), "seconds": round(took, 4),
                }  # fmt: skip


def cost(out: Path, minutes: float) -> None:
    """Time searches over k and level against that of l1 over its level, in processor seconds."""
    known, end = set(), time.monotonic() + 60 * minutes
    if out.exists():
        with out.open(encoding="utf-8") as file:
            known = {(row["data"], row["loss"]) for row in csv.DictReader(file)}
    with out.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        if not known:
            head = (*COSTS, "k-support / l1", "elastic net / l1")
            table.writerow(("data", "loss", *head, *(f"passes, {name}" for name in COSTS)))
        for (name, make), loss in product(SIZES.items(), ("squared", "logistic")):
            if (name, loss) in known:
                continue
            if time.monotonic() > end:
                return
            X, y = make()
            seconds, passes = [], []
            for norm in COSTS.values():
                times = []
                for _ in range(min(9, max(20_000 // X.shape[1], 1))):
                    began = time.process_time()
                    if loss == "squared":
                        model = AtomicRegressorCV(norm).fit(X, y)
                    else:
                        model = AtomicClassifierCV(norm).fit(X, y > np.median(y))
                    times.append(time.process_time() - began)
                seconds.append(float(np.median(times)))
                passes.append(model.n_passes_)
            ratios = [round(each / seconds[0], 1) for each in seconds[1:]]
            row = name, loss, *(round(each, 3) for each in seconds), *ratios, *passes
            print(*row, flush=True)
            table.writerow(row)
            file.flush()


def dense(n: int, p: int) -> tuple[Array, Array]:
    """Return bunches of ten, three of which act."""
    rng = np.random.default_rng(0)
    common = np.repeat(rng.standard_normal((n, p // 10)), 10, axis=1)
    X = np.asfortranarray(np.sqrt(0.7) * common + np.sqrt(0.3) * rng.standard_normal((n, p)))
    return noisy(X, X[:, :30].sum(axis=1))


def thin(n: int, p: int) -> tuple[Array, Array]:
    """Return a sparse matrix, about 25 entries a row."""
    rng = np.random.default_rng(0)
    # Places drawn by a generator: those of a seed take 8 GB.
    X = sparse.random(n, p, 25 / p, "csc", random_state=rng, data_rvs=rng.standard_normal)
    return noisy(X, np.ravel(X[:, :60].sum(axis=1)))


def noisy(X: Any, signal: Array) -> tuple[Any, Array]:
    """Return X and the signal with noise."""
    rng = np.random.default_rng(1)
    return X, signal + 0.5 * signal.std() * rng.standard_normal(signal.size)


SIZES = {
    "100 x 200": lambda: dense(100, 200),
    "200 x 5000": lambda: dense(200, 5000),
    "1000 x 20,000": lambda: dense(1000, 20_000),
    "20,000 x 50,000, sparse": lambda: thin(20_000, 50_000),
}


def main() -> None:
    """Go through draws, settings and methods, and keep each row as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--classes", action="store_true", help="of y above its median")
    parser.add_argument("--cost", action="store_true", help="time searches")
    parser.add_argument("--write", action="store_true", help="make the tables of what is kept")
    options = parser.parse_args()
    if options.cost:
        return cost(RESULTS / "ksupport_cost.csv", options.minutes)
    if options.write:
        return write(RESULTS, ROOT / "docs" / "ksupport.md")
    warnings.simplefilter("ignore")
    path = RESULTS / ("ksupport_classes.csv" if options.classes else "ksupport.csv")
    known = set()
    if path.exists():
        with path.open(encoding="utf-8") as file:
            known = {(r["setting"], r["draw"], r["method"]) for r in csv.DictReader(file)}
    end = time.monotonic() + 60 * options.minutes
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, FIELDS)
        if not known:
            table.writeheader()
        for row in rows(options.draws, options.classes, known):
            table.writerow(row)
            file.flush()
            if time.monotonic() > end:
                return None
    return None


if __name__ == "__main__":
    main()
