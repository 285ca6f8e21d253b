"""[T]'s synthetic selections: 300 features by ours and by LIBLINEAR's l1 squared-hinge SVM.

Small: 4096 x 4096; large: 8192 x 65,536; 300 true features, y = sign(X w), 4096 test samples, no
intercept. Ours: FeatureGenerator, inexact as in [T], C = 10, several B (the first is the one to
compare). LIBLINEAR: scikit-learn's LinearSVC at the C where its optimum has about 300 features,
found beforehand by our certified path, over the tolerances 0.1 and 0.01; only that one fit is
timed, and it gets X in the order and precision that it asks for. Each in a process of its own:
time of the fit (the first, and the median of the later ones), and the memory for X and the fit over
that of X in float32. The large LIBLINEAR needs 21 GB of free memory.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from atomlearn import FeatureGenerator
from atomlearn.datasets import make_feature_generation
from atomlearn.result import Result
from benchmarks.harness import Options, Table, Worker
from benchmarks.harness.memory import peak_bytes, reset_peak, resident_bytes
from tests.oracles.sums import solve_sum

#: The process of LIBLINEAR is ended after this.
LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Size:
    """A protocol of [T]: n x p with n_true features that matter, and as many to select."""

    name: str
    n: int
    p: int
    n_true: int
    repeats: int
    batches: tuple[int, ...]
    tolerances: tuple[float, ...]


SMALL = Size("small", 4096, 4096, 300, 3, (10, 2, 30), (1e-1, 1e-2))
LARGE = Size("large", 8192, 65_536, 300, 2, (10, 2, 30), (1e-2,))
TINY = Size("tiny", 400, 600, 30, 2, (5, 2), (1e-1, 1e-2))


def on_disk(X: NDArray[Any]) -> NDArray[Any]:
    """Return the array from a temporary file: test data that is no part of the memory measured."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the array
    X.T.tofile(file)
    file.flush()
    return np.memmap(file, dtype=X.dtype, mode="r", shape=X.T.shape).T


class Machine:
    """The data in a fresh process, with one way to select."""

    def __init__(self, size: Size) -> None:
        self.size = size
        data = make_feature_generation(size.n, size.p, size.n_true, rng=0)
        self.X, self.y = data.X, data.y
        self.X_test, self.y_test = on_disk(data.X_test), data.y_test
        self.true = np.flatnonzero(data.coef)
        self.bytes = data.X.nbytes

    def measured(self, fit: Any, repeats: int) -> dict[str, Any]:
        """Fit several times; return times, memory, and how good the selection is."""
        resident = resident_bytes()
        reset_peak()
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            columns, weights, facts = fit()
            times.append(time.perf_counter() - began)
        peak = peak_bytes()
        decisions = self.X_test[:, columns].astype(np.float64) @ weights
        return {
            "seconds": float(np.median(times[1:] or times)),
            "first_s": times[0],
            "selected": columns.size,
            "true": int(np.isin(columns, self.true).sum()),
            "accuracy": float(np.mean(np.where(decisions > 0, 1.0, -1.0) == self.y_test)),
            "memory_over_X": (self.X.nbytes + peak - resident) / self.bytes,
            "peak_gb": peak / 1e9,
            **facts,
        }


class Generation(Machine):
    """Ours."""

    def select(self, batch: int, repeats: int) -> dict[str, Any]:
        """Select as many features as are true, ``batch`` of them a pass."""
        model = FeatureGenerator(
            self.size.n_true,
            batch=batch,
            C=10.0,
            fit_intercept=False,
            selected_tol=None,
            standardize=True,
        )

        def fit() -> tuple[Any, Any, dict[str, Any]]:
            model.fit(self.X, self.y)
            columns = np.sort(model.selected_)
            facts = {"passes": model.n_passes_, "ended": model.status_.name}
            return columns, model.coef_[0, columns].astype(np.float64), facts

        return self.measured(fit, repeats)


class Level(Machine):
    """The level of the l1 problem whose optimum has as many features as are true."""

    def find(self) -> tuple[float, float, int]:
        """Return level, objective and number of features, by bisection with warm starts."""
        wanted = self.size.n_true
        high = float(np.abs(self.y @ self.X).max())
        low, last = high / 100, None
        for _ in range(25):
            level = float(np.sqrt(low * high))
            last = self._solve(level, 1e-5, last)
            count = last.columns.size
            if abs(count - wanted) <= 0.01 * wanted:
                break
            low, high = (level, high) if count > wanted else (low, level)
        exact = self._solve(level, 1e-8, last)
        return level, exact.objective, exact.columns.size

    def _solve(self, level: float, gap: float, warm: Result | None) -> Result:
        return solve_sum(
            self.X, self.y, loss="squared_hinge", norm="l1", level=level, tol=gap, warm_start=warm
        )


class Liblinear(Machine):
    """min ||w||_1 + C sum max(0, 1 - y x'w)^2: our objective over the level, at C = 1/(2 level)."""

    def __init__(self, size: Size, level: float, objective: float) -> None:
        super().__init__(size)
        self.level, self.objective = level, objective
        self.X = np.ascontiguousarray(self.X, dtype=np.float64)

    def select(self, tolerance: float, repeats: int) -> dict[str, Any]:
        """Fit at the given C."""
        C = 1.0 / (2.0 * self.level)
        model = LinearSVC(
            penalty="l1", dual=False, C=C, tol=tolerance, fit_intercept=False, max_iter=5000,
            random_state=0,
        )  # fmt: skip

        def fit() -> tuple[Any, Any, dict[str, Any]]:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(self.X, self.y)
            w = model.coef_[0]
            return np.flatnonzero(w), w[w != 0], {"ended": "cut short" if caught else "tolerance"}

        row = self.measured(fit, repeats)
        w = model.coef_[0]
        margins = np.maximum(1.0 - self.y * (self.X @ w), 0.0)
        value = self.level * np.abs(w).sum() + 0.5 * float(margins @ margins)
        return row | {"suboptimality": (value - self.objective) / self.objective}


def main() -> None:
    """Ours and LIBLINEAR at each size, one process after the other."""
    options = Options.parse(__doc__)
    with Table("selection", options) as table:
        for size in (TINY,) if options.smoke else (SMALL, LARGE):
            _compare(size, options, table)


def _compare(size: Size, options: Options, table: Table) -> None:
    repeats, headline = options.times(size.repeats), None
    for batch in size.batches:
        with Worker(Generation, size) as worker:
            row = worker.call("select", batch, repeats)
        headline = headline or row["seconds"]
        table.add(size=size.name, solver=f"feature generation, B = {batch}", **row)
    with Worker(Level, size) as worker:
        level, objective, count = worker.call("find")
    table.note(**{f"l1_features_{size.name}": count, f"l1_C_{size.name}": 1 / (2 * level)})
    for tolerance in size.tolerances:
        with Worker(Liblinear, size, level, objective) as worker:
            row = worker.call("select", tolerance, repeats, limit_s=LIMIT_S)
        row["ratio"] = row["seconds"] / headline
        table.add(size=size.name, solver=f"LIBLINEAR l1-SVM, tol {tolerance:g}", **row)


if __name__ == "__main__":
    main()
