"""Feature generation [T]."""

from benchopt import BaseSolver

from atomlearn import FeatureGenerator


class Solver(BaseSolver):
    """`FeatureGenerator` with its defaults."""

    name = "atomlearn"
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_features):
        self.X, self.y, self.n_features = X, y, n_features

    def run(self, _):
        model = FeatureGenerator(n_features=self.n_features, standardize=True).fit(self.X, self.y)
        self.selected = model.get_support(indices=True)

    def get_result(self):
        return {"selected": self.selected}
