"""A matrix of low rank, spikes and noise."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Made by its seed."""

    name = "simulated"
    parameters = {"n, rank": [(300, 10)], "seed": [0]}
    test_parameters = {"n, rank": [(20, 2)]}

    def get_data(self):
        rng = np.random.default_rng(self.seed)
        low = rng.standard_normal((self.n, self.rank)) @ rng.standard_normal((self.rank, self.n))
        spikes = np.where(rng.random(low.shape) < 0.05, 10.0, 0.0)
        return {"Y": low + spikes + 0.1 * rng.standard_normal(low.shape)}
