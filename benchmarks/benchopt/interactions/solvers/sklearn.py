"""All products formed, then scikit-learn's coordinate descent."""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.linear_model import Lasso


class Solver(BaseSolver):
    """Forming the products counts, as it does for who has to."""

    name = "formed, scikit-learn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, design):
        self.design, self.y, self.lmbd = design, y, lmbd

    def run(self, tolerance):
        formed = self.design.gather(np.arange(self.design.shape[1])).dense()
        model = Lasso(self.lmbd / len(self.y), fit_intercept=False, max_iter=100_000)
        model.set_params(tol=max(min(tolerance, 0.9), 1e-14))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.coef = model.fit(formed, self.y).coef_

    def get_result(self):
        used = np.flatnonzero(self.coef)
        return {"columns": used, "weights": self.coef[used]}
