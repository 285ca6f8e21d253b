"""Column generation, as `atomlearn.solve` does it by itself."""

from benchopt import BaseSolver

from atomlearn import solve


class Solver(BaseSolver):
    """One fit a point of the curve, to the gap that is asked for."""

    name = "atomlearn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, norm):
        self.X, self.y, self.lmbd, self.norm = X, y, lmbd, norm

    def run(self, tolerance):
        gap = max(min(tolerance, 0.9), 1e-12)
        self.result = solve(
            self.X,
            self.y,
            norm=self.norm,
            alpha=self.lmbd / len(self.y),
            fit_intercept=False,
            tol=gap,
        )

    def get_result(self):
        return {"beta": self.result.coef}
