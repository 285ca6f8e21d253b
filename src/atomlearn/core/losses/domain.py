"""The domain of conjugates: u_i / s_i within bounds, up to a few roundings."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import EPS, Array

#: Dividing u_i = s_i a_i by s_i, where a_i is on the edge of the domain, may give a point outside
#: by a rounding error or two. Points beyond this relative tolerance are outside.
EDGE_TOLERANCE = 16 * EPS
#: Larger exponents are cut to this one: exp(700) is nearly the largest float. Gradients with a cut
#: exponent are still dual points. Values of the loss are not cut but infinite, and prove no gap.
LARGEST_EXPONENT = 700.0


def weighted_sum(weight: Array, values: Array) -> float:
    """Return sum_i s_i values_i for s = ``weight``, which may be one number, broadcast.

    values : (n_samples,).
    """
    if weight.strides == (0,) and weight.size:
        return float(weight[0]) * float(values.sum())
    return float(weight.dot(values))


def per_unit_weight(dual: Array, weight: Array) -> Array | None:
    """Return u_i / s_i, (n_samples,), for u = ``dual`` and s = ``weight``; 0 if both are 0.

    None if some s_i = 0 has u_i != 0: such a dual point has an infinite conjugate.
    """
    if weight.all():
        return dual / weight
    if np.any(dual[weight == 0.0]):
        return None
    return np.divide(dual, weight, out=np.zeros_like(dual), where=weight != 0.0)


def slopes_within(low: float, high: float, dual: Array, weight: Array) -> Array | None:
    """Return u_i / s_i, clipped to [low, high] with low <= 0 <= high; None if one is outside.

    u = ``dual`` and s = ``weight``. A value may exceed an edge by a few roundings, relative to the
    edge, so that an edge at 0 has no tolerance. Clipping changes a slope by no more than that.
    """
    slope = per_unit_weight(dual, weight)
    edge = 1.0 + EDGE_TOLERANCE
    # "Not all inside" instead of "any outside", because no comparison holds for NaN.
    if slope is None or not ((slope >= edge * low) & (slope <= edge * high)).all():
        return None
    # Faster than np.clip, for few samples.
    np.maximum(slope, low, out=slope)
    return np.minimum(slope, high, out=slope)


def where_weighted(prediction: Array, weight: Array) -> Array:
    """Return ``prediction``, with 0 where the sample weight ``weight`` is 0.

    Such samples have no effect, and their exponentials must not overflow.
    """
    return prediction if weight.all() else np.where(weight > 0.0, prediction, 0.0)
