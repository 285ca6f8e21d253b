"""LIBLINEAR, through scikit-learn."""

import warnings

from benchopt import BaseSolver
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    """Newton on coordinates (Yuan, Ho, Lin 2012), to a tolerance on the gradient."""

    name = "liblinear"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd):
        self.X, self.y = X, y
        self.model = LogisticRegression(
            C=1.0 / lmbd, penalty="l1", solver="liblinear", fit_intercept=False, max_iter=10_000
        )

    def run(self, tolerance):
        self.model.set_params(tol=max(min(tolerance, 0.9), 1e-10))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
