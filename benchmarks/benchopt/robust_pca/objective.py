"""1/2 ||Y - L - S||^2 + lambda (||L||_* + ratio ||S||_1), Candes et al. 2011 with noise."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Solvers return both parts."""

    name = "Sparse plus low rank"
    min_benchopt_version = "1.6"
    parameters = {"reg": [0.02]}

    def set_data(self, Y):
        self.Y, self.ratio = Y, 1.0 / np.sqrt(max(Y.shape))
        largest = max(np.linalg.norm(Y, 2), np.abs(Y).max() / self.ratio)
        self.lmbd = self.reg * float(largest)

    def get_one_result(self):
        return {"L": np.zeros_like(self.Y), "S": np.zeros_like(self.Y)}

    def evaluate_result(self, L, S):
        penalty = np.linalg.norm(L, "nuc") + self.ratio * np.abs(S).sum()
        value = 0.5 * ((self.Y - L - S) ** 2).sum() + self.lmbd * penalty
        return {"value": float(value), "n_selected": int(np.count_nonzero(S))}

    def get_objective(self):
        return {"Y": self.Y, "lmbd": self.lmbd, "ratio": self.ratio}
