"""Dense kernels against their NumPy twins: every order, precision, layout and row subset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atomlearn import _kernels as kernels
from tests.oracles import kernels as reference
from tests.oracles.covering import in_turn

DTYPES = [np.float32, np.float64]
LAYOUTS = ["C", "F", "sliced C", "sliced F", "reversed C", "read-only", "memory map"]
SHAPES = [
    (1, 1),
    (1, 40),
    (40, 1),
    (3, 5),
    (37, 23),
    (300, 2100),
    (2100, 300),
    (12, 40_000),
    (40_000, 12),
]


def laid_out(values, layout, tmp_path):
    """The same values in another memory layout."""
    n, p = values.shape
    if layout == "C":
        return np.ascontiguousarray(values)
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "sliced C":
        wide = np.full((2 * n, p + 7), np.nan, dtype=values.dtype)
        wide[::2, 3 : p + 3] = values
        return wide[::2, 3 : p + 3]
    if layout == "sliced F":
        wide = np.full((n + 7, 3 * p), np.nan, dtype=values.dtype, order="F")
        wide[2 : n + 2, ::3] = values
        return wide[2 : n + 2, ::3]
    if layout == "reversed C":
        return np.ascontiguousarray(values[::-1])[::-1]
    if layout == "read-only":
        copy = np.array(values, order="F")
        copy.flags.writeable = False
        return copy
    path = tmp_path / "values.npy"
    np.save(path, values)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_equal_their_twins(layout, dtype, tmp_path):
    for shape in SHAPES if layout in "CF" else SHAPES[:5]:
        check_products(shape, layout, dtype, tmp_path)


def check_products(shape, layout, dtype, tmp_path):
    rng = np.random.default_rng(0)
    n, p = shape
    values = rng.standard_normal(shape).astype(dtype)
    X = laid_out(values, layout, tmp_path)
    v, w, c = rng.standard_normal(n), rng.standard_normal(p), rng.random(n)
    v[rng.random(n) < 0.3] = 0.0
    w[rng.random(p) < 0.3] = 0.0
    for name, arguments in [
        ("scores_dense", (v,)),
        ("predict_dense", (w,)),
        ("scores_dense", (None, None, True)),
        ("scores_dense", (c, None, True)),
    ]:
        result = getattr(kernels, name)(X, *arguments)
        expected = getattr(reference, name)(values, *arguments)
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13 * np.sqrt(n * p))


@pytest.mark.parametrize(("size", "order", "dtype"), in_turn([0, 9, 77], "CF", DTYPES))
def test_row_subsets_need_no_copy(order, dtype, size):
    rng = np.random.default_rng(1)
    X = np.asarray(rng.standard_normal((60, 1500)), dtype=dtype, order=order)
    rows = rng.integers(0, 60, size)  # repeats, any order
    v, w, c = rng.standard_normal(size), rng.standard_normal(1500), rng.random(size)
    for name, *arguments in [
        ("scores_dense", v, rows),
        ("predict_dense", w, rows),
        ("scores_dense", c, rows, True),
    ]:
        result = getattr(kernels, name)(X, *arguments)
        expected = getattr(reference, name)(X, *arguments)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("order", "CF")
def test_float32_data_is_summed_in_float64(order):
    # 1e8 + many ones: a float32 sum loses every one of them.
    X = np.ones((40_001, 6), dtype=np.float32, order=order)
    X[0] = 1e8
    np.testing.assert_array_equal(kernels.scores_dense(X, np.ones(40_001)), 1e8 + 40_000)
    np.testing.assert_array_equal(
        kernels.predict_dense(np.asarray(X.T, order=order), np.ones(40_001)), 1e8 + 40_000
    )


@pytest.mark.parametrize(
    ("layout", "dtype", "n"), in_turn(["C", "F", "sliced C", "sliced F"], DTYPES, [1, 61])
)
def test_gather_equals_fancy_indexing(n, layout, dtype, tmp_path):
    rng = np.random.default_rng(3)
    values = rng.standard_normal((n, 400)).astype(dtype)
    X = laid_out(values, layout, tmp_path)
    columns = rng.integers(0, 400, 130)
    rows = rng.integers(0, n, 2 * n)
    for subset in (None, rows):
        block = kernels.gather_dense(X, columns, subset)
        assert block.dtype == np.float64
        assert block.flags.f_contiguous
        np.testing.assert_array_equal(block, reference.gather_dense(values, columns, subset))
    assert kernels.gather_dense(X, np.zeros(0, dtype=np.int64)).shape == (n, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 7, 16, 20_000])
def test_pair_sums(n, dtype):
    rng = np.random.default_rng(4)
    X = np.asfortranarray(rng.standard_normal((n, 30)).astype(dtype))[:, ::2]
    first, second = rng.integers(0, 15, (2, 200))
    v = rng.standard_normal(n)
    sums = kernels.pair_sums_dense(X, first, second, v)
    np.testing.assert_allclose(
        sums, reference.pair_sums_dense(X, first, second, v), rtol=1e-12, atol=1e-14 * n
    )
    # One by one, and in another company: the same bits.
    alone = [
        kernels.pair_sums_dense(X, *pair, v)[0] for pair in np.stack([first, second], 1)[..., None]
    ]
    np.testing.assert_array_equal(sums, alone)
    np.testing.assert_array_equal(sums, kernels.pair_sums_dense(X, second, first, v))


@given(
    n=st.integers(0, 70),
    p=st.integers(0, 70),
    order=st.sampled_from("CF"),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_small_shape(n, p, order, dtype, seed):
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.standard_normal((n, p)), dtype=dtype, order=order)
    v, w = rng.standard_normal(n), rng.standard_normal(p)
    np.testing.assert_allclose(
        kernels.scores_dense(X, v), reference.scores_dense(X, v), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        kernels.predict_dense(X, w), reference.predict_dense(X, w), rtol=1e-12, atol=1e-12
    )


def test_more_threads_change_nothing_but_rounding():
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(4)
    for shape in [(50, 30_000), (30_000, 50), (5, 200_000), (200_000, 5)]:
        for order in "CF":
            X = np.asarray(rng.standard_normal(shape), order=order)
            v, w = rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
            results = []
            for limit in (1, 4):
                with threadpool_limits(limits=limit, user_api="openmp"):
                    results.append((kernels.scores_dense(X, v), kernels.predict_dense(X, w)))
            for one, four in zip(*results, strict=True):
                np.testing.assert_allclose(one, four, rtol=1e-11, atol=1e-11)


def test_what_does_not_fit_is_refused():
    X, at = np.ones((6, 4)), np.array([0, 3])
    unaligned = np.zeros(8 * 24 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(6, 4)
    F = np.asfortranarray(X)
    for fault, said, function, *arguments in [
        (TypeError, "float32 or float64", kernels.scores_dense, X.astype(np.int64), X[:, 0]),
        (TypeError, "incompatible", kernels.scores_dense, X.astype(">f8"), X[:, 0]),
        (ValueError, "contiguous", kernels.scores_dense, np.ones((12, 8))[::2, ::2], X[:, 0]),
        (ValueError, "for each row", kernels.scores_dense, X, np.ones(5)),
        (ValueError, "for each row", kernels.predict_dense, X, np.ones(6)),
        (ValueError, "positions", kernels.scores_dense, X, np.ones(2), at + 3),
        (ValueError, "positions", kernels.gather_dense, X, at - 1),
        (TypeError, "incompatible", kernels.gather_dense, X, np.ones(4, dtype=bool)),
        (ValueError, "aligned", kernels.scores_dense, unaligned, np.ones(6)),
        (ValueError, "contiguous columns", kernels.pair_sums_dense, X, at, at, np.ones(6)),
        (ValueError, "positions", kernels.pair_sums_dense, F, at, at + 1, np.ones(6)),
        (ValueError, "pair up", kernels.pair_sums_dense, F, at, at[:1], np.ones(6)),
        (ValueError, "row", kernels.many_dense, X, np.ones((2, 4))),
        (TypeError, "incompatible", kernels.many_dense, X, np.ones((6, 8), dtype=np.float32)),
    ]:
        with pytest.raises(fault, match=said):
            function(*arguments)
