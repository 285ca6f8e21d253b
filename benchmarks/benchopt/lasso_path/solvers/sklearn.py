"""lasso_path of scikit-learn."""

import warnings

from benchopt import BaseSolver
from sklearn.linear_model import lasso_path


class Solver(BaseSolver):
    """Coordinate descent, warm-started."""

    name = "scikit-learn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lambdas):
        self.X, self.y, self.alphas = X, y, lambdas / len(y)

    def run(self, tolerance):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, self.betas, _ = lasso_path(
                self.X, self.y, alphas=self.alphas, tol=max(min(tolerance, 0.9), 1e-14)
            )

    def get_result(self):
        return {"betas": self.betas}
