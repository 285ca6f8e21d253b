"""Products searched at every pass, never formed."""

from benchopt import BaseSolver

from atomlearn import solve


class Solver(BaseSolver):
    """One fit a point of the curve, to the gap that is asked for."""

    name = "atomlearn, implicit"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, design):
        self.design, self.y, self.lmbd = design, y, lmbd

    def run(self, tolerance):
        gap = max(min(tolerance, 0.9), 1e-12)
        self.result = solve(
            self.design, self.y, alpha=self.lmbd / len(self.y), fit_intercept=False, tol=gap
        )

    def get_result(self):
        return {"columns": self.result.columns, "weights": self.result.weights}
