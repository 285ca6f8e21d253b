"""Products of columns on a device: what Polynomial over the array gives, found elsewhere."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import AtomicClassifier, AtomicRegressor
from atomlearn.core import Array, Counted, Design
from atomlearn.designs import OnDevice, Polynomial, RowSubset, Standardized, as_design
from atomlearn.maps.pairs import device as device_pairs
from atomlearn.maps.pairs.device import DevicePairs
from atomlearn.maps.pairs.sparse import SparsePairs
from atomlearn.storage.device import columns as device_columns
from atomlearn.storage.device.tensors import (
    BFLOAT16,
    BUDGET,
    TF32,
    SingleRounding,
    as_written,
    to_host,
)
from atomlearn.testing.designs import DesignChecks, brute_force_top
from tests.oracles.pairs import one_by_one, searched
from tests.oracles.settings import change
from tests.oracles.sums import solve_sum
from tests.oracles.tensors import CUPY, PLACE, cupy_tensor, strict_tensor, torch_tensor

pytest.importorskip("array_api_compat")

N_SAMPLES, N_INPUTS = 23, 9


@pytest.fixture(autouse=True)
def _no_warnings_of_a_beta() -> Iterator[None]:
    """PyTorch says of its sparse tensors, once in a process, that they may change, and so on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse .* tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly")
        yield


LIBRARIES: dict[str, Callable[[Array], Any]] = {
    "torch": torch_tensor,
    "torch, sparse": lambda X: torch_tensor(X).to_sparse_csr(),
    "strict": strict_tensor,
}
LIBRARIES |= {"cupy": cupy_tensor} if CUPY else {}


def inputs(seed: int = 0, dtype: Any = np.float64) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, N_INPUTS)) * (rng.random((N_SAMPLES, N_INPUTS)) < 0.7)
    X[:, 2] = 0.0
    X[:, 5] = X[:, 3]
    X[:, 6] = 1.0
    return X.astype(dtype)


def formed(X: Array, gamma: float, r: float, only: bool) -> Array:
    """The columns of the map, by two loops."""
    X = np.asarray(X, dtype=np.float64)
    columns = [np.sqrt(2 * gamma * r) * x for x in X.T]
    for i in range(X.shape[1]):
        for j in range(i, X.shape[1]):
            if i < j:
                columns.append(np.sqrt(2) * gamma * X[:, i] * X[:, j])
            elif not only:
                columns.append(gamma * X[:, i] ** 2)
    return np.stack(columns, axis=1)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all seams be crossed: tiles, runs of rows, pieces that are made."""
    change(monkeypatch, "pairs.products", tile=3)
    for module in ("pairs.products", "pairs.device"):
        change(monkeypatch, module, "BUDGET", single_terms=7)
    monkeypatch.setattr(device_columns, "BUDGET", replace(BUDGET, held_entries=0))


@pytest.mark.parametrize(("storable", "only", "dtype"), [
    (True, True, np.float32), (False, False, np.float64),
])  # fmt: skip
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.usefixtures("small_tiles")
class TestPolynomialOnDevice(DesignChecks):
    gathers_exactly = False

    @pytest.fixture(autouse=True)
    def _setting(
        self,
        library: str,
        dtype: type,
        only: bool,
        storable: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.library, self.dtype, self.only = library, dtype, only
        self.scores_are_storable = storable
        if not storable:
            change(monkeypatch, "pairs.scores", most_listed=20)

    def build(self) -> tuple[Design, Array]:
        X = inputs(dtype=self.dtype)
        design = Polynomial(OnDevice(LIBRARIES[self.library](X)), 0.7, 1.3, self.only)
        assert isinstance(design._pairs, DevicePairs)
        return design, formed(X, 0.7, 1.3, self.only)

    def test_pickles(self) -> None:
        if self.library == "strict":
            pytest.skip("array_api_strict devices do not pickle")
        super().test_pickles()


# --- the search -----------------------------------------------------------------------------------


def wrapped(rng: np.random.Generator, kind: str, base: Design) -> Design:
    rows = rng.integers(0, base.shape[0], size=base.shape[0] + 2)
    weight = rng.random(base.shape[0]) + 0.1
    return {
        "plain": lambda: base,
        "rows": lambda: RowSubset(base, rows),
        "standardized": lambda: Standardized(base, weight=weight),
        "standardized rows": lambda: Standardized(RowSubset(base, rows)),
        "rows of standardized": lambda: RowSubset(Standardized(Counted(base)), rows),
        "scaled": lambda: Standardized(base, center=False),
    }[kind]()


WRAPPERS = ("plain", "rows", "standardized", "standardized rows", "rows of standardized", "scaled")


def awkward(rng: np.random.Generator) -> Array:
    """Return small data with ties, constant and empty columns, whole numbers, any magnitudes."""
    n, d = int(rng.integers(2, 30)), int(rng.choice([1, 2, 3, 8, 17]))
    whole = rng.random() < 0.5
    X = rng.integers(-2, 3, (n, d)).astype(float) if whole else rng.standard_normal((n, d))
    X = X * (rng.random((n, d)) < rng.choice([0.15, 0.9]))
    for value in (0.0, 1.0):
        if rng.random() < 0.3:
            X[:, rng.integers(d)] = value
    if rng.random() < 0.4:
        X[:, rng.integers(d)] = X[:, 0] * (1 + 1e-6)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.integers(-18, 16, d)
    X[0, 0] = 1.0
    return X.astype(rng.choice([np.float32, np.float64]))


@pytest.mark.parametrize("library", LIBRARIES)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(WRAPPERS))
def test_the_best_are_those_of_the_array(library: str, seed: int, kind: str) -> None:
    """The same columns, with the very same scores where the data are."""
    rng = np.random.default_rng(seed)
    X = awkward(rng)
    state = int(rng.integers(2**32))
    plain = sp.csr_array(X) if "sparse" in library else X
    bases = [
        wrapped(np.random.default_rng(state), kind, base)
        for base in (OnDevice(LIBRARIES[library](X)), as_design(plain))
    ]
    only = bool(rng.integers(2))
    mine, other = (Polynomial(base, 0.7, 1.3, only) for base in bases)
    v = rng.standard_normal(mine.shape[0]) * 10.0 ** rng.integers(-30, 30)
    v[rng.random(v.size) < 0.2] = 0.0
    z = one_by_one(mine, v)
    if kind in ("plain", "rows"):  # means of nearly constant columns depend on how sums round
        theirs = one_by_one(other, v)
        sizes = np.abs(other.gather(np.arange(mine.shape[1])).dense()).T @ np.abs(v)
        assert (np.abs(z - theirs) <= 1e-13 * sizes).all()
    with pytest.MonkeyPatch.context() as patch:
        columns = int(rng.choice([1, 3, 2048]))
        single = int(rng.choice([3, 4096]))
        change(patch, "pairs.products", tile=columns)
        for module in ("pairs.products", "pairs.device"):
            change(patch, module, "BUDGET", single_terms=single)
        for count in {1, 2, 5, mine.shape[1] // 2 + 1, mine.shape[1]}:
            columns, values = searched(mine, v, count)
            expected, sizes = brute_force_top(z, count)
            assert_array_equal(columns, expected)
            assert_array_equal(values, sizes)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_definition_is_that_of_the_array(library: str) -> None:
    """Bit for bit: so is everything that a solver sees of the best products."""
    X = inputs(1).astype(np.float32)
    v = np.random.default_rng(2).standard_normal(X.shape[0])
    mine = Polynomial(OnDevice(LIBRARIES[library](X)))
    other = Polynomial(X if "," not in library else sp.csc_array(X))
    everything = np.arange(mine.shape[1])
    assert_array_equal(
        one_by_one(mine, v)[N_INPUTS:],
        one_by_one(other, v)[N_INPUTS:],
    )
    assert_array_equal(mine.gather(everything).dense(), other.gather(everything).dense())


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("plain", np.float32),
        ("plain", np.float64),
        ("standardized", np.float32),
        ("rows of standardized", np.float64),
        ("scaled", np.float32),
    ],
)
def test_columns_on_the_device_are_those_of_the_processor(
    dtype: type, kind: str, library: str
) -> None:
    X = inputs(3, dtype)
    base = wrapped(np.random.default_rng(4), kind, OnDevice(LIBRARIES[library](X)))
    columns = device_columns.DeviceColumns.of(base)
    assert columns is not None
    assert columns.shape == base.shape
    tile = columns.read(2, 8, columns.dtype)
    expected = base.gather(np.arange(2, 8)).dense()
    assert_array_equal(to_host(tile), expected)


def test_what_is_not_on_a_device_is_left_to_the_processor() -> None:
    base = OnDevice(strict_tensor(inputs()))
    twice = Standardized(Standardized(base))
    assert device_pairs.device_pairs(twice) is None
    assert device_pairs.device_pairs(as_design(inputs())) is None
    assert device_pairs.device_pairs(RowSubset(twice, [0, 1])) is None
    v = np.random.default_rng(0).standard_normal(N_SAMPLES)
    mine, other = Polynomial(twice), Polynomial(Standardized(Standardized(as_design(inputs()))))
    np.testing.assert_allclose(
        mine.scores(v).full(), other.scores(v).full(), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_near_ties_over_many_tiles(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that single precision cannot tell apart, over several runs of rows."""
    change(monkeypatch, "pairs.products", tile=50)
    for module in ("pairs.products", "pairs.device"):
        change(monkeypatch, module, "BUDGET", single_terms=512)
    rng = np.random.default_rng(5)
    n, d = 1200, 250
    X = rng.standard_normal((n, d)).astype(np.float32)
    X[:, 50:90] = X[:, [3]] * (1 + 1e-6 * rng.standard_normal((n, 40)))
    v = rng.standard_normal(n)
    X[:, 10] = np.sign(v * X[:, 3])
    design = Polynomial.interactions(OnDevice(LIBRARIES[library](X)), squares=True)
    z = one_by_one(design, v)
    for count in (1, 20, 30, 1000):
        scores = design.scores(v)
        columns, values = scores.top(count)
        assert_array_equal(columns, brute_force_top(z, count)[0])
        # A GPU adds a few columns up in another order than all of them.
        assert_allclose(values, z[columns], rtol=1e-13)
        assert scores.work is not None


def test_columns_that_cannot_matter_are_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch, "pairs.products", tile=5)
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 100))
    X[:, 10:] *= 1e-3
    design = Polynomial.interactions(OnDevice(strict_tensor(X)))
    v = rng.standard_normal(40)
    columns, _ = searched(design, v, 3)
    z = one_by_one(design, v)
    assert_array_equal(columns, brute_force_top(z, 3)[0])
    assert design.work.products < 0.3 * design.work.possible


# --- reduced precision ----------------------------------------------------------------------------


def cut_off(values: Array, bits: int) -> Array:
    """Return float32 numbers with so many bits after the leading one, the rest cut off."""
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return (words & np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)).view(np.float32)


@pytest.mark.parametrize(("cut", "bits"), [(TF32, 10), (BFLOAT16, 7)])
def test_the_answer_does_not_depend_on_what_the_device_cuts_off(
    cut: float, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Factors as tensor cores take them: sums are off by a part in 1,000, the answer by nothing."""
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    matmul = strict.matmul
    wrong = 0

    def rounded(left: Any, right: Any) -> Any:
        nonlocal wrong
        if left.dtype != strict.float32:
            return matmul(left, right)
        arrays = [np.from_dlpack(x.to_device(strict.Device("CPU_DEVICE"))) for x in (left, right)]
        product = cut_off(arrays[0], bits) @ cut_off(arrays[1], bits)
        wrong += int((np.abs(product - arrays[0] @ arrays[1]) > 1e-5).sum())
        return strict.asarray(product, device=device)

    rounding = SingleRounding(cut, 2.0**-22)
    monkeypatch.setattr(SingleRounding, "of", classmethod(lambda cls, tensor: rounding))
    monkeypatch.setattr(strict, "matmul", rounded)
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 60)).astype(np.float32)
    X[:, 30:] = X[:, :30] * (1 + 1e-4 * rng.standard_normal((300, 30)))
    v = np.sign(X[:, 0] * X[:, 1]) * rng.random(300)
    base = OnDevice(strict_tensor(X))
    z, error = map(to_host, base.single_scores(v))
    exact = X.astype(np.float64).T @ v
    assert (np.abs(z - exact) <= error).all()
    assert_array_equal(base.scores(v).top(4)[0], brute_force_top(exact, 4)[0])
    design = Polynomial.interactions(base)
    known = one_by_one(design, v)
    columns, values = searched(design, v, 5)
    assert_array_equal(columns, brute_force_top(known, 5)[0])
    assert_array_equal(values, known[columns])
    assert wrong > 100


def test_settings_of_pytorch_are_known() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.ones(1)
    before = torch.get_float32_matmul_precision()
    try:
        for name, cut in (("high", TF32), ("medium", BFLOAT16), ("highest", 0.0)):
            torch.set_float32_matmul_precision(name)
            assert SingleRounding.of(tensor) == SingleRounding(cut, 2.0**-22 if cut else 2.0**-24)
        torch.backends.cuda.matmul.allow_tf32 = True
        assert SingleRounding.of(tensor).cut == TF32
    finally:
        torch.set_float32_matmul_precision(before)


NEWER = """
import torch
from atomlearn.storage.device.tensors import SingleRounding

def cut():
    return SingleRounding.of(torch.ones(1)).cut

torch.backends.cuda.matmul.fp32_precision = "tf32"
print(cut())
torch.backends.cuda.matmul.fp32_precision = "ieee"
torch.backends.mkldnn.matmul.fp32_precision = "bf16"
print(cut())
torch.backends.mkldnn.matmul.fp32_precision = "ieee"
print(cut())
torch.backends.fp32_precision = "tf32"
print(cut())
"""


def test_newer_settings_of_pytorch_are_known() -> None:
    """In a process of its own: PyTorch has no way back to its older setting."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not hasattr(torch.backends, "fp32_precision"):
        pytest.skip("a setting of later versions of PyTorch")
    found = subprocess.run([sys.executable, "-c", NEWER], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert [float(word) for word in found.stdout.split()] == [TF32, BFLOAT16, 0.0, TF32]


def test_other_libraries_are_taken_for_coarse_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = strict_tensor(np.ones((2, 2)))
    assert SingleRounding.of(tensor) == SingleRounding(0.0, 2.0**-24)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    assert SingleRounding.of(tensor) == SingleRounding(TF32, 2.0**-22)
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE")
    for name, cut in (("array_api_compat.cupy", TF32), ("jax.numpy", BFLOAT16)):
        other = type("Other", (), {"__name__": name})()
        monkeypatch.setattr("atomlearn.storage.device.tensors.namespace", lambda tensor, x=other: x)
        assert SingleRounding.of(tensor).cut == cut


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_automatic_casts_are_kept_out(layout: str) -> None:
    """Under autocast PyTorch would multiply in bfloat16."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(8)
    X = rng.standard_normal((50, 30)).astype(np.float32)
    tensor = torch_tensor(X)
    design = OnDevice(tensor if layout == "dense" else tensor.to_sparse_csc())
    v = rng.standard_normal(50)
    pairs = Polynomial(design)
    expected = searched(pairs, v, 4)
    with torch.autocast(PLACE, dtype=torch.bfloat16):
        assert (tensor.T @ tensor).dtype == torch.bfloat16
        with as_written(tensor):
            assert (tensor.T @ tensor).dtype == torch.float32
        z, error = map(to_host, design.single_scores(v))
        found = searched(pairs, v, 4)
    assert (np.abs(z - X.astype(float).T @ v) <= error).all()
    for mine, other in zip(found, expected, strict=True):
        assert_array_equal(mine, other)


# --- sparse tensors -------------------------------------------------------------------------------


def test_nearly_empty_tensors_are_searched_by_the_processor() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    X = sp.random_array((300, 500), density=0.008, rng=np.random.default_rng(11), format="csc")
    tensor = torch.sparse_csc_tensor(
        torch_tensor(X.indptr), torch_tensor(X.indices), torch_tensor(X.data), X.shape
    )
    base = OnDevice(tensor)
    design = Polynomial(base)
    assert isinstance(design._pairs, SparsePairs)
    rows = np.random.default_rng(12).integers(0, 300, 200)
    part = RowSubset(design, rows)
    other = Polynomial(X[rows])
    v = np.random.default_rng(13).standard_normal(200)
    for mine, theirs in zip(part.scores(v).top(9), other.scores(v).top(9), strict=True):
        assert_array_equal(mine, theirs)
    # Copied once, whoever asks.
    assert base.tensor.host() is base.tensor.host()  # type: ignore[union-attr]


def test_memory_of_tall_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that have to be made are made a few at a time."""
    few = replace(BUDGET, held_entries=16 * N_SAMPLES)
    monkeypatch.setattr(device_columns, "BUDGET", few)
    X = np.random.default_rng(14).standard_normal((N_SAMPLES, 50))
    base = Standardized(OnDevice(strict_tensor(X)))
    columns = device_columns.DeviceColumns.of(base)
    assert columns is not None
    assert columns.width(2048, np.float32) == 16
    read, widest = device_columns.DeviceColumns.read, 0

    def counted(self: Any, lo: int, hi: int, dtype: Any) -> Any:
        nonlocal widest
        widest = max(widest, hi - lo)
        return read(self, lo, hi, dtype)

    monkeypatch.setattr(device_columns.DeviceColumns, "read", counted)
    design = Polynomial(base)
    v = np.random.default_rng(15).standard_normal(N_SAMPLES)
    z = one_by_one(design, v)
    assert_array_equal(searched(design, v, 5)[0], brute_force_top(z, 5)[0])
    assert widest == 16


# --- solvers and estimators -----------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
def test_fits_are_those_of_the_array(library: str) -> None:
    """Products with an intercept, a path of CV folds included: the same model."""
    rng = np.random.default_rng(16)
    X = np.round(8 * rng.standard_normal((120, 12))) / 8 * (rng.random((120, 12)) < 0.6)
    y = 2 * X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * rng.standard_normal(120)
    plain = sp.csr_array(X) if "sparse" in library else X
    base = OnDevice(LIBRARIES[library](X))
    for given_weight in (None, rng.random(120) + 0.5):
        mine, other = (
            AtomicRegressor("l1", alpha=0.05, tol=1e-9, features="interactions").fit(
                data, y, sample_weight=given_weight
            )
            for data in (base, plain)
        )
        np.testing.assert_allclose(mine.objective_, other.objective_, rtol=1e-8)
        assert mine.selected_names_ == other.selected_names_
        np.testing.assert_allclose(mine.predict(base), other.predict(plain), atol=1e-5)
    labels = [
        AtomicClassifier(alpha=0.02, features="polynomial").fit(data, y > 0)
        for data in (base, plain)
    ]
    assert labels[0].selected_names_ == labels[1].selected_names_
    standard = [
        solve_sum(
            Polynomial(Standardized(as_design(data))), y, level=15.0, fit_intercept=True, tol=1e-9
        )
        for data in (base, plain)
    ]
    assert all(result.converged for result in standard)
    assert standard[0].objective == pytest.approx(standard[1].objective, rel=1e-8)
