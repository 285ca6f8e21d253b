"""Around: a loss of predictions that lack something, which another one gets whole."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Loss


class Around(Loss):
    """A loss whose predictions lack what it adds to them; scores and means are of whole ones."""

    inner: Loss

    def describe(self, inner: Loss) -> None:
        """Take name, task and smoothness over."""
        self.inner = inner
        self.name: str = inner.name  # type: ignore[misc]
        self.task = inner.task  # type: ignore[misc]
        self.smoothness: float = inner.smoothness  # type: ignore[misc]
        self.has_probabilities: bool = inner.has_probabilities  # type: ignore[misc]
        self.translates: bool = inner.translates  # type: ignore[misc]
        self.dispersed: bool = inner.dispersed  # type: ignore[misc]
        self.coupled: int = inner.coupled  # type: ignore[misc]

    @abstractmethod
    def whole(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the predictions with what this loss adds to them, (n_samples,)."""

    @abstractmethod
    def around(self, inner: Loss) -> Self:
        """Return the same around another loss."""

    @property
    def bare(self) -> Loss:
        """The loss of predictions with all that is added to them."""
        return self.inner.bare

    def check_target(self, y: object) -> Array:
        """Return the targets as the loss inside does."""
        return self.inner.check_target(y)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f at the whole predictions."""
        return self.inner.value(y, self.whole(y, prediction, weight), weight)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at the whole predictions."""
        return self.inner.curvature(y, self.whole(y, prediction, weight), weight)

    def smoothed(self, width: float) -> Loss | None:
        """Return the same of the smooth relative of the loss inside, if that has kinks."""
        smooth = self.inner.smoothed(width)
        return None if smooth is None else self.around(smooth)

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the expected target at a whole prediction."""
        return self.inner.mean(prediction)

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities at a whole prediction."""
        return self.inner.log_probabilities(prediction)

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the score of whole predictions."""
        return self.inner.score(y, prediction, weight)
