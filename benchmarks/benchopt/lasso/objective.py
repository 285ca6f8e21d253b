"""The objective of benchopt's benchmark_lasso: 1/2 ||y - X w||^2 + lambda ||w||_1."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """The lasso at a share of the largest useful lambda, evaluated apart from every solver."""

    name = "Lasso"
    min_benchopt_version = "1.6"
    parameters = {"reg": [0.1, 0.01], "fit_intercept": [False]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lmbd = self.reg * float(np.abs(X.T @ y).max())

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        residual = self.y - self.X @ beta
        value = 0.5 * residual @ residual + self.lmbd * np.abs(beta).sum()
        scores = self.X.T @ residual
        dual = residual * min(1.0, self.lmbd / max(float(np.abs(scores).max()), 1e-300))
        bound = 0.5 * self.y @ self.y - 0.5 * (self.y - dual) @ (self.y - dual)
        return {
            "value": value,
            "relative_gap": (value - bound) / value,
            "n_selected": int(np.count_nonzero(beta)),
        }

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "fit_intercept": self.fit_intercept}
