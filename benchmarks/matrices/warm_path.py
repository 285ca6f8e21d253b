"""Passes of a path under the trace norm, each level started from the one before.

    python benchmarks/matrices/warm_path.py                       # this tree
    PYTHONPATH=/other/tree/src:tests/path_first python benchmarks/matrices/warm_path.py

Multi-task problems Y = X W + noise with W of low rank: n samples, p features, 20 tasks. One line
a problem: passes and seconds of the whole path, and of the same levels each started at zero.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import atomlearn
from atomlearn import solve
from atomlearn.designs import Tasks
from atomlearn.norms import TraceNorm
from atomlearn.paths import path

#: n_samples, n_features, n_tasks, rank, n_levels, loss.
PROBLEMS = (
    (200, 100, 20, 3, 10, "squared"),
    (200, 300, 20, 5, 20, "squared"),
    (500, 200, 20, 5, 20, "squared"),
    (500, 400, 20, 10, 15, "squared"),
    (300, 100, 20, 3, 10, "logistic"),
)


def problem(n: int, p: int, q: int, rank: int, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Return X (n, p) and Y (n, q), with columns of X that are correlated, and noise."""
    rng = np.random.default_rng(n + p + q + rank)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    W = rng.normal(size=(p, rank)) @ rng.normal(size=(rank, q)) / np.sqrt(p)
    Y = X @ W
    Y += 0.5 * Y.std() * rng.normal(size=Y.shape)
    return X, np.sign(Y) if loss == "logistic" else Y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gap", type=float, default=1e-6)
    arguments = parser.parse_args()
    print(atomlearn.__file__)
    totals = np.zeros(2)
    for n, p, q, rank, n_levels, loss in PROBLEMS:
        X, Y = problem(n, p, q, rank, loss)
        design, y = Tasks(X, q), Y.reshape(-1)
        settings = {"loss": loss, "norm": TraceNorm(), "tol": arguments.gap}
        settings["fit_intercept"] = False
        began = time.process_time()
        found = path(design, y, n_alphas=n_levels, alpha_ratio=1e-2, **settings)
        seconds = time.process_time() - began
        cold = [solve(design, y, alpha=alpha, **settings) for alpha in found.alphas]
        passes = found.passes, sum(fit.passes for fit in cold)
        totals += passes
        agree = np.allclose([fit.objective for fit in cold], found.objectives, rtol=1e-5)
        print(
            f"n={n} p={p} tasks={q} levels={n_levels} {loss}: {passes[0]:.0f} passes "
            f"({seconds:.2f} s of CPU) along the path, {passes[1]:.0f} from zero; "
            f"converged {found.converged}, objectives agree {agree}"
        )
    print(f"total: {totals[0]:.0f} along the path, {totals[1]:.0f} from zero")


if __name__ == "__main__":
    main()
