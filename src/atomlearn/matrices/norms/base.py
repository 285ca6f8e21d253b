"""MatrixNorm: atomic norms of matrices with rank-one atoms, and bounds on their polars."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import to_float64
from atomlearn.core import Array, Atom, Columns, Design, Norm, Parameters, Scores, Solver, Term
from atomlearn.matrices.designs.base import as_matrix_design
from atomlearn.matrices.scores import (
    Found,
    ScoreMatrix,
    Shape,
    agreed_shape,
    check_tensor_shape,
    score_matrix,
)
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.coordinates import Coordinates
from atomlearn.matrices.solver.generation import MatrixGeneration
from atomlearn.matrices.solver.rays import Rays
from atomlearn.matrices.solver.spans import Span


class ShapedNorm(Parameters, Norm):
    """Base of norms of a matrix W of ``shape`` (p, q), which vectors hold in row-major order.

    If ``shape`` is None, it is that of the design (``designs.Tasks``, ``Identity``, ``Entries``),
    or of a 2-d array passed to ``value``.
    """

    shape: Any

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """(p, q), or () if it is not known yet."""
        return () if self.shape is None else tuple(self.shape)

    def on(self, n_features: int, shape: Shape | None = None) -> Self:
        """Return the norm for matrices of this shape, with p q = ``n_features``.

        Raise ValueError if neither the norm nor ``shape`` says the shape, or if they differ.
        """
        name = type(self).__name__
        known_shape = agreed_shape(self, self.shape, shape)
        if known_shape is None:
            raise ValueError(
                f"{name} needs to know the shape of W: pass shape=(p, q), or a design that knows "
                "it, such as designs.Tasks(X, n_tasks), Identity or Entries"
            )
        sizes = check_tensor_shape(name, known_shape)
        if len(sizes) != 2 or math.prod(sizes) != n_features:
            raise ValueError(
                f"{name}: shape {sizes} has {math.prod(sizes)} entries, and there are "
                f"{n_features} columns; give shape=(p, q) with p q = {n_features}"
            )
        return self if sizes == self.shape else self.replaced(shape=sizes)

    def _shape_of(self, size: int) -> Shape:
        """Return (p, q) for a vector of ``size`` numbers."""
        p, q = self.on(size).shape
        return int(p), int(q)

    def _as_matrix(self, w: NDArray[Any]) -> Array:
        """Return w as a matrix (p, q); a vector is reshaped to the norm's shape."""
        if np.ndim(w) == 2:
            w = np.ascontiguousarray(w, dtype=np.float64)
            if self.shape is not None and tuple(self.shape) != w.shape:
                raise ValueError(
                    f"{self!r} is for matrices of shape {tuple(self.shape)}, got shape {w.shape}"
                )
            return w
        w = to_float64(w)
        return w.reshape(self._shape_of(w.size))


class MatrixNorm(ShapedNorm):
    """Atomic norm with rank-one atoms: inf { sum_i c_i : W = sum_i c_i u_i v_i', c >= 0 }.

    The infimum is over all sums of atoms u_i v_i' from a set that the subclass defines. The polar
    (dual norm) of scores Z is the largest <u v', Z> over atoms. ``shape`` is (p, q); vectors
    contain W in row-major order. If ``shape`` is None, it is that of the design
    (``designs.Tasks``, ``Identity``, ``Entries``), or of a 2-d array passed to ``value``.

    A subclass implements ``_search``, the search for atoms with the largest scores, and
    ``decomposed``, the decomposition of a matrix into atoms with small total weight. Its
    ``coordinates`` is the class in which the solver represents W.
    """

    #: The class of coordinates in which the solver represents and re-fits W.
    coordinates: ClassVar[type[Span | Rays]]

    #: Whether all atoms have rank one, so that methods over atoms can store their factors.
    rank_one: ClassVar[bool] = True

    #: Shape of the tensor if W is its unfolding along ``mode``, else None.
    tensor: ClassVar[Any] = None
    mode: ClassVar[Any] = 0

    def polar_of_sizes(self, sizes: Scores) -> float:
        """Return the Frobenius norm of ``sizes``, which bounds <u v', Z> for |Z| <= sizes.

        The vectors of an atom u v' have length 1 at most.
        """
        return float(np.linalg.norm(sizes.full()))

    def search(
        self,
        matrix: ScoreMatrix,
        count: int = 1,
        accuracy: float = SETTINGS.accuracy,
        thorough: bool = False,
    ) -> Found:
        """Return up to ``count`` atoms with the largest scores <u v', Z>, and polar bounds.

        Parameters
        ----------
        matrix : ScoreMatrix
            The scores Z (p, q). The result of a thorough search is cached in ``matrix.memo``.
        count : int
            Maximum number of atoms.
        accuracy : float
            Relative gap between the bounds at which the search stops; it may not be reached.
        thorough : bool
            Whether to tighten the bounds by branch and bound if the polar is NP-hard.
        """
        cached = matrix.memo.get(repr(self))
        if cached is not None:
            return cached
        atoms = self._search(matrix, count, accuracy, thorough)
        if thorough:  # no later search would find better atoms or bounds
            matrix.memo[repr(self)] = atoms
        return atoms

    @abstractmethod
    def _search(self, matrix: ScoreMatrix, count: int, accuracy: float, thorough: bool) -> Found:
        """Search for up to ``count`` atoms with the largest scores, without the cache.

        ``search`` calls it. The scores are ``matrix`` (p, q). ``accuracy`` is the relative
        gap between the bounds on the polar at which the search stops, and ``thorough``
        allows branch and bound if the polar is NP-hard.
        """

    def at_zero(self, term: Term, design: Design) -> Coordinates:
        """Return the term W = 0 in the coordinates of this norm; ``term`` contains the norm.

        ``design`` is the design of the problem; the coordinates use it as an operator on matrices.
        If W is the unfolding of a tensor, ``tensor`` is its shape and ``mode`` that of the rows.
        """
        p, q = self.matrix_shape
        view = as_matrix_design(design, (p, q), self.tensor, self.mode)
        no_x, no_left, no_right = np.zeros(0), np.zeros((p, 0)), np.zeros((q, 0))
        return self.coordinates(term, view, no_x, no_left, no_right)

    def of_core(self, shape: Shape) -> Norm:
        """Return a norm of cores S (r, s) that equals this norm of U S V' for orthonormal U, V.

        ``shape`` is (r, s).
        """
        return self.replaced(shape=shape)

    def threshold(self, values: Array) -> float:
        """Return t such that atoms with a score of at most multiplier * t do not improve W.

        multiplier is the Lagrange multiplier of the norm at W (in the penalized form, its
        strength), and ``values`` (r,) are the singular values or eigenvalues of W.
        """
        return 1.0

    @abstractmethod
    def decomposed(self, left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
        """Return W = left diag(weights) right' as a sum of atoms, in the same form.

        left is (p, t), weights (t,) and right (q, t). The sum of the weights does not increase; it
        becomes the norm of W if that is tractable. This takes O((p + q) t^2) operations.
        """

    def solver(self, tol: float) -> Solver:
        """Return ``MatrixGeneration``, which represents W by factors, with relative gap ``tol``."""
        return MatrixGeneration(tol=tol)

    def polar_bounds(self, scores: Scores, thorough: bool = False) -> tuple[float, float]:
        """Return bounds (lower, upper) on the polar of the scores.

        If the polar is NP-hard, ``thorough`` also allows branch and bound.
        """
        matrix = score_matrix(scores, self._shape_of(scores.n_columns))
        atoms = self.search(matrix, thorough=thorough)
        return atoms.lower, atoms.upper

    def polar(self, scores: Scores) -> float:
        """Return the tightest upper bound on the polar max <u v', Z> for ``scores`` Z.

        The maximum is over all atoms u v'. Certificates use this bound.
        """
        return self.polar_bounds(scores, thorough=True)[1]

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom u v' with the largest score found, by its nonzero entries."""
        shape = self._shape_of(scores.n_columns)
        atoms = self.search(score_matrix(scores, shape))
        if not atoms.values.size or atoms.values[0] <= 0:
            return Atom(np.zeros(0, dtype=np.int64), np.zeros(0))
        u = atoms.left[:, 0]
        v = atoms.right[:, 0]
        # The flat indices and values of the nonzero entries of u v'.
        rows = np.flatnonzero(u)
        cols = np.flatnonzero(v)
        columns = (rows[:, None] * shape[1] + cols[None, :]).reshape(-1)
        return Atom(columns.astype(np.int64), np.outer(u[rows], v[cols]).reshape(-1))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the flat indices of the nonzero entries of the best atom for ``scores``.

        ``count`` is ignored.
        """
        return self.best_atom(scores).columns
