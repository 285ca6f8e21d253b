"""Accelerated proximal gradient over all columns, with the exact prox."""

from benchopt import BaseSolver

from atomlearn import solve, solvers


class Solver(BaseSolver):
    """`solvers.FISTA`, steps counted."""

    name = "FISTA"
    sampling_strategy = "iteration"

    def set_objective(self, X, y, lmbd, norm):
        self.X, self.y, self.lmbd, self.norm = X, y, lmbd, norm

    def run(self, n_iter):
        self.result = solve(
            self.X, self.y, norm=self.norm, alpha=self.lmbd / len(self.y), fit_intercept=False,
            tol=1e-12,
            max_iter=max(n_iter, 1), solver=solvers.FISTA(iterations=1),
        )  # fmt: skip

    def get_result(self):
        return {"beta": self.result.coef}
