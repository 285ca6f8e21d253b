"""Hypothesis properties of the norms: whatever vector, whatever k, whatever amount."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from atomlearn.core import ArrayScores
from atomlearn.norms import L1, L2, ElasticNetNorm, Groups, KSupport, Nonnegative, Scaled
from atomlearn.testing import tolerances

SAME = tolerances.SAME_FLOAT64
ENTRIES = st.one_of(
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e-8, -1e8]),
)
VECTORS = arrays(np.float64, st.integers(1, 12), elements=ENTRIES)
COUNTS = st.integers(1, 14)
AMOUNTS = st.floats(1e-6, 1e6)
FORMS = ("penalized", "squared", "constrained")


def norms_of(k, size):
    labels = np.arange(size) % 3 - (np.arange(size) % 4 == 3) * 5
    return [
        L1(), L2(), KSupport(k), KSupport(k, labels), ElasticNetNorm(k), Groups(labels),
        Scaled(KSupport(k), 3.0), Nonnegative(KSupport(k)), Nonnegative(ElasticNetNorm(k)),
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@given(v=VECTORS, k=COUNTS, amount=AMOUNTS)
def test_first_order_conditions(form, v, k, amount):
    """q = v - w is in m times the subdifferential of the gauge at w."""
    scale = float(np.abs(v).max()) or 1.0
    for norm in norms_of(k, v.size):
        result = norm.prox_point(v, amount, form)
        w, q = result.point / scale, (v - result.point) / scale
        gauge, polar = norm.value(w), norm.polar(ArrayScores(q))
        size = (1.0 + gauge + polar) * (1.0 + amount if form == "squared" else 1.0)
        assert abs(result.gauge / scale - gauge) <= SAME * size
        if form == "constrained":
            assert gauge <= amount / scale + SAME * size
            assert abs(w @ q - amount / scale * polar) <= SAME * size**2
        else:
            multiplier = amount / scale if form == "penalized" else amount * gauge
            assert polar <= multiplier + SAME * size
            assert abs(w @ q - multiplier * gauge) <= SAME * size**2


@given(VECTORS, COUNTS, st.floats(1e-3, 1e3))
def test_jacobian_maps_v_to_the_point(v, k, step):
    """The squared map is homogeneous of degree one, so J v = prox(v) (Euler)."""
    for norm in norms_of(k, v.size):
        point = norm.prox_point(v, step, "squared")
        product = point.jacobian().apply(v)
        assert_allclose(product, point.point, atol=1e-10 * float(np.abs(v).max()))


@pytest.mark.parametrize("shrink", [0.5, 1e-8, 1e-20, 1e-31, 1e-90])
@pytest.mark.parametrize("k", [1, 2])
def test_projections_far_inside_keep_a_jacobian(k, shrink):
    """k = 1, a radius far below the gauge: entries of d cancel, and their Jacobian once was 0/0."""
    rng = np.random.default_rng(5)
    for v in (np.array([0.04167818, 0.12167086, 0.0]), rng.normal(size=4)):
        radius = shrink * float(np.abs(v).sum())
        point = KSupport(k=k).prox_point(v, radius, "constrained")
        dense = point.jacobian().dense()
        assert np.isfinite(dense).all()
        np.testing.assert_allclose(dense, dense.T, atol=1e-12)
        values = np.linalg.eigvalsh(dense)
        assert -1e-9 <= values.min() <= values.max() <= 1 + 1e-9
