"""Selection against its twins."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from atomlearn import _kernels as kernels
from tests.oracles import kernels as reference

DTYPES = [np.float32, np.float64]


def adversarial(rng, size):
    """Vectors that mislead a sampled threshold."""
    yield "gaussian", rng.standard_normal(size)
    yield "cauchy", rng.standard_cauchy(size)
    yield "ties", rng.integers(-2, 3, size).astype(float)
    yield "constant", np.full(size, -3.0)
    yield "zeros", np.zeros(size)
    yield "one spike", np.eye(1, size, size // 2)[0]
    yield "sorted", np.linspace(-1, 1, size)
    yield "periodic", np.where(np.arange(size) % 128 == 5, 7.0, 0.1) * rng.random(size)
    yield "infinite", np.where(rng.random(size) < 0.01, -np.inf, rng.standard_normal(size))
    yield "tiny", rng.standard_normal(size) * 1e-310


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 50, 5000, 20_001])
def test_top_equals_a_stable_sort(size, dtype):
    rng = np.random.default_rng(0)
    for name, values in adversarial(rng, size):
        z = values.astype(dtype)
        for count in (1, 2, size // 100, size // 3, size - 1, size, size + 5):
            if count < 1:
                continue
            indices, found = kernels.top_magnitude(z, count)
            expected_indices, expected = reference.top_magnitude(z, count)
            np.testing.assert_array_equal(indices, expected_indices, err_msg=f"{name} {count}")
            np.testing.assert_array_equal(found, expected)


@given(
    z=hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(allow_nan=False)),
    count=st.integers(1, 70),
)
@example(z=np.array([np.finfo(np.float64).max, 1.89417751e300]), count=2)
def test_top_of_any_floats(z, count):
    indices, values = kernels.top_magnitude(z, count)
    expected_indices, expected = reference.top_magnitude(z, count)
    np.testing.assert_array_equal(indices, expected_indices)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("position", [0, -1])
def test_top_refuses_nan(size, position):
    z = np.random.default_rng(1).standard_normal(size)
    z[position] = np.nan
    with pytest.raises(ValueError, match="z holds NaN"):
        kernels.top_magnitude(z, 2)


def test_top_with_many_threads_keeps_the_order_of_ties():
    from threadpoolctl import threadpool_limits

    z = np.tile([1.0, -1.0, 0.5], 100_000)
    with threadpool_limits(limits=4, user_api="openmp"):
        indices, _ = kernels.top_magnitude(z, 5000)
    np.testing.assert_array_equal(indices, np.flatnonzero(np.abs(z) == 1)[:5000])


def test_top_of_nothing():
    indices, values = kernels.top_magnitude(np.zeros(0), 3)
    assert indices.shape == values.shape == (0,)
    assert indices.dtype == np.int64


def test_top_accepts_strides_and_read_only():
    z = np.random.default_rng(2).standard_normal(100)
    z.flags.writeable = False
    np.testing.assert_array_equal(
        kernels.top_magnitude(z[::2], 4)[0], reference.top_magnitude(z[::2], 4)[0]
    )
