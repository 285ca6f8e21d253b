"""All products of two columns and the columns: 1/2 ||y - Z w||^2 + lambda ||w||_1."""

import numpy as np
from benchopt import BaseObjective

from atomlearn import designs, norms, paths
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer


class Objective(BaseObjective):
    """Solvers return columns of `designs.Polynomial` and their weights."""

    name = "Interactions"
    min_benchopt_version = "1.6"
    parameters = {"reg": [0.3]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.design = designs.Polynomial(X, interaction_only=True)
        penalty = Regularizer(norms.L1(), "penalized", 1.0)
        problem = Problem.build(self.design, y, as_loss("squared"), penalty)
        self.lmbd = self.reg * paths.largest_useful_alpha(problem)

    def get_one_result(self):
        return {"columns": np.zeros(0, np.int64), "weights": np.zeros(0)}

    def evaluate_result(self, columns, weights):
        residual = self.y - self.design.gather(columns).predict(weights)
        return {
            "value": 0.5 * residual @ residual + self.lmbd * np.abs(weights).sum(),
            "n_selected": len(columns),
        }

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "design": self.design}
