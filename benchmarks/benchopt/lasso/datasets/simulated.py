"""Gaussian columns with correlation rho^|i - j|."""

from benchopt import BaseDataset

from atomlearn.datasets import make_correlated


class Dataset(BaseDataset):
    """Made by its seed."""

    name = "simulated"
    parameters = {"n, p, rho": [(200, 2000, 0.5), (1000, 20_000, 0.5)], "seed": [0]}
    test_parameters = {"n, p, rho": [(30, 60, 0.5)]}

    def get_data(self):
        data = make_correlated(self.n, self.p, self.rho, n_true=max(self.n // 20, 5), rng=self.seed)
        return {"X": data.X, "y": data.y}
