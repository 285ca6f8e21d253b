"""FactoredAtoms: active rank-one atoms of Frank-Wolfe methods, stored by their factors.

The dense matrix W = sum_h c_h u_h v_h' is never formed. The module provides three operations of
Frank-Wolfe methods on matrices. ``best`` is the linear minimization oracle: it searches for the
best atom, and bounds the polar (the dual norm of the scores). ``images`` has the predictions of the
atoms. ``part`` returns the iterate as a term of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from atomlearn.core import (
    Array,
    Atom,
    Block,
    Columns,
    Design,
    Factored,
    MatrixPart,
    Problem,
    Scores,
    Term,
    WarmStart,
    unwrapped,
)
from atomlearn.matrices.scores import Shape, score_matrix
from atomlearn.matrices.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class RankOne:
    """The rank-one atom left right' / factor, with unit vectors left (p,) and right (q,).

    ``factor`` is the weight of the norm, stored in ``FactoredAtoms.term``.
    """

    left: Array
    right: Array


@dataclass(frozen=True, slots=True)
class FactoredAtoms:
    """The t active atoms u_h v_h' / factor, stored as left (p, t) and right (q, t).

    U (p q, t) denotes the matrix with columns vec(u_h v_h') / factor; it is not stored. Memory is
    (p + q) t numbers. The object is immutable.

    Attributes
    ----------
    term : Term
        The norm and its factor (weight).
    design : Design
        Design X whose columns are the entries of W.
    left, right : (p, t) and (q, t) float64
        The unit vectors u_h and v_h as columns.
    """

    term: Term
    design: Design
    left: Array
    right: Array

    @property
    def size(self) -> int:
        """Number of atoms t."""
        return int(self.left.shape[1])

    @property
    def is_hard(self) -> bool:
        """Whether the search for the best atom is heuristic, with bounds that may differ."""
        return not self.term.norm.proximal

    @property
    def _norm(self) -> Any:
        """The norm, typed as a norm of matrices."""
        return self.term.norm

    @property
    def columns(self) -> Columns:
        """An empty array: the entries of W are not listed."""
        return np.zeros(0, dtype=np.int64)

    @property
    def images(self) -> Block:
        """The predictions X U of the atoms, (n_samples, t), as an implicit product."""
        block: Block = unwrapped(self.design).rays(self.left / self.term.factor, self.right)
        return block

    def append(self, design: Design, atom: RankOne) -> FactoredAtoms:
        """Return the set with ``atom`` added; ``design`` is not needed."""
        left = np.column_stack([self.left, atom.left])
        return replace(self, left=left, right=np.column_stack([self.right, atom.right]))

    def take(self, which: Columns) -> FactoredAtoms:
        """Return the atoms at the positions ``which``."""
        return replace(self, left=self.left[:, which], right=self.right[:, which])

    def find(self, atom: RankOne) -> int:
        """Return the position of this atom, or -1 if it is not active."""
        inner_products = (atom.left @ self.left) * (atom.right @ self.right)
        number = int(inner_products.argmax()) if inner_products.size else -1
        return number if number >= 0 and inner_products[number] >= 1.0 - SETTINGS.rounding else -1

    def combine(self, shares: Array) -> Array:
        """Return an empty array: the entries of W are not listed for any ``shares`` (t,)."""
        return np.zeros(0)

    def products(self, weights: Array) -> Array:
        """Return zeros (t,), because no entries of W are listed, and ``weights`` is empty."""
        return np.zeros(self.size)

    def parts(self, shares: Array) -> tuple[tuple[Atom, float], ...]:
        """Return an empty tuple for any ``shares`` (t,); ``part`` returns the iterate instead."""
        return ()

    def part(self, shares: Array) -> MatrixPart:
        """Return the iterate W = sum_h shares_h u_h v_h' / factor as a term of the result.

        ``shares`` (t,) are the weights of the atoms, and their sum is reported as the norm of W.
        The factors are orthogonalized, for sparse atoms on each support. This takes O((p + q) t^2)
        operations.
        """
        weights = shares / self.term.factor
        left, weights, right = self._norm.decomposed(self.left, weights, self.right)
        positive = np.flatnonzero(weights > 0)
        factored = Factored(left[:, positive], weights[positive], right[:, positive])
        return MatrixPart(self._norm, self.term.factor, float(shares.sum()), factored)

    def best(
        self, scores: Scores, accuracy: float, thorough: bool
    ) -> tuple[RankOne | None, float, tuple[float, float]]:
        """Return the best atom a found, its score <a, Z>, and bounds (lower, upper) on the polar.

        This is the linear minimization oracle; Z is the matrix of ``scores``. The atom is None if
        no atom has a positive score. ``accuracy`` is the relative gap between the bounds at which
        the search stops, and ``thorough`` allows branch and bound.
        """
        factor = self.term.factor
        matrix = score_matrix(scores, cast(Shape, self.design.traits.matrix_shape))
        atoms = self._norm.search(matrix, 1, accuracy, thorough)
        bounds = atoms.lower / factor, atoms.upper / factor
        if not atoms.values.size or atoms.values[0] <= 0.0:
            return None, 0.0, bounds
        atom = RankOne(atoms.left[:, 0], atoms.right[:, 0])
        return atom, float(atoms.values[0]) / factor, bounds


def factored_atoms(problem: Problem) -> FactoredAtoms | None:
    """Return an empty set of factored atoms, or None if atoms are stored by their entries.

    Atoms are stored by their entries for norms of vectors, unions of norms, tensors, norms whose
    atoms are not of rank one, and problems with a ridge term (tau > 0).
    """
    [*others, term] = problem.regularizer.norm.terms()
    shape = problem.design.traits.matrix_shape
    if others or shape is None or term.norm.matrix_shape != shape or problem.tau:
        return None
    norm: Any = term.norm
    if not norm.rank_one:
        return None
    return FactoredAtoms(term, problem.design, np.zeros((shape[0], 0)), np.zeros((shape[1], 0)))


def warm_factors(
    problem: Problem, atoms: FactoredAtoms, warm: WarmStart | None
) -> tuple[FactoredAtoms, Array, float]:
    """Return the atoms, their shares (t,) and the intercept of a warm start.

    ``atoms`` is the empty set of the problem. It is returned with the atoms of ``warm``, the result
    of another fit, if both have the same norm. If a constraint on the norm is violated, the shares
    are scaled down.
    """
    intercept, parts = (0.0, ()) if warm is None else (warm.intercept, warm.matrix_parts or ())
    factored = parts[0].factored if len(parts) == 1 else None
    if factored is None or parts[0].norm != atoms.term.norm:
        return atoms, np.zeros(0), intercept
    positive = np.flatnonzero(factored.weights > 0)
    shares = atoms.term.factor * factored.weights[positive]
    atoms = replace(atoms, left=factored.left[:, positive], right=factored.right[:, positive])
    regularizer = problem.regularizer
    total = float(shares.sum())
    if regularizer.form == "constrained" and total > regularizer.amount:
        shares = shares * (regularizer.amount / total)
    return atoms, shares, intercept
