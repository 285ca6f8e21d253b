"""Gaussian columns, a few groups of ten in use."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Made by its seed."""

    name = "simulated"
    parameters = {"n, p": [(500, 5000)], "seed": [0]}
    test_parameters = {"n, p": [(30, 60)]}

    def get_data(self):
        rng = np.random.default_rng(self.seed)
        groups = np.arange(self.p).reshape(-1, 10)
        truth = np.zeros(self.p)
        truth[groups[:3]] = rng.standard_normal((3, 10))
        X = rng.standard_normal((self.n, self.p))
        return {"X": X, "y": X @ truth + rng.standard_normal(self.n), "groups": groups}
