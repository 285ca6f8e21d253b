"""A path of atomlearn, every level certified."""

import numpy as np
from benchopt import BaseSolver

from atomlearn import paths


class Solver(BaseSolver):
    """`paths.path` at these levels."""

    name = "atomlearn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lambdas):
        self.X, self.y, self.lambdas = X, y, lambdas

    def run(self, tolerance):
        gap = max(min(tolerance, 0.9), 1e-12)
        self.path = paths.path(
            self.X, self.y, alphas=self.lambdas / len(self.y), tol=gap, fit_intercept=False
        )

    def get_result(self):
        betas = np.zeros((self.X.shape[1], len(self.lambdas)))
        betas[self.path.columns] = self.path.coefs.T
        return {"betas": betas}
