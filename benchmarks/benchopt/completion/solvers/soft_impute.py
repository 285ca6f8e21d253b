"""Soft-impute: fill in, shrink singular values, repeat."""

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Mazumder, Hastie, Tibshirani 2010, with dense decompositions."""

    name = "soft-impute"
    sampling_strategy = "iteration"

    def set_objective(self, rows, cols, observed, shape, lmbd):
        self.rows, self.cols, self.observed = rows, cols, observed
        self.shape, self.lmbd = shape, lmbd

    def run(self, n_iter):
        W = np.zeros(self.shape)
        U, s, V = np.zeros((self.shape[0], 1)), np.zeros(1), np.zeros((1, self.shape[1]))
        for _ in range(n_iter):
            W[self.rows, self.cols] = self.observed
            U, s, V = np.linalg.svd(W, full_matrices=False)
            s = np.maximum(s - self.lmbd, 0.0)
            kept = max(int(np.count_nonzero(s)), 1)
            U, s, V = U[:, :kept], s[:kept], V[:kept]
            W = (U * s) @ V
        self.found = {"L": U * s, "R": V}

    def get_result(self):
        return self.found
