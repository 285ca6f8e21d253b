"""The data of [T], section 7: Gaussian columns, a sparse truth."""

import numpy as np
from benchopt import BaseDataset

from atomlearn.datasets import make_feature_generation


class Dataset(BaseDataset):
    """Made by its seed."""

    name = "simulated"
    parameters = {"n, p, n_true": [(2048, 8192, 100)], "seed": [0]}
    test_parameters = {"n, p, n_true": [(60, 200, 10)]}

    def get_data(self):
        data = make_feature_generation(self.n, self.p, self.n_true, self.n, rng=self.seed)
        return {
            "X": data.X,
            "y": np.sign(data.y),
            "X_test": data.X_test,
            "y_test": np.sign(data.y_test),
            "truth": np.flatnonzero(data.coef),
        }
