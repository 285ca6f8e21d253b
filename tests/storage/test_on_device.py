"""Tensors: the same design by PyTorch, and by the reference array library on its own device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from atomlearn import AtomicClassifier, AtomicRegressor
from atomlearn.core import Array, DenseDesign, Design, is_opened
from atomlearn.designs import OnDevice, as_design
from atomlearn.storage.device import dense as dense_tensor
from atomlearn.storage.device import on_device
from atomlearn.storage.device.on_device import RecheckedScores
from atomlearn.storage.device.tensors import BUDGET, to_host
from atomlearn.testing.designs import DesignChecks, brute_force_top
from tests.oracles.arrays import N_SAMPLES, normal
from tests.oracles.tensors import CUPY, PLACE, cupy_tensor, strict_tensor, torch_tensor

pytest.importorskip("array_api_compat")

LIBRARIES = {"torch": torch_tensor, "strict": strict_tensor}
LIBRARIES |= {"cupy": cupy_tensor} if CUPY else {}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("dtype", "precision"),
    [(np.float64, "auto"), (np.float32, "auto"), (np.float32, "float64")],
)
class TestOnDevice(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(
        self, library: str, dtype: type, precision: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.library, self.dtype, self.precision = library, dtype, precision
        # So small that there are many tiles.
        few = replace(BUDGET, tile_entries=100, single_terms=7)
        monkeypatch.setattr(dense_tensor, "BUDGET", few)

    def build(self) -> tuple[Design, Array]:
        X = normal().astype(self.dtype)
        design = OnDevice(LIBRARIES[self.library](X), precision=self.precision)
        return design, X.astype(np.float64)

    def test_pickles(self) -> None:
        if self.library == "strict":
            pytest.skip("array_api_strict devices do not pickle")
        super().test_pickles()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_best_columns_are_found_among_many_that_float32_cannot_tell_apart(
    library: str,
) -> None:
    """Scores that cancel to a part in 10^9: float32 sums are noise, the answer is exact."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 300)).astype(np.float32)
    v = rng.standard_normal(200)
    # Only X'v of the part across v differs, and that part is tiny.
    X[:, ::2] = X[:, :1] + 1e-6 * X[:, ::2]
    design = OnDevice(LIBRARIES[library](X))
    exact = X.astype(np.float64).T @ v
    for count in (1, 3, 20, 299):
        scores = design.scores(v)
        assert isinstance(scores, RecheckedScores)
        columns, values = scores.top(count)
        known = scores.at(np.arange(300))
        np.testing.assert_allclose(known, exact, rtol=1e-12, atol=1e-12)
        assert_array_equal(columns, brute_force_top(known, count)[0])
        assert_array_equal(values, known[columns])


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1.0, 1e30, 1e37])
@pytest.mark.parametrize("size", [1e-200, 1e-40, 1.0, 1e100])
def test_the_error_bound_holds_at_any_scale(scale: float, size: float) -> None:
    rng = np.random.default_rng(1)
    X = (scale * rng.standard_normal((300, 50))).astype(np.float32)
    v = size * rng.standard_normal(300) * 10.0 ** rng.integers(-30, 1, 300)
    design = OnDevice(strict_tensor(X))
    z, error = map(to_host, design.single_scores(v))
    exact = X.astype(np.float64).T @ v
    assert (np.abs(z - exact) <= error).all()
    if scale < 1e37:
        lengths = np.linalg.norm(X.astype(float), axis=0)
        assert (error < 1e-3 * lengths * (np.linalg.norm(v / size) * size)).all()
    columns, _ = design.scores(v).top(5)
    assert_array_equal(columns, brute_force_top(exact, 5)[0])


def test_float32_reads_few_columns_again() -> None:
    X = normal(shape=(100, 2000)).astype(np.float32)
    v = X[:, 7] + X[:, 11] + 0.0
    scores = OnDevice(strict_tensor(X)).scores(v.astype(np.float64))
    assert isinstance(scores, RecheckedScores)
    assert set(scores.top(2)[0]) == {7, 11}
    assert np.count_nonzero(scores._known) == 2


def test_numbers_that_are_not_finite_are_refused() -> None:
    design = OnDevice(strict_tensor(normal().astype(np.float32)))
    v = np.ones(N_SAMPLES)
    for value in (np.nan, np.inf):
        v[3] = value
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="v holds NaN"):
            design.scores(v).top(1)


def test_what_is_refused() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for X, error, words in (
        (torch.ones(3), ValueError, "2-d"),
        (torch.ones((0, 3)), ValueError, r"0 sample"),
        (torch.ones((3, 0)), ValueError, r"0 feature"),
        (torch.ones((3, 2), dtype=torch.int32), TypeError, "float32 or float64"),
        (torch.ones((3, 2), dtype=torch.bfloat16), TypeError, "float32 or float64"),
        ([[1.0]], TypeError, "PyTorch"),
    ):
        with pytest.raises(error, match=words):
            OnDevice(X)
    with pytest.raises(ValueError, match="precision must be"):
        OnDevice(torch.ones((3, 2)), precision="half")
    with pytest.raises(ValueError, match="X is float64"):
        OnDevice(torch.ones((3, 2), dtype=torch.float64), precision="float32")


@pytest.mark.parametrize("double", ["float32", None])
def test_libraries_without_float64_are_refused(
    double: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX makes float32 of float64 unless told otherwise; some devices have none."""
    tensor = strict_tensor(normal().astype(np.float32))
    strict = pytest.importorskip("array_api_strict")

    class Single:
        __name__ = "single"
        float64 = getattr(strict, double) if double else "no such type"

        def __getattr__(self, name: str) -> Any:
            return getattr(strict, name)

    monkeypatch.setattr(on_device, "namespace", lambda tensor: Single())
    with pytest.raises(TypeError, match="needs float64"):
        OnDevice(tensor)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_named(library: str, value: float) -> None:
    X = normal()
    X[17, 33] = value
    with pytest.raises(ValueError, match=r"\(17, 33\)"):
        OnDevice(LIBRARIES[library](X))
    with pytest.raises(ValueError, match=r"\(17, 33\)"):
        as_design(LIBRARIES[library](X))


def test_tensors_that_numpy_can_read_are_read_in_place() -> None:
    if PLACE != "cpu":
        pytest.skip("NumPy reads tensors of the processor")
    tensor = torch_tensor(normal())
    design = as_design(tensor)
    assert isinstance(design, DenseDesign)
    assert np.shares_memory(design.array, tensor.numpy())
    tensor.requires_grad_(True)
    assert isinstance(as_design(tensor), DenseDesign)
    assert is_opened(tensor)


def test_tensors_that_numpy_cannot_read_stay_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("storage.device.on_device", "storage.device.tensors"):
        monkeypatch.setattr(f"atomlearn.{module}.host_view", lambda tensor: None)
    X = normal()
    design = as_design(strict_tensor(X))
    assert isinstance(design, OnDevice)
    assert str(design.device) == "array_api_strict.Device('device1')"
    assert_array_equal(design.gather(np.array([3, 1])).dense(), X[:, [3, 1]])


@pytest.mark.parametrize("library", LIBRARIES)
def test_estimators_take_tensors(library: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 30)).astype(np.float32)
    y = X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(90)
    tensor = OnDevice(LIBRARIES[library](X))
    model = AtomicRegressor("l1", alpha=0.1, tol=1e-9).fit(tensor, y)
    plain = AtomicRegressor("l1", alpha=0.1, tol=1e-9).fit(X, y)
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(tensor), plain.predict(X), rtol=1e-5, atol=1e-5)
    labels = AtomicClassifier(alpha=0.02).fit(tensor, y > 0)
    assert_array_equal(
        labels.predict(tensor), AtomicClassifier(alpha=0.02).fit(X, y > 0).predict(X)
    )
