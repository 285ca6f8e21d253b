"""The search for pairs of columns against loops over all of them."""

import numpy as np
import pytest
from scipy import sparse

from atomlearn import _kernels as kernels
from tests.oracles import kernels as reference
from tests.oracles.covering import in_turn

DTYPES = [np.float32, np.float64]
INDICES = [np.int32, np.int64]


def random_columns(rng, n, p, density, dtype, index, signs=True):
    """Sparse columns of very different lengths, by columns and by rows."""
    mask = rng.random((n, p)) < density * 3 * rng.random(p) ** 2
    values = rng.standard_normal((n, p)) if signs else rng.random((n, p)) + 0.1
    X = np.where(mask, values, 0.0).astype(dtype)
    both = []
    for kind in (sparse.csc_array, sparse.csr_array):
        matrix = kind(X)
        both.append((matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)))
    return X, *both


@pytest.mark.parametrize(("dtype", "index", "signs"), in_turn(DTYPES, INDICES, [True, False]))
def test_bounds(dtype, index, signs):
    rng = np.random.default_rng(0)
    for n, p in ((1, 1), (40, 7), (300, 90)):
        X, columns, _ = random_columns(rng, n, p, 0.3, dtype, index, signs)
        low, high = X.min(axis=1, initial=0.0), X.max(axis=1, initial=0.0)
        v = rng.standard_normal(n)
        for chosen in (None, rng.permutation(p)[: p // 2]):
            found = kernels.pair_bounds_csc(*columns, v, low, high, chosen)
            expected = reference.pair_bounds_csc(*columns, v, low, high, chosen)
            for mine, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-99)
        # What they are for.
        upper, rising, falling = kernels.pair_bounds_csc(*columns, v, low, high)
        sums = np.abs((X * v[:, None]).astype(float).T @ X.astype(float))
        assert (sums <= upper[:, None] * (1 + 1e-9)).all()
        radii = np.hypot(rising, falling) if signs else np.maximum(rising, falling)
        assert (sums <= np.outer(radii, radii) * (1 + 1e-9)).all()


def test_radii_of_extreme_entries_are_bounds():
    X = sparse.csc_array(np.array([[1e-170, 1e170, 0.0], [1e-170, 0.0, 0.0]]))
    parts = X.data, X.indices, X.indptr
    _, rising, falling = kernels.pair_bounds_csc(*parts, np.ones(2), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(rising, [1e-100, np.inf, 1e-100], rtol=1e-12)
    np.testing.assert_allclose(falling, 1e-100)


@pytest.mark.parametrize(("dtype", "index", "squares"), in_turn(DTYPES, INDICES, [True, False]))
def test_search_finds_exactly_what_matters(dtype, index, squares):
    rng = np.random.default_rng(1)
    for n, p, density in ((1, 5, 1.0), (60, 12, 0.3), (200, 40, 0.05)):
        X, columns, rows = random_columns(rng, n, p, density, dtype, index)
        v = rng.standard_normal(n) * (rng.random(n) < 0.8)
        low, high = X.min(axis=1, initial=0.0), X.max(axis=1, initial=0.0)
        upper, rising, falling = kernels.pair_bounds_csc(*columns, v, low, high)
        radii = np.hypot(rising, falling) * (1 + 1e-9)
        order = rng.permutation(p)
        place = np.argsort(order).astype(np.int32)
        table, costs = kernels.pair_rows(rows, place, p)
        some = max(2, 3 * p // 4)
        order, costs, sizes = order[:some], costs[:some], np.full(some, 1e3)
        bounds = radii[order], upper[order] * (1 + 1e-9), sizes, costs
        between = kernels.pair_search(columns, table, order, v, *bounds)
        sums = reference.pair_search(X.astype(float), order, v, 0.0, 0.5, squares)
        sizes = sorted(map(abs, sums.values()))
        for threshold in (0.0, sizes[len(sizes) // 2] + 1e-9, sizes[-3], 2 * sizes[-1]):
            limits = 0.5 * threshold, threshold, 0.0, 0.0, 0.5, 0 if squares else 1
            found = {}
            done = 0
            while done < order.size:
                done, i, j, values, _ = between(done, min(done + 7, order.size), *limits)
                assert not set(zip(i, j, strict=True)) & set(found)
                found |= dict(zip(zip(i.tolist(), j.tolist(), strict=True), values, strict=True))
            expected = {pair: s for pair, s in sums.items() if abs(s) >= threshold}
            # Without a threshold only pairs that meet in a row are formed.
            assert set(found) >= {pair for pair, s in expected.items() if s != 0}
            assert set(found) <= set(expected)
            for pair, value in found.items():
                assert value == pytest.approx(sums[pair], rel=1e-10, abs=1e-12)


def test_search_stops_where_there_is_no_more_room(monkeypatch):
    """All pairs matter, and there is room for a few: nothing is lost or told twice."""
    monkeypatch.setattr("atomlearn._kernels.pairs.FOUND_AT_A_TIME", 5)
    X = sparse.csc_array(np.ones((3, 20)))
    rows = sparse.csr_array(X)
    table, costs = kernels.pair_rows(
        (rows.data, rows.indices, rows.indptr), np.arange(20, dtype=np.int32), 20
    )
    bounds = np.full(20, 2.0), np.full(20, 3.0), np.full(20, 3.0), costs
    columns = X.data, X.indices, X.indptr
    between = kernels.pair_search(columns, table, np.arange(20), np.ones(3), *bounds)
    done, pairs, calls = 0, [], 0
    while done < 20:
        done, i, j, sums, _ = between(done, 20, 1.0, 1.0, 0.0, 0.0, 1.0, 0)
        np.testing.assert_array_equal(sums, 3.0)
        pairs += list(zip(i.tolist(), j.tolist(), strict=True))
        calls += 1
    assert calls > 5
    assert sorted(pairs) == [(a, b) for a in range(20) for b in range(a + 1)]
