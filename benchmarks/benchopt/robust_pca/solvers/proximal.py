"""Accelerated proximal gradient on both parts, one decomposition a step."""

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """FISTA with step 1/2, the inverse of the smoothness of both parts together."""

    name = "proximal gradient"
    sampling_strategy = "iteration"

    def set_objective(self, Y, lmbd, ratio):
        self.Y, self.lmbd, self.ratio = Y, lmbd, ratio

    def run(self, n_iter):
        L, S = np.zeros_like(self.Y), np.zeros_like(self.Y)
        A, B, t = L, S, 1.0
        for _ in range(n_iter):
            step = 0.5 * (self.Y - A - B)
            U, s, V = np.linalg.svd(A + step, full_matrices=False)
            new_L = (U * np.maximum(s - 0.5 * self.lmbd, 0.0)) @ V
            moved = B + step
            shrunk = np.maximum(np.abs(moved) - 0.5 * self.lmbd * self.ratio, 0.0)
            new_S = np.sign(moved) * shrunk
            new_t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            A = new_L + (t - 1.0) / new_t * (new_L - L)
            B = new_S + (t - 1.0) / new_t * (new_S - S)
            L, S, t = new_L, new_S, new_t
        self.parts = {"L": L, "S": S}

    def get_result(self):
        return self.parts
