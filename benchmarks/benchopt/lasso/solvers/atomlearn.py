"""Column generation, as `atomlearn.solve` does it by itself."""

from benchopt import BaseSolver

from atomlearn import solve


class Solver(BaseSolver):
    """One fit a point of the curve, to the gap that is asked for."""

    name = "atomlearn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y, self.lmbd, self.fit_intercept = X, y, lmbd, fit_intercept

    def skip(self, **objective):
        return False, None

    def run(self, tolerance):
        self.result = solve(
            self.X,
            self.y,
            alpha=self.lmbd / len(self.y),
            fit_intercept=self.fit_intercept,
            tol=max(min(tolerance, 0.9), 1e-12),
        )

    def get_result(self):
        return {"beta": self.result.coef}
