"""Whole paths of 50 levels: ours against adelie, celer and scikit-learn, by an independent gap.

Dense: 1000 x 100,000, AR(0.5) columns, 100 of them used; sparse: 20,000 x 500,000, 2 million
numbers, as words in texts; many in use: 8000 x 12,000 in bunches of 50, correlated by 0.6, of
which nearly 5000 columns are used at the end. Levels fall from the largest to ``ratio`` of it.
Every rival runs at several tolerances; ``worst_gap`` is the largest relative duality gap of every
seventh level, in NumPy, from coefficients alone. Two threads where a rival has them. The first
runs of a process, which load and compile, are not timed.

    python -m benchmarks.paths --out benchmarks/results
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn import paths
from atomlearn.datasets import make_correlated
from benchmarks.harness import Options, Table
from benchmarks.harness.options import add_options

Array = NDArray[np.float64]
THREADS, N_LEVELS, EVERY = 2, 50, 7


@dataclass(frozen=True, slots=True)
class Task:
    """min over w of sum_i loss_i + level |w|_1 at each of ``levels``; y is -1 or 1 if logistic."""

    name: str
    X: Any
    y: Array
    loss: str
    levels: Array

    @property
    def logistic(self) -> bool:
        """Whether the loss is logistic, else squared."""
        return self.loss == "logistic"

    def worst_gap(self, coefs: Any) -> float:
        """Return the largest relative duality gap of some levels; coefs (n_levels, p)."""
        chosen = range(0, self.levels.size, EVERY)
        rows = sparse.csr_array(coefs)
        return max(self._gap(rows[[k]].toarray().ravel(), self.levels[k]) for k in chosen)

    def _gap(self, w: Array, level: float) -> float:
        z, y = self.X @ w, self.y
        if self.logistic:
            loss, q = np.logaddexp(0.0, -y * z).sum(), 1.0 / (1.0 + np.exp(y * z))
            v = y * q
        else:
            v = y - z
            loss = 0.5 * v @ v
        shrink = min(1.0, level / np.abs(self.X.T @ v).max())
        if self.logistic:
            q = shrink * q
            dual = -(q * np.log(np.maximum(q, 1e-300)) + (1 - q) * np.log1p(-q)).sum()
        else:
            dual = 0.5 * y @ y - 0.5 * ((y - shrink * v) ** 2).sum()
        primal = loss + level * np.abs(w).sum()
        return float((primal - dual) / primal)


def task(name: str, X: Any, signal: Array, loss: str, ratio: float) -> Task:
    """Return the task of a design and a target before its noise."""
    rng = np.random.default_rng(1)
    if loss == "logistic":
        y = np.where(signal > np.median(signal), 1.0, -1.0)
    else:
        y = signal + rng.standard_normal(signal.size) * signal.std() / np.sqrt(3.0)
    largest = np.abs(X.T @ (0.5 * y if loss == "logistic" else y)).max()
    return Task(name, X, y, loss, np.geomspace(largest, ratio * largest, N_LEVELS))


def dense(n: int, p: int) -> tuple[Array, Array]:
    """Return X by columns and X w for 100 columns."""
    X = np.asfortranarray(make_correlated(n, p, rho=0.5, n_true=5, rng=0).X, dtype=np.float64)
    rng = np.random.default_rng(0)
    used = rng.choice(p, min(100, p // 20), replace=False)
    return X, X[:, used] @ rng.standard_normal(used.size)


def bunches(n: int, p: int) -> tuple[Array, Array]:
    """Return X by columns, correlated by 0.6 in bunches of 50, and X w for a tenth of them."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), order="F")
    for first in range(0, p, 50):
        common = np.sqrt(0.6) * rng.standard_normal((n, 1))
        X[:, first : first + 50] = common + np.sqrt(0.4) * rng.standard_normal((n, 50))
    used = rng.choice(p, p // 10, replace=False)
    return X, X[:, used] @ rng.standard_normal(used.size)


def words(n: int, p: int, size: int) -> tuple[Any, Array]:
    """Return rows of unit length, columns as frequent as words are, and X w for 100 of them."""
    rng = np.random.default_rng(0)
    often = (np.arange(p) + 50.0) ** -0.9
    cells = rng.integers(0, n, size), rng.choice(p, size, p=often / often.sum())
    X = sparse.csc_array((rng.uniform(0.5, 1.5, size), cells), shape=(n, p))
    X.sum_duplicates()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sparse.csc_matrix(sparse.diags_array(1.0 / np.maximum(lengths, 1e-9)) @ X)
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    used = rng.choice(min(5000, p), min(100, p // 20), replace=False)
    return X, X[:, used] @ rng.standard_normal(used.size)


def ours(problem: Task, tolerance: float) -> tuple[Any, float]:
    """atomlearn: coefficients and readings of the data."""
    found = paths.path(
        problem.X,
        problem.y,
        loss=problem.loss,
        alphas=problem.levels / problem.y.size,
        tol=tolerance,
        fit_intercept=False,
    )
    # The gap needs every seventh level only.
    coefs = sparse.lil_array((problem.levels.size, problem.X.shape[1]))
    for k in range(0, problem.levels.size, EVERY):
        coefs[k, found.results[k].columns] = found.results[k].weights
    return coefs, found.passes


def adelie(problem: Task, tolerance: float) -> tuple[Any, float]:
    """adelie: coefficients; it does not count passes."""
    import adelie as ad

    kind = ad.matrix.sparse if sparse.issparse(problem.X) else ad.matrix.dense
    y = problem.y
    state = ad.grpnet(
        kind(problem.X, method="naive", n_threads=THREADS),
        ad.glm.binomial((y + 1.0) / 2.0) if problem.logistic else ad.glm.gaussian(y),
        penalty=np.ones(problem.X.shape[1]), lmda_path=problem.levels / y.size, tol=tolerance,
        intercept=False, early_exit=False, progress_bar=False, n_threads=THREADS,
    )  # fmt: skip
    return state.betas, float("nan")


def celer(problem: Task, tolerance: float) -> tuple[Any, float]:
    """celer's path, for (1 / n) times the squared loss, and the logistic loss itself."""
    from celer import celer_path

    scale = 1.0 if problem.logistic else problem.y.size
    kind = "logreg" if problem.logistic else "lasso"
    found = celer_path(problem.X, problem.y, kind, alphas=problem.levels / scale, tol=tolerance)
    return np.asarray(found[1]).T, float("nan")


def scikit(problem: Task, tolerance: float) -> tuple[Any, float]:
    """scikit-learn's path."""
    from sklearn.linear_model import lasso_path

    found = lasso_path(
        problem.X, problem.y, alphas=problem.levels / problem.y.size, tol=tolerance,
        max_iter=100_000,
    )  # fmt: skip
    return np.asarray(found[1]).T, float("nan")


def skglm(problem: Task, tolerance: float) -> tuple[Any, float]:
    """skglm, which has no path of its own for both losses: each level from the one before."""
    import skglm

    made = skglm.SparseLogisticRegression if problem.logistic else skglm.Lasso
    model = made(tol=tolerance, fit_intercept=False, warm_start=True)
    coefs = []
    for alpha in problem.levels / problem.y.size:
        model.set_params(alpha=alpha).fit(problem.X, problem.y)
        coefs.append(sparse.csr_array(np.atleast_2d(model.coef_)))
    return sparse.vstack(coefs), float("nan")


Rival = Callable[[Task, float], tuple[Any, float]]
LASSO: list[tuple[str, Rival, tuple[float, ...]]] = [
    ("atomlearn", ours, (1e-3, 1e-6)),
    ("adelie", adelie, (1e-9, 1e-10, 1e-11)),
    ("celer", celer, (1e-3,)),
    ("skglm", skglm, (1e-4, 1e-6)),
    ("scikit-learn", scikit, (1e-3,)),
]
LOGISTIC: list[tuple[str, Rival, tuple[float, ...]]] = [
    ("atomlearn", ours, (1e-3, 1e-6)),
    ("adelie", adelie, (1e-9, 1e-10, 1e-11)),
    ("celer", celer, (1e-3,)),
    ("skglm", skglm, (1e-4, 1e-6)),
]


def tasks(options: Options, only: str = "") -> list[Task]:
    """Return the four paths, or those whose name begins so; small ones for a smoke run."""
    found = []
    if "lasso, dense".startswith(only) or "l1-logistic, dense".startswith(only):
        X, signal = dense(80, 500) if options.smoke else dense(1000, 100_000)
        found += [("lasso, dense", X, signal, 0.01), ("l1-logistic, dense", X, signal, 0.05)]
    if "lasso, sparse".startswith(only) or "l1-logistic, sparse".startswith(only):
        W, spoken = words(400, 2000, 8000) if options.smoke else words(20_000, 500_000, 2_000_000)
        found += [("lasso, sparse", W, spoken, 0.01), ("l1-logistic, sparse", W, spoken, 0.02)]
    if "lasso, many in use".startswith(only):
        B, mixed = bunches(80, 500) if options.smoke else bunches(8000, 12_000)
        found.append(("lasso, many in use", B, mixed, 0.02))
    return [
        task(name, data, clean, "logistic" if "logistic" in name else "squared", ratio)
        for name, data, clean, ratio in found
        if name.startswith(only)
    ]


def warm_up(rival: Rival, loss: str) -> None:
    """Run a small path, so that nothing is loaded or compiled in the one that is timed."""
    X, signal = dense(50, 200)
    rival(task("small", X, signal, loss, 0.5), 1e-4)


def main() -> None:
    """Run every rival at every tolerance, and keep accuracy against time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="paths whose name begins so")
    parser.add_argument("--solvers", nargs="+", help="rivals by name (default: all)")
    add_options(parser)
    given = parser.parse_args()
    options = Options(given.smoke, given.repeats, given.out)
    with Table("paths", options) as table:
        for problem in tasks(options, given.only):
            for name, rival, tolerances in LOGISTIC if problem.logistic else LASSO:
                if given.solvers and name not in given.solvers:
                    continue
                row: dict[str, Any] = {"path": problem.name, "solver": name}
                try:
                    warm_up(rival, problem.loss)
                except ImportError as missing:
                    table.add(**row, tolerance=tolerances[0], missing=str(missing))
                    continue
                for tolerance in tolerances:
                    runs = []
                    for _ in range(options.times(3)):
                        seconds, processor = time.perf_counter(), time.process_time()
                        coefs, passes = rival(problem, tolerance)
                        runs.append(
                            (time.perf_counter() - seconds, time.process_time() - processor)
                        )
                    seconds, processor = np.median(runs, axis=0)
                    table.add(
                        **row, tolerance=tolerance, seconds=seconds, processor_s=processor,
                        worst_gap=problem.worst_gap(coefs), passes=passes,
                    )  # fmt: skip


if __name__ == "__main__":
    main()
