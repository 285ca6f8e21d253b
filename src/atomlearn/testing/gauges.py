"""Gauges as CVXPY models: for an independent optimum of a problem.

A table has the model of each class of norms. A norm that is not in the table is modeled by its
lift: min { inner(u) : L u = w }, with a simpler norm ``inner`` over more coefficients u. Norms with
neither are refused, so that no problem is ever compared with the wrong optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atomlearn.core import L1, L2, Groups, KSupport, Lift, LInf, Nonnegative, Norm, Scaled

#: An expression of the gauge at the variable w, and the constraints that go with it.
Model = tuple[Any, list[Any]]


def gauge_model(cp: Any, norm: Norm, w: Any) -> Model:
    """Return the gauge of ``norm`` at the CVXPY expression ``w``, and its constraints.

    ``cp`` is the module cvxpy, as in all functions here. Raise TypeError if no model is known.
    """
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
    """Return the model of a lifted norm, min { inner(u) : L u = w }; ``lift`` has L and inner."""
    lifted = cp.Variable(lift.expansion.shape[1])
    gauge, constraints = gauge_model(cp, lift.norm, lifted)
    return gauge, [*constraints, lift.expansion.matrix @ lifted == w]


def _scaled(cp: Any, norm: Scaled, w: Any) -> Model:
    """Return the model of a scaled norm at ``w``: factor times that of its inner norm."""
    gauge, constraints = gauge_model(cp, norm.norm, w)
    return norm.factor * gauge, constraints


def _nonnegative(cp: Any, norm: Nonnegative, w: Any) -> Model:
    """Return the model of a norm for w >= 0 only."""
    gauge, constraints = gauge_model(cp, norm.norm, w)
    return gauge, [*constraints, w >= 0]


def _sizes(cp: Any, norm: Groups | KSupport, w: Any) -> Model:
    """Return variables >= the l2 norm of ``w`` over each group; w itself without groups.

    The groups are those of ``norm``.
    """
    if norm.groups is None:
        return w, []
    partition = norm.partition(w.shape[0])
    sizes = cp.Variable(partition.n_groups)
    members = [np.flatnonzero(partition.labels == g) for g in range(partition.n_groups)]
    return sizes, [cp.norm(w[columns]) <= sizes[g] for g, columns in enumerate(members)]


def _groups(cp: Any, norm: Groups, w: Any) -> Model:
    """Return the model of a group norm at ``w``: the weighted sum of the sizes of its groups."""
    sizes, constraints = _sizes(cp, norm, w)
    weights = norm.parts(w.shape[0])[1]
    return cp.norm1(cp.multiply(weights, sizes)), constraints


def _ksupport(cp: Any, norm: KSupport, w: Any) -> Model:
    """Return the model of the k-support norm at ``w``: the smallest t for which d and e exist.

    Let s_g be the lengths of the groups, or the entries of w without groups. The conditions are
    s_g^2 <= d_g e_g (a second-order cone), sum(e) <= t, d <= t and sum(d) <= k t. With d = t theta
    this is t^2 >= sum s_g^2 / theta_g for some 0 <= theta <= 1, sum(theta) <= k.
    """
    sizes, constraints = _sizes(cp, norm, w)
    t = cp.Variable(nonneg=True)
    count = sizes.shape[0]
    d = cp.Variable(count, nonneg=True)
    e = cp.Variable(count, nonneg=True)
    # s^2 <= d e is the cone ||(2 s, d - e)|| <= d + e.
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
