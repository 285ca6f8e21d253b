"""A share of the entries of a noisy matrix of low rank."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Made by its seed."""

    name = "simulated"
    parameters = {"n, share, rank": [(1000, 0.1, 5)], "seed": [0]}
    test_parameters = {"n, share, rank": [(30, 0.5, 2)]}

    def get_data(self):
        rng = np.random.default_rng(self.seed)
        truth = rng.standard_normal((self.n, self.rank)) @ rng.standard_normal((self.rank, self.n))
        rows, cols = np.nonzero(rng.random(truth.shape) < self.share)
        observed = truth[rows, cols] + 0.5 * rng.standard_normal(rows.size)
        return {"rows": rows, "cols": cols, "observed": observed, "shape": truth.shape}
