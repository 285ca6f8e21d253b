"""False discovery proportion and power of knockoffs and of stability selection.

    python benchmarks/findings/error_control.py --repetitions 10 --out benchmarks/results/fdr.csv

Columns are autoregressive (AR 0, 0.5, 0.8, in random order) or have five factors; 50 of them
matter, with effects of random sign. Rivals (knockpy, hidimstat) run where they are installed, on
the same data. Seconds are wall time.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit

from atomlearn import AtomicRegressor, KnockoffSelector, StabilitySelector

N_TRUE, FDR = 50, 0.1


def columns(n: int, p: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "factors":
        X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, p)) + rng.standard_normal((n, p))
        return X / np.sqrt(6)
    rho = float(kind)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X[:, rng.permutation(p)]


def data(n: int, p: int, kind: str, loss: str, size: float, seed: int):
    rng = np.random.default_rng([seed, 11])
    X = columns(n, p, kind, rng)
    true = rng.choice(p, N_TRUE, replace=False)
    weights = np.zeros(p)
    weights[true] = size * rng.choice([-1.0, 1.0], N_TRUE)
    score = X @ weights
    if loss == "logistic":
        return X, (rng.random(n) < expit(score)).astype(int), weights != 0
    return X, score + rng.standard_normal(n), weights != 0


def ours(**given):
    def run(X, y, seed):
        return KnockoffSelector(fdr=FDR, rng=seed, **given).fit(X, y).get_support()

    return run


def stability(X, y, seed):
    largest = float(np.abs((y - y.mean()) @ (X - X.mean(axis=0))).max()) / len(y)
    levels = largest * np.geomspace(0.9, 0.15, 10)
    most = int(np.sqrt(0.5 * X.shape[1]))
    model = StabilitySelector(
        AtomicRegressor(tol=1e-3), 50, 0.75, seed, alphas=levels, max_features=most
    )
    return model.fit(X, y).get_support()


def knockpy(X, y, seed):
    from knockpy.knockoff_filter import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002  it has no generator of its own
    found = KnockoffFilter(fstat="lasso", ksampler="gaussian").forward(X=X, y=y, fdr=FDR)
    return np.asarray(found) > 0


def hidimstat(X, y, seed):
    from hidimstat import ModelXKnockoff
    from hidimstat.knockoffs import GaussianKnockoffs  # noqa: F401

    model = ModelXKnockoff(random_state=seed)
    model.fit_importance(X, y)
    return np.asarray(model.fdr_selection(FDR)) > 0


METHODS = {
    "default": ours(),
    "ledoit_wolf": ours(covariance="ledoit_wolf"),
    "e_values": ours(n_draws=10),
    "stability": stability,
    "knockpy": knockpy,
    "hidimstat": hidimstat,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--columns", type=int, nargs="*", default=[1000, 3000, 5000])
    parser.add_argument("--kinds", nargs="*", default=["0", "0.5", "0.8", "factors"])
    parser.add_argument("--losses", nargs="*", default=["squared", "logistic"])
    parser.add_argument("--methods", nargs="*", default=["default", "ledoit_wolf", "e_values"])
    parser.add_argument("--size", type=float, default=0.35, help="of each effect")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--out", default="benchmarks/results/fdr.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began, rows = time.perf_counter(), []
    header = ["rows", "columns", "kind", "loss", "method", "repetitions", "fdp", "fdp_error",
              "power", "seconds"]  # fmt: skip
    cells = [
        (p, k, loss) for p in options.columns for k in options.kinds for loss in options.losses
    ]
    for p, kind, loss in cells:
        for name in options.methods:
            shares, power, seconds = [], [], []
            for seed in range(options.repetitions):
                if time.perf_counter() - began > options.seconds:
                    break
                X, y, true = data(options.rows, p, kind, loss, options.size, seed)
                start = time.perf_counter()
                chosen = METHODS[name](X, y, seed)
                seconds.append(time.perf_counter() - start)
                shares.append((chosen & ~true).sum() / max(1, chosen.sum()))
                power.append(chosen[true].mean())
            if not shares:
                continue
            error = np.std(shares) / np.sqrt(len(shares))
            rows.append([options.rows, p, kind, loss, name, len(shares), np.mean(shares), error,
                         np.mean(power), np.median(seconds)])  # fmt: skip
            print(" ".join(f"{v:.3f}" if isinstance(v, float) else str(v) for v in rows[-1]),
                  flush=True)  # fmt: skip
        with Path(options.out).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
