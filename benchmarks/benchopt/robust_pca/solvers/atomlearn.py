"""Atoms of both norms generated together."""

from benchopt import BaseSolver

from atomlearn import SparseLowRank


class Solver(BaseSolver):
    """One fit a point of the curve, to the gap that is asked for."""

    name = "atomlearn"
    sampling_strategy = "tolerance"

    def set_objective(self, Y, lmbd, ratio):
        self.Y, self.lmbd, self.ratio = Y, lmbd, ratio

    def run(self, tolerance):
        gap = max(min(tolerance, 0.9), 1e-10)
        self.model = SparseLowRank(self.lmbd / self.Y.size, self.ratio, tol=gap).fit(self.Y)

    def get_result(self):
        return {"L": self.model.low_rank_, "S": self.model.sparse_}
