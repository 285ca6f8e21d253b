"""How often intervals of coefficients hold the truth: columns named before, and selected ones.

    python benchmarks/findings/coverage.py named --draws 500 --seconds 280
    python benchmarks/findings/coverage.py selected --draws 500 --seconds 280
    python benchmarks/findings/coverage.py exact --draws 200 --seconds 280
    python benchmarks/findings/coverage.py subset --draws 200 --seconds 280
    python benchmarks/findings/coverage.py summary

A row is a draw of data (results/coverage_named.csv, coverage_selected.csv); draws that are there
are not repeated, so that the command can be given again until it is done. The summary has one row
a setting, with the standard error over draws (results/coverage_summary.csv). Named: three columns
with an effect and three without, and
these three as a group (``group``: how often its p is below 5%). Selected: by a lasso at one alpha;
the truth is the effect among the selected columns alone (``own``), and that among all (``all``).
Exact: the same lasso and the best five columns, all rows selecting and estimating; ``naive`` : the
usual intervals of least squares in the same columns, as if they had been named; ``signs`` : whether
no more of the signs were wrong than ``wrong_signs`` told.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg as la
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import t as student

from atomlearn import AtomicClassifier, AtomicRegressor, SubsetRegressor
from atomlearn.findings import estimates

RESULTS = Path(__file__).parents[1] / "results"
#: Name: rows, columns, kind of columns, kind of target.
SETTINGS = {
    "AR 0, n > p": (300, 200, 0.0, "squared"),
    "AR .5, n > p": (300, 200, 0.5, "squared"),
    "AR .9, n > p": (300, 200, 0.9, "squared"),
    "AR 0, n < p": (200, 400, 0.0, "squared"),
    "AR .5, n < p": (200, 400, 0.5, "squared"),
    "AR .9, n < p": (200, 400, 0.9, "squared"),
    "t3, n > p": (300, 200, "t3", "squared"),
    "SNP-like, n < p": (300, 400, "snp", "squared"),
    "logistic, n > p": (500, 200, 0.5, "logistic"),
    "logistic, n < p": (400, 500, 0.0, "logistic"),
    "Poisson, n > p": (300, 200, 0.5, "poisson"),
    "Poisson, n < p": (200, 300, 0.0, "poisson"),
}
SIZES = {
    "squared": [1.0, -0.8, 0.6, -0.4, 0.3],
    "logistic": [1.0, -0.8, 0.6, -0.4, 0.3],
    "poisson": [0.5, -0.4, 0.3, -0.2, 0.15],
}


def columns_of(kind: Any, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Return columns of mean 0 and variance about 1: AR(kind), multivariate t3, or genotypes."""
    r = kind if isinstance(kind, float) else {"t3": 0.5, "snp": 0.8}[kind]
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r * r) * X[:, j]
    if kind == "t3":
        return X * np.sqrt(1 / rng.chisquare(3, n))[:, None]
    if kind == "snp":  # two copies cut at a frequency of the rarer letter of .1 to .5
        other = columns_of(r, n, p, rng)
        cut = np.quantile(rng.standard_normal(20000), rng.uniform(0.1, 0.5, p))
        return (cut > X).astype(float) + (other < cut)
    return X


def covariance_of(kind: Any, p: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return the covariance of the columns, where it is known by a formula."""
    return la.toeplitz(kind ** np.arange(p)) if isinstance(kind, float) else None


def draw(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and the coefficients of a draw."""
    n, p, kind, target = SETTINGS[name]
    rng = np.random.default_rng([seed, list(SETTINGS).index(name)])
    X = columns_of(kind, n, p, rng)
    truth = np.zeros(p)
    truth[rng.choice(p, 5, replace=False)] = SIZES[target]
    mean = X @ truth
    mean -= mean.mean() if kind == "snp" else 0.0
    if target == "logistic":
        return X, (rng.random(n) < expit(mean)).astype(int), truth
    if target == "poisson":
        return X, rng.poisson(np.exp(0.5 + mean)).astype(float), truth
    return X, mean + rng.standard_normal(n), truth


def model_of(name: str, alpha: float = 0.1) -> Any:
    loss = SETTINGS[name][3]
    return (
        AtomicClassifier(alpha=alpha / 2)
        if loss == "logistic"
        else AtomicRegressor(alpha=alpha, loss=loss)
    )


def named(name: str, seed: int) -> dict[str, Any]:
    """Return what intervals of six named columns say: three with an effect, three without."""
    X, y, truth = draw(name, seed)
    rng = np.random.default_rng([seed, 77])
    without = rng.choice(np.flatnonzero(truth == 0), 3, replace=False)
    sizes = np.argsort(-np.abs(truth))  # the largest effect, the middle one and the smallest
    columns = np.concatenate([sizes[[0, 2, 4]], without])
    model = model_of(name).fit(X, y)
    began = time.process_time()
    found = estimates(model, X, y, [*columns.tolist(), np.sort(without).tolist()])
    low, high = found.intervals[:6].T
    held = (low <= truth[columns]) & (truth[columns] <= high)
    return {
        "covered": held.mean(), "effects": held[:3].mean(), "others": held[3:].mean(),
        "width": np.median(high - low), "group": float(found.group_p_values[-1] < 0.05),
        "seconds": time.process_time() - began,
    }  # fmt: skip


def selected(name: str, seed: int) -> dict[str, Any] | None:
    """Return what intervals of selected columns say; None where none is selected."""
    X, y, truth = draw(name, seed)
    model = model_of(name).fit(X, y)
    began = time.process_time()
    found, other = (estimates(model, X, y, how=way, rng=seed) for way in ("auto", "split"))
    seconds = time.process_time() - began
    E = found.columns
    if not E.size:
        return None
    own = effects_among(E, name, truth)
    row = {"n_selected": E.size, "seconds": seconds}
    for way, one in (("", found), ("split_", other)):
        low, high = one.intervals.T
        row |= {
            f"{way}own": np.mean((low <= own) & (own <= high)),
            f"{way}all": np.mean((low <= truth[E]) & (truth[E] <= high)),
            f"{way}width": np.median(high - low),
        }
    return row


def effects_among(E: np.ndarray, name: str, truth: np.ndarray) -> np.ndarray:
    """Return the effects among these columns alone; where no formula is known those among all.

    Of normal columns what the others add is a normal number of variance v: nothing changes for
    Poisson's law but the intercept, and logistic effects shrink by the k at which the slope of the
    likelihood is zero.
    """
    _, p, kind, target = SETTINGS[name]
    covariance = covariance_of(kind, p, None)
    if covariance is None or not E.size:
        return truth[E]
    own = covariance[np.ix_(E, E)]
    effects = np.asarray(la.solve(own, covariance[E] @ truth))
    explained = effects @ own @ effects
    if target != "logistic" or explained < 1e-12:
        return effects
    u, share = np.polynomial.hermite_e.hermegauss(60)
    s = np.sqrt(explained) * u
    v = max(truth @ covariance @ truth - explained, 0.0)
    seen = expit(s[:, None] + np.sqrt(v) * u) @ share / share.sum()
    return effects * brentq(lambda k: share @ ((seen - expit(k * s)) * s), 0.05, 2.0)


def exact(name: str, seed: int, subset: bool = False) -> dict[str, Any] | None:
    """Return what intervals say of what all rows select; None where nothing is selected."""
    X, y, truth = draw(name, seed)
    model = (SubsetRegressor(n_features=5, standardize=True) if subset else model_of(name)).fit(
        X, y
    )
    began = time.process_time()
    found = estimates(model, X, y, how="exact")
    seconds, E = time.process_time() - began, found.columns
    if not E.size:
        return None
    own = effects_among(E, name, truth)
    low, high = found.intervals.T
    row = {
        "n_selected": E.size, "own": np.mean((low <= own) & (own <= high)),
        "width": np.median(high - low), "infinite": np.mean(np.isinf(high - low)),
        "signs": float(np.sum(np.sign(found.values) != np.sign(own)) <= found.wrong_signs),
        "wrong_signs": found.wrong_signs, "seconds": seconds,
    }  # fmt: skip
    if SETTINGS[name][3] == "squared":
        Z = np.column_stack([np.ones(len(y)), X[:, E]])
        b, squares = np.linalg.lstsq(Z, y, rcond=None)[:2]
        left = len(y) - Z.shape[1]
        errors = np.sqrt(np.diag(np.linalg.inv(Z.T @ Z)) * squares / left)[1:]
        far = np.abs(b[1:] - own) / errors
        row |= {"naive": np.mean(far <= student.isf(0.025, left)),
                "naive_width": 2 * student.isf(0.025, left) * np.median(errors)}  # fmt: skip
    return row


KINDS: dict[str, Any] = {
    "named": named, "selected": selected, "exact": exact, "subset": partial(exact, subset=True),
}  # fmt: skip


def run(kind: str, names: list[str], draws: int, seconds: float) -> None:
    """Write a row a draw until all are there, or the time is out: all settings in turns."""
    path = RESULTS / f"coverage_{kind}.csv"
    known = list(csv.DictReader(path.open())) if path.exists() else []
    done = {(row["setting"], int(row["seed"])) for row in known}
    ended = time.monotonic() + seconds
    for seed in range(draws):
        for name in names:
            if (name, seed) in done:
                continue
            if time.monotonic() > ended:
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = KINDS[kind](name, seed)
                except ValueError as error:
                    print(name, seed, error)
                    continue
            row = {"setting": name, "seed": seed, **(found or {})}
            row = {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in row.items()}
            if found is None:
                continue
            fresh = not path.exists()
            with path.open("a", newline="") as stream:
                writer = csv.DictWriter(stream, list(row))
                if fresh:
                    writer.writeheader()
                writer.writerow(row)


def summary() -> None:
    """Write the mean and its standard error over draws, of each setting and number."""
    rows = []
    for kind in KINDS:
        path = RESULTS / f"coverage_{kind}.csv"
        known = list(csv.DictReader(path.open())) if path.exists() else []
        for name in SETTINGS:
            mine = [row for row in known if row["setting"] == name]
            for key in list(mine[0])[2:] if mine else []:
                values = np.array([float(row[key]) for row in mine if row[key]])
                if not values.size:
                    continue
                error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
                rows.append([kind, name, key, f"{values.mean():.4g}", f"{error:.2g}", values.size])
    with (RESULTS / "coverage_summary.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [["kind", "setting", "number", "mean", "error", "draws"], *rows]
        )
    for row in rows:
        print(*row, sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*KINDS, "summary"])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=280.0)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    options = parser.parse_args()
    if options.kind == "summary":
        summary()
    else:
        squares = [name for name in options.settings if SETTINGS[name][3] == "squared"]
        names = squares if options.kind == "subset" else options.settings
        run(options.kind, names, options.draws, options.seconds)


if __name__ == "__main__":
    main()
