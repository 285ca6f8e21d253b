"""MatrixNorm: a gauge whose atoms are rank one, with a search that bounds its polar."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.design import Columns, Scores
from atomlearn.core.interfaces.matrix import (
    Found,
    ScoreMatrix,
    Shape,
    check_tensor_shape,
    score_matrix,
)
from atomlearn.core.interfaces.norm import Atom, Norm
from atomlearn.core.interfaces.solver import Solver
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.norms.vectors import to_float64

Array = NDArray[np.float64]

#: Relative distance of the bounds from below and above that a certificate asks for.
ACCURACY = 1e-9

#: In which coordinates a point is re-fitted: S of left S right', S of U S U', weights of rays.
Coordinates = Literal["span", "symmetric", "rays"]


def matrix_solver(tolerance: float) -> Solver:
    """Return the solver of norms of matrices, to a relative gap."""
    # Imported when it is asked for: the solver knows the norms.
    from atomlearn.matrices.solver.generation import MatrixGeneration

    return MatrixGeneration(tolerance=tolerance)


class MatrixNorm(Parameters, Norm):
    """gauge(W) = inf { sum_i c_i : W = sum_i c_i u_i v_i', c >= 0 } over atoms u v'.

    ``shape`` is (p, q): vectors of p q numbers are W row after row. None: the shape is that of
    the design (``designs.Tasks``, ``Identity``, ``Entries``), or of a 2-d array given to ``value``.
    """

    #: How solvers re-fit a point of this norm.
    coordinates: ClassVar[Coordinates]
    shape: Any

    @property
    def absolute(self) -> bool:
        """False: the gauge does not depend on |W| only."""
        return False

    @property
    def of_matrices(self) -> bool:
        """True."""
        return True

    @property
    def matrix_shape(self) -> tuple[int, ...] | None:
        """``shape``, where it is known."""
        return None if self.shape is None else tuple(self.shape)

    @abstractmethod
    def search(
        self,
        matrix: ScoreMatrix,
        count: int = 1,
        accuracy: float = ACCURACY,
        thorough: bool = False,
    ) -> Found:
        """Return up to ``count`` of the best atoms, and bounds on the polar.

        ``accuracy``: the relative distance of the bounds that is worth work; more may be left.
        ``thorough``: where the oracle is NP-hard, branch and bound too.
        """

    def with_shape(self, shape: Shape | None) -> Self:
        """Return the same norm for matrices of this shape; a shape given before must agree."""
        if shape is None or self.shape is not None:
            if shape is not None and tuple(self.shape) != tuple(shape):
                raise ValueError(
                    f"{self!r} is for matrices of shape {tuple(self.shape)}, and the design's "
                    f"matrix is of shape {tuple(shape)}; leave shape out"
                )
            return self
        copy = type(self)(**{**self.get_params(deep=False), "shape": tuple(shape)})
        copy.check(math.prod(shape))
        return copy

    def check(self, n_features: int) -> None:
        """Raise where the shape is missing, broken, or not that of n_features entries."""
        if self.shape is None:
            raise ValueError(
                f"{type(self).__name__} needs to know the shape of W: pass shape=(p, q), or a "
                "design that knows it, such as designs.Tasks(X, n_tasks), Identity or Entries"
            )
        shape = check_tensor_shape(type(self).__name__, self.shape)
        if len(shape) != 2 or math.prod(shape) != n_features:
            raise ValueError(
                f"{type(self).__name__}: shape {shape} has {math.prod(shape)} entries, and there "
                f"are {n_features} columns; give shape=(p, q) with p q = {n_features}"
            )

    def polar_bounds(self, scores: Scores, thorough: bool = False) -> tuple[float, float]:
        """Return lower <= gauge°(z) <= upper; ``thorough``: branch and bound where NP-hard."""
        matrix = score_matrix(scores, self._shape_of(scores.n_columns))
        found = self.found(matrix, thorough=thorough)
        return found.lower, found.upper

    def found(
        self,
        matrix: ScoreMatrix,
        count: int = 1,
        accuracy: float = ACCURACY,
        thorough: bool = False,
    ) -> Found:
        """Return ``search``, remembered by the matrix for as long as it lives."""
        if not thorough:  # what a thorough search has found is better still
            best = matrix.memo.get((repr(self), "thorough"))
            if best is not None:
                return best
        key = (repr(self), "thorough") if thorough else (repr(self), count, accuracy)
        if key not in matrix.memo:
            matrix.memo[key] = self.search(matrix, count, accuracy, thorough)
        return matrix.memo[key]

    def polar(self, scores: Scores) -> float:
        """The best upper bound on max <u v', Z>, which certificates are made of."""
        return self.polar_bounds(scores, thorough=True)[1]

    def best_atom(self, scores: Scores) -> Atom:
        """The best atom found, as the non-zero entries of u v'."""
        shape = self._shape_of(scores.n_columns)
        found = self.found(score_matrix(scores, shape))
        if not found.values.size or found.values[0] <= 0:
            return Atom(np.zeros(0, dtype=np.int64), np.zeros(0))
        u, v = found.left[:, 0], found.right[:, 0]
        rows, cols = np.flatnonzero(u), np.flatnonzero(v)
        columns = (rows[:, None] * shape[1] + cols[None, :]).reshape(-1)
        return Atom(columns.astype(np.int64), np.outer(u[rows], v[cols]).reshape(-1))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The entries that the best atom touches."""
        return self.best_atom(scores).columns

    def solver(self, tolerance: float) -> Solver:
        """Generation over factors, which never forms W."""
        return matrix_solver(tolerance)

    def _shape_of(self, size: int) -> Shape:
        self.check(size)
        return int(self.shape[0]), int(self.shape[1])

    def _as_matrix(self, w: NDArray[Any]) -> Array:
        """Return w as a matrix (p, q): 2-d as it is, a vector by the norm's shape."""
        if np.ndim(w) == 2:
            w = np.ascontiguousarray(w, dtype=np.float64)
            if self.shape is not None and tuple(self.shape) != w.shape:
                raise ValueError(
                    f"{self!r} is for matrices of shape {tuple(self.shape)}, got shape {w.shape}"
                )
            return w
        w = to_float64(w)
        return w.reshape(self._shape_of(w.size))
