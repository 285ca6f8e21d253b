"""l1-SVM of LIBLINEAR, bisected to the number of features that is asked for."""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.svm import LinearSVC, l1_min_c


class Solver(BaseSolver):
    """The usual way: some C that gives about so many."""

    name = "l1-SVM"
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_features):
        self.X, self.y, self.n_features = X, y, n_features

    def run(self, _):
        low = l1_min_c(self.X, self.y)
        high = 1000.0 * low
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(8):
                C = np.sqrt(low * high)
                coef = LinearSVC(penalty="l1", dual=False, C=C).fit(self.X, self.y).coef_.ravel()
                low, high = (C, high) if np.count_nonzero(coef) < self.n_features else (low, C)
        order = np.argsort(-np.abs(coef))[: self.n_features]
        self.selected = order[coef[order] != 0]

    def get_result(self):
        return {"selected": self.selected}
