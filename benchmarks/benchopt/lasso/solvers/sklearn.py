"""Coordinate descent of scikit-learn."""

import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso


class Solver(BaseSolver):
    """To a tolerance on the duality gap divided by ||y||^2."""

    name = "scikit-learn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y = X, y
        self.model = Lasso(lmbd / len(y), fit_intercept=fit_intercept, max_iter=100_000)

    def run(self, tolerance):
        self.model.set_params(tol=max(min(tolerance, 0.9), 1e-14))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_}
