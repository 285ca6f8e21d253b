"""Polynomial: implicit columns give what columns that are formed one by one give."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from atomlearn import designs, norms
from atomlearn.core.masters.choose import cheap_candidates
from atomlearn.designs import Polynomial, RowSubset, Standardized, as_design
from atomlearn.interfaces import Design
from atomlearn.losses import as_loss
from atomlearn.maps.pairs.products import DensePairs
from atomlearn.maps.pairs.search import ErrorBound
from atomlearn.maps.pairs.sparse import SparsePairs
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.testing.designs import DesignChecks, assert_within, brute_force_top
from tests.oracles.covering import in_turn
from tests.oracles.pairs import one_by_one, searched
from tests.oracles.settings import change
from tests.oracles.sums import solve_sum

N_SAMPLES, N_INPUTS = 23, 7


def inputs(seed: int = 0, density: float = 1.0, d: int = N_INPUTS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, d)) * (rng.random((N_SAMPLES, d)) < density)
    X[:, 2] = 0.0
    X[:, 5] = X[:, 3]
    X[:, 6] = 1.0 if density == 1.0 else X[:, 6]
    return X


def formed(
    X: np.ndarray, gamma: float = 1.0, r: float = 1.0, interaction_only: bool = False
) -> np.ndarray:
    """The columns of [T]'s map without its constant, by two loops."""
    X = np.asarray(X, dtype=np.float64)
    columns = [np.sqrt(2 * gamma * r) * x for x in X.T]
    for i in range(X.shape[1]):
        for j in range(i, X.shape[1]):
            if i == j and not interaction_only:
                columns.append(gamma * X[:, i] ** 2)
            elif i < j:
                columns.append(np.sqrt(2) * gamma * X[:, i] * X[:, j])
    return np.stack(columns, axis=1)


LAYOUTS: dict[str, Any] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "csc": sp.csc_array,
    "csr": sp.csr_array,
}


class PolynomialChecks(DesignChecks):
    gathers_exactly = False


@pytest.mark.parametrize(
    ("layout", "interaction_only", "dtype"),
    [
        ("C", False, np.float64),
        ("F", True, np.float32),
        ("strided", False, np.float32),
        ("csc", False, np.float64),
        ("csc", True, np.float32),
        ("csr", True, np.float64),
    ],
)
class TestPolynomial(PolynomialChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, dtype: type, interaction_only: bool, layout: str) -> None:
        self.dtype, self.only, self.layout = dtype, interaction_only, layout

    def build(self) -> tuple[Design, np.ndarray]:
        density = 0.02 if self.layout in ("csc", "csr") else 1.0
        X = inputs(density=density).astype(self.dtype)
        design = Polynomial(LAYOUTS[self.layout](X), 0.7, 1.3, self.only)
        assert isinstance(design._pairs, SparsePairs if density < 0.05 else DensePairs)
        return design, formed(X, 0.7, 1.3, self.only)


@pytest.mark.parametrize("layout", ["C", "csc"])
class TestNotStorable(PolynomialChecks):
    """Every answer by search, nothing listed."""

    scores_are_storable = False

    @pytest.fixture(autouse=True)
    def _setting(self, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.layout = layout
        change(monkeypatch, "pairs.scores", most_listed=20)

    def build(self) -> tuple[Design, np.ndarray]:
        X = inputs(density=1.0 if self.layout == "C" else 0.03)
        design = Polynomial(LAYOUTS[self.layout](X))
        assert not design.listable
        return design, formed(X)


class TestOverStandardized(PolynomialChecks):
    def build(self) -> tuple[Design, np.ndarray]:
        base = Standardized(as_design(sp.csc_array(inputs(1, 0.3))))
        Z = base.gather(np.arange(N_INPUTS)).dense()
        return Polynomial(base), formed(Z)


@pytest.mark.parametrize("layout", ["F", "csr"])
class TestRows(PolynomialChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, layout: str) -> None:
        self.layout = layout

    def build(self) -> tuple[Design, np.ndarray]:
        X = inputs(2, 1.0 if self.layout == "F" else 0.03)
        rows = np.random.default_rng(3).integers(0, N_SAMPLES, 17)
        return RowSubset(Polynomial(LAYOUTS[self.layout](X)), rows), formed(X[rows])


class TestWildScales(PolynomialChecks):
    """Entries from 1e-60 to 1e60: single precision would overflow, so it is not used."""

    def build(self) -> tuple[Design, np.ndarray]:
        X = inputs(6) * 10.0 ** np.linspace(-60, 60, N_INPUTS)
        return Polynomial(X), formed(X)


def test_standardizing_what_cannot_be_listed_is_refused_at_once() -> None:
    X = sp.csr_array((np.ones(3), ([0, 1, 1], [0, 5, 10**6 - 1])), shape=(2, 10**6))
    design = Polynomial(X)
    assert design.shape == (2, 10**6 + 10**6 * (10**6 + 1) // 2)
    with pytest.raises(TypeError, match="standardize the data it is made of"):
        Standardized(design)
    with pytest.raises(TypeError, match="best columns"):
        design.scores(np.ones(2)).full()


# --- the search ---------------------------------------------------------------------------------


def random_inputs(rng: np.random.Generator, kind: str) -> tuple[Any, np.ndarray]:
    """Small data with ties, constant columns, zero columns and whole numbers; and its float64."""
    n, d = int(rng.integers(1, 30)), int(rng.choice([1, 2, 3, 8, 17]))
    whole = rng.random() < 0.5
    X = rng.integers(-2, 3, (n, d)).astype(float) if whole else rng.standard_normal((n, d))
    X = X * (rng.random((n, d)) < (0.15 if kind in ("csc", "csr") else 0.9))
    for value in (0.0, 1.0):
        if rng.random() < 0.3:
            X[:, rng.integers(d)] = value
    if rng.random() < 0.4:
        X[:, rng.integers(d)] = X[:, 0]
    X = X.astype(rng.choice([np.float32, np.float64]))
    if kind == "standardized":
        design = Standardized(as_design(X))
        return design, design.gather(np.arange(d)).dense().astype(np.float64)
    return LAYOUTS[kind if kind in LAYOUTS else "csr"](X), X.astype(np.float64)


def all_sparse(patch: pytest.MonkeyPatch) -> None:
    """Have products of sparse columns formed as such, whatever the density."""
    change(patch, "pairs.polynomial", "LIMITS", blas_from=2.0)


@pytest.mark.parametrize("kind", ["C", "F", "strided", "csc", "csr", "standardized"])
def test_search_is_brute_force(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_sparse(monkeypatch)
    for seed in range(8):
        _check_search(kind, np.random.default_rng([seed, len(kind), ord(kind[-1])]))


def _check_search(kind: str, rng: np.random.Generator) -> None:
    data, X = random_inputs(rng, kind)
    gamma, r = rng.uniform(0.2, 3.0, 2)
    only = bool(rng.integers(2))
    plain = bool(rng.integers(2))
    design = Polynomial.interactions(data) if plain else Polynomial(data, gamma, r, only)
    half = float(np.sqrt(0.5))
    array = formed(X, half, half, True) if plain else formed(X, gamma, r, only)
    n, p = array.shape
    v = rng.integers(-1, 2, n).astype(float) if rng.random() < 0.5 else rng.standard_normal(n)
    v *= 10.0 ** rng.integers(-30, 30)
    z = one_by_one(design, v)
    assert_within(z, array.T @ v, 1e-13 * np.abs(array).T @ np.abs(v))
    for count in {1, 2, 5, p // 2 + 1, p, p + 3}:
        columns, values = searched(design, v, count)
        expected, sizes = brute_force_top(z, min(count, p))
        assert_array_equal(columns, expected)
        assert_array_equal(values, sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_search_over_many_tiles_and_threads(dtype: type) -> None:
    """Single precision, sums over several runs of rows, near ties around the threshold."""
    n, d = 1500, 290
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)).astype(dtype)
    # Columns that differ by less than single precision resolves.
    X[:, 50:90] = X[:, [3]] * (1 + 1e-6 * rng.standard_normal((n, 40)))
    v = rng.standard_normal(n)
    # ... and whose products with column 10 are the largest of all.
    X[:, 10] = np.sign(v * X[:, 3])
    design = Polynomial.interactions(X, squares=True)
    z = one_by_one(design, v)
    for count in (1, 20, 30, 1000):
        scores = design.scores(v)
        columns, values = scores.top(count)
        assert scores.work is not None  # searched, not listed
        assert_array_equal(columns, brute_force_top(z, count)[0])
        assert_array_equal(values, z[columns])
    bound = 4e-13 * n * np.sqrt(np.outer(*2 * [np.abs(v) @ X.astype(float) ** 2])).max()
    assert_within(design.scores(v).full(), z, bound)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_ties_by_the_thousand(container: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far more columns of one and the same score than are kept: memory bounded, order kept."""
    change(monkeypatch, "pairs.search", spare=10)
    all_sparse(monkeypatch)
    X = np.zeros((50, 40))
    X[:, ::2] = 1.0
    design = Polynomial.interactions(container(X))
    v = np.full(50, 0.25)
    for count in (1, 7, 25, 100, 190, 230):
        columns, values = searched(design, v, count)
        z = one_by_one(design, v)
        assert_array_equal(columns, brute_force_top(z, count)[0])
        assert_array_equal(values, z[columns])


def test_bounds_skip_sparse_inputs() -> None:
    """A few strong inputs: the rest is never multiplied."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 3000), density=0.004, rng=rng, format="csr")
    X = sp.csr_array(X @ sp.diags_array(np.where(np.arange(3000) % 100 == 7, 100.0, 0.01)))
    v = rng.standard_normal(2000)
    design = Polynomial(X)
    monkey = design.scores(v)
    columns, values = monkey.top(20)
    z = design.scores(v).full()
    expected = brute_force_top(z, 20)
    assert_array_equal(columns, expected[0])
    np.testing.assert_allclose(values, expected[1], rtol=1e-12)
    product = abs(sp.csc_array(X)).astype(bool).astype(float)
    meetings = sp.triu(product.T @ product).nnz
    assert monkey.work is not None
    assert 0 < monkey.work.products < 0.2 * meetings


@pytest.mark.parametrize("signs", [False, True])
def test_many_searches_of_sparse_inputs(signs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of Zipf popularity, a product that matters, and v that moves little by little."""
    change(monkeypatch, "pairs.scores", most_listed=0)
    rng = np.random.default_rng(9)
    n, d = 900, 600
    X = (rng.random((n, d)) < np.minimum(1.0, 2.0 * np.arange(1.0, d + 1) ** -1.3)).astype(float)
    y = np.where(rng.random(n) < 0.1 + 0.8 * X[:, 2] * X[:, 3], 1.0, -1.0)
    X = X[:, rng.permutation(d)].astype(np.float32)
    X[:, 7] = X[:, 3] * 1e-30
    if signs:
        X *= rng.choice([-1.0, 1.0], (n, d)).astype(np.float32)
        X *= np.abs(rng.standard_normal((n, d))).astype(np.float32)
    design = Polynomial(sp.csr_array(X))
    assert isinstance(design._pairs, SparsePairs)
    weights, drawn = rng.random(n), rng.random(n)
    for share in (1.0, 0.9, 0.5, 0.45, 0.02, 1.0):
        v = y * weights * (drawn < share)
        v[0] = 1.0
        scores = design.scores(v)
        columns, values = scores.top(10)
        assert_array_equal(scores.at(columns), values)
        z = one_by_one(design, v)
        expected = brute_force_top(z, 10)
        assert_array_equal(columns, expected[0])
        assert_array_equal(values, expected[1])


@pytest.mark.parametrize("kind", ["F", "csr"])
def test_later_searches_look_at_what_changed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of y move a few at a time: few products are formed, and the best are the best."""
    change(monkeypatch, "pairs.scores", most_listed=0)
    change(monkeypatch, "pairs.products", tile=40)
    all_sparse(monkeypatch)
    rng = np.random.default_rng(11)
    n, d = 2000, 160
    X = (rng.random((n, d)) < np.minimum(0.5, 2.0 * np.arange(1.0, d + 1) ** -1.0)).astype(float)
    v = rng.standard_normal(n) + 3.0 * X[:, 4] * X[:, 7] - 2.0 * X[:, 11] * X[:, 5]
    design = Polynomial.interactions(sp.csr_array(X) if kind == "csr" else np.asfortranarray(X))
    first = 0.0
    for step in range(6):
        scores = design.scores(v)
        columns, values = scores.top(3)
        z = one_by_one(design, v)
        expected = brute_force_top(z, 3)
        assert_array_equal(columns, expected[0])
        assert_array_equal(values, expected[1])
        assert scores.work is not None
        first = first or scores.work.products
        assert step == 0 or scores.work.products < 0.5 * first
        v = v + 0.02 * rng.standard_normal(n) * (rng.random(n) < 0.1)


def test_long_columns_are_summed_in_runs() -> None:
    """Errors of single precision must not grow with the number of rows."""
    rng = np.random.default_rng(3)
    X = rng.choice([-1.0, 1.0], (20_000, 40)).astype(np.float32)
    v = rng.standard_normal(20_000)
    design = Polynomial.interactions(X)
    columns, _ = design.scores(v).top(20)
    z = one_by_one(design, v)
    assert_array_equal(columns, brute_force_top(z, 20)[0])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_search_stores_no_scores(container: Any) -> None:
    """Peak memory of a search stays well below the 36 MB that all scores would take."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 3000))
    if container is sp.csr_array:
        X *= rng.random(X.shape) < 0.04
    design = Polynomial.interactions(container(X))
    v = rng.standard_normal(60)
    tracemalloc.start()
    try:
        design.scores(v).top(10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert design.shape[1] * 8 > 36e6
    assert peak < 24e6


def test_columns_wider_than_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow tiles, pieces and held data: all seams are crossed."""
    change(monkeypatch, "pairs.products", tile=5)
    change(monkeypatch, "pairs.products", "BUDGET", held_entries=0)
    change(monkeypatch, "pairs.sparse", piece_products=30)
    all_sparse(monkeypatch)
    rng = np.random.default_rng(1)
    for data in (rng.standard_normal((9, 17)), rng.standard_normal((9, 17)).astype(np.float32)):
        sparse = data * (rng.random(data.shape) < 0.4)
        designs = [(Polynomial(data), data), (Polynomial(sp.csr_array(sparse)), sparse)]
        for design, X in designs:
            array, v = formed(X), rng.standard_normal(9)
            w = rng.standard_normal(array.shape[1])
            np.testing.assert_allclose(design.scores(v).full(), array.T @ v, atol=1e-13)
            np.testing.assert_allclose(design.predict(w), array @ w, atol=1e-12)
            np.testing.assert_allclose(design.squared_norms(), (array**2).sum(axis=0), atol=1e-12)
            everything = np.arange(array.shape[1])
            z = one_by_one(design, v)
            assert_array_equal(searched(design, v, 12)[0], brute_force_top(z, 12)[0])
            np.testing.assert_allclose(design.gather(everything).dense(), array, atol=1e-14)


def test_overflow_is_refused() -> None:
    X = np.full((4, 9), 1e200)
    with pytest.raises(ValueError, match=r"overflow|NaN"):
        searched(Polynomial.interactions(X), np.array([1.0, 1.0, -1.0, -1.0]), 3)
    with pytest.raises(ValueError, match="NaN or infinity"):
        Polynomial(np.ones((4, 9))).scores(np.array([1.0, np.inf, 0.0, 0.0])).top(1)


# --- columns and names --------------------------------------------------------------------------


def test_pairs_and_columns() -> None:
    design = Polynomial(np.ones((2, 3)))
    decoded = [design.pair(column) for column in range(9)]
    linear = [(0, -1), (1, -1), (2, -1)]
    assert decoded == [*linear, (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert [design.column(*pair) for pair in decoded] == list(range(9))
    assert design.column(2, 0) == design.column(0, 2) == 5
    assert all(type(part) is int for part in design.pair(4))
    plain = Polynomial.interactions(np.ones((2, 3)))
    assert [plain.pair(column) for column in range(6)] == [*linear, (0, 1), (0, 2), (1, 2)]
    with pytest.raises(ValueError, match="no squares"):
        plain.column(1, 1)
    for wrong in ((3, 0), (0, 3), (-1, 0), (0, -2)):
        with pytest.raises(IndexError, match="between 0 and 2"):
            design.column(*wrong)
    with pytest.raises(IndexError, match="between 0 and 8"):
        design.pair(9)
    with pytest.raises(TypeError, match="whole numbers"):
        design.pairs([0.5])


def test_names() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.ones((4, 3)), columns=["age", "sex", "dose"])
    design = Polynomial(table)
    columns = [design.column(0, 2), design.column(2, 2), 1]
    assert design.feature_names(columns) == ["age:dose", "dose^2", "sex"]
    assert RowSubset(design, [0, 1]).inner.feature_names([0]) == ["age"]
    assert design.feature_names(columns, ["a", "b", "c"]) == ["a:c", "c^2", "b"]
    assert Polynomial(np.ones((4, 3))).feature_names(columns) == ["x0:x2", "x2^2", "x1"]
    with pytest.raises(ValueError, match="name the 3 inputs, got 2"):
        design.feature_names(columns, ["a", "b"])


def test_bad_data_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Polynomial(np.array([[1.0, np.nan]]))


# --- solve --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "norm", "loss"),
    in_turn(
        ["C", "csc", "float32", "standardized", "rows"],
        ["l1", KSupport(3)],
        ["squared", "logistic"],
    ),
)
def test_solve_equals_explicit(kind: str, norm: Any, loss: str) -> None:
    rng = np.random.default_rng(5)
    n, d = 80, 12
    X = rng.standard_normal((n, d))
    if kind == "csc":
        X *= rng.random(X.shape) < 0.04
    if kind == "float32":
        X = X.astype(np.float32)
    X64 = X.astype(np.float64)
    target = X64[:, 1] - 2 * X64[:, 3] * X64[:, 7] + 0.1 * rng.standard_normal(n)
    y = target if loss == "squared" else np.where(target > 0, 1.0, -1.0)
    design: Design = Polynomial(sp.csc_array(X) if kind == "csc" else X, 0.5, 0.5)
    explicit: Design = as_design(formed(X64, 0.5, 0.5))
    if kind == "standardized":
        design, explicit = Standardized(design), Standardized(explicit)
    if kind == "rows":
        keep = np.arange(0, n, 2)
        design, explicit, y = RowSubset(design, keep), RowSubset(explicit, keep), y[keep]
    weight = rng.uniform(0.5, 2.0, y.size)
    settings = {"norm": norm, "level": 2.0, "loss": loss, "tau": 0.1, "fit_intercept": True}
    mine = solve_sum(design, y, sample_weight=weight, tol=1e-9, **settings)
    theirs = solve_sum(explicit, y, sample_weight=weight, tol=1e-9, **settings)
    assert mine.converged
    assert theirs.converged
    assert abs(mine.objective - theirs.objective) <= 2e-9 * theirs.objective
    # tau makes the solution unique: ||w - w'||^2 <= 2 (gap + gap') / tau.
    apart = np.sqrt(2 * (mine.gap + theirs.gap + 1e-12) / 0.1)
    a, b = mine.coef.astype(np.float64), theirs.coef.astype(np.float64)
    assert np.linalg.norm(a - b) <= apart + 1e-6 * (kind == "float32")


def test_solve_where_nothing_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fit by search alone, certificate included."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 30))
    y = X[:, 0] * X[:, 9] + 0.05 * rng.standard_normal(60)
    listed = solve_sum(formed(X), y, norm="l1", level=3.0, fit_intercept=True)
    change(monkeypatch, "pairs.scores", most_listed=0)
    design = Polynomial(X)
    result = solve_sum(design, y, norm="l1", level=3.0, fit_intercept=True)
    assert result.converged
    assert abs(result.objective - listed.objective) <= 2e-6 * listed.objective
    strongest = int(result.columns[np.argmax(np.abs(result.weights))])
    assert design.pair(strongest) == (0, 9)


def test_solve_makes_no_array_of_all_columns() -> None:
    """2 * 10^10 products: an array of a number each would take 150 GB."""
    X = sp.random_array((40, 200_000), density=1e-3, rng=np.random.default_rng(4), format="csc")
    y = np.random.default_rng(5).standard_normal(40)
    assert solve_sum(Polynomial(X), y, norm="l1", level=1.0).converged


@pytest.mark.parametrize("n", [1, 100, 512, 100_000])
def test_the_bound_of_single_precision_is_no_less_than_that_of_its_sums(n):
    terms, unit = min(n, 512), 2.0**-24
    assert ErrorBound.of(n, 1.0, True).relative >= terms * unit / (1 - terms * unit)


@pytest.mark.parametrize("norm", ["l1", KSupport(3)])
def test_fits_over_more_columns_than_memory_has_numbers_for(norm):
    """4.5 * 10^12 columns: not even one number a column may be asked for."""
    rng = np.random.default_rng(0)
    n, p = 200, 3_000_000
    held = rng.integers(0, p, size=5 * n) ** 2 // p
    X = sp.csr_array((np.ones(5 * n), held, np.arange(0, 5 * n + 1, 5)), shape=(n, p))
    X.sum_duplicates()
    design, y = Polynomial(X), rng.standard_normal(n)
    level = 0.5 * abs(design.scores(y).top(1)[1][0])
    found = solve_sum(design, y, norm=norm, level=level, form="penalized")
    assert found.converged
    assert found.columns.size


def test_a_factor_on_l1_lists_no_columns() -> None:
    """2^28 columns may be listed, but nobody has to: a factor made groups of them, one each."""
    design = designs.Polynomial(np.zeros((3, 20_000)))
    assert design.listable
    for norm in (norms.L1(), norms.Scaled(norms.L1(), 2.0)):
        problem = Problem.build(
            design, np.ones(3), as_loss("squared"), Regularizer(norm, "penalized", 1.0)
        )
        assert cheap_candidates(problem) == 0
