"""Stand-ins for fitted models whose X is their decisions: what scorers see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.utils.validation import _check_method_params

from atomlearn.core.interfaces import Array, Loss, Rows
from atomlearn.core.paths.folds import Score
from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.regressor import LinearRegressor
from atomlearn.estimators.targets import Checked


class DecidedRegressor(LinearRegressor):
    """A fitted regressor whose X is its decisions: what scorers see, so that X is not copied."""

    def __init__(self, loss: str | Loss = "squared") -> None:
        self.loss = loss

    def _linear(self, X: Array, offset: Any = None) -> Array:
        return X


class DecidedClassifier(LinearClassifier):
    """A fitted classifier whose X is its decisions: what scorers see, so that X is not copied."""

    def __init__(
        self, loss: str | Loss = "logistic", classes: Any = None, together: bool = False
    ) -> None:
        self.loss = loss
        self.classes = classes
        self.together = together

    @property
    def multi_class(self) -> str:
        """Whether the decisions are of all classes together, or of each against the rest."""
        return "multinomial" if self.together and len(self.classes) > 2 else "ovr"

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]
        """The labels."""
        labels: NDArray[Any] = self.classes
        return labels

    def _linear(self, X: Array, offset: Any = None) -> Array:
        return X


def score_by(scoring: Any, data: Checked, params: dict[str, Any]) -> Score:
    """Return the score of decisions at some rows by a scorer of scikit-learn, or by ours by name.

    Ours is what the loss scores by, such as "concordance".
    """
    if scoring == data.loss.score_name and data.loss.task == "survival":
        loss, target, weight = data.loss, data.y, data.weight
        return lambda z, test: loss.score(target[test], np.ravel(z), weight[test])
    scorer, y = get_scorer(scoring), data.y
    stand_in: Any = DecidedRegressor(data.loss)
    if data.classes is not None:
        stand_in = DecidedClassifier(data.loss, data.classes)

    def score(decisions: Array, test: Rows) -> float:
        of_fold = _check_method_params(y, params, indices=test)
        return float(scorer(stand_in, decisions, y[test], **of_fold))

    return score
