"""MatrixDesign: a design whose columns are the entries of a matrix, known by two products."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Block, Deadline, Design
from atomlearn.matrices.designs.factor_blocks import OperatorBlock
from atomlearn.matrices.shapes import Shape


class MatrixDesign(Design):
    """Predictions of W (p, q) that never need W itself where it is a product of factors.

    Subclasses say how W = images right' is predicted, and how predictions are pulled back through
    ``right``; the images of a left factor are what they make of it once, the factor as a rule.
    """

    @property
    @abstractmethod
    def matrix_shape(self) -> Shape:
        """(p, q); the design has p q columns."""

    @property
    def of_matrix(self) -> MatrixDesign:
        return self

    #: Whether ``unfolded`` has an answer.
    unfolds: bool = False

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        """Return the design whose columns are the entries of the mode-th unfolding of a tensor.

        The unfolding has shape[mode] rows; its columns run over the other modes in their order.
        """
        raise TypeError(f"{type(self).__name__} has no columns that are the entries of a tensor")

    #: Whether each sample sees one row of either factor of W, which ``ridge_steps`` uses.
    has_ridge_steps: bool = False

    def ridge_steps(self) -> Any:
        """Return what makes Newton's steps for one factor of W, the other one held."""
        raise TypeError(f"{type(self).__name__} has samples that see several rows of a factor")

    @property
    def n_samples(self) -> int:
        """Number of predictions."""
        return self.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @abstractmethod
    def predict(self, weights: Array) -> Array:
        """Return X w: one pass."""

    @abstractmethod
    def predictions(self, images: Array, right: Array) -> Array:
        """Return the predictions of W = left right', given the images of left."""

    @abstractmethod
    def pulled(self, v: Array, right: Array) -> Array:
        """Return what left's images are multiplied with: images' pulled = left' Z right."""

    def images(self, left: Array) -> Array:
        """Return what stands for a left factor in ``predictions``."""
        return left

    def predictions_of_each(self, images: Array, right: Array) -> Array:
        """Return the predictions of each pair of columns, side by side."""
        result = np.empty((self.n_samples, right.shape[1]), order="F")
        deadline = Deadline.current()
        for column in range(right.shape[1]):
            deadline.check()
            one = slice(column, column + 1)
            result[:, column] = self.predictions(images[:, one], right[:, one])
        return result

    def span(self, left: Array, right: Array) -> Block:
        return SpanBlock(self, self.images(left), right)

    def rays(self, left: Array, right: Array) -> Block:
        return RayBlock(self, self.images(left), right)


class SpanBlock(OperatorBlock):
    """S -> predictions of left S right', S in row-major order; ``images`` stand for left."""

    def __init__(self, design: MatrixDesign, images: Array, right: Array) -> None:
        self._design, self._images, self._right = design, images, right

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.n_samples, self._images.shape[1] * self._right.shape[1]

    def dot(self, weights: Array) -> Array:
        return self._design.predictions(*self._factors(weights))

    def _factors(self, weights: Array) -> tuple[Array, Array]:
        """Return the images of left and right of W = left S right', with few columns."""
        S = weights.reshape(self._images.shape[1], self._right.shape[1])
        if S.shape[0] <= S.shape[1]:
            return self._images, self._right @ S.T
        return self._images @ S, self._right

    def transpose_dot(self, v: Array) -> Array:
        return np.asarray(self._images.T @ self._design.pulled(v, self._right)).reshape(-1)


class RayBlock(OperatorBlock):
    """c -> predictions of left diag(c) right'."""

    def __init__(self, design: MatrixDesign, images: Array, right: Array) -> None:
        self._design, self._images, self._right = design, images, right

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.n_samples, self._images.shape[1]

    def dot(self, weights: Array) -> Array:
        return self._design.predictions(self._images * weights, self._right)

    def transpose_dot(self, v: Array) -> Array:
        pulled = self._design.pulled(v, self._right)
        return np.asarray(np.einsum("ij,ij->j", self._images, pulled))

    def dense(self) -> Array:
        return self._design.predictions_of_each(self._images, self._right)
