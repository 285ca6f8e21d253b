"""The objective of benchopt's benchmark_lasso_path: the lasso at a grid of lambdas."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """The worst relative gap along the grid is what is compared."""

    name = "Lasso path"
    min_benchopt_version = "1.6"
    parameters = {"n_lambda": [50], "reg_min": [0.01]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lambdas = float(np.abs(X.T @ y).max()) * np.geomspace(1, self.reg_min, self.n_lambda)

    def get_one_result(self):
        return {"betas": np.zeros((self.X.shape[1], self.n_lambda))}

    def evaluate_result(self, betas):
        residuals = self.y[:, None] - self.X @ betas
        values = 0.5 * (residuals**2).sum(0) + self.lambdas * np.abs(betas).sum(0)
        largest = np.abs(self.X.T @ residuals).max(0)
        duals = residuals * np.minimum(1.0, self.lambdas / np.maximum(largest, 1e-300))
        bounds = 0.5 * self.y @ self.y - 0.5 * ((self.y[:, None] - duals) ** 2).sum(0)
        gaps = (values - bounds) / values
        return {"value": float(gaps.max()), "median_gap": float(np.median(gaps))}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lambdas": self.lambdas}
