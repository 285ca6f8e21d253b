"""Sparse columns with the frequencies of words."""

from benchopt import BaseDataset

from atomlearn.datasets import make_text_like_sparse


class Dataset(BaseDataset):
    """Made by its seed; sparse by columns."""

    name = "text-like"
    parameters = {"n, p": [(5000, 100_000)], "seed": [0]}
    test_parameters = {"n, p": [(50, 200)]}

    def get_data(self):
        words = min(100, self.p // 4)
        data = make_text_like_sparse(
            self.n, self.p, words_per_row=words, n_true=20, n_frequent=100, rng=self.seed
        )
        return {"X": data.X, "y": data.y}
