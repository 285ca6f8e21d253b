"""Which features are found, and how well they predict: synthetic selections of Tan et al. 2014."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Accuracy on new samples after a refit by ridge on what was selected; true ones found."""

    name = "Feature selection"
    min_benchopt_version = "1.6"
    is_convex = False
    parameters = {"n_features": [100]}

    def set_data(self, X, y, X_test, y_test, truth):
        self.X, self.y, self.X_test, self.y_test, self.truth = X, y, X_test, y_test, truth

    def get_one_result(self):
        return {"selected": np.arange(self.n_features)}

    def evaluate_result(self, selected):
        from sklearn.linear_model import RidgeClassifier

        model = RidgeClassifier().fit(self.X[:, selected], self.y)
        return {
            "value": 1.0 - model.score(self.X_test[:, selected], self.y_test),
            "true_found": int(np.isin(selected, self.truth).sum()),
            "n_selected": len(selected),
        }

    def get_objective(self):
        return {"X": self.X, "y": self.y, "n_features": self.n_features}
