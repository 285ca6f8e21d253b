"""Atoms of the trace norm generated, factors fitted in turn."""

from benchopt import BaseSolver

from atomlearn import designs, norms, solve


class Solver(BaseSolver):
    """One fit a point of the curve, to the gap that is asked for."""

    name = "atomlearn"
    sampling_strategy = "tolerance"

    def set_objective(self, rows, cols, observed, shape, lmbd):
        self.design, self.observed = designs.Entries(rows, cols, shape), observed
        self.lmbd = lmbd

    def run(self, tolerance):
        gap = max(min(tolerance, 0.9), 1e-10)
        fit = solve(
            self.design,
            self.observed,
            norm=norms.TraceNorm(),
            alpha=self.lmbd / len(self.observed),
            fit_intercept=False,
            tol=gap,
        )
        self.found = fit.low_rank

    def get_result(self):
        return {"L": self.found.left * self.found.weights, "R": self.found.right.T}
