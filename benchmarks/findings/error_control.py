"""False discovery proportion and power of knockoffs and of stability selection.

    python benchmarks/findings/error_control.py --repetitions 200 --seconds 3600
    python benchmarks/findings/error_control.py --methods known knockpy_known --kinds 0.5 ...

Columns are autoregressive (AR 0, 0.5, 0.8, in random order) or have five factors; 50 of them
matter, with effects of random sign. Runs are appended to ``fdr_runs.csv`` one by one, all settings
evenly, and a run that is there is not repeated: stop it and go on at any time. ``fdr.csv`` is the
summary. Rivals (knockpy, hidimstat) run where they are installed, on the same data; seconds are of
the processor, of one thread where ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from scipy.special import expit

from atomlearn import AtomicRegressor, KnockoffSelector, StabilitySelector

N_TRUE, FDR = 50, 0.1
#: Data set 7 has the seeds 7, 1007, 2007, ...: the same data, other knockoffs.
DRAWS = 1000
#: Effects by loss, so that power is neither 0 nor 1 in most settings; twice that with factors,
#: where a sixth of a column's variance is its own.
SIZES = {"squared": 0.35, "logistic": 0.7}
RUN = ["rows", "columns", "kind", "loss", "method", "seed", "fdp", "power", "seconds"]
SUMMARY = [*RUN[:5], "repetitions", "fdp", "fdp_error", "power", "seconds"]


class Data:
    """X, y, which columns matter, and the covariance they were drawn with."""

    def __init__(self, n: int, p: int, kind: str, loss: str, seed: int) -> None:
        rng = np.random.default_rng([seed, 11])
        self.loadings = self.order = None
        self.kind, self.p = kind, p
        X = rng.standard_normal((n, 5)) if kind == "factors" else rng.standard_normal((n, p))
        if kind == "factors":
            self.loadings = rng.standard_normal((5, p))
            X = (X @ self.loadings + rng.standard_normal((n, p))) / np.sqrt(6)
        else:
            rho = float(kind)
            rows = np.ascontiguousarray(X.T)
            for j in range(1, p):
                rows[j] = rho * rows[j - 1] + np.sqrt(1 - rho**2) * rows[j]
            self.order = rng.permutation(p)
            X = np.ascontiguousarray(rows[self.order].T)
        self.X, self.true = X, np.zeros(p, dtype=bool)
        self.true[rng.choice(p, N_TRUE, replace=False)] = True
        size = SIZES[loss] * (2.0 if kind == "factors" else 1.0)
        score = X[:, self.true] @ (size * rng.choice([-1.0, 1.0], N_TRUE))
        if loss == "logistic":
            self.y = (rng.random(n) < expit(score)).astype(int)
        else:
            self.y = score + rng.standard_normal(n)

    @cached_property
    def covariance(self) -> np.ndarray:
        if self.loadings is not None:
            return (self.loadings.T @ self.loadings + np.eye(self.p)) / 6
        return float(self.kind) ** np.abs(np.subtract.outer(self.order, self.order))


def ours(data: Data, seed: int, known: bool = False, **given) -> np.ndarray:
    if known:
        given["covariance"] = data.covariance
    return KnockoffSelector(fdr=FDR, random_state=seed, **given).fit(data.X, data.y).get_support()


def stability(data: Data, seed: int) -> np.ndarray:
    X, y = data.X, data.y
    largest = float(np.abs((y - y.mean()) @ (X - X.mean(axis=0))).max()) / len(y)
    levels = largest * np.geomspace(0.9, 0.15, 10)
    most = int(np.sqrt(0.5 * X.shape[1]))
    model = StabilitySelector(
        AtomicRegressor(tol=1e-3), 50, 0.75, seed, alphas=levels, n_features=most
    )
    return model.fit(X, y).get_support()


def knockpy(data: Data, seed: int, known: bool = False) -> np.ndarray:
    from knockpy.knockoff_filter import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002  it has no generator of its own
    given = {"Sigma": data.covariance, "mu": np.zeros(data.p)} if known else {}
    made = KnockoffFilter(fstat="lasso", ksampler="gaussian")
    found = made.forward(X=data.X, y=data.y, fdr=FDR, **given)
    return np.asarray(found) > 0


class Known:
    """A covariance that is known, for those who ask for an estimator."""

    def __init__(self, covariance: np.ndarray) -> None:
        self.covariance_ = covariance
        self.n_features_in_ = len(covariance)

    def fit(self, X: np.ndarray) -> Known:
        return self

    def __sklearn_clone__(self) -> Known:
        return self


def hidimstat(data: Data, seed: int, known: bool = False, sane: bool = True) -> np.ndarray:
    from hidimstat import ModelXKnockoff
    from hidimstat.samplers import GaussianKnockoffs
    from sklearn.linear_model import LassoCV

    given = {}
    if known:
        given["ko_generator"] = GaussianKnockoffs(Known(data.covariance))
    if sane:  # its own grid begins at max(X'y) / (2 p), where / n is meant
        levels = {"n_alphas": 20} if "n_alphas" in LassoCV().get_params() else {"alphas": 20}
        given["estimator"] = LassoCV(eps=0.02, cv=5, tol=1e-4, **levels)
        given["preconfigure_lasso_path"] = False
    model = ModelXKnockoff(random_state=seed, **given)
    model.fit_importance(data.X, data.y)
    return np.asarray(model.fdr_selection(FDR)) > 0


METHODS = {
    "default": ours,
    "e_values": partial(ours, n_draws=10),
    "ledoit_wolf": partial(ours, covariance="ledoit_wolf"),
    "known": partial(ours, known=True),
    "stability": stability,
    "knockpy": knockpy,
    "knockpy_known": partial(knockpy, known=True),
    "hidimstat": partial(hidimstat, sane=False),
    "hidimstat_sane": hidimstat,
    "hidimstat_known": partial(hidimstat, known=True),
}


def run(setting: list[str], out: Path) -> None:
    n, p, kind, loss, method, seed = setting
    data = Data(int(n), int(p), kind, loss, int(seed) % DRAWS)
    if "known" in method:
        _ = data.covariance  # given to all, so that nobody's seconds count it
    start = time.process_time()
    chosen = METHODS[method](data, int(seed))
    seconds = time.process_time() - start
    share = (chosen & ~data.true).sum() / max(1, chosen.sum())
    row = [*setting, f"{share:.4f}", f"{chosen[data.true].mean():.3f}", f"{seconds:.3f}"]
    with out.open("a", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerow(row)
    print(*row, flush=True)


def read(out: Path) -> list[list[str]]:
    if not out.exists():
        out.write_text(",".join(RUN) + "\n", encoding="utf-8")
    with out.open(encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


def summarize(runs: Path, out: Path) -> None:
    cells = defaultdict(list)
    for row in read(runs):
        cells[tuple(row[:5])].append([float(value) for value in row[6:]])
    with out.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(SUMMARY)
        for key, values in sorted(cells.items()):
            fdp, power, seconds = np.array(values).T
            error = fdp.std(ddof=1) / np.sqrt(fdp.size) if fdp.size > 1 else float("nan")
            numbers = fdp.mean(), error, power.mean(), np.nanmedian(seconds)
            writer.writerow([*key, fdp.size, *(f"{number:.3f}" for number in numbers)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--draws", type=int, default=1, help="of knockoffs a data set")
    parser.add_argument("--rows", type=int, nargs="*", default=[500, 1000])
    parser.add_argument("--columns", type=int, nargs="*", default=[1000, 3000, 5000])
    parser.add_argument("--kinds", nargs="*", default=["0", "0.5", "0.8", "factors"])
    parser.add_argument("--losses", nargs="*", default=["squared", "logistic"])
    parser.add_argument("--methods", nargs="*", default=["default", "e_values"])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs, began = options.out / "fdr_runs.csv", time.perf_counter()
    done = {tuple(row[:6]) for row in read(runs)}
    cells = [
        (n, p, kind, loss, method)
        for n in options.rows for p in options.columns for kind in options.kinds
        for loss in options.losses for method in options.methods
    ]  # fmt: skip
    every = range(options.repetitions)
    for seed in [DRAWS * draw + data for draw in range(options.draws) for data in every]:
        for cell in cells:
            setting = [str(value) for value in (*cell, seed)]
            if tuple(setting) in done:
                continue
            if time.perf_counter() - began > options.seconds:
                break
            run(setting, runs)
    summarize(runs, options.out / "fdr.csv")


if __name__ == "__main__":
    main()
