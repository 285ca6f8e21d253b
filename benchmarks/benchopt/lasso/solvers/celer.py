"""Working sets of celer."""

import warnings

from benchopt import BaseSolver, safe_import_context

with safe_import_context() as import_ctx:
    from celer import Lasso


class Solver(BaseSolver):
    """Its estimator; a first call, with its compilation, is not timed."""

    name = "celer"
    requirements = ["pip::celer"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y = X, y
        self.model = Lasso(lmbd / len(y), fit_intercept=fit_intercept)

    def warm_up(self):
        self.run(0.5)

    def run(self, tolerance):
        self.model.set_params(tol=max(min(tolerance, 0.9), 1e-12))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_}
