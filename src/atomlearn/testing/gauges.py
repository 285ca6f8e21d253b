"""Gauges as CVXPY models: for an independent optimum of a problem.

One table from the class of a norm to its model; norms that lift are modeled by their lift. A norm
that is neither is refused, so that no problem is ever compared with the wrong optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atomlearn.core import L1, L2, Groups, KSupport, Lift, LInf, Nonnegative, Norm, Scaled

#: An expression of the gauge at the variable w, and the constraints that go with it.
Model = tuple[Any, list[Any]]


def gauge_model(cp: Any, norm: Norm, w: Any) -> Model:
    """Return the gauge of ``norm`` at the CVXPY expression w; raise where no model is known."""
    if (model := GAUGES.get(type(norm))) is not None:
        return model(cp, norm, w)
    lift = norm.lift(w.shape[0])
    if lift is None:
        raise TypeError(
            f"no CVXPY model of {norm!r}: add one for {type(norm).__name__} to "
            "atomlearn.testing.gauges.GAUGES"
        )
    return _lifted(cp, lift, w)


def _lifted(cp: Any, lift: Lift, w: Any) -> Model:
    """gauge(w) = min { inner(u) : L u = w }."""
    u = cp.Variable(lift.expansion.shape[1])
    gauge, constraints = gauge_model(cp, lift.norm, u)
    return gauge, [*constraints, lift.expansion.matrix @ u == w]


def _scaled(cp: Any, norm: Scaled, w: Any) -> Model:
    """Return the CVXPY model of a scaled norm."""
    gauge, constraints = gauge_model(cp, norm.norm, w)
    return norm.factor * gauge, constraints


def _nonnegative(cp: Any, norm: Nonnegative, w: Any) -> Model:
    """Return the CVXPY model of a norm for w >= 0."""
    gauge, constraints = gauge_model(cp, norm.norm, w)
    return gauge, [*constraints, w >= 0]


def _sizes(cp: Any, norm: Groups | KSupport, w: Any) -> Model:
    """Return variables >= the l2 norm of each group; w itself if there are no groups."""
    if norm.groups is None:
        return w, []
    partition = norm.partition(w.shape[0])
    sizes = cp.Variable(partition.n_groups)
    members = [np.flatnonzero(partition.labels == g) for g in range(partition.n_groups)]
    return sizes, [cp.norm(w[columns]) <= sizes[g] for g, columns in enumerate(members)]


def _groups(cp: Any, norm: Groups, w: Any) -> Model:
    """Return the CVXPY model of a group norm."""
    sizes, constraints = _sizes(cp, norm, w)
    weights = norm.parts(w.shape[0])[1]
    return cp.norm1(cp.multiply(weights, sizes)), constraints


def _ksupport(cp: Any, norm: KSupport, w: Any) -> Model:
    """Return t >= the k-support norm of sizes: sizes_g^2 <= d_g e_g, sum e <= t, sum d <= k t."""
    sizes, constraints = _sizes(cp, norm, w)
    t = cp.Variable(nonneg=True)
    count = sizes.shape[0]
    d = cp.Variable(count, nonneg=True)
    e = cp.Variable(count, nonneg=True)
    cone = cp.SOC(d + e, cp.vstack([2 * sizes, d - e]), axis=0)
    return t, [*constraints, cone, cp.sum(e) <= t, d <= t, cp.sum(d) <= norm.k * t]


#: Class of a norm -> its model. A new norm is one line here, or none if it lifts.
GAUGES: dict[type[Norm], Callable[[Any, Any, Any], Model]] = {
    L1: lambda cp, norm, w: (cp.norm1(w), []),
    L2: lambda cp, norm, w: (cp.norm(w), []),
    LInf: lambda cp, norm, w: (cp.norm_inf(w), []),
    Scaled: _scaled,
    Nonnegative: _nonnegative,
    Groups: _groups,
    KSupport: _ksupport,
}
