"""The objective of benchopt's benchmark_logreg_l1: sum log(1 + exp(-y X w)) + lambda ||w||_1."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """l1-logistic regression without an intercept, at a share of the largest useful lambda."""

    name = "L1 logistic regression"
    min_benchopt_version = "1.6"
    parameters = {"reg": [0.1, 0.03]}

    def set_data(self, X, y):
        self.X, self.y = X, np.sign(y) + (y == 0)
        self.lmbd = self.reg * 0.5 * float(np.abs(X.T @ self.y).max())

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        margin = self.y * (self.X @ beta)
        value = np.logaddexp(0.0, -margin).sum() + self.lmbd * np.abs(beta).sum()
        share = 0.5 - 0.5 * np.tanh(0.5 * margin)  # 1 / (1 + exp(margin))
        largest = float(np.abs(self.X.T @ (share * self.y)).max())
        share = np.clip(share * min(1.0, self.lmbd / max(largest, 1e-300)), 1e-300, 1 - 1e-16)
        bound = -(share * np.log(share) + (1 - share) * np.log1p(-share)).sum()
        return {
            "value": value,
            "relative_gap": (value - bound) / value,
            "n_selected": int(np.count_nonzero(beta)),
        }

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd}
