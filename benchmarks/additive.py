"""Additive models and many kernels: a pass against a linear one, its memory, and 500 kernels.

Pass: group norms of the intersection kernel, 100 bins, over 40,000 x 20,000 sparse data of four
densities, against X'v of the same data; ``extra`` is the memory of the design beyond X, as a share
of X. Kernels: splice junctions (1000 x 60), 500 kernels on all columns and on each alone, 700 rows
to fit: squared hinge, ours to a gap of 1e-6 with factors made in the time, SimpleMKL and equal
weights with the kernels precomputed in the time; ``objective`` is of the same problem. Selection:
20 inputs by ``FeatureGenerator`` of 900 x 86,000 dense random numbers, two of which matter, in
seconds and processor seconds, without and with a limit.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from atomlearn import FeatureGenerator, norms
from atomlearn.designs import Additive, KernelOn, Kernels, as_design, kernel_grid
from atomlearn.result import Status
from benchmarks.harness import Options, Table, Worker
from benchmarks.harness.real_data import data_file
from benchmarks.micro.timing import side_by_side
from benchmarks.simple_mkl import SimpleMKL
from tests.oracles.sums import solve_sum

Array = np.ndarray[Any, np.dtype[Any]]

#: Weight of the loss, C of the papers.
C = 1.0
#: Time given to SimpleMKL after its kernels are made; ``cut`` in the table where it needed more.
RIVAL_LIMIT_S = 120.0


class Passes:
    """Sparse data with standard normal entries, and its additive design."""

    def __init__(self, n: int, d: int, density: float) -> None:
        rng = np.random.default_rng(0)
        count = rng.binomial(n, density, d)
        rows = np.concatenate([rng.choice(n, size=k, replace=False) for k in count])
        starts = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        parts = (rng.standard_normal(rows.size), rows.astype(np.int32), starts)
        self.X = sparse.csc_array(parts, shape=(n, d))
        self.v = rng.standard_normal(n)

    def row(self, repeats: int) -> dict[str, Any]:
        """Return the times of both passes, and the memory of the design."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        linear = as_design(X)
        began = time.perf_counter()
        design = Additive(linear)
        seconds = time.perf_counter() - began
        groups = design.groups
        calls = {
            "linear": lambda: linear.scores(self.v).full(),
            "groups": lambda: design.scores(self.v).group_norms(groups, design.n_groups),
            "all": lambda: design.scores(self.v).full(),
        }
        times = side_by_side(calls, dict.fromkeys(calls, repeats))
        extra = design.codes.codes.nbytes + design.map.levels.values.nbytes
        return {
            "columns": design.shape[1],
            "set_up_s": seconds,
            **{f"{name}_ms": found["median_ms"] for name, found in times.items()},
            "groups_over_linear": times["groups"]["median_ms"] / times["linear"]["median_ms"],
            "extra": extra / size,
            "formed": design_nonzeros(design) * 12 / size,
        }


class Selection:
    """Dense random data, a target made of two of its columns, and what selects from it."""

    def __init__(self, n: int, d: int) -> None:
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((n, d))
        self.y = np.abs(self.X[:, 3]) - 0.7 + self.X[:, 5] + 0.5 * rng.standard_normal(n) > 0

    def row(self, features: str, limit: float | None) -> dict[str, Any]:
        """Return the times of one selection, and what came of it."""
        model = FeatureGenerator(20, features=features, time_limit=limit, standardize=True)
        began, used = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(self.X, self.y)
        return {
            "limit_s": limit,
            "seconds": time.perf_counter() - began,
            "processor_s": time.process_time() - used,
            "objective": model.objective_,
            "selected": model.n_selected_,
            "cut": model.status_ is Status.TIME_LIMIT,
        }


def design_nonzeros(design: Additive) -> float:
    """Return how many entries all columns would have if they were stored as sparse ones."""
    levels = design.map.levels
    zeros = np.repeat(levels.zero, np.diff(design.codes.indptr))
    return float(np.abs(design.codes.codes.astype(np.int64) - zeros).sum())


def splice(smoke: bool) -> tuple[Array, Array]:
    """Return the scaled codes of the positions, and y; simulated if there are no data."""
    path = data_file("splice/splice.npz")
    if path.exists() and not smoke:
        found = np.load(path)
        X, y = found["codes"].astype(np.float64), found["y"].astype(np.float64)
        return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y > 0, 1.0, -1.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    return X, np.where(np.abs(X[:, 0]) + X[:, 1] > 0.8, 1.0, -1.0)


class ManyKernels:
    """Training and test rows of one split, and the kernels on them."""

    def __init__(self, smoke: bool, seed: int) -> None:
        X, y = splice(smoke)
        order = np.random.default_rng(seed).permutation(y.size)
        cut = 7 * y.size // 10
        self.X, self.y = X[order[:cut]], y[order[:cut]]
        self.X_test, self.y_test = X[order[cut:]], y[order[cut:]]
        widths = (0.5, 1.0, 2.0, 5.0, 10.0)
        self.kernels: list[KernelOn] = kernel_grid(X.shape[1], widths)[: 20 if smoke else 488]
        extra = np.geomspace(0.3, 30.0, 500 - len(self.kernels) if not smoke else 4)
        self.kernels += [KernelOn("rbf", None, (("gamma", 0.5 / w**2),)) for w in extra]

    def ours(self, rank: int) -> dict[str, Any]:
        """Return a row for our fit."""
        began = time.perf_counter()
        design = Kernels(self.kernels, self.X, rank=rank)
        factored = time.perf_counter() - began
        result = solve_sum(
            design, self.y, loss="squared_hinge", norm=norms.Groups(design.groups), form="squared",
            level=1.0 / C, fit_intercept=True,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        test = Kernels.from_map(self.X_test, design.maps)
        decisions = test.gather(result.columns).predict(result.weights) + result.intercept
        return {
            "solver": f"atomlearn, rank {rank}",
            "seconds": seconds,
            "factors_s": factored,
            "accuracy": float(np.mean(np.sign(decisions) == self.y_test)),
            "objective": C * result.objective,
            "relative_gap": result.relative_gap,
            "kernels_used": np.unique(design.groups[result.columns[result.weights != 0]]).size,
            "svms_or_passes": result.passes,
            "cut": False,
        }

    def rival(self, uniform: bool) -> dict[str, Any]:
        """Return a row for SimpleMKL, or for equal weights, on kernels of variance one each."""
        began = time.perf_counter()
        stack = np.stack([k(self.X, self.X).astype(np.float32) for k in self.kernels])
        diagonals = np.einsum("mii->m", stack) / len(self.y)
        scales = diagonals - stack.mean(axis=(1, 2))
        stack /= scales[:, None, None]
        precomputed = time.perf_counter() - began
        model = SimpleMKL(C, time_limit_s=RIVAL_LIMIT_S)
        (model.uniform if uniform else model.fit)(stack, self.y)
        seconds = time.perf_counter() - began
        del stack
        test = np.stack([k(self.X_test, self.X).astype(np.float32) for k in self.kernels])
        test /= scales[:, None, None]
        return {
            "solver": "equal weights, SVC" if uniform else "SimpleMKL, SVC",
            "seconds": seconds,
            "factors_s": precomputed,
            "accuracy": float(np.mean(np.sign(model.decide(test)) == self.y_test)),
            "objective": model.machine.value,
            "relative_gap": np.nan if uniform else model.relative_gap,
            "kernels_used": int(np.count_nonzero(model.d > 1e-6)),
            "svms_or_passes": model.machines,
            "cut": model.cut,
        }


def main() -> None:
    """Passes, then kernels, each in a process of its own."""
    options = Options.parse(__doc__)
    with Table("additive", options) as table:
        n, d = (200, 50) if options.smoke else (40_000, 20_000)
        for density in (0.002, 0.005, 0.01, 0.03):
            with Worker(Passes, n, d, density) as worker:
                row = worker.call("row", options.times(11))
                table.add(problem=f"pass, density {density:g}", **row)
        size = (100, 200) if options.smoke else (900, 86_000)
        for features in ("intersection", "splines", "additive_gaussian"):
            for limit in (None, 5.0):
                with Worker(Selection, *size) as worker:
                    row = worker.call("row", features, limit)
                    table.add(problem=f"select, {features}", **row, peak_gb=worker.peak() / 1e9)
        for seed in range(options.times(1)):
            for method, argument in (
                ("ours", 30),
                ("ours", 100),
                ("rival", True),
                ("rival", False),
            ):
                with Worker(ManyKernels, options.smoke, seed) as worker:
                    row = worker.call(method, argument)
                    table.add(problem=f"kernels, split {seed}", **row, peak_gb=worker.peak() / 1e9)


if __name__ == "__main__":
    main()
