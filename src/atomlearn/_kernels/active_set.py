"""Active-set quadratic programming over a cone, a simplex, or with a price on |c|."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Positions
from atomlearn._kernels.threads import load_blas


class QPStatus(IntEnum):
    """Why the pivots ended."""

    OPTIMAL = 0
    #: The bound on pivots; the weights are feasible and no worse than the start.
    PIVOT_LIMIT = 1
    #: Gradients of atoms in use stayed above rounding: unbounded, or too ill-conditioned.
    INEXACT = 2
    #: Input or steps that are not finite.
    NOT_FINITE = 3


@dataclass(frozen=True, slots=True)
class QPOutcome:
    """Why a call ended, and how many pivots it made: full steps and drop steps together."""

    status: QPStatus
    pivots: int


class ActiveFactor:
    """The atoms in use and the Cholesky factor of their part of the Hessian, between calls.

    Valid as long as the Hessian's entries among these atoms stay the same; ``forget`` otherwise.
    """

    __slots__ = ("count", "factor", "order", "sigma", "updates")

    def __init__(self) -> None:
        self.factor: Array = np.zeros((0, 0))
        self.order: Positions = np.zeros(0, dtype=np.int64)
        self.count = 0
        self.updates = 0
        self.sigma = 0.0

    @property
    def active(self) -> Positions:
        """The positions of the atoms in use, in the order of the factor's rows."""
        return self.order[: self.count]

    def forget(self) -> None:
        """Let the next call factor afresh."""
        self.count = 0

    def reserve(self, size: int) -> None:
        """Make room for ``size`` atoms, and some more so that growing costs little."""
        if self.order.size >= size:
            return
        count = self.count
        capacity = size + size // 2 + 8
        factor = np.zeros((capacity, capacity))
        order = np.zeros(capacity, dtype=np.int64)
        factor[:count, :count] = self.factor[:count, :count]
        order[:count] = self.order[:count]
        self.factor = factor
        self.order = order


def active_set_qp(
    gram: Array,
    linear: Array,
    weights: Array,
    *,
    state: ActiveFactor | None = None,
    price: Array | None = None,
    coupling: float = 0.0,
    ridge: float = 0.0,
    radius: float = math.inf,
    equality: bool = False,
    level: float = 0.0,
    signed: bool = False,
    from_gradient: bool = False,
    batch: int = 1,
    max_pivots: int = 100_000,
) -> tuple[Array, QPOutcome]:
    """argmin_c 1/2 c'(H + coupling p p' + ridge I)c - linear'c + level p'c over c >= 0.

    And over p'c <= radius if that is finite. With ``signed`` over c of either sign, p'|c| in
    the place of p'c: the lasso, the squared l1 norm, the l1 ball.

    Algorithm 2 of Vinyes, Obozinski 2017 (Nocedal, Wright 2006, chapter 16): full steps to the
    minimum over the atoms in use, drop steps where a weight reaches zero on the way, the atom of
    largest decrease enters. O(m k) a pivot for m atoms with k in use. Linearly dependent and
    repeated atoms are no obstacle.

    Parameters
    ----------
    gram : (m, m) float64, rows contiguous
        H, symmetric positive semidefinite.
    linear : (m,)
        The linear term; where ``from_gradient``, H c + ridge c - linear at ``weights`` instead.
    weights : (m,)
        Warm start: entries that are not zero are in use. Made feasible first.
    state : ActiveFactor
        The state of an earlier call with the same H, price, coupling and ridge among the atoms in
        use left behind; updated. None: start afresh.
    price : (m,) float64 > 0, optional
        p; all ones where None.
    radius, equality
        p'c <= radius (no bound where infinite), or p'c = radius.
    level : float
        Factor of p'c, >= 0.
    signed : bool
        Whether weights have either sign.
    batch : int
        Atoms that may enter at once.
    max_pivots : int
        Bound on full and drop steps.

    Returns
    -------
    c : (m,) weights, feasible whatever the status, and never worse than the feasible start
    outcome : QPOutcome
    """
    point = np.array(weights, dtype=np.float64)
    size = point.size
    matrix = _checks.symmetric(gram, size)
    line = _checks.weights(linear, "linear", size)
    prices = None if price is None else _checks.positive_weights(price, "price", size)
    if not radius > 0 or (equality and (radius == math.inf or not size)):
        raise ValueError(
            f"radius must be > 0 (finite, for at least one atom, where equality), got {radius!r} "
            f"for {size} atoms"
        )
    load_blas()
    state = ActiveFactor() if state is None else state
    state.reserve(size)
    counts = np.array([state.count, state.updates, 0], dtype=np.int64)
    sigma = np.array([state.sigma])
    code = _native.active_set(
        matrix, line, from_gradient, prices, coupling, ridge, radius, equality, level, signed,
        state.factor, state.order, counts, sigma, point, batch, max_pivots,
    )  # fmt: skip
    if code > QPStatus.NOT_FINITE:
        raise ValueError(
            f"state lists atoms in use beyond the {size} there are, or one twice; "
            "call its forget where atoms move"
        )
    state.count, state.updates, made = counts.tolist()
    state.sigma = float(sigma[0])
    if code == QPStatus.NOT_FINITE:
        state.forget()
    return point, QPOutcome(QPStatus(code), made)
