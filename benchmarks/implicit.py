"""Implicit degree-2 features: the largest problem of [T], dense pairs, and scikit-learn's way.

largest : [T]'s largest case in shape (10^6 rows, 4.59 million binary columns of Zipf popularity, 29
a row, so 10^13 products; the paper: within 1000 seconds): 100 features selected by
``FeatureGenerator(features="polynomial")`` from raw CSR, how many of the 100 planted products are
among them, one search alone, and the share of multiplications that bounds spared.
few pairs : the same rows, but labels of a logistic model of five products of common columns, and
C = 10: most labels are chance, and the best products are those of the fullest columns.
images : MNIST, 3 against 8: test accuracy of 784 pixels, of all their products implicitly, and of
``PolynomialFeatures`` with an l1 ``LinearSVC``.
stored : n = 12,000 x 784 at density 0.2 and all 308,504 columns: ours against the same.
dense : one search over 20,000 inputs (2 * 10^8 products), n = 2000, against the rate of sgemm.
exact : the best of random small designs (dense, sparse, standardized, weighted, ties) against
brute force; ``wrong`` must be 0.

``seconds`` pass on the clock, ``processor_s`` on the processors, all threads together: the second
change less where a machine is shared. Memory is the peak of a fresh process while fitting, over
that of the data as given.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from atomlearn import FeatureGenerator
from atomlearn.designs import Polynomial, Standardized, as_design
from atomlearn.maps.pairs import scores as pair_scores
from benchmarks.harness import Options, Table, Worker
from benchmarks.harness.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.harness.real_data import load

Array = NDArray[Any]


def bytes_of(X: Any) -> int:
    """Return the memory that X takes."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def measured(fit: Callable[[], Any], X: Any) -> tuple[Any, dict[str, Any]]:
    """Return what ``fit`` returns, with its time and the memory it took on top of X."""
    resident = resident_bytes()
    reset_peak()
    began, worked = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit()
    seconds, processor_s = time.perf_counter() - began, time.process_time() - worked
    added = peak_bytes() - resident
    return model, {
        "seconds": seconds,
        "processor_s": processor_s,
        "memory_over_X": (added + bytes_of(X)) / bytes_of(X),
        "peak_gb": peak_bytes() / 1e9,
    }


class Largest:
    """Binary rows of Zipf popularity whose label depends on planted products.

    common : whether those are products of the most common columns, and labels are drawn with the
    odds of a logistic model.
    """

    def __init__(self, n: int, d: int, per_row: int, n_planted: int, common: bool = False) -> None:
        rng = np.random.default_rng(0)
        popularity = np.cumsum(1.0 / np.arange(1, d + 1))
        popularity /= popularity[-1]
        ranks = np.empty((n, per_row), dtype=np.int32)
        for start in range(0, n, 100_000):
            part = ranks[start : start + 100_000]
            part[:] = np.searchsorted(popularity, rng.random(part.shape))
        number = rng.permutation(d).astype(np.int32)
        starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int64)
        ones = np.ones(n * per_row, dtype=np.float32)
        self.X = sparse.csr_array((ones, number[ranks].ravel(), starts.astype(np.int32)), (n, d))
        self.X.sum_duplicates()
        self.X.data[:] = 1.0
        # Products of columns that many rows have, but hardly any row both of: not the obvious.
        first, last = (5, 60) if common else (min(14, d // 20), min(80, d // 4))
        holders = {r: np.flatnonzero((ranks == r).any(axis=1)) for r in range(first, last)}
        pairs: set[tuple[int, int]] = set()
        while len(pairs) < n_planted:
            i, j = sorted(rng.choice(np.arange(first, last), 2, replace=False).tolist())
            pairs.add((i, j))
        score = np.zeros(n)
        for place, (i, j) in enumerate(sorted(pairs)):
            rows = np.intersect1d(holders[i], holders[j])
            score[rows] += 1.0 if place % 2 else -1.0
        chance = 0.5 * rng.logistic(size=n) if common else 0.3 * rng.standard_normal(n)
        self.y = np.where(score + chance > 0, 1.0, -1.0)
        self.planted = {tuple(sorted((int(number[i]), int(number[j])))) for i, j in pairs}

    def one_search(self, repeats: int) -> dict[str, Any]:
        """Time the best 10 of all products, for the residual of the first pass and a later one."""
        began = time.perf_counter()
        design = Polynomial(self.X)
        design.scores(self.y).top(10)
        first = time.perf_counter() - began
        rng = np.random.default_rng(1)
        times, worked = [], time.process_time()
        for _ in range(repeats):
            v = self.y * rng.random(self.y.size)
            began = time.perf_counter()
            scores = design.scores(v)
            scores.top(10)
            times.append(time.perf_counter() - began)
        worked = (time.process_time() - worked) / repeats
        assert scores.work is not None
        return {
            "method": "one search",
            "seconds": float(np.median(times)),
            "processor_s": worked,
            "first_seconds": first,
            "skipped": 1.0 - scores.work.products / scores.work.possible,
            "products": scores.work.products,
            "columns": design.shape[1],
        }

    def selection(self, n_features: int, batch: int, C: float = 1.0) -> dict[str, Any]:
        """Time the whole selection, from CSR to the model."""
        model, figures = measured(
            lambda: FeatureGenerator(
                n_features, batch, C=C, features="polynomial", standardize=True
            ).fit(self.X, self.y),
            self.X,
        )
        found = {tuple(sorted(map(int, pair))) for pair in model.pairs_}
        return {
            "method": f"select {n_features}",
            **figures,
            "passes": model.n_passes_,
            "planted_found": len(found & self.planted),
            "planted": len(self.planted),
            "skipped": model.history_[-1].skipped,
        }


class Images:
    """Two digits of MNIST."""

    def __init__(self, smoke: bool) -> None:
        data = load("mnist", dtype=np.float32)
        train, test = (np.isin(y, (3, 8)) for y in (data.y, data.y_test))
        self.X, self.y = data.X[train], data.y[train]
        self.X_test, self.y_test = data.X_test[test], data.y_test[test]
        if smoke:
            self.X, self.X_test = self.X[:300, 300:340], self.X_test[:, 300:340]
            self.y = self.y[:300]

    def ours(self, features: str, n_features: int) -> dict[str, Any]:
        """Select among the pixels, or among all products of two."""
        wanted = min(n_features, self.X.shape[1]) if features == "linear" else n_features
        model, figures = measured(
            lambda: FeatureGenerator(wanted, 10, C=1.0, features=features, standardize=True).fit(
                self.X, self.y
            ),
            self.X,
        )
        return {
            "method": f"ours, {features}, {wanted}",
            **figures,
            "accuracy": model.score(self.X_test, self.y_test),
            "selected": model.n_selected_,
        }

    def theirs(self, degree: int, weight: float) -> dict[str, Any]:
        """Fit scikit-learn's l1 SVM on the pixels, or on their products, all formed."""
        svm = LinearSVC(penalty="l1", dual=False, C=weight, max_iter=200, tol=1e-2)
        expand = PolynomialFeatures(degree, include_bias=False)
        pipeline = make_pipeline(expand, svm)
        X, X_test = sparse.csr_array(self.X), sparse.csr_array(self.X_test)
        model, figures = measured(lambda: pipeline.fit(X, self.y), X)
        return {
            "method": f"LinearSVC l1, degree {degree}",
            **figures,
            "accuracy": model.score(X_test, self.y_test),
            "selected": int(np.count_nonzero(svm.coef_)),
        }


class Stored:
    """Sparse data whose products just fit into memory."""

    def __init__(self, n: int, d: int) -> None:
        rng = np.random.default_rng(0)
        self.X = sparse.random_array((n, d), density=0.2, rng=rng, format="csr", dtype=np.float64)
        X = self.X.toarray()
        pairs = rng.choice(d, (10, 2), replace=False)
        score = sum(X[:, i] * X[:, j] for i, j in pairs)
        assert not isinstance(score, int)
        score = score + 0.3 * X[:, 0] + 0.02 * rng.standard_normal(n)
        self.y = np.where(score > np.median(score), 1.0, -1.0)

    def ours(self, n_features: int) -> dict[str, Any]:
        """Select among all columns and products."""
        model, figures = measured(
            lambda: FeatureGenerator(
                n_features, 10, C=10.0, features="polynomial", standardize=True
            ).fit(self.X, self.y),
            self.X,
        )
        return {
            "method": f"ours, {n_features}",
            **figures,
            "accuracy": model.score(self.X, self.y),
            "selected": model.n_selected_,
            "columns": model.coef_.shape[-1],
        }

    def theirs(self) -> dict[str, Any]:
        """Form all columns, then fit the l1 SVM."""
        svm = LinearSVC(penalty="l1", dual=False, C=0.1, max_iter=100, tol=1e-2)
        pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), svm)
        model, figures = measured(lambda: pipeline.fit(self.X, self.y), self.X)
        return {
            "method": "PolynomialFeatures + LinearSVC l1",
            **figures,
            "accuracy": model.score(self.X, self.y),
            "selected": int(np.count_nonzero(svm.coef_)),
            "columns": svm.coef_.size,
        }


def dense_pass(n: int, d: int, repeats: int) -> dict[str, Any]:
    """Return the time of one search over dense inputs beside that of as large a product."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d), dtype=np.float32))
    v = rng.standard_normal(n)
    half = X[:, : max(1, d // 4)]
    # Another array: of one with itself NumPy forms only half.
    other = half.copy(order="F")
    searches, products = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        np.matmul(half.T, other)
        products.append(time.perf_counter() - began)
        # Anew: a design remembers what the last search found.
        design = Polynomial.interactions(X, squares=True)
        began, worked = time.perf_counter(), time.process_time()
        design.scores(v).top(100)
        searches.append(time.perf_counter() - began)
        worked = time.process_time() - worked
    # Multiplications and additions: half of the products of all pairs are formed.
    rate = n * d * d / min(searches) / 1e9
    sgemm = 2.0 * n * half.shape[1] ** 2 / min(products) / 1e9
    return {
        "method": "one search",
        "seconds": min(searches),
        "processor_s": worked,
        "columns": design.shape[1],
        "gflops": rate,
        "sgemm_gflops": sgemm,
        "share_of_sgemm": rate / sgemm,
    }


def random_design(rng: np.random.Generator) -> tuple[Any, Array]:
    """Return a small design and its inputs as float64: ties, zeros, constant columns."""
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 20))
    whole = rng.random() < 0.5
    X = rng.integers(-2, 3, (n, d)).astype(float) if whole else rng.standard_normal((n, d))
    X *= rng.random((n, d)) < rng.choice([0.04, 0.3, 1.0])
    if rng.random() < 0.3:
        X[:, rng.integers(d)] = X[:, 0]
    X = X.astype(rng.choice([np.float32, np.float64]))
    kind = rng.choice(["dense C", "dense F", "csr", "csc", "standardized"])
    if kind == "standardized":
        weight = rng.random(n) + 0.1
        design = Standardized(as_design(sparse.csc_array(X)), weight=weight)
        return design, design.gather(np.arange(d)).dense().astype(np.float64)
    stored = {
        "dense C": np.ascontiguousarray,
        "dense F": np.asfortranarray,
        "csr": sparse.csr_array,
        "csc": sparse.csc_array,
    }[str(kind)](X)
    return stored, X.astype(np.float64)


def agrees(rng: np.random.Generator) -> bool:
    """Return whether one search finds what sorting all formed columns finds."""
    data, X = random_design(rng)
    n, d = X.shape
    squares = bool(rng.integers(2))
    design = Polynomial.interactions(data, squares=squares)
    first, second = np.triu_indices(d, 0 if squares else 1)
    formed = np.hstack([X, X[:, first] * X[:, second]])
    sample_weight = rng.integers(0, 4, n)
    v = rng.integers(-2, 3, n) * sample_weight * 1.0
    if rng.random() < 0.5:
        v = rng.standard_normal(n) * sample_weight
    z = v @ formed
    count = int(rng.integers(1, z.size + 1))
    columns, values = design.scores(v).top(count)
    noise = 1e-12 * (np.abs(v) @ np.abs(formed)) + 1e-300
    if columns.size != min(count, z.size) or np.unique(columns).size != columns.size:
        return False
    if (np.abs(values - z[columns]) > noise[columns]).any() or (np.diff(np.abs(values)) > 0).any():
        return False
    # Equal scores: the smaller column first; and nothing left out is larger than what is in.
    ties = np.diff(np.abs(values)) == 0
    if (np.diff(columns)[ties] < 0).any():
        return False
    out = np.setdiff1d(np.arange(z.size), columns)
    least = np.abs(values[-1])
    if (np.abs(z[out]) > least + noise[out]).any():
        return False
    if np.array_equal(X, np.round(X)) and np.array_equal(v, np.round(v)):
        # Whole numbers: sums are exact, and so is the order.
        expected = np.lexsort((np.arange(z.size), -np.abs(z)))[:count]
        return bool(np.array_equal(columns, expected))
    return True


def exactness(count: int) -> dict[str, Any]:
    """Search ``count`` random designs, none of which may list its columns instead."""
    listed = pair_scores.SETTINGS
    pair_scores.SETTINGS = replace(listed, most_listed=0)
    began = time.perf_counter()
    try:
        wrong = sum(not agrees(np.random.default_rng([7, seed])) for seed in range(count))
    finally:
        pair_scores.SETTINGS = listed
    seconds = time.perf_counter() - began
    return {"method": "against brute force", "designs": count, "wrong": wrong, "seconds": seconds}


def main() -> None:
    """Measure all, each in a process of its own."""
    options = Options.parse(__doc__)
    smoke, full = options.smoke, not options.smoke
    with Table("implicit", options) as table:
        row = exactness(10_000 if full else 200)
        table.add(problem="exact", **row)
        if row["wrong"]:
            raise SystemExit(f"{row['wrong']} searches of {row['designs']} were not exact")
        size = (2000, 20_000) if full else (100, 300)
        table.add(problem="dense", **dense_pass(*size, options.times(3)))
        stored = (12_000, 784) if full else (300, 40)
        for method, arguments in (("ours", (100 if full else 10,)), ("theirs", ())):
            with Worker(Stored, *stored) as worker:
                table.add(problem="stored", **worker.call(method, *arguments))
        images(table, smoke)
        size = (1_000_000, 4_590_000, 29, 100) if full else (3000, 5000, 29, 5)
        with Worker(Largest, *size) as worker:
            table.add(problem="largest", **worker.call("one_search", options.times(3)))
            wanted = (100, 10) if full else (10, 5)
            table.add(problem="largest", **worker.call("selection", *wanted))
        with Worker(Largest, *size[:3], 5, True) as worker:
            table.add(problem="few pairs", **worker.call("selection", *wanted, 10.0))


def images(table: Table, smoke: bool) -> None:
    """Add the rows of MNIST, where it is at hand."""
    try:
        load("mnist")
    except FileNotFoundError as error:
        print(f"images: left out, {error}", flush=True)
        return
    wanted = 20 if smoke else 300
    for method, arguments in (
        ("ours", ("linear", wanted)),
        ("ours", ("polynomial", wanted)),
        ("theirs", (1, 0.1)),
        ("theirs", (2, 0.1)),
    ):
        with Worker(Images, smoke) as worker:
            table.add(problem="images", **worker.call(method, *arguments))


if __name__ == "__main__":
    main()
