"""FreeNewton: re-fits beside free columns, by models of f from which they are projected out.

At a point with predictions z, free columns included, D = diag(f''(z)) and v = -f'(z), the best
free coefficients of the quadratic model of f follow w, and what is left of it is least squares,

    1/2 || A~ w - t ||_D^2 + R(w),   A~ = A - Z (Z'DZ)^+ Z'DA,   t = A~ w_k + D^-1 v,

a problem without free columns, for the masters there are: of the squared loss it is the problem
itself (Frisch, Waugh, Lovell). Then a line search on the objective. Of losses that are straight
somewhere such models lead far astray: ``SemismoothNewton`` knows free columns, and where they bend.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.losses import Squared
from atomlearn.core.masters.candidate import Candidate
from atomlearn.core.masters.model_newton import ModelNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class FreeNewton(ModelNewton):
    """Newton steps on f with its free columns projected out; other problems go to ``master``.

    A step costs the projection of the block, O(n m r) for r free columns, and a re-fit of least
    squares over it, which is dense. One step where the loss is squared, five to ten else.

    Parameters
    ----------
    master : Master
        Minimizes the models. It also gets what steps leave undone, as the problem is.

    References
    ----------
    J. D. Lee, Y. Sun, M. A. Saunders 2014, doi:10.1137/130921428.
    M. C. Lovell 1963, doi:10.1080/01621459.1963.10480682 (columns partialled out).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(3)).gather(np.arange(3))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> free = problem.Problem.build(
    ...     block, [1.0, 2.0, 3.0], losses.Squared(), regularizer, unpenalized=[2]
    ... )
    >>> masters.FreeNewton(masters.default_master()).solve(free, np.zeros(3), 0.0, 1e-8).weights
    array([0.9, 1.9, 0. ])
    """

    def takes(self, problem: Problem) -> bool:
        """Return whether free columns are projected out of the block: which makes it dense."""
        n_samples, size = problem.design.shape
        free = problem.loss.free is not None and problem.plain_loss.coupled == 1
        return free and size > 0 and n_samples * size <= TUNING.gram_entries

    def is_exact(self, problem: Problem) -> bool:
        """Of the squared loss, whatever is free."""
        return problem.plain_loss.is_quadratic

    def model(self, problem: Problem, block: Block, at: Candidate) -> Problem | None:
        """Return the quadratic model at a point as least squares over the projected block."""
        loss, basis = problem.plain_loss, problem.loss.free.basis
        z = problem.loss.free.shifted(problem.y, at.refit.prediction, problem.weight)
        v = -loss.gradient(problem.y, z, problem.weight)
        # The very array, where it is: projections are kept for it.
        curved = not loss.is_quadratic
        D = loss.curvature(problem.y, z, problem.weight) if curved else problem.weight
        if not np.isfinite(D).all():
            return None
        if np.any(D[problem.weight > 0.0] <= 0.0):
            # Straight somewhere: a model that lies above the loss everywhere leads near, from where
            # semismooth steps know more.
            D = np.maximum(D, loss.smoothness * problem.weight)
            if not np.isfinite(D).all():
                return None
        rest = projected(block, basis, D)
        moves = np.divide(v, D, out=np.zeros_like(v), where=D > 0)
        target = rest.dot(at.refit.weights) + moves
        return replace(
            problem, design=rest, y=target, loss=Squared(), weight=D, offset=None, free=None
        )


def projected(block: Block, Q: Array, D: Array) -> CachedBlock:
    """Return the block with Q projected out: what is known of it is kept with the block."""
    cached = CachedBlock.of(block)
    basis, curvature, known = cached.projected or (None, None, None)
    if known is None or basis is not Q or curvature is not D:
        known = CachedBlock(DenseBlock(_left(block, Q, D)))
    elif known.shape[1] < block.shape[1]:
        new = np.arange(known.shape[1], block.shape[1], dtype=np.int64)
        known = known.append(DenseBlock(_left(block.take(new), Q, D)))
    cached.projected = Q, D, known
    return known


def _left(block: Block, Q: Array, D: Array) -> Array:
    """Return A - Q (Q'DQ)^+ Q'DA; columns that Q explains but for rounding are zero."""
    A = np.asarray(block.dense(), dtype=np.float64)
    DQ = D[:, None] * Q
    share = np.linalg.lstsq(Q.T @ DQ, DQ.T @ A, rcond=1e-13)[0]
    left = A - Q @ share
    # Once more: what rounding left of large columns.
    left -= Q @ np.linalg.lstsq(Q.T @ DQ, DQ.T @ left, rcond=1e-13)[0]
    lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
    left[:, np.sqrt(np.einsum("ij,ij->j", left, left)) <= 1e-13 * lengths] = 0.0
    return np.asfortranarray(left)
