"""Beside others at the same problem and gap: l0bnb, El0ps (a price for each column), OKRidge (k).

All minimize 1/2 ||y - Xw||^2 with a ridge, as we do; l0bnb needs a bound on coefficients too, here
1.5 times the largest true one. Data as in ``figures``. Each gets the same seconds and one thread; a
gap that is not closed is told. abess proves nothing: the objective is of its subset, re-fitted.

    PYTHONPATH=folder-of-peers python -m benchmarks.subsets.rivals --seconds 60 [--hard]
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.subsets.figures import drawn
from tests.oracles.subset_sums import subset_sum

#: n, p, k, correlation, ridge
PROBLEMS = (
    (500, 1000, 10, 0.1, 0.1),
    (500, 1000, 10, 0.5, 0.03),
    (1000, 10_000, 10, 0.1, 0.1),
    (1000, 10_000, 10, 0.5, 0.1),
    (1000, 10_000, 10, 0.5, 0.03),
)
#: Those with a weak ridge, which none of them closes in a minute.
HARD = (
    (1000, 10_000, 10, 0.1, 0.01),
    (1000, 10_000, 10, 0.5, 0.01),
    (1000, 10_000, 10, 0.9, 0.01),
    (1000, 10_000, 10, 0.9, 0.03),
)
GAP = 1e-3


def ours(X: Any, y: Any, seconds: float, **given: Any) -> dict[str, Any]:
    """Return objective, gap and seconds of ours."""
    result = subset_sum(X, y, tol=GAP, time_limit=seconds, **given)
    return {"objective": result.objective, "gap": result.gap, "seconds": result.seconds}


def l0bnb(X: Any, y: Any, seconds: float, penalty: float, ridge: float) -> dict[str, Any]:
    """Return those of l0bnb, which takes ridge/2 as its l2."""
    vars(np)["Inf"] = np.inf  # its name before NumPy 2
    from l0bnb import BNBTree

    tree = BNBTree(X, y)
    began = time.perf_counter()
    found = tree.solve(penalty, 0.5 * ridge, 1.5, gap_tol=GAP, time_limit=seconds)
    return {"objective": found.cost, "gap": found.gap, "seconds": time.perf_counter() - began}


def abess(X: Any, y: Any, k: int, ridge: float) -> dict[str, Any]:
    """Return the objective of the subset of abess, re-fitted; it has no gap."""
    from abess import LinearRegression

    began = time.perf_counter()
    model = LinearRegression(support_size=k, fit_intercept=False).fit(X, y)
    seconds = time.perf_counter() - began
    chosen = X[:, np.flatnonzero(model.coef_)]
    found = subset_sum(chosen, y, n_features=k, ridge=ridge)
    return {"objective": found.objective, "gap": np.nan, "seconds": seconds}


def el0ps(X: Any, y: Any, seconds: float, penalty: float, ridge: float) -> dict[str, Any]:
    """Return those of El0ps, compiled before the clock is started; its gap is its bounds'."""
    import pybnb
    from el0ps.datafit import Leastsquares
    from el0ps.penalty import L2norm
    from el0ps.solver import BnbSolver

    told: list[Any] = []

    class Kept(BnbSolver):
        def package_results(self, problem: Any, results: Any) -> Any:
            told.append(results)
            return super().package_results(problem, results)

    whole = pybnb.Solver
    pybnb.Solver = lambda: whole(comm=None)  # without MPI
    for rows, limit in ((20, 60.0), (y.size, seconds)):
        began = time.perf_counter()
        solver = Kept(relative_gap=GAP, time_limit=limit)
        solver.solve(Leastsquares(y[:rows].copy()), L2norm(0.5 * ridge), X[:rows], penalty)
    pybnb.Solver = whole
    found, spent = told[-1], time.perf_counter() - began
    gap = (found.objective - found.bound) / found.objective
    return {"objective": found.objective, "gap": gap, "seconds": spent}


def okridge(X: Any, y: Any, seconds: float, k: int, ridge: float) -> dict[str, Any]:
    """Return those of OKRidge, whose loss is ||y - Xw||^2 and whose ridge is not halved."""
    from okridge.tree import BNBTree

    if X.shape[1] > 5000:
        raise MemoryError("it holds X'X and its eigenvalues, which took minutes before it began")
    tree = BNBTree(X=X, y=y, lambda2=ridge, gap_tol=GAP)
    tree.data.rho_ADMM_is_finetuned = True  # its version 0.1.1 calls a method that it lacks
    began = time.perf_counter()
    upper, _, gap, *_ = tree.solve(k=k, gap_tol=GAP, verbose=False, time_limit=seconds)
    # Its loss leaves out y'y.
    objective = 0.5 * (float(upper) + float(y @ y))
    return {"objective": objective, "gap": float(gap), "seconds": time.perf_counter() - began}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--hard", action="store_true", help="the problems with a weak ridge")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for n, p, k, correlation, ridge in HARD if given.hard else PROBLEMS:
        X, y, _ = drawn("squared", n, p, k, correlation)
        first = subset_sum(X, y, n_features=k, ridge=ridge, max_nodes=0)
        # A price at which the best set has about k columns: half of what its weakest one brings.
        fewer = subset_sum(X, y, n_features=k - 1, ridge=ridge, max_nodes=0)
        price = 0.5 * (fewer.objective - first.objective)
        seconds = given.seconds
        priced = {"n_features": 2 * k, "ridge": ridge, "price": price}
        runs: dict[str, Callable[[], dict[str, Any]]] = {
            "ours, k": partial(ours, X, y, seconds, n_features=k, ridge=ridge),
            "abess, k": partial(abess, X, y, k, ridge),
            "OKRidge, k": partial(okridge, X, y, seconds, k, ridge),
            "ours, price": partial(ours, X, y, seconds, **priced),
            "l0bnb, price": partial(l0bnb, X, y, seconds, price, ridge),
            "El0ps, price": partial(el0ps, X, y, seconds, price, ridge),
        }
        for name, run in runs.items():
            row: dict[str, Any] = {"n": n, "p": p, "k": k, "correlation": correlation}
            row |= {"ridge": ridge, "method": name}
            try:
                row |= {key: f"{value:.6g}" for key, value in run().items()}
            except Exception as error:  # a rival that breaks is told as such
                row |= {
                    "objective": f"{type(error).__name__}: {error}"[:80],
                    "gap": "",
                    "seconds": "",
                }
            rows.append(row)
            print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    if given.out:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
