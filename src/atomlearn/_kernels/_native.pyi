"""The compiled module: it checks types and sizes; see the Python modules beside it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = NDArray[np.floating[Any]]
Bytes = NDArray[np.uint8]
Array = NDArray[np.float64]
Positions = NDArray[np.int64]
Indices = NDArray[np.signedinteger[Any]]

def simd() -> str: ...
def dense_product(
    x: Data, transposed: bool, squared: bool, v: Data, rows: Positions | None, out: Array, /
) -> None: ...
def gather(x: Data, columns: Positions, rows: Positions | None, out: NDArray[Any], /) -> None: ...
def balance_level(v: Array, k: float, /) -> float: ...
def genotype_dots(
    data: Bytes, n_samples: int, means: Array, squared: bool, v: Array, out: Array, /
) -> None: ...
def genotype_sums(data: Bytes, n_samples: int, means: Array, w: Array, out: Array, /) -> None: ...
def genotype_counts(data: Bytes, n_samples: int, means: Array, out: Positions, /) -> None: ...
def genotype_digits(v: Array, /) -> tuple[NDArray[np.int8], Array]: ...
def genotype_found(
    data: Bytes,
    means: Array,
    v: Array,
    count: int,
    digits: NDArray[np.int8],
    steps: Array,
    centers: Array,
    factors: Array,
    copies: Array,
    totals: Array,
    bounds: Array,
    /,
) -> tuple[Positions, Array]: ...
def genotype_products(
    data: Bytes, means: Array, others: Bytes, other_means: Array, v: Array, out: Array, /
) -> None: ...
def genotype_gather(data: Bytes, n_samples: int, means: Array, out: Data, /) -> None: ...
def pair_sums(x: Data, first: Positions, second: Positions, v: Data, out: Array, /) -> None: ...
def sparse_product(
    data: Data, indices: Indices, indptr: Indices, dots: bool, squared: bool, v: Data, out: Array, /
) -> None: ...
def top(z: Data, indices: Positions, values: Array, /) -> bool: ...
def prox(v: Data, k: int, step: float, w: Data, /) -> float: ...
def prox_exhaustive(v: Data, k: int, step: float, w: Data, /) -> float: ...
def prox_box_norm(v: Data, k: int, step: float, w: Data, /) -> float: ...
def prox_binary_search(v: Data, k: int, step: float, w: Data, /) -> float: ...
def prox_two_step(v: Data, k: int, step: float, w: Data, /) -> float: ...
def multiplier(v: Data, k: int, amount: float, penalized: bool, guess: float, /) -> float: ...
def gauge(w: Data, k: int, /) -> float: ...
def sparse_gram(
    data: Data, indices: Indices, indptr: Indices, weights: Data, out: Array, /
) -> None: ...
def sampled_products(
    indices: Indices, indptr: Indices, left: Array, right: Array, out: Array, /
) -> None: ...
def sparse_times_rows(
    data: Array, indices: Indices, indptr: Indices, right: Array, out: Array, /
) -> None: ...
def factor_ridge(
    indices: Indices,
    indptr: Indices,
    order: Indices,
    slope: Array,
    curvature: Array,
    factor: Array,
    amount: float,
    out: Array,
    /,
) -> None: ...
def many_dense(x: Data, v: Array, majors: Positions | None, out: Array, /) -> None: ...
def many_csc(data: Data, indices: Indices, indptr: Indices, v: Array, out: Array, /) -> None: ...
def sparse_pairs(
    data: Data,
    indices: Indices,
    indptr: Indices,
    first: Positions,
    second: Positions,
    v: Data,
    out: Array,
    /,
) -> None: ...
def pair_bounds(
    data: Data,
    indices: Indices,
    indptr: Indices,
    columns: Positions | None,
    packed: Array,
    upper: Array,
    rising: Array,
    falling: Array,
    /,
) -> None: ...
def pair_entry_size(single: bool, /) -> int: ...
def pair_rows(
    data: Data,
    indices: Indices,
    indptr: Indices,
    place: NDArray[np.int32],
    entries: NDArray[np.uint8],
    begins: Positions,
    sizes: NDArray[np.int32],
    costs: Array,
    /,
) -> None: ...
def pair_search(*arguments: Any) -> tuple[int, int, int]: ...
def active_set(
    gram: Array,
    linear: Array,
    linear_is_gradient: bool,
    price: Array | None,
    coupling: float,
    ridge: float,
    radius: float,
    equality: bool,
    level: float,
    is_signed: bool,
    factor: Array,
    order: Positions,
    counts: Positions,
    sigma: Array,
    weights: Array,
    batch: int,
    max_pivots: int,
    /,
) -> int: ...
def descend_quadratic(
    strips: list[NDArray[Any]],
    slope: Array,
    price: Array,
    weights: Array,
    ridge: float,
    is_signed: bool,
    tolerance: float,
    most: int,
    /,
) -> int: ...
def pivot_path(
    gram: Array,
    slope: Array,
    price: Array,
    ridge: float,
    most: int,
    levels: Array,
    factor: Array,
    order: Positions,
    count: Positions,
    start: Array,
    rows: Array,
    /,
) -> int: ...

class KeptHessian:
    def __init__(self) -> None: ...

class PythonLoss:
    def __init__(
        self,
        value: Callable[[], float],
        differentiate: Callable[[], None],
        curve: Callable[[], None],
        bend: Callable[[float], float],
        couple: Callable[[int], Array],
        point: Array,
        first: Array,
        second: Array,
        batch: Array,
        weight: Array,
        smoothness: float,
        quadratic: bool,
        coupled: int,
        /,
    ) -> None: ...

def newton_qp(
    columns: Array,
    loss: PythonLoss,
    prices: tuple[Array, Array, Array, Array, bool, Positions, Positions],
    ends: tuple[float, float, int, float],
    kept: KeptHessian,
    weights: Array,
    shifts: Array,
    /,
) -> tuple[int, int]: ...
def newton_qp_csc(
    columns: tuple[Array, NDArray[Any], NDArray[Any]],
    loss: PythonLoss,
    prices: tuple[Array, Array, Array, Array, bool, Positions, Positions],
    ends: tuple[float, float, int, float],
    kept: KeptHessian,
    weights: Array,
    shifts: Array,
    /,
) -> tuple[int, int]: ...
def newton_qp_tasks(
    columns: tuple[Array, Positions, Positions, int],
    loss: PythonLoss,
    prices: tuple[Array, Array, Array, Array, bool, Positions, Positions],
    ends: tuple[float, float, int, float],
    kept: KeptHessian,
    weights: Array,
    shifts: Array,
    /,
) -> tuple[int, int]: ...
def pattern_newton(
    data: Array,
    gram: bool,
    pull: Array,
    k: float,
    level: float,
    squared: bool,
    elastic: bool,
    weights: Array,
    most: int,
    /,
) -> int: ...
def branch_newton(
    h: Array,
    free: Positions,
    inside: Positions,
    pull: Array,
    k: int,
    level: float,
    least: float,
    weights: Array,
    most: int,
    /,
) -> int: ...
def max_threads() -> int: ...
def set_threads(threads: int, /) -> None: ...
def provide_blas(name: str, capsule: object, /) -> bool: ...
def group_newton(
    matrix: Array,
    is_gram: bool,
    linear: Array,
    squared_target: float,
    starts: Positions,
    members: Positions,
    limit: Array,
    u: Array,
    scalings: Array,
    resumes: bool,
    gap_target: float,
    max_steps: int,
    /,
) -> tuple[int, int, float]: ...
def code_histograms(
    codes: Bytes,
    indices: Indices | None,
    indptr: Indices | None,
    n_rows: int,
    starts: Positions,
    v: Data,
    width: int,
    out: Array,
    /,
) -> None: ...
def thermometer_scores(
    codes: Bytes,
    indices: Indices | None,
    indptr: Indices | None,
    n_rows: int,
    starts: Positions,
    values: Data,
    zero: Positions,
    v: Data,
    width: int,
    out: Array,
    /,
) -> None: ...
def spline_scores(
    codes: Bytes,
    indices: Indices | None,
    indptr: Indices | None,
    n_rows: int,
    starts: Positions,
    values: Data,
    zero: Positions,
    knots: Positions,
    knot_starts: Positions,
    offsets: Positions,
    degree: int,
    squared: bool,
    v: Data,
    width: int,
    out: Array,
    /,
) -> None: ...
def spline_knots(
    codes: Bytes,
    indices: Indices | None,
    indptr: Indices | None,
    n_rows: int,
    starts: Positions,
    zero: Positions,
    quantiles: Array,
    knots: Positions,
    counts: Positions,
    weight: Data,
    /,
) -> None: ...
def table_scores(
    codes: Bytes,
    indices: Indices | None,
    indptr: Indices | None,
    n_rows: int,
    starts: Positions,
    tables: Array,
    begins: Positions,
    offsets: Positions,
    v: Data,
    width: int,
    out: Array,
    /,
) -> None: ...
def find_levels(
    values: Data,
    rows: Indices | None,
    begin: Positions,
    weight: Array,
    shares: Array,
    uniform: bool,
    levels: Array,
    counts: Positions,
    zero: Positions,
    /,
) -> None: ...
def encode_columns(
    values: Data, begin: Positions, levels: Array, starts: Positions, codes: Bytes, /
) -> None: ...
def pair_histograms(
    codes: Bytes,
    n_levels: int,
    first: Positions,
    second: Positions,
    weights: Data,
    width: int,
    out: Array,
    /,
) -> None: ...
