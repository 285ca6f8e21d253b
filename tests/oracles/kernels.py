"""Slow twins of the kernels, of the same names, and the k-support norm in exact arithmetic."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline

from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.codes import CodedColumns


def _rows_of(X: Data, rows: object | None) -> Array:
    wide = np.asarray(X, dtype=np.float64)
    return wide if rows is None else wide[np.asarray(rows)]


def scores_dense(
    X: Data, v: Data | None, rows: object | None = None, squared: bool = False
) -> Array:
    """Return X'v, or that of the squares of X."""
    wide = _rows_of(X, rows)
    weight = np.ones(wide.shape[0]) if v is None else np.asarray(v, dtype=np.float64)
    return (wide**2 if squared else wide).T @ weight


def predict_dense(X: Data, w: Data, rows: object | None = None) -> Array:
    """Return X w."""
    return _rows_of(X, rows) @ np.asarray(w, dtype=np.float64)


def gather_dense(
    X: Data, columns: Positions, rows: object | None = None, dtype: Any = np.float64
) -> Data:
    """Return X[rows][:, columns]."""
    return np.asfortranarray(_rows_of(X, rows)[:, columns], dtype=dtype)


def pair_sums_dense(X: Data, first: Positions, second: Positions, v: Data) -> Array:
    """Return sum_i v_i x_ij x_ik for each pair."""
    wide = np.asarray(X, dtype=np.float64)
    return np.asarray(v @ (wide[:, first] * wide[:, second]), dtype=np.float64)


def _dense(
    data: Data, indices: Indices, indptr: Indices, n_minor: int, columns_major: bool
) -> Array:
    shape = (indptr.size - 1, n_minor)
    major = np.asarray(sparse.csr_array((data, indices, indptr), shape=shape).toarray())
    wide = major.astype(np.float64)
    return wide.T if columns_major else wide


def sparse_dots(
    data: Data, indices: Indices, indptr: Indices, v: Data, squared: bool = False
) -> Array:
    """Return the stored vectors, or their squares, times v."""
    stored = _dense(data, indices, indptr, np.size(v), columns_major=False)
    return predict_dense(stored**2 if squared else stored, v)


def sparse_sums(
    data: Data, indices: Indices, indptr: Indices, v: Data, size: int, squared: bool = False
) -> Array:
    """Return the sum of the stored vectors, or of their squares, weighted by v."""
    stored = _dense(data, indices, indptr, size, columns_major=False)
    return scores_dense(stored**2 if squared else stored, v)


def sampled_products(indices: Indices, indptr: Indices, left: Data, right: Data) -> Array:
    rows = np.repeat(np.arange(np.size(indptr) - 1), np.diff(indptr))
    W = np.asarray(left, dtype=np.float64) @ np.asarray(right, dtype=np.float64).T
    return np.asarray(W[rows, indices])


def matrix_product_csr(data: Array, indices: Indices, indptr: Indices, right: Data) -> Array:
    R = np.asarray(right, dtype=np.float64)
    return np.asarray(_dense(data, indices, indptr, R.shape[0], False) @ R)


def factor_ridge(
    indices: Indices,
    indptr: Indices,
    slope: Array,
    curvature: Array,
    factor: Data,
    current: Data,
    amount: float,
    order: Indices | None = None,
) -> Array:
    B, A = np.asarray(factor, dtype=np.float64), np.array(current, dtype=np.float64)
    samples = np.arange(np.size(indices)) if order is None else np.asarray(order)
    for row in range(A.shape[0]):
        places = slice(indptr[row], indptr[row + 1])
        b, at = B[indices[places]], samples[places]
        H = (b.T * curvature[at]) @ b + amount * np.eye(B.shape[1])
        A[row] -= np.linalg.solve(H, b.T @ slope[at] + amount * A[row])
    return A


def weighted_squares_csr(
    data: Data, indices: Indices, indptr: Indices, weights: Data, n_columns: int
) -> Array:
    shape = (np.size(indptr) - 1, n_columns)
    X = sparse.csr_array((data, indices, indptr), shape=shape).toarray().astype(np.float64)
    return np.asarray(X.T @ (np.asarray(weights, dtype=np.float64)[:, None] * X))


def pair_sums_csc(
    data: Data, indices: Indices, indptr: Indices, first: Positions, second: Positions, v: Data
) -> Array:
    """Return sum_i v_i x_ij x_ik for each pair."""
    shape = (np.size(v), np.size(indptr) - 1)
    return pair_sums_dense(
        sparse.csc_array((data, indices, indptr), shape=shape).toarray(), first, second, v
    )


def _codes_of(x: CodedColumns, column: int) -> tuple[Positions, Positions]:
    """Return the codes and the rows of one column."""
    if x.indices is None or x.indptr is None:
        part = slice(column * x.n_rows, (column + 1) * x.n_rows)
        return x.codes[part].astype(np.int64), np.arange(x.n_rows)
    part = slice(int(x.indptr[column]), int(x.indptr[column + 1]))
    return x.codes[part].astype(np.int64), x.indices[part].astype(np.int64)


def code_histograms(x: CodedColumns, v: Data) -> Array:
    """Return sum_i v_i [code_ij = c] for each column j and code c."""
    sums = [np.zeros(0)]
    for column in range(x.n_columns):
        codes, rows = _codes_of(x, column)
        sums.append(np.array([v[rows[codes == c]].sum() for c in range(x.levels[column])]))
    return np.concatenate(sums)


def table_scores(
    x: CodedColumns,
    tables: Array,
    begins: Positions,
    v: Data,
) -> Array:
    """Return the columns that are known at each code, written out, times v."""
    z = []
    for column in range(x.n_columns):
        codes, rows = _codes_of(x, column)
        part = tables[begins[column] : begins[column + 1]]
        table = part.reshape(x.levels[column], part.size // x.levels[column])
        z.append(table[codes].T @ v[rows])
    return np.concatenate(z)


def spline_knots(
    x: CodedColumns, zero: Positions, quantiles: Array, weight: Data
) -> list[list[int]]:
    """Return the numbers of the levels at the ends and at the quantiles of each column."""
    knots = []
    for column in range(x.n_columns):
        codes, rows = _codes_of(x, column)
        full = np.full(x.n_rows, zero[column])
        full[rows] = codes
        last = int(x.levels[column]) - 1
        share = np.array([weight[full <= c].sum() for c in range(last + 1)]) / weight.sum()
        inner = [min(int(np.sum(share < q)), last) for q in quantiles]
        knots.append(sorted({0, *inner, last}))
    return knots


def spline_scores(
    x: CodedColumns,
    values: Data,
    zero: Positions,
    knots: list[list[int]],
    degree: int,
    v: Data,
    power: int,
) -> Array:
    """Return B-splines less their values at the origin, written out by SciPy, times v."""
    z = [np.zeros((0, *v.shape[1:]))]
    for column in range(x.n_columns):
        codes, rows = _codes_of(x, column)
        levels = values[x.starts[column] : x.starts[column + 1]]
        low = min(degree, levels.size - 1)
        t = levels[[knots[column][0]] * low + knots[column] + [knots[column][-1]] * low]
        table = np.zeros((levels.size, len(knots[column]) - 1 + low))
        if levels.size > 1:
            for c in range(table.shape[1]):
                coefficients = np.eye(table.shape[1])[c]
                table[:, c] = BSpline(t, coefficients, low)(levels)
        z.append(((table - table[zero[column]])[codes] ** power).T @ v[rows])
    return np.concatenate(z)


def find_levels(
    values: Data,
    rows: Positions | None,
    begin: Positions,
    weight: Data,
    shares: Data,
    uniform: bool,
) -> list[tuple[Array, float]]:
    """Return the levels of each column, and its origin."""
    found = []
    for first, last in pairwise(begin):
        column, mass = np.zeros(weight.size), np.asarray(weight)
        column[slice(None) if rows is None else rows[first:last]] = values[first:last]
        order = np.argsort(column, kind="stable")
        order = order[mass[order] > 1e-12 * mass.sum()]
        x, mass = column[order], mass[order]
        origin = min(max(0.0, x[0]), x[-1])
        levels = np.unique(x)
        if np.union1d(levels, origin).size > shares.size + 1:
            others = x != origin
            reached = np.cumsum(mass[others])
            wanted = shares * (1.0 - 1e-12) * reached[-1]
            levels = x[others][[int(np.argmax(reached >= share)) for share in wanted]]
            if uniform:
                levels = x[0] * (1.0 - shares) + x[-1] * shares
        found.append((np.union1d(levels, origin), origin))
    return found


def thermometer_scores(x: CodedColumns, values: Data, zero: Positions, v: Data) -> Array:
    """Return the thermometer columns, written out, times v."""
    z = []
    for column in range(x.n_columns):
        codes, rows = _codes_of(x, column)
        levels = np.asarray(values[x.starts[column] : x.starts[column + 1]], dtype=np.float64)
        for b, gap in enumerate(np.diff(levels)):
            high = (codes > b) if b >= zero[column] else -1.0 * (codes <= b)
            z.append(float(np.sqrt(gap) * (v[rows] * high).sum()))
    return np.array(z)


def _joint_histogram(
    first: Positions, second: Positions, shape: tuple[int, int], weights: Data
) -> Array:
    """Return the sum of weights over the rows of each pair of codes."""
    result = np.zeros(shape)
    np.add.at(result, (first, second), weights)
    return result


def pair_histograms(
    codes: Positions, n_levels: int, first: Positions, second: Positions, weights: Data
) -> Array:
    """Return the joint histogram of each pair of columns."""
    shape = (n_levels, n_levels)
    pairs = [_joint_histogram(codes[:, i], codes[:, j], shape, weights)
             for i, j in zip(first, second, strict=True)]  # fmt: skip
    return np.array(pairs).reshape(-1, *shape)


def pair_bounds_csc(
    data: Data,
    indices: Indices,
    indptr: Indices,
    v: Data,
    low: Data,
    high: Data,
    columns: Positions | None = None,
) -> tuple[Array, Array, Array]:
    """Return (upper, rising, falling) of every column."""
    wide = _dense(data, indices, indptr, np.size(v), columns_major=True)
    wide = wide if columns is None else wide[:, columns]
    weighted = np.asarray(v, dtype=np.float64)[:, None] * wide
    ends = np.stack([weighted * np.asarray(high)[:, None], weighted * np.asarray(low)[:, None]])
    upper = np.maximum(
        ends.max(axis=0).clip(0).sum(axis=0), (-ends.min(axis=0)).clip(0).sum(axis=0)
    )
    squares = weighted * wide
    rising, falling = squares.clip(0).sum(axis=0), (-squares).clip(0).sum(axis=0)
    return upper, np.sqrt(rising), np.sqrt(falling)


def pair_search(
    X: Data, order: Positions, v: Data, least: float, square: float, squares: bool
) -> dict[tuple[int, int], float]:
    """Return all pairs (order[a], order[b]), b <= a, with sums of magnitude >= least."""
    found = {}
    for a, i in enumerate(order.tolist()):
        for j in order[: a + 1 if squares else a].tolist():
            total = float(pair_sums_dense(X, np.array([i]), np.array([j]), v)[0])
            total *= square if i == j else 1.0
            if abs(total) >= least:
                found[i, j] = total
    return found


def top_magnitude(z: Data, count: int) -> tuple[Positions, Array]:
    """Return indices and values of the largest |z_j|, ties by the smaller index."""
    if np.isnan(z).any():
        raise ValueError("z holds NaN: check the data and the weights it was computed from")
    order = np.argsort(-np.abs(z), kind="stable")[:count].astype(np.int64)
    return order, z[order].astype(np.float64)


def gather_genotypes(data: Any, n_samples: int, means: Array, dtype: Any = np.float64) -> Data:
    """Return genotypes of two bits as numbers, missing ones as means."""
    codes = (np.asarray(data)[:, None] >> np.array([0, 2, 4, 6], dtype=np.uint8)) & 3
    by_column = codes.reshape(means.size, -1)[:, :n_samples]
    values = np.array([2.0, np.nan, 1.0, 0.0])[by_column].T
    return np.asfortranarray(np.where(np.isnan(values), means, values), dtype=dtype)


def scores_genotypes(
    data: Any, n_samples: int, means: Array, v: Array, squared: bool = False
) -> Array:
    """Return X'v or (X * X)'v; v may be longer than n_samples."""
    X = gather_genotypes(data, n_samples, means)
    return np.asarray((X * X if squared else X).T @ v[:n_samples])


def add_genotypes(data: Any, n_samples: int, means: Array, w: Array, out: Array) -> None:
    """Add X w to the first n_samples entries of ``out``."""
    out[:n_samples] += gather_genotypes(data, n_samples, means) @ w


def count_genotypes(data: Any, n_samples: int, n_columns: int) -> Positions:
    """Return the copies counted and the entries missing of each column."""
    X = gather_genotypes(data, n_samples, np.full(n_columns, np.nan))
    return np.stack([np.nansum(X, axis=0), np.isnan(X).sum(axis=0)], axis=1).astype(np.int64)


def multiply_genotypes(data: Any, means: Array, others: Any, other_means: Array, v: Array) -> Array:
    """Return the products of columns less 1 over the rows where v is not 0."""
    Y = gather_genotypes(data, v.size, means) - 1.0
    X = gather_genotypes(others, v.size, other_means) - 1.0
    return np.asarray(Y[v != 0.0].T @ X[v != 0.0])
