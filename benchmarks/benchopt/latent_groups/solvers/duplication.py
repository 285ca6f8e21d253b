"""The group lasso over duplicated columns, as packages without overlaps need it."""

import numpy as np
from benchopt import BaseSolver

from atomlearn import norms, solve, solvers


class Solver(BaseSolver):
    """Each run of 8 columns gets columns of its own; FISTA over all of them."""

    name = "duplicated columns, FISTA"
    sampling_strategy = "iteration"

    def set_objective(self, X, y, lmbd, norm):
        runs = np.arange(X.shape[1] - 7)[:, None] + np.arange(8)
        self.runs, self.p, self.y, self.lmbd = runs, X.shape[1], y, lmbd
        self.X = np.asfortranarray(X[:, runs.ravel()])
        self.norm = norms.Groups(np.repeat(np.arange(len(runs)), 8))

    def run(self, n_iter):
        self.result = solve(
            self.X, self.y, norm=self.norm, alpha=self.lmbd / len(self.y), fit_intercept=False,
            tol=1e-12,
            max_iter=max(n_iter, 1), solver=solvers.FISTA(iterations=1),
        )  # fmt: skip

    def get_result(self):
        return {"beta": np.bincount(self.runs.ravel(), self.result.coef, self.p)}
