"""k-support prox and gauge against exact rational arithmetic, and the four alternatives."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atomlearn import _kernels as kernels
from atomlearn.testing.cases import each
from tests.oracles import exact as exact_twins
from tests.oracles.covering import in_turn

ALTERNATIVES = ["exhaustive", "box_norm", "binary_search", "two_step"]
KINDS = ["gaussian", "cauchy", "ties", "zeros", "constant", "sixteen decades", "geometric"]


def vector(rng, kind, size):
    if kind == "gaussian":
        return rng.standard_normal(size)
    if kind == "cauchy":
        return rng.standard_cauchy(size)
    if kind == "ties":
        return rng.integers(-3, 4, size).astype(float)
    if kind == "zeros":
        return rng.standard_normal(size) * (rng.random(size) < 0.4)
    if kind == "constant":
        return np.full(size, 0.1) * rng.choice([-1, 1], size)
    if kind == "sixteen decades":
        return rng.standard_normal(size) * 10.0 ** rng.uniform(-8, 8, size)
    return 0.9 ** (np.arange(size) % 500) * rng.choice([-1, 1], size)


def relative_error(w, exact):
    """max |w - exact| / max |exact|, in exact arithmetic."""
    scale = max(abs(x) for x in exact)
    if scale == 0:
        return float(np.abs(w).max())
    worst = max(abs(Fraction(a) - b) for a, b in zip(w.tolist(), exact, strict=True))
    return float(worst / scale)


def assert_prox_is_exact(v, k, step):
    w, t = kernels.ksupport_prox(v, k, step)
    assert w.dtype == v.dtype
    exact = exact_twins.exact_ksupport_prox(v, k, step)
    if v.dtype == np.float32:  # one rounding of the exact result to float32
        rounded = np.array([float(x) for x in exact]).astype(np.float32)
        np.testing.assert_array_max_ulp(w, rounded, maxulp=1)
    else:
        assert relative_error(w, exact) <= 1e-15
    magnitudes = [abs(Fraction(x)) for x in v.tolist()]
    t_exact = exact_twins.exact_scaling(magnitudes, k, Fraction(step))
    if t_exact is None:
        assert t == math.inf
    elif t != pytest.approx(float(t_exact), rel=1e-14):
        # Where the sum stays at k for a while, any t of there gives the same point.
        shares = [min(max(Fraction(t) * a - Fraction(step), Fraction(0)), Fraction(1))
                  for a in magnitudes]  # fmt: skip
        assert abs(sum(shares) - k) <= Fraction(1, 10**14) * k


def assert_gauge_is_exact(w, k):
    square = exact_twins.exact_ksupport_squared_gauge(w, k)
    value = kernels.ksupport_gauge(w, k)
    assert abs(Fraction(value) ** 2 - square) <= Fraction(1, 10**14) * square


@pytest.mark.parametrize(
    ("kind", "scale", "dtype"), in_turn(KINDS, [1e-8, 1.0, 1e8], [np.float32, np.float64])
)
def test_small_vectors_against_rationals(kind, scale, dtype):
    rng = np.random.default_rng(KINDS.index(kind))
    for size in (1, 2, 5, 23):
        v = (scale * vector(rng, kind, size)).astype(dtype)
        for k in range(1, size + 2):
            for step in 10.0 ** rng.uniform(-10, 10, 2):
                assert_prox_is_exact(v, k, float(step))
            assert_gauge_is_exact(v, k)


@pytest.mark.parametrize("kind", KINDS)
def test_large_vectors_against_rationals(kind):
    """Large enough for samples, several rounds and compaction."""
    number = KINDS.index(kind)
    rng = np.random.default_rng(100 + number)
    cases = [(1500, 1, 1e-6), (2000, 90, 0.5), (2500, 2000, 1e10), (1300, 1299, 3.0)]
    size, k, step = cases[number % 4]
    assert_prox_is_exact(vector(rng, kind, size), k, step)


@pytest.mark.parametrize("kind", ["gaussian", "cauchy", "ties"])
@pytest.mark.parametrize("k", [1, 40, 1000])
def test_large_gauge_against_rationals(kind, k):
    assert_gauge_is_exact(vector(np.random.default_rng(k), kind, 3000), k)


@given(
    values=st.lists(st.integers(-(2**20), 2**20).map(lambda m: m / 64), min_size=1, max_size=25),
    k=st.integers(1, 26),
    exponent=st.integers(-30, 30),
)
def test_any_dyadic_vector_is_exact(values, k, exponent):
    v = np.array(values)
    assert_prox_is_exact(v, k, 2.0**exponent)
    assert_gauge_is_exact(v, k)


@given(
    values=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=12),
    k=st.integers(1, 13),
    step=st.floats(1e-10, 1e10),
)
@example(values=[1.0, 1.8311480787852912e298, 1.8311480787852912e298], k=1, step=9817300717.0)
@example(values=[2.225e-311] * 2, k=1, step=8625.0)
@example(values=[2.225073858507e-311] * 2, k=1, step=8625.0)
def test_any_floats_without_overflow(values, k, step):
    v = np.array(values)
    w, t = kernels.ksupport_prox(v, k, step)
    assert t > 0
    exact = exact_twins.exact_ksupport_prox(v, k, step)
    # Denormal numbers round absolutely, to half of 2^-1074, and a step multiplies what was rounded.
    tiny = Fraction(1, 10**320) + Fraction(step) / 2**1074
    scale = max(abs(x) for x in exact)
    for mine, other in zip(w.tolist(), exact, strict=True):
        assert abs(Fraction(mine) - other) <= Fraction(1, 10**15) * scale + tiny
    assert kernels.ksupport_gauge(v / 16, k) < math.inf


@pytest.mark.parametrize("method", ALTERNATIVES[1:])
def test_alternatives_agree_on_large_vectors(method):
    v = np.random.default_rng(8).standard_normal(20_000)
    for k in (1, 300, 10_000, 19_999):
        w, t = kernels.ksupport_prox(v, k, 0.7, method)
        ours, our_t = kernels.ksupport_prox(v, k, 0.7)
        np.testing.assert_allclose(w, ours, atol=1e-10)
        assert t == pytest.approx(our_t, rel=1e-8)  # their prefix sums cost digits


def any_vector(rng):
    """Up to fifteen entries of any scale, with ties and zeros; k and a step of any size."""
    size = int(rng.integers(1, 16))
    if rng.random() < 0.3:
        v = 10.0 ** rng.uniform(-150, 150, size) * rng.choice([-1, 1], size)
    else:
        v = vector(rng, KINDS[int(rng.integers(len(KINDS)))], size)
    return v, int(rng.integers(1, size + 1)), float(10.0 ** rng.uniform(-8, 8))


@pytest.mark.parametrize("method", ALTERNATIVES)
def test_the_papers_methods_answer_on_every_input(method):
    # Sums that cancelled once made two of them give up on a fifth of ordinary vectors.
    rng = np.random.default_rng(11)
    for _ in range(300):
        v, k, step = any_vector(rng)
        w, _ = kernels.ksupport_prox(v, k, step, method)
        exact = np.array([float(x) for x in exact_twins.exact_ksupport_prox(v, k, step)])
        # What they take from each entry is rounded in units of the largest entry.
        np.testing.assert_allclose(w, exact, rtol=0, atol=4e-15 * np.abs(v).max())


def test_threads_do_not_change_the_answer():
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(9)
    for kind in KINDS:
        v = vector(rng, kind, 200_000)
        answers = []
        for limit in (1, 3):
            with threadpool_limits(limits=limit, user_api="openmp"):
                answers.append(
                    (*kernels.ksupport_prox(v, 5000, 0.3), kernels.ksupport_gauge(v, 77))
                )
        np.testing.assert_array_equal(answers[0][0], answers[1][0])
        assert answers[0][1] == pytest.approx(answers[1][1], rel=1e-15)
        assert answers[0][2] == pytest.approx(answers[1][2], rel=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_large_solutions_satisfy_their_equation(kind):
    """sum d = k and w = v d / (d + step), on vectors too large for rationals."""
    rng = np.random.default_rng(10)
    v = vector(rng, kind, 300_000)
    for k, step in [(1, 0.1), (1000, 1.0), (100_000, 10.0), (250_000, 1e-3)]:
        w, t = kernels.ksupport_prox(v, k, step)
        if np.count_nonzero(v) <= k:
            assert t == math.inf
            np.testing.assert_allclose(w, v / (1 + step), rtol=1e-15)
            continue
        d = np.clip(t * np.abs(v) - step, 0, 1)
        assert math.fsum(d) == pytest.approx(k, rel=1e-10)
        np.testing.assert_allclose(w, v * d / (d + step), rtol=1e-9, atol=1e-12 * np.abs(v).max())


@pytest.mark.parametrize("size", [4, 50_000])
def test_bad_input_is_named_with_a_remedy(size):
    v = np.ones(size)
    for bad in (np.nan, np.inf):
        spoiled = np.linspace(1, 2, size)
        spoiled[size // 2] = bad
        for k in (1, size):
            with pytest.raises(ValueError, match="NaN or infinity"):
                kernels.ksupport_prox(spoiled, k, 1.0)
            with pytest.raises(ValueError, match="NaN or infinity"):
                kernels.ksupport_gauge(spoiled, k)
            for method in ALTERNATIVES:
                with pytest.raises(ValueError, match="NaN or infinity"):
                    kernels.ksupport_prox(spoiled, k, 1.0, method)
    for step in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="step must be finite and > 0"):
            kernels.ksupport_prox(v, 1, step)
    with pytest.raises(TypeError, match="float32 or float64"):
        kernels.ksupport_prox(np.ones(3, dtype=int), 1, 1.0)


def test_nothing_gives_nothing():
    w, t = kernels.ksupport_prox(np.zeros(0), 3, 1.0)
    assert w.shape == (0,)
    assert t == math.inf
    assert kernels.ksupport_gauge(np.zeros(0), 3) == 0.0
    assert kernels.ksupport_gauge(np.zeros(9), 3) == 0.0


@each("seed", range(30))
def test_the_multiplier_makes_one_prox_of_the_other(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    k = int(rng.integers(1, n + 1))
    v = rng.choice([rng.standard_normal(n), rng.standard_cauchy(n), rng.integers(-3, 4, n)])
    v = v / max(np.abs(v).max(), 1.0)
    if not v.any():
        v[0] = 1.0
    polar = float(np.linalg.norm(kernels.top_magnitude(v, k)[1]))
    gauge = kernels.ksupport_gauge(v, k)
    share = rng.uniform(0.01, 0.99)
    for penalized, other in ((True, polar), (False, gauge)):
        amount, guess = share * other, 10.0 ** rng.uniform(-5, 5)
        mu = kernels.ksupport_multiplier(v, k, amount, penalized, guess)
        reached = kernels.ksupport_gauge(kernels.ksupport_prox(v, k, mu)[0], k)
        assert (mu if penalized else 1.0) * reached == pytest.approx(amount, rel=1e-11)


def test_the_multiplier_refuses_what_is_not_finite():
    with pytest.raises(ValueError, match="NaN or infinity"):
        kernels.ksupport_multiplier(np.array([1.0, np.nan]), 1, 0.5, True, 1.0)
