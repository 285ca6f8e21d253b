"""TensorTrace: the latent trace norm of tensors, a sum of tensors of low rank along one mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import positive
from atomlearn.core import Blocks, Expansion, Lift, Scaled, Solver, Term
from atomlearn.lifting.latent import LiftedNorm
from atomlearn.matrices.norms.spectral import TraceNorm
from atomlearn.matrices.scores import Shape, check_tensor_shape
from atomlearn.matrices.solver.generation import MatrixGeneration


class UnfoldedTrace(TraceNorm):
    """The trace norm ||W_(mode)||_* of the mode-th unfolding of a tensor.

    The unfolding is a matrix with d_mode rows; the entries of the other modes, in order, are its
    columns. ``tensor`` is the shape (d_1, ..., d_M).
    """

    def __init__(self, tensor: tuple[int, ...], mode: int) -> None:
        self.tensor = tensor  # type: ignore[misc]
        self.mode = mode  # type: ignore[misc]

    @property
    def shape(self) -> Shape:
        """Shape of the unfolding: d_mode, and the product of the other sizes."""
        rows = self.tensor[self.mode]
        return rows, math.prod(self.tensor) // rows

    def of_core(self, shape: Shape) -> TraceNorm:
        """Return the trace norm of cores S of this shape, which are matrices."""
        return TraceNorm(shape)


class TensorTrace(LiftedNorm):
    """Latent trace norm of tensors: inf { sum_m weights_m ||(W_m)_(m)||_* : sum_m W_m = W }.

    The subscript (m) means the unfolding along mode m, a matrix with d_m rows. The infimum is over
    tensors W_1, ..., W_M of the same shape. The polar is max_m sigma_1(Z_(m)) / weights_m, sigma_1
    the largest singular value. [Tomioka, Suzuki 2013; V section 2.1]

    Parameters
    ----------
    shape : (d_1, ..., d_M)
        Shape of the tensor; columns are its entries in row-major order.
    weights : sequence of M numbers > 0, optional
        Weights of the modes. None: all ones.

    References
    ----------
    Tomioka, Suzuki 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> cube = np.ones((2, 2, 2))  # of rank one along every mode
    >>> round(norms.TensorTrace((2, 2, 2)).value(cube), 6)
    2.828427
    """

    def __init__(self, shape: Any, weights: Any = None) -> None:
        self.shape = shape
        self.weights = weights

    def modes(self) -> tuple[tuple[int, ...], list[float]]:
        """Return the shape and the weight of every mode after checks."""
        shape = check_tensor_shape("TensorTrace", self.shape)
        weights = [1.0] * len(shape) if self.weights is None else list(self.weights)
        if len(weights) != len(shape):
            raise ValueError(
                f"TensorTrace: {len(weights)} weights for {len(shape)} modes; give one for each"
            )
        return shape, [positive("TensorTrace: weights", weight) for weight in weights]

    def terms(self) -> list[Term]:
        """Return the trace norms of the unfoldings."""
        shape, weights = self.modes()
        return [Term(UnfoldedTrace(shape, mode), weight) for mode, weight in enumerate(weights)]

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.modes()[0]

    def solver(self, tol: float) -> Solver:
        """Return ``MatrixGeneration`` of gap ``tol``, with a low-rank term for each unfolding."""
        return MatrixGeneration(tol=tol)

    def on(self, n_features: int, shape: Shape | None = None) -> TensorTrace:
        """Return the norm itself, after a check of ``n_features``; ``shape`` is not needed."""
        self.lift(n_features)
        return self

    def lift(self, n_features: int) -> Lift:
        """Return the norm as a simpler one over more columns: one copy of the tensor per mode.

        The linear map L adds the M copies. Each copy has its entries in the order of its unfolding,
        and the weighted trace norm of this matrix.
        """
        shape, _ = self.modes()
        size = math.prod(shape)
        if size != n_features:
            raise ValueError(
                f"TensorTrace: a tensor of shape {shape} has {size} entries, and there are "
                f"{n_features} columns; give the shape of the tensor"
            )
        # The entries of the tensor in the order of each unfolding. Coordinate i of the M copies is
        # entry number i of these M lists, and the copies of an entry are added.
        index = np.arange(size, dtype=np.int64).reshape(shape)
        orders = [np.moveaxis(index, mode, 0).reshape(-1) for mode in range(len(shape))]
        norms = [Scaled(term.norm, term.factor) for term in self.terms()]
        blocks = [np.arange(m * size, (m + 1) * size) for m in range(len(shape))]
        expansion = Expansion.repeating(np.concatenate(orders), size)
        modes = np.repeat(np.arange(len(shape)), size)
        return Lift(expansion, Blocks(norms, blocks), modes)

    def value(self, w: NDArray[Any]) -> float:
        """Return the latent trace norm of ``w``, a tensor or its entries, to a relative 1e-8."""
        return super().value(np.ravel(w))
