"""Around: a loss around another one, which says what predictions mean as that one does."""

from __future__ import annotations

from typing import Any

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

    @property
    def bare(self) -> Loss:
        """The loss of predictions with all that is added to them."""
        return self.inner.bare

    def check_target(self, y: object) -> Array:
        """Return the targets as the loss inside does."""
        return self.inner.check_target(y)

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the expected target at a whole prediction."""
        return self.inner.mean(prediction)

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities at a whole prediction."""
        return self.inner.log_probabilities(prediction)

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the score of whole predictions."""
        return self.inner.score(y, prediction, weight)
