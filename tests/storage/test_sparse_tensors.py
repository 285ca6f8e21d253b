"""Sparse tensors of PyTorch: the same design as SciPy's arrays, however they are stored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from atomlearn import AtomicClassifier, AtomicClassifierCV, AtomicRegressor
from atomlearn.core import (
    Array,
    Design,
    SparseBlock,
    SparseDesign,
    centered,
    is_opened,
    scaled_design,
    scales_of_inputs,
)
from atomlearn.core.data.standardized import largest_magnitudes
from atomlearn.designs import OnDevice, RowSubset, Standardized, as_design
from atomlearn.storage.device import sparse as sparse_tensor
from atomlearn.storage.device.on_device import RecheckedScores
from atomlearn.storage.device.tensors import BUDGET, to_host
from atomlearn.testing.designs import DesignChecks, assert_within, brute_force_top
from tests.oracles.tensors import PLACE, torch_tensor

pytest.importorskip("array_api_compat")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

N_SAMPLES, N_FEATURES = 23, 41


@pytest.fixture(autouse=True)
def _no_warnings_of_a_beta() -> Iterator[None]:
    """PyTorch says of its sparse tensors, once in a process, that they may change, and so on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse .* tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly")
        yield


def few(seed: int = 0, density: float = 0.3) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    X *= rng.random(X.shape) < density
    X[:, 5] = 0.0
    X[4] = 0.0
    X[:, 9] = X[:, 3]
    return X


def halves(X: Array) -> Any:
    """Return a COO tensor, in no order, that has each entry twice: two halves of it."""
    rows, columns = np.nonzero(X)
    order = np.random.default_rng(1).permutation(2 * rows.size) % max(rows.size, 1)
    places = torch_tensor(np.stack([rows, columns])[:, order])
    return torch.sparse_coo_tensor(places, torch_tensor(X[rows, columns][order] / 2), X.shape)


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "csc": lambda X: torch_tensor(X).to_sparse_csc(),
    "csr": lambda X: torch_tensor(X).to_sparse_csr(),
    "coo": lambda X: torch_tensor(X).to_sparse(),
    "coo, not coalesced": halves,
}


@pytest.mark.parametrize(
    ("layout", "dtype", "precision", "product"),
    [
        (layout, dtype, precision, product)
        for layout, (dtype, precision, product) in zip(
            LAYOUTS,
            cycle(
                [
                    (np.float32, "auto", True),
                    (np.float64, "auto", True),
                    (np.float32, "auto", False),
                    (np.float32, "float64", False),
                ]
            ),
            strict=False,
        )
    ],
)
class TestSparseTensors(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(
        self,
        layout: str,
        dtype: type,
        precision: str,
        product: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.layout, self.dtype, self.precision = layout, dtype, precision
        # So small that there are many tiles, and columns of several sums.
        few = replace(BUDGET, tile_entries=9)
        monkeypatch.setattr(sparse_tensor, "BUDGET", few)
        if not product:
            monkeypatch.setattr(sparse_tensor, "_has_product", lambda device, dtype: False)

    def build(self) -> tuple[Design, Array]:
        X = few().astype(self.dtype)
        design = OnDevice(LAYOUTS[self.layout](X), precision=self.precision)
        assert design.traits.is_sparse
        assert design.nonzeros == np.count_nonzero(X)
        return design, X.astype(np.float64)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_columns_in_order_are_not_copied(kind: Any) -> None:
    X = torch_tensor(few()).to_sparse_csc()
    starts, rows = X.ccol_indices().to(kind), X.row_indices().to(kind)
    given_tensor = torch.sparse_csc_tensor(starts, rows, X.values(), size=X.shape)
    held = OnDevice(given_tensor).tensor
    assert isinstance(held, sparse_tensor.SparseTensor)
    assert held.sample.data_ptr() == given_tensor.values().data_ptr()
    assert held._rows.data_ptr() == given_tensor.row_indices().data_ptr()


def wild(rng: np.random.Generator, n: int, p: int) -> Array:
    """Return float32 data of any magnitude, with ties, empty columns and zeros that are stored."""
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < rng.choice([0.02, 0.2, 0.9]))
    X *= 10.0 ** rng.integers(-42, 38, size=p) if rng.random() < 0.4 else 1.0
    if rng.random() < 0.5:
        X[:, : p // 2] = X[:, [0]]
    return np.asarray(np.clip(X, -3e38, 3e38).astype(np.float32))


@given(seed=st.integers(0, 2**32 - 1), layout=st.sampled_from(sorted(LAYOUTS)))
def test_bounds_hold_and_the_best_are_the_best(seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 200)), int(rng.integers(1, 30))
    tensor = LAYOUTS[layout](wild(rng, n, p))
    # Dense on the processor: a GPU makes zeros of the sums of the least numbers of float32.
    X = tensor.cpu().to_dense().numpy().astype(np.float64)
    v = rng.standard_normal(n) * 10.0 ** (rng.integers(-30, 30) + rng.integers(-9, 1, n))
    design = OnDevice(tensor)
    z, error = map(to_host, design.single_scores(v))
    exact = X.T @ v
    assert (np.abs(z - exact) <= error).all()
    scores = design.scores(v)
    assert isinstance(scores, RecheckedScores)
    for count in (1, 3, p):
        columns, values = scores.top(count)
        known = scores.at(np.arange(p))
        assert_within(known, exact, 1e-13 * np.abs(X).T @ np.abs(v))
        assert_array_equal(columns, brute_force_top(known, count)[0])
        assert_array_equal(values, known[columns])


def test_the_bound_of_a_column_depends_on_its_own_entries() -> None:
    """Two entries among 5,000 rows: nearly exact; 5,000 of them."""
    rng = np.random.default_rng(0)
    X = np.zeros((5000, 3), dtype=np.float32)
    X[[7, 4000], 0], X[:, 1] = 1.0, rng.standard_normal(5000)
    v = np.ones(5000)
    error = to_host(OnDevice(torch_tensor(X).to_sparse_csc()).single_scores(v)[1])
    lengths = np.linalg.norm(X.astype(float), axis=0) * np.linalg.norm(v)
    assert error[0] < 5 * 2.0**-24 * lengths[0]
    assert 5000 * 2.0**-24 * lengths[1] < error[1] < 5100 * 2.0**-24 * lengths[1]
    assert error[2] < 1e-30


def test_gathered_columns_stay_sparse() -> None:
    X = sp.random_array((4000, 300), density=0.01, rng=np.random.default_rng(2), format="csc")
    tensor = torch.sparse_csc_tensor(
        torch_tensor(X.indptr), torch_tensor(X.indices), torch_tensor(X.data), X.shape
    )
    columns = np.arange(0, 300, 2)
    block = OnDevice(tensor).gather(columns)
    assert isinstance(block, SparseBlock)
    assert_array_equal(block.dense(), X.toarray()[:, columns])
    with pytest.raises(IndexError, match="300"):
        OnDevice(tensor).gather(np.array([300]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_of_the_processor_are_read_in_place(layout: str, dtype: type) -> None:
    if PLACE != "cpu":
        pytest.skip("NumPy reads tensors of the processor")
    X = few().astype(dtype)
    tensor = LAYOUTS[layout](X)
    design = as_design(tensor)
    assert isinstance(design, SparseDesign)
    assert_array_equal(design.stored().toarray(), X)
    assert is_opened(tensor)
    if layout in ("csc", "csr"):
        assert np.shares_memory(design.stored().data, tensor.values().numpy())
        tensor.requires_grad_(True)
        assert isinstance(as_design(tensor), SparseDesign)


# --- what is refused ------------------------------------------------------------------------------


def broken(
    kind: str, starts: list[int], indices: list[int], values: list[float], size: tuple[int, int]
) -> Any:
    made = torch.sparse_csr_tensor if kind == "csr" else torch.sparse_csc_tensor
    parts = (torch.tensor(part, device=PLACE) for part in (starts, indices, values))
    return made(*parts, size=size, check_invariants=False)


BROKEN: dict[str, tuple[list[int], list[int]]] = {
    "index too large": ([0, 1, 2, 3], [0, 3, 1]),
    "index negative": ([0, 1, 2, 3], [0, -1, 1]),
    "index far away": ([0, 1, 2, 3], [0, 2**40, 1]),
    "starts fall": ([0, 2, 1, 3], [0, 1, 2]),
    "starts end late": ([0, 1, 2, 9], [0, 1, 2]),
    "starts begin late": ([1, 1, 2, 3], [0, 1, 2]),
    "out of order": ([0, 2, 2, 3], [1, 0, 2]),
    "named twice": ([0, 2, 2, 3], [1, 1, 2]),
}


@pytest.mark.parametrize("make", [OnDevice, as_design])
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("fault", BROKEN)
def test_broken_structures_are_refused_before_any_index_is_followed(
    fault: str, kind: str, make: Callable[[Any], Design]
) -> None:
    tensor = broken(kind, *BROKEN[fault], [1.0, 2.0, 3.0], (3, 3))
    if make is as_design and fault in ("out of order", "named twice") and PLACE == "cpu":
        # SciPy puts such columns in order, and adds them up.
        assert as_design(tensor).predict(np.ones(3)).sum() == 6.0
        return
    with pytest.raises(ValueError, match="broken"):
        make(tensor)


@pytest.mark.parametrize("make", [OnDevice, as_design])
@pytest.mark.parametrize("place", [(3, 0), (-1, 0), (0, 3), (0, -7)])
def test_broken_triplets_are_refused(place: tuple[int, int], make: Callable[[Any], Design]) -> None:
    tensor = torch.sparse_coo_tensor(
        torch.tensor([[0, place[0]], [0, place[1]]], device=PLACE),
        torch.ones(2, device=PLACE),
        (3, 3),
        check_invariants=False,
    )
    with pytest.raises(ValueError, match="broken COO"):
        make(tensor)


@pytest.mark.parametrize("make", [OnDevice, as_design])
def test_what_is_refused(make: Callable[[Any], Design]) -> None:
    dense = torch.ones((4, 4))
    hybrid = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones((2, 3)), (3, 3))
    for X, error, words in (
        (dense.to_sparse_bsr((2, 2)), TypeError, "sparse_bsr|layout bsr"),
        (hybrid, TypeError, "not numbers"),
        (torch.ones((2, 3, 4)).to_sparse(), ValueError, "2-d"),
        (dense.to(torch.bfloat16).to_sparse(), TypeError, "float32 or float64"),
        (torch.sparse_coo_tensor(size=(0, 3)), ValueError, "0 sample"),
        (torch.sparse_coo_tensor(size=(3, 0)), ValueError, "0 feature"),
    ):
        with pytest.raises(error, match=words):
            make(X)
    with pytest.raises(TypeError, match="float32 or float64"):
        OnDevice(dense.to(torch.int32).to_sparse())


@pytest.mark.parametrize("make", [OnDevice, as_design])
@pytest.mark.parametrize("layout", ["csc", "csr", "coo"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_entries_that_are_not_finite_are_named(
    value: float, layout: str, make: Callable[[Any], Design]
) -> None:
    X = few()
    X[17, 33] = value
    with pytest.raises(ValueError, match=r"\(17, 33\)"):
        make(LAYOUTS[layout](X))


def test_sparse_arrays_of_other_libraries_are_refused() -> None:
    """No GPU to test CuPy on: refused by name, with what to do."""
    kind = type("csr_matrix", (), {"__module__": "cupyx.scipy.sparse._csr", "shape": (3, 3)})
    with pytest.raises(TypeError, match=r"cupyx.*PyTorch"):
        as_design(kind())


def test_an_empty_matrix() -> None:
    design = OnDevice(torch.sparse_coo_tensor(size=(5, 3), dtype=torch.float32))
    v = np.ones(5)
    assert_array_equal(design.scores(v).top(2)[0], [0, 1])
    assert_array_equal(design.scores(v).full(), np.zeros(3))
    assert_array_equal(design.predict(np.ones(3)), np.zeros(5))
    assert_array_equal(largest_magnitudes(design), np.zeros(3))
    assert_array_equal(design.gather(np.array([2, 0])).dense(), np.zeros((5, 2)))


# --- what is built on it --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_are_those_of_scipy_arrays(dtype: type) -> None:
    """Sparse columns are scaled by their largest magnitudes."""
    X = few().astype(dtype)
    mine, other = OnDevice(LAYOUTS["csr"](X)), as_design(sp.csr_array(X))
    scales, name = scales_of_inputs(mine)
    assert_array_equal(scales, scales_of_inputs(other)[0])
    assert name == "largest magnitudes"
    everything = np.arange(N_FEATURES)
    np.testing.assert_allclose(
        scaled_design(mine, 1 / scales).gather(everything).dense(),
        scaled_design(other, 1 / scales).gather(everything).dense(),
        rtol=np.finfo(dtype).eps,
    )
    assert centered(mine) is None
    assert centered(OnDevice(torch_tensor(X))) is not None


def test_wrappers_give_what_they_give_of_scipy_arrays() -> None:
    X = few(3)
    rows = np.random.default_rng(4).integers(0, N_SAMPLES, 30)
    v = np.random.default_rng(5).standard_normal(30)
    mine = Standardized(RowSubset(OnDevice(LAYOUTS["coo"](X)), rows))
    other = Standardized(RowSubset(as_design(sp.csr_array(X)), rows))
    np.testing.assert_allclose(mine.scores(v).full(), other.scores(v).full(), atol=1e-12)
    np.testing.assert_allclose(
        mine.gather(np.arange(9)).dense(), other.gather(np.arange(9)).dense(), atol=1e-13
    )


@pytest.mark.parametrize("make", [OnDevice, lambda tensor: tensor])
def test_estimators_take_sparse_tensors(make: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((90, 30)) * (rng.random((90, 30)) < 0.4)).astype(np.float32)
    y = X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(90)
    tensor, plain = make(LAYOUTS["csr"](X)), sp.csr_array(X)
    model = AtomicRegressor("l1", alpha=0.05, tol=1e-9).fit(tensor, y)
    same = AtomicRegressor("l1", alpha=0.05, tol=1e-9).fit(plain, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(tensor), same.predict(plain), rtol=1e-5, atol=1e-5)
    labels = AtomicClassifierCV(cv=3, n_alphas=4).fit(tensor, y > 0)
    others = AtomicClassifierCV(cv=3, n_alphas=4).fit(plain, y > 0)
    assert labels.alpha_ == pytest.approx(others.alpha_)
    assert_array_equal(labels.predict(tensor), others.predict(plain))
    assert AtomicClassifier(alpha=0.02).fit(tensor, y > 0).n_features_in_ == 30
