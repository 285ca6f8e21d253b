"""Rays: a term of W as a nonnegative combination of sparse rank-one atoms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from atomlearn.core import L1, Array, Block, Factored, MatrixPart, Nonnegative, Norm, unwrapped
from atomlearn.matrices.scores import Found, Shape, both_found, dense_matrix, merged, score_matrix
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.coordinates import Coordinates, Searched, TermPricing


@dataclass(frozen=True, slots=True)
class Rays(Coordinates):
    """W_i = sum_h x_h u_h v_h' = left diag(x) right' with weights x >= 0 (m,).

    The columns of left (p, m) and right (q, m) are the sparse unit vectors u_h and v_h. sum(x) is
    an upper bound on the norm of W_i.
    """

    hard = True

    left: Array
    right: Array

    def block(self) -> Block:
        """Return the implicit matrix from the weights x to the predictions of W_i."""
        block: Block = unwrapped(self.design).rays(self.left, self.right)
        return block

    def inner_norm(self) -> Norm:
        """Return sum(x), infinite if a weight is negative."""
        return Nonnegative(L1())

    def compressed(self) -> Self:
        """Return the term with the same matrix W_i, without atoms of weight 0.

        Atoms on the same support are replaced by orthogonal ones. The sum of the weights
        does not increase.
        """
        positive = np.flatnonzero(self.x > 0)
        left, values, right = merged(
            self.left[:, positive], self.x[positive], self.right[:, positive]
        )
        return replace(self, left=left, right=right, x=values)

    def expanded(self, to_add: tuple[Array, Array]) -> Self:
        """Return the term with the atoms ``to_add`` = (left, right) that are new, at weight 0."""
        # An atom is active already if its inner product with an active one is 1 up to rounding.
        left, right = to_add
        inner_products = (self.left.T @ left) * (self.right.T @ right)
        new = np.flatnonzero(inner_products.max(axis=0, initial=0.0) < 1.0 - 1e-12)
        return replace(
            self,
            left=np.hstack([self.left, left[:, new]]),
            right=np.hstack([self.right, right[:, new]]),
            x=np.append(self.x, np.zeros(new.size)),
        )

    def searched(self, pricing: TermPricing) -> Searched:
        """Search for atoms with large scores; return them with bounds on the polar.

        ``pricing`` has the scores and the requested effort. The search is over all
        supports, and more thorough on supports near the active ones.
        """
        norm: Any = self.term.norm
        matrix = score_matrix(pricing.scores, cast(Shape, self.design.traits.matrix_shape))
        matrix.deadline = pricing.problem.deadline
        atoms = norm.search(matrix, pricing.batch, pricing.accuracy, pricing.thorough)
        if self.x.size:
            atoms = both_found(norm.search_near(matrix, self.left, self.right), atoms)
        to_add = atoms.above(pricing.multiplier * self.term.factor)
        return Searched((atoms.lower, atoms.upper), to_add, to_add)

    def closer_dual(self, pricing: TermPricing, accuracy: float) -> tuple[Array, float] | None:
        """Return a dual point v with a small proven polar of X'v, and the bound on the polar.

        ``pricing.v`` is the dual point at W = 0. The result is the best one, up to a share
        ``accuracy``, for which the norm can prove the polar. It is None if W is too large
        for its decompositions, or if the design does not reach all scores.
        """
        norm: Any = self.term.norm
        design: Any = unwrapped(self.design)
        shape = cast(Shape, self.design.traits.matrix_shape)
        is_large = shape[0] * shape[1] > SETTINGS.decomposed_entries
        if is_large or design.dual_of(np.zeros(shape)) is None:
            return None
        # Of the scores whose polar is proved to be small enough, those nearest to X'v.
        matrix = score_matrix(pricing.scores, shape)
        matrix.deadline = pricing.problem.deadline
        nearest, bound = norm.nearest(matrix, pricing.multiplier * self.term.factor, accuracy)
        return design.dual_of(nearest), bound

    def with_atoms_on_supports(self, v: Array, multiplier: float) -> tuple[Coordinates, float]:
        """Return the term with the best atoms on the active supports added, and their violation.

        v (n_samples,) is the negative gradient of the loss. The violation is the largest
        score of an atom minus ``multiplier``, the Lagrange multiplier of the gauge. Unlike
        the core of a ``Span``, fixed atoms cannot rotate within their supports, so that new
        atoms on the same supports are needed. They take no pass over the data.
        """
        if not self.x.size:
            return self, 0.0
        atoms = self.on_supports(v)
        gain = atoms.lower / self.term.factor - multiplier
        return self.expanded(atoms.above(multiplier * self.term.factor)), gain

    def on_supports(self, v: Array) -> Found:
        """Return the atoms a b' on the active supports with the largest scores <a b', X'v>.

        ``v`` (n_samples,) is the negative gradient of the loss. Only the entries of X'v in active
        rows and columns are computed, without a pass over X.
        """
        norm: Any = self.term.norm
        # The scores in the active rows and columns of W_i, by unit vectors as bases.
        rows = np.flatnonzero(self.left.any(axis=1))
        cols = np.flatnonzero(self.right.any(axis=1))
        left = np.eye(self.left.shape[0])[:, rows]
        right = np.eye(self.right.shape[0])[:, cols]
        scores = unwrapped(self.design).span(left, right).scores(v).full()
        Z = dense_matrix(scores.reshape(rows.size, cols.size))
        atoms: Found = norm.search_near(Z, self.left[rows], self.right[cols])
        return replace(atoms, left=left @ atoms.left, right=right @ atoms.right)

    def part(self) -> MatrixPart:
        """Return the term as a part of the result: its atoms and their weights."""
        factored = Factored(self.left, self.x.copy(), self.right)
        return MatrixPart(self.term.norm, self.term.factor, self.gauge, factored)

    def with_value_of(self, part: MatrixPart) -> Self | None:
        """Return the term with the atoms of ``part`` (warm start); None if the shapes differ."""
        if (factors := self.factors_of(part)) is None:
            return None
        return replace(self, left=factors.left, right=factors.right, x=factors.weights).compressed()
