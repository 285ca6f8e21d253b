"""A tensor on a device: scores against its copy bandwidth, products, whole fits against the array.

copy: bytes read and written a second by copying a tensor there, the least of some runs. scores:
float32 and float64, dense and sparse; best ten columns of X'v, v sent there and their scores back;
the share is that of the copy bandwidth at which X is read. products: a search among all pairs of
columns, dense and sparse, on the device and by the processor. fits: the same lasso, and the same
selection among products, of the tensor and of the array, with how far their objectives are apart.
paths: 50 levels, and a cross-validation in five parts over as many, of the tensor and of the array.

Runs on the first CUDA device where PyTorch sees one, else on tensors of the processor, which tells
that it works and nothing about devices; the table's notes name what it was.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import AtomicRegressorCV, FeatureGenerator
from atomlearn.designs import OnDevice, Polynomial, as_design
from atomlearn.paths import path
from benchmarks.harness import Options, Table
from benchmarks.harness.machine import machine
from benchmarks.micro.timing import seconds
from tests.oracles.sums import solve_sum

#: Rows, columns and stored entries of a column: smoke, on the processor, on a device.
DENSE = {"smoke": (500, 2_000), "cpu": (5_000, 20_000), "cuda": (20_000, 100_000)}
SPARSE = {
    "smoke": (1_000, 5_000, 20),
    "cpu": (100_000, 200_000, 50),
    "cuda": (100_000, 4_000_000, 50),
}
PRODUCTS = {"smoke": (200, 300), "cpu": (1_000, 3_000), "cuda": (4_000, 30_000)}
FITS = {"smoke": (300, 1_000), "cpu": (2_000, 20_000), "cuda": (10_000, 100_000)}
PATHS = {"smoke": (200, 1_000), "cpu": (1_000, 20_000), "cuda": (1_000, 1_000_000)}


class Place:
    """Where tensors are made, and how large."""

    def __init__(self, options: Options) -> None:
        import torch

        self.torch = torch
        self.kind = "cuda" if torch.cuda.is_available() else "cpu"
        self.size = "smoke" if options.smoke else self.kind
        self.times = options.times(10)
        torch.manual_seed(0)

    @property
    def name(self) -> str:
        """What it is, as its maker calls it."""
        if self.kind == "cuda":
            return str(self.torch.cuda.get_device_name(0))
        return f"tensors of the processor, {machine()['processor']}: no GPU at hand"

    def normal(self, n: int, p: int, dtype: str = "float32") -> Any:
        """Return a dense tensor of normal entries."""
        return self.torch.randn((n, p), dtype=getattr(self.torch, dtype), device=self.kind)

    def few(self, n: int, p: int, each: int, dtype: str = "float32") -> Any:
        """Return a CSC tensor with ``each`` entries a column, one in every n / each rows."""
        torch = self.torch
        places = torch.arange(each, device=self.kind, dtype=torch.int32) * (n // each)
        rows = places + torch.randint(n // each, (p, each), device=self.kind, dtype=torch.int32)
        starts = torch.arange(0, p * each + 1, each, device=self.kind, dtype=torch.int32)
        values = torch.randn(p * each, dtype=getattr(torch, dtype), device=self.kind)
        return torch.sparse_csc_tensor(
            starts, rows.reshape(-1), values, size=(n, p), check_invariants=False
        )

    def copy_gb_s(self) -> float:
        """Return bytes read and written a second by copying 1 GB (0.1 GB where smoke or slow)."""
        count = 2**28 if self.kind == "cuda" else 2**24
        source = self.torch.ones(count, device=self.kind)
        target = self.torch.empty_like(source)

        def copy() -> None:
            target.copy_(source)
            if self.kind == "cuda":
                self.torch.cuda.synchronize()

        return 8 * count / 1e6 / seconds(copy, 3 * self.times)["least_ms"]


def scores(table: Table, place: Place) -> None:
    """X'v against the bandwidth of a copy."""
    bandwidth = place.copy_gb_s()
    table.add(part="copy", what="float32", gigabytes_per_s=bandwidth)
    n, p = DENSE[place.size]
    rows, columns, each = SPARSE[place.size]
    makers: dict[str, Callable[[], Any]] = {
        "dense float32": lambda: place.normal(n, p),
        "dense float64": lambda: place.normal(n, p // 2, "float64"),
        "sparse float32": lambda: place.few(rows, columns, each),
        "sparse float64": lambda: place.few(rows, columns, each, "float64"),
    }
    for what, make in makers.items():
        design = OnDevice(make())
        v = np.random.default_rng(0).standard_normal(design.shape[0])
        entry = design.dtype.itemsize + (4 if design.traits.is_sparse else 0)
        size = entry * design.nonzeros / 1e9
        best = seconds(lambda: design.scores(v).top(10), place.times)["least_ms"]  # noqa: B023
        row = {"size": f"{design.shape[0]} x {design.shape[1]}", "gigabytes": size}
        speed = 1e3 * size / best
        table.add(
            part="scores", what=what, **row, least_ms=best, gigabytes_per_s=speed,
            share_of_copy=speed / bandwidth,
        )  # fmt: skip


def searches(table: Table, place: Place) -> None:
    """The best twenty products of two columns."""
    n, d = PRODUCTS[place.size]
    each = n // 50
    for what, tensor in (("dense", place.normal(n, d)), ("sparse, 2%", place.few(n, d, each))):
        whole = tensor.to_dense().cpu().numpy()
        array = whole if what == "dense" else sparse.csc_array(whole)
        v = np.random.default_rng(1).standard_normal(n)
        found = {}
        for who, design in (("device", OnDevice(tensor)), ("processor", as_design(array))):
            pairs = Polynomial.interactions(design)
            pairs.scores(v).top(20)  # What is made once is made.
            began = time.perf_counter()
            result = pairs.scores(v)
            found[who] = result.top(20)
            taken = time.perf_counter() - began
            products = result.work.products if result.work else n * float(d) ** 2 / 2
            table.add(
                part="products", what=f"{what}, {who}", size=f"{n} x {d}", seconds=taken,
                products_per_s=products / taken,
                same_columns=bool((found[who][0] == found["device"][0]).all()),
            )  # fmt: skip


def fits(table: Table, place: Place) -> None:
    """The same problems of the tensor and of the array."""
    n, p = FITS[place.size]
    tensor = place.normal(n, p)
    array = tensor.cpu().numpy().copy()
    rng = np.random.default_rng(2)
    y = array[:, :50].astype(np.float64).sum(axis=1) + rng.standard_normal(n)
    level = 0.2 * float(np.abs(as_design(array).scores(y).full()).max())
    objectives: list[float] = []
    for who, X in (("device", OnDevice(tensor)), ("processor", array)):
        began = time.perf_counter()
        result = solve_sum(X, y, norm="l1", level=level)
        taken = time.perf_counter() - began
        objectives.append(result.objective)
        table.add(
            part="fits", what=f"lasso to 1e-6, {who}", size=f"{n} x {p}", seconds=taken,
            passes=result.passes, selected=result.columns.size, certified=int(result.converged),
            apart=abs(result.objective - objectives[0]) / abs(objectives[0]),
        )  # fmt: skip
    n, d = PRODUCTS[place.size]
    tensor = place.normal(n, d)
    array = tensor.cpu().numpy().copy()
    y = np.where(array[:, 0] * array[:, 1] + array[:, 2] * array[:, 3] > 0, 1, -1)
    names: list[list[str]] = []
    for who, X in (("device", OnDevice(tensor)), ("processor", array)):
        began = time.perf_counter()
        model = FeatureGenerator(6, features="polynomial", standardize=True).fit(X, y)
        taken = time.perf_counter() - began
        names.append(sorted(model.get_feature_names_out()))
        table.add(
            part="fits", what=f"six of all products, {who}", size=f"{n} x {d}", seconds=taken,
            passes=model.n_passes_, selected=len(names[-1]), same_columns=names[-1] == names[0],
        )  # fmt: skip


def levels(table: Table, place: Place) -> None:
    """A path of 50 levels, and a cross-validation over 50."""
    n, p = PATHS[place.size]
    tensor = place.normal(n, p)
    array = tensor.cpu().numpy().copy()
    y = array[:, :20].sum(axis=1) + np.random.default_rng(3).standard_normal(n)
    found: list[float] = []
    for who, X in (("device", OnDevice(tensor)), ("processor", array)):
        began = time.perf_counter()
        result = path(X, y, norm="l1", n_alphas=50, alpha_ratio=0.2, fit_intercept=False)
        taken = time.perf_counter() - began
        found.append(float(sum(each.objective for each in result.results)))
        table.add(
            part="paths", what=f"50 levels to 1e-6, {who}", size=f"{n} x {p}", seconds=taken,
            passes=result.passes, selected=result.results[-1].columns.size,
            certified=int(all(each.converged for each in result.results)),
            apart=abs(found[-1] - found[0]) / abs(found[0]),
        )  # fmt: skip
    for who, X in (("device", OnDevice(tensor)), ("processor", array)):
        began = time.perf_counter()
        model = AtomicRegressorCV("l1", cv=5, n_alphas=50).fit(X, y)
        taken = time.perf_counter() - began
        table.add(
            part="paths", what=f"cross-validation of 50 levels, {who}", size=f"{n} x {p}",
            seconds=taken, passes=model.n_passes_, selected=int((model.coef_ != 0).sum()),
        )  # fmt: skip


def main() -> None:
    """All parts."""
    options = Options.parse(__doc__)
    if not find_spec("torch") or not find_spec("array_api_compat"):
        print("PyTorch is not installed, so nothing is measured: pip install 'atomlearn[gpu]'")
        return
    # That sparse tensors of PyTorch may change, once in a process.
    warnings.filterwarnings("ignore", message="Sparse ")
    place = Place(options)
    with Table("device", options) as table:
        table.note(device=place.name, is_gpu=place.kind == "cuda", pytorch=place.torch.__version__)
        for part in (scores, levels, searches, fits):
            part(table, place)


if __name__ == "__main__":
    main()
