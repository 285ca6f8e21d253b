"""The group lasso: 1/2 ||y - X w||^2 + lambda sum_g ||w_g||."""

import numpy as np
from benchopt import BaseObjective

from atomlearn import norms


class Objective(BaseObjective):
    """Loss and norm are evaluated apart from the solvers; the best value found is the reference."""

    name = "Group lasso"
    min_benchopt_version = "1.6"
    parameters = {"reg": [0.3, 0.1]}

    def set_data(self, X, y, groups):
        self.X, self.y, self.groups = X, y, groups
        self.norm = norms.Groups(groups).on(X.shape[1])
        scores = X.T @ y
        self.lmbd = self.reg * float(self.norm.polar(scores))

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        residual = self.y - self.X @ beta
        return {
            "value": 0.5 * residual @ residual + self.lmbd * float(self.norm.value(beta)),
            "n_selected": int(np.count_nonzero(beta)),
        }

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "norm": self.norm}
