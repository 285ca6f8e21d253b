"""Stand-ins for fitted models whose X is their decisions: what scorers see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Loss
from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.regressor import LinearRegressor

Array = NDArray[np.float64]


class DecidedRegressor(LinearRegressor):
    """A fitted regressor whose X is its decisions: what scorers see, so that X is not copied."""

    def __init__(self, loss: str | Loss = "squared") -> None:
        self.loss = loss

    def _linear(self, X: Array, offset: Any = None) -> Array:
        return X


class DecidedClassifier(LinearClassifier):
    """A fitted classifier whose X is its decisions: what scorers see, so that X is not copied."""

    def __init__(self, loss: str | Loss = "logistic", classes: Any = None) -> None:
        self.loss = loss
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]
        """The labels."""
        labels: NDArray[Any] = self.classes
        return labels

    def _linear(self, X: Array, offset: Any = None) -> Array:
        return X
