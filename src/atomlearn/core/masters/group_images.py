"""Inner products kept during a line search: no trial step reads the data ([T] section 5.5).

The prox of a norm of groups multiplies each group of g = v - grad / L by one number o_h, whatever
the step: so X w = sum_h o_h X_h g_h, and X_h g_h = X_h v_h - X_h grad_h / L. One product with the
data gives X_h grad_h of all groups; v is a combination of points whose images are known. A trial
then costs O(n t) for t groups, in place of a product with all their columns.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from atomlearn.core.interfaces import Array, Block
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem


class GroupImages:
    """X_h w_h of the point w, X_h v_h of the point v ahead of it, and X_h grad_h, (n, t) each.

    Parameters
    ----------
    block : Block (n, m)
    partition : Partition
        The t groups of the m columns.
    weights : (m,)
        The point that w and v begin at.
    """

    def __init__(self, block: Block, partition: Partition, weights: Array) -> None:
        self.partition = partition
        order, starts = partition.order
        self._groups = [order[a:b] for a, b in pairwise(starts)]
        self._parts = [block.take(members) for members in self._groups]
        self._of_weights = self._of_ahead = self._images(weights)
        self._of_gradient = self._of_weights
        self._last = np.ones(partition.n_groups), 0.0

    @classmethod
    def of(cls, problem: Problem, weights: Array) -> GroupImages | None:
        """Return the images for a block under a norm of groups; None elsewhere."""
        design, size = problem.design, weights.size
        groups = problem.regularizer.norm.as_groups(size)
        if groups is None or not isinstance(design, Block):
            return None
        return cls(design, groups.parts(size)[0], weights)

    def read(self, gradient: Array) -> None:
        """Take X_h grad_h of all groups: the one product of an iteration."""
        self._of_gradient = self._images(gradient)

    def moved(self, weights: Array, point: Array, step: float) -> Array:
        """Return X w for w = prox(point), point = v - step * gradient."""
        before, after = self.partition.norms(point), self.partition.norms(weights)
        factors = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
        self._last = factors, step
        ahead = self._of_ahead @ factors
        ahead -= step * (self._of_gradient @ factors)
        return np.asarray(ahead)

    def accept(self, push: float) -> None:
        """Go to the last trial w', and ahead of it: v = w' + push (w' - w)."""
        factors, step = self._last
        images = (self._of_ahead - step * self._of_gradient) * factors
        self._of_ahead = images + push * (images - self._of_weights)
        self._of_weights = images

    def forget_momentum(self) -> None:
        """Begin again from w, without looking ahead."""
        self._of_ahead = self._of_weights

    def _images(self, weights: Array) -> Array:
        parts = zip(self._parts, self._groups, strict=True)
        return np.column_stack([part.dot(weights[members]) for part, members in parts])
