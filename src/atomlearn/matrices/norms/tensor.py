"""TensorTrace: a tensor as a sum of tensors, each of low rank along one mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Blocks, Expansion, Lift, Scaled, Solver, Term, positive
from atomlearn.lifting.latent import LiftedNorm
from atomlearn.matrices.norms.spectral import TraceNorm
from atomlearn.matrices.scores import Shape, check_tensor_shape
from atomlearn.matrices.solver.generation import MatrixGeneration


class UnfoldedTrace(TraceNorm):
    """||W_(mode)||_*: the trace norm of the mode-th unfolding of a tensor, d_mode rows."""

    def __init__(self, tensor: tuple[int, ...], mode: int) -> None:
        self.tensor = tensor  # type: ignore[misc]
        self.mode = mode  # type: ignore[misc]

    @property
    def shape(self) -> Shape:
        """(d_mode, the product of the other sizes)."""
        rows = self.tensor[self.mode]
        return rows, math.prod(self.tensor) // rows

    def of_core(self, shape: Shape) -> TraceNorm:
        return TraceNorm(shape)


class TensorTrace(LiftedNorm):
    """gauge(W) = inf { sum_m weights_m ||(W_m)_(m)||_* : sum_m W_m = W }, the latent trace norm.

    W_(m) is the unfolding along mode m: d_m rows, one for each index. The polar is max_m
    sigma_1(Z_(m)) / weights_m. [Tomioka, Suzuki 2013; V section 2.1]

    Parameters
    ----------
    shape : (d_1, ..., d_M)
        Shape of the tensor; columns are its entries in row-major order.
    weights : sequence of M numbers > 0, optional
        None: all ones.

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
        """Return generation over matrices, with all unfoldings."""
        return MatrixGeneration(tol=tol)

    def on(self, n_features: int, shape: Shape | None = None) -> TensorTrace:
        """Return the norm itself, whose solver works on the unfoldings."""
        self.lift(n_features)
        return self

    def lift(self, n_features: int) -> Lift:
        """Return the entries of all unfoldings next to each other, and their trace norms."""
        shape, _ = self.modes()
        size = math.prod(shape)
        if size != n_features:
            raise ValueError(
                f"TensorTrace: a tensor of shape {shape} has {size} entries, and there are "
                f"{n_features} columns; give the shape of the tensor"
            )
        index = np.arange(size, dtype=np.int64).reshape(shape)
        orders = [np.moveaxis(index, mode, 0).reshape(-1) for mode in range(len(shape))]
        norms = [Scaled(term.norm, term.factor) for term in self.terms()]
        blocks = [np.arange(m * size, (m + 1) * size) for m in range(len(shape))]
        expansion = Expansion.repeating(np.concatenate(orders), size)
        modes = np.repeat(np.arange(len(shape)), size)
        return Lift(expansion, Blocks(norms, blocks), modes)

    def value(self, w: NDArray[Any]) -> float:
        """The latent trace norm of a tensor, or of its vector of entries, to 1e-8."""
        return super().value(np.ravel(w))
