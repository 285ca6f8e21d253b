"""Active-set method for quadratic programs over a cone, a simplex, or with an l1 penalty."""

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
    """Termination status of the active-set method."""

    OPTIMAL = 0
    #: The maximum number of pivots was reached; the weights are feasible and no worse than the
    #: start.
    PIVOT_LIMIT = 1
    #: The gradient of an active atom stayed above rounding: the problem is unbounded, or too
    #: ill-conditioned.
    INEXACT = 2
    #: Input or steps are not finite.
    NOT_FINITE = 3


@dataclass(frozen=True, slots=True)
class QPOutcome:
    """The termination status of a call, and its number of pivots (full steps and drop steps)."""

    status: QPStatus
    pivots: int


class ActiveFactor:
    """A warm start: the active atoms and the Cholesky factor of their submatrix of the Hessian.

    It is valid while the Hessian's entries among these atoms stay the same; call ``forget`` if they
    change.

    Attributes
    ----------
    factor : (capacity, capacity) float64
        The Cholesky factor is its leading submatrix of ``count`` rows and columns.
    order : (capacity,) int64
        Its first ``count`` entries are the active atoms, in the order of the rows of the factor.
    count, updates : int
        Number of active atoms, and number of changes since the factor was computed afresh.
    sigma : float
        If p'c = radius held at the last point, the number for which sigma p p' was added to the
        Hessian before factoring; else 0.
    """

    __slots__ = ("count", "factor", "order", "sigma", "updates")

    def __init__(self) -> None:
        """Begin with no active atom."""
        self.factor: Array = np.zeros((0, 0))
        self.order: Positions = np.zeros(0, dtype=np.int64)
        self.count = 0
        self.updates = 0
        self.sigma = 0.0

    @property
    def active(self) -> Positions:
        """The indices of the active atoms, in the order of the factor's rows."""
        return self.order[: self.count]

    def forget(self) -> None:
        """Discard the factor, so that the next call computes a new one."""
        self.count = 0

    def moved(self, places: Positions) -> ActiveFactor:
        """Return the factor for renumbered atoms: atom i now has the number ``places[i]``."""
        copy = ActiveFactor()
        copy.factor = self.factor.copy()
        copy.order = self.order.copy()
        copy.order[: self.count] = places[self.active]
        copy.count = self.count
        copy.updates = self.updates
        copy.sigma = self.sigma
        return copy

    def reserve(self, size: int) -> None:
        """Allocate memory for ``size`` atoms and half as many more, so that growth is cheap.

        The factor so far is kept.
        """
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
    """Minimize 1/2 c'(H + coupling p p' + ridge I)c - linear'c + level p'c over c >= 0.

    A finite ``radius`` adds the constraint p'c <= radius. With ``signed``, c may have either sign
    and p'c becomes p'|c|. So ``level`` gives the lasso, ``coupling`` a squared l1 penalty, and
    ``radius`` an l1 ball.

    This is the active-set method of Algorithm 2 in Vinyes, Obozinski 2017 (Nocedal, Wright 2006,
    chapter 16). A full step goes to the minimum over the active atoms. A drop step stops when a
    weight reaches zero, and removes that atom from the active ones. After a full step, the inactive
    atom of largest decrease becomes active. A pivot costs O(m k) for m atoms of which k are active.
    Linearly dependent and repeated atoms are allowed.

    Parameters
    ----------
    gram : (m, m) float64, rows contiguous
        H, symmetric positive semidefinite.
    linear : (m,)
        The linear term; if ``from_gradient``, the gradient H c + ridge c - linear at ``weights``.
    weights : (m,)
        Warm start, which is first made feasible; its nonzero entries are the active atoms.
    state : ActiveFactor
        The factor of an earlier call with the same H, price, coupling and ridge among the active
        atoms; updated in place. If None, a new factor is computed.
    price : (m,) float64 > 0, optional
        p; all ones if None.
    coupling, ridge : float
        Weights of the quadratic terms, >= 0.
    radius, equality
        The constraint p'c <= radius (none if infinite), or p'c = radius if ``equality``.
    level : float
        Factor of p'c, >= 0.
    signed : bool
        Whether weights may have either sign.
    from_gradient : bool
        Whether ``linear`` is a gradient.
    batch : int
        Maximum number of atoms that become active at once.
    max_pivots : int
        Maximum number of full and drop steps.

    Returns
    -------
    c : (m,) weights, feasible whatever the status, and never worse than the feasible start
    outcome : QPOutcome
    """
    point = np.array(weights, dtype=np.float64)
    size = point.size
    matrix = _checks.symmetric(gram, size)
    linear_term = _checks.weights(linear, "linear", size)
    prices = None if price is None else _checks.positive_weights(price, "price", size)
    if not radius > 0 or (equality and (radius == math.inf or not size)):
        raise ValueError(
            f"radius must be > 0 (finite, for at least one atom, where equality), got {radius!r} "
            f"for {size} atoms"
        )
    load_blas()
    state = ActiveFactor() if state is None else state
    state.reserve(size)
    # The kernel updates these arrays: active atoms, updates of the factor, pivots; and sigma.
    counts = np.array([state.count, state.updates, 0], dtype=np.int64)
    sigma = np.array([state.sigma])
    code = _native.active_set(
        matrix, linear_term, from_gradient, prices, coupling, ridge, radius, equality, level,
        signed, state.factor, state.order, counts, sigma, point, batch, max_pivots,
    )  # fmt: skip
    # A larger code than that of any status means that ``state`` is invalid.
    if code > QPStatus.NOT_FINITE:
        raise ValueError(
            f"state lists atoms in use beyond the {size} there are, or one twice; "
            "call its forget where atoms move"
        )
    state.count, state.updates, n_steps = counts.tolist()
    state.sigma = float(sigma[0])
    if code == QPStatus.NOT_FINITE:
        state.forget()
    return point, QPOutcome(QPStatus(code), n_steps)
