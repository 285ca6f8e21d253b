"""Gauges of sparse rank-one atoms of small matrices: interior points over supports, with bounds.

gauge(W) = min { sum_s ||Z_s||_* : sum_s Z_s = W } over pairs of supports s = (I, J), and its dual
max { <W, Y> : ||Y_IJ|| <= 1 for all (I, J) }; for atoms u u' the Z_s are positive semidefinite,
with the trace, and the dual has l_max(Y_II) <= 1 [V section 2.1]. Supports come in by the search
for the best atom; over those known the dual is solved by Newton steps on its barrier
-t <W, Y> - sum_s log det(1 - Y_s'Y_s), or log det(1 - Y_s), whose gradients are the Z_s
(Nesterov, Nemirovskii 1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.matrices.solver.supports import Supports

if TYPE_CHECKING:
    from atomlearn.matrices.norms.sparse import SparseNorm

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InteriorSettings:
    """How far the barrier is followed; none of it changes what is proved.

    ``benchmarks/tuning/rooms.py`` varies each of them.

    rounds : of supports that enter; newton_steps : of one centering; halvings : of one step;
    growth : of the barrier's parameter t where no support wants in; largest : value of t, beyond
    which rounding takes over; recentered : value of t from which the path begins anew where
    supports came in, as it is narrow far along; missed : share of W that semidefinite parts may
    miss it by; smallest : promise of a Newton step that is none.
    """

    rounds: int = 300
    newton_steps: int = 60
    halvings: int = 40
    growth: float = 10.0
    largest: float = 1e12
    recentered: float = 1e4
    missed: float = 5e-11
    smallest: float = 1e-26


SETTINGS = InteriorSettings()


def sparse_gauge(norm: SparseNorm, W: Array, gap: float) -> tuple[float, float]:
    """Return value, bound with value - bound <= gauge(W) <= value; both infinite off the cone.

    Parts of pairs make up W exactly, semidefinite ones up to 1e-10 ||W||. bound <= gap value as a
    rule; it is <W, Y> / gauge°(Y) for the polar that branch and bound proves. A Newton step takes
    O((p q)^3 + s (k q)^2) for s supports.
    """
    scale = float(np.abs(W).max())
    given = W = W / scale
    supports = norm.covering(W)
    W, size = supports.reduced(W), float(np.linalg.norm(given))
    Y, t, value, lower, error = np.zeros(W.shape), 1.0, np.inf, 0.0, np.inf
    for _ in range(SETTINGS.rounds):
        Y, Z = _centered(W, Y, t, supports)
        missed = given - supports.total(Z, given.shape)
        found, error = supports.value(Z, missed)
        value = min(value, found) if error == 0.0 else found
        reached = supports.dual_value(given, Y)
        low, high, more = supports.priced(norm, Y, given.shape[1], thorough=False)
        near = value - reached <= 0.5 * gap * value and error <= SETTINGS.missed * size
        if not more.size and (near or t >= SETTINGS.largest):
            # Branch and bound takes longer than all the rest: only where it can end the matter.
            low, high, more = supports.priced(norm, Y, given.shape[1], thorough=True)
            lower = max(lower, reached / high if high > 0 else 0.0)
            if value - lower <= gap * value:
                break
        if more.size:
            # Back inside what the new supports allow.
            supports = supports.joined(more)
            Y, t = Y * (0.9 / max(low, 1.0)), min(t, SETTINGS.recentered)
        elif t >= SETTINGS.largest:
            break
        else:
            t *= SETTINGS.growth
    if error > 2.0 * SETTINGS.missed * size:
        return np.inf, np.inf
    return scale * value, scale * max(value - lower, 0.0)


def _centered(W: Array, Y: Array, t: float, supports: Supports) -> tuple[Array, Array]:
    """Return argmin of the barrier over Y, and the Z_s there, (s, k, q)."""
    last = np.inf
    for _ in range(SETTINGS.newton_steps):
        gradient, hessian = _derivatives(W, Y, t, supports)[:2]
        step = -_solved(hessian, gradient)
        promised = -float(gradient @ step)
        # Near the center full steps converge quadratically, until rounding ends that.
        near = promised < 0.1
        if promised <= SETTINGS.smallest or (near and promised > 0.5 * last):
            break
        last = promised if near else np.inf
        trial = _along(W, Y, t, supports, step.reshape(Y.shape), 0.0 if near else promised)
        if trial is None:
            break
        Y = trial
    return Y, _primal(W, Y, t, supports)


def _along(
    W: Array, Y: Array, t: float, supports: Supports, step: Array, promised: float
) -> Array | None:
    """Return the point of a backtracking search; any inside will do where nothing is promised."""
    value, length = _barrier(W, Y, t, supports) if promised else np.inf, 1.0
    for _ in range(SETTINGS.halvings):
        trial = Y + length * step
        there = _barrier(W, trial, t, supports)
        if there <= value - 1e-4 * length * promised and there < np.inf:
            return trial
        length *= 0.5
    return None


def _primal(W: Array, Y: Array, t: float, supports: Supports) -> Array:
    """Return the Z_s, the gradients of the barrier's terms over t, after one more Newton step.

    To first order, for which they add up to W: at Y itself they miss it by the rounding of Y,
    times up to t.
    """
    gradient, hessian, own, blocks = _derivatives(W, Y, t, supports)
    step = -_solved(hessian, gradient)
    step -= _solved(hessian, gradient + hessian @ step)
    change = np.einsum("siajb,sjb->sia", blocks, supports.take(step.reshape(Y.shape)))
    return np.asarray((own + change) / t)


def _barrier(W: Array, Y: Array, t: float, supports: Supports) -> float:
    pulled = 0.5 * supports.pull * float((Y * Y).sum())
    return pulled - t * float((W * Y).sum()) - supports.log_det(supports.take(Y))


def _derivatives(
    W: Array, Y: Array, t: float, supports: Supports
) -> tuple[Array, Array, Array, Array]:
    """Return gradient (p q,) and Hessian (p q, p q) of the barrier, and those of its terms."""
    own, blocks = supports.derivatives(supports.take(Y))
    gradient = supports.put(own, W.size) + (supports.pull * Y - t * W).reshape(-1)
    hessian = supports.put_squares(blocks, W.size)
    hessian[np.diag_indices(W.size)] += supports.pull
    return gradient, hessian, own, blocks


def _solved(hessian: Array, gradient: Array) -> Array:
    """Return H^-1 g, scaled to a unit diagonal first: entries of H differ by t^2."""
    diagonal = np.diag(hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    H = hessian * scale[:, None] * scale
    H[np.diag_indices(H.shape[0])] += 1e-15
    return np.asarray(scale * np.linalg.solve(H, scale * gradient))
