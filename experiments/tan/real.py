"""[T] 8.4 and 8.5: results on what is at hand of their data, and on named stand-ins.

rcv1 is at hand in part (1,500 rows of its tf-idf vectors, 47,236 columns). IMDb reviews stand in
for real-sim, 20 newsgroups for news20 and astro-ph, a random matrix of its shape for kddb.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from atomlearn.core.solvers.stopping import Iterations, RelativeGap, Seconds
from atomlearn.designs import Polynomial
from atomlearn.losses import as_loss
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FeatureGeneration, run
from atomlearn.testing.synthetic import make_text_like_sparse
from benchmarks.harness.real_data import load
from experiments.common.runs import Runs
from experiments.tan.methods import Liblinear, debiased, generated, rows_of
from experiments.tan.synthetic import relative_objectives

Array = Any
Config = Mapping[str, Any]
POSITIVE = ("sci.", "comp.", "misc.forsale")


def text(name: str) -> tuple[Array, Array]:
    """Return rows of unit length (log counts; rcv1 as it is) and labels of -1 and +1."""
    data = load({"newsgroups": "20news"}.get(name, name))
    X, y = sp.csr_array(data.X).astype(np.float64), np.asarray(data.y)
    if data.X_test is not None:
        X, y = sp.vstack([X, data.X_test]).tocsr(), np.concatenate([y, data.y_test])
    if name == "newsgroups":
        labels = data.target_names or tuple(str(label) for label in np.unique(y))
        names = [str(c) if isinstance(c, str) else labels[int(c)] for c in y]
        y = np.array([n.startswith(POSITIVE) for n in names])
    else:
        y = y == y.max()
    if name != "rcv1_small":
        X.data = np.log1p(X.data)
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X = sp.csr_array(sp.diags_array(1.0 / np.maximum(lengths, 1e-12)) @ X)
    return X, np.where(y, 1.0, -1.0)


def split(X: Array, y: Array, rows: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Return a random train part of so many rows, and as many of the others to test."""
    order = np.random.default_rng(seed).permutation(y.size)
    train, test = order[:rows], order[rows : 2 * rows]
    return X[train].tocsc(), y[train], X[test].tocsc(), y[test]


def real(runs: Runs, config: Config) -> None:
    """Figures 5b and c, 6b and c, 7 to 9."""
    for name, own in config["data"].items():
        X, y = text(name)
        for seed in range(config["draws"]):
            parts = split(X, y, min(own["rows"], y.size * 2 // 3), seed)
            key = f"{name}, draw {seed}"
            how = {**own, "batches": config["batches"]}
            runs.piece("real", key, lambda name=name, parts=parts, how=how: _real(name, parts, how))


def _real(name: str, parts: tuple[Array, ...], config: Config) -> dict[str, Any]:
    X, y, Xt, yt = parts
    batches = config["batches"]
    plain, shifted = Liblinear(X, y), Liblinear(X, y, True)
    fits = {
        "PROX-FGM": [generated(X, y, b)[0] for b in batches],
        "PROX-SLR": [generated(X, y, b, loss="logistic")[0] for b in batches],
        "FGM-SHIFT": [generated(X, y, b, shift=True)[0] for b in batches],
        "l1-SVM": [plain.svm(c) for c in np.geomspace(*config["svm"])],
        "l1-LR": [plain.lr(c) for c in np.geomspace(*config["lr"])],
        "l1-SVM-SHIFT": [shifted.svm(c) for c in np.geomspace(*config["svm"])],
    }
    for label in ("PROX-FGM", "l1-SVM"):
        fits[f"{label}-debias"] = [debiased(X, y, fit) for fit in fits[label]]
    rows = {n: rows_of(found, Xt, yt) for n, found in fits.items()}
    whole = {n: fit.row(Xt, yt) for n, fit in plain.all_features().items()}
    curves = {
        n: relative_objectives(X, y, batches[-1], 1e-3, shift=free)
        for n, free in (("FGM", False), ("FGM-SHIFT", True))
    }
    return {"data": name, "rows": rows, "all features": whole, "curves": curves}


def sensitivity(runs: Runs, config: Config) -> None:
    """Figures 10 to 12: C and B, on the stand-in for astro-ph."""
    X, y = text("newsgroups")
    for seed in range(config["draws"]):
        parts = split(X, y, config["rows"], seed)
        runs.piece("sensitivity", f"draw {seed}", lambda parts=parts: _sensitive(parts, config))


def _sensitive(parts: tuple[Array, ...], config: Config) -> dict[str, Any]:
    X, y, Xt, yt = parts
    rival = Liblinear(X, y)
    by_c: dict[str, Any] = {
        f"C={c:g}": [generated(X, y, b, C=c)[0].row(Xt, yt) for b in config["c_batches"]]
        for c in config["Cs"]
    }
    by_c["l1-SVM"] = rows_of([rival.svm(c) for c in np.geomspace(*config["svm"])], Xt, yt)
    stops: dict[str, Any] = {"eps 0.005": [], "eps 0.001": [], "T = 10": []}
    for batch in config["batches"]:
        for name, how in (
            ("eps 0.005", {"rounds": None, "outer_tol": 0.005}),
            ("eps 0.001", {"rounds": None, "outer_tol": 0.001}),
            ("T = 10", {"rounds": 10}),
        ):
            fit, result = generated(X, y, batch, **how)
            stops[name].append({"B": batch, "rounds": result.iterations} | fit.row(Xt, yt))
    until = []
    for batch in config["until_batches"]:
        fit, _ = generated(
            X, y, batch, rounds=None, n_features=config["features"], limit=config["limit"]
        )
        until.append({"B": batch} | fit.row(Xt, yt))
    return {"by C": by_c, "stops": stops, "until": until}


def products(
    X: Array,
    y: Array,
    count: int,
    batch: int,
    gamma: float,
    limit: float,
    observers: Sequence[Any] = (),
) -> Any:
    """Return the result of PROX-PFGM for so many products of degree 2, and the seconds."""
    problem = Problem.build(
        Polynomial(X, gamma=gamma),
        y,
        as_loss("squared_hinge"),
        Regularizer(KSupport(batch), "squared", 1.0),
        fit_intercept=True,
        sample_weight=10.0,
    )
    began = time.process_time()
    stop = Seconds(limit) | RelativeGap(1e-6) | Iterations(500)
    result = run(problem, FeatureGeneration(n_features=count), stop, observers)
    return result, time.process_time() - began


def threes_and_eights() -> tuple[Array, Array]:
    """Return the digits 3 (-1) and 8 (+1) of MNIST, 13,966 of them."""
    data = load("mnist", dtype=np.float32)
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    kept = np.isin(y, (3, 8))
    return X[kept], np.where(y[kept] == 8, 1.0, -1.0)


def polynomial(runs: Runs, config: Config) -> None:
    """Figures 13a and 14a: implicit products on MNIST, 3 against 8."""
    X, y = threes_and_eights()
    n = min(config["rows"], y.size - 1)

    def draw(seed: int) -> dict[str, Any]:
        order = np.random.default_rng(seed).permutation(y.size)
        train, test = order[:n], order[n : n + 1984]
        parts = np.asfortranarray(X[train]), y[train], np.asfortranarray(X[test]), y[test]
        rows: dict[str, Any] = {"PROX-PFGM": [], "PROX-FGM": []}
        for count in config["features"]:
            fit, _ = generated(
                *parts[:2], config["batch"], rounds=None, n_features=count, shift=True
            )
            rows["PROX-FGM"].append(fit.row(*parts[2:]))
            result, seconds = products(*parts[:2], count, config["batch"], 4.0, 280.0)
            new = Polynomial(parts[2], gamma=4.0).gather(result.columns)
            decided = new.predict(result.weights) + result.intercept
            accuracy = 100.0 * float(np.mean(np.sign(decided) == parts[3]))
            size = int(result.columns.size)
            rows["PROX-PFGM"].append({"features": size, "accuracy": accuracy, "seconds": seconds})
        return {"rows": rows}

    for seed in range(config["draws"]):
        runs.piece("polynomial", f"draw {seed}", lambda seed=seed: draw(seed))


def expanded(X: Array, gamma: float) -> Any:
    """Return all columns of ``Polynomial(X, gamma)``, stored by rows."""
    d = X.shape[1]
    # The product of inputs i <= j is column begins[i] + j.
    begins = d + np.arange(d) * d - np.arange(d) * np.arange(1, d + 1) // 2
    used = np.count_nonzero(X, axis=1)
    ends = np.concatenate([[0], np.cumsum(used * (used + 3) // 2)])
    indices, values = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1])
    for row, begin, end in zip(X, ends, ends[1:], strict=False):
        inputs = np.flatnonzero(row)
        x = row[inputs].astype(float)
        i, j = np.triu_indices(inputs.size)
        scale = np.where(i == j, gamma, np.sqrt(2.0) * gamma)
        indices[begin:end] = np.concatenate([inputs, begins[inputs[i]] + inputs[j]])
        values[begin:end] = np.concatenate([np.sqrt(2.0 * gamma) * x, scale * x[i] * x[j]])
    shape = X.shape[0], d + d * (d + 1) // 2
    return sp.csr_matrix((values, indices, ends.astype(np.int32)), shape=shape)


def stored(runs: Runs, config: Config) -> None:
    """Figure 13a's rival l1-PSVM: LIBLINEAR on all products, stored; some 6 GB."""
    X, y = threes_and_eights()
    n = min(config["rows"], y.size - 1)

    def draw(seed: int) -> dict[str, Any]:
        order = np.random.default_rng(seed).permutation(y.size)
        train, test = order[:n], order[n : n + 1984]
        own = np.asfortranarray(X[train])
        result, seconds = products(own, y[train], config["features"], 20, 4.0, 280.0)
        rival = Liblinear(expanded(X[train], 4.0), y[train], True)
        fit, steps = rival.svm_cut(config["C"], config["steps"])
        values = Polynomial(np.asfortranarray(X[test]), gamma=4.0).gather(fit.columns)
        decided = values.predict(fit.weights) + fit.intercept
        accuracy = 100.0 * float(np.mean(np.sign(decided) == y[test]))
        ours = {"features": int(result.columns.size), "seconds": seconds}
        theirs = {"features": int(fit.columns.size), "seconds": fit.seconds, "accuracy": accuracy}
        theirs["cut"] = steps >= config["steps"]
        return {"PROX-PFGM": ours, "l1-PSVM": theirs}

    for seed in range(config["draws"]):
        runs.piece("stored", f"draw {seed}", lambda seed=seed: draw(seed))


def real_products(runs: Runs, config: Config) -> None:
    """Figures 13b and 14b on the stand-in for real-sim: products beside linear features."""
    X, y = text("imdb")

    def draw(seed: int) -> dict[str, Any]:
        A, a, B, b = split(X, y, config["rows"], seed)
        rows: dict[str, Any] = {"PROX-FGM": [], "PROX-PFGM": []}
        for count in config["features"]:
            linear, _ = generated(A, a, 20, rounds=None, n_features=count, shift=True)
            rows["PROX-FGM"].append(linear.row(B, b))
            result, seconds = products(A, a, count, 20, 8.0, config["limit"])
            new = Polynomial(B, gamma=8.0).gather(result.columns)
            right = np.sign(new.predict(result.weights) + result.intercept) == b
            row = {"features": int(result.columns.size), "seconds": seconds}
            rows["PROX-PFGM"].append(row | {"accuracy": 100.0 * float(np.mean(right))})
        return {"rows": rows}

    for seed in range(config["draws"]):
        runs.piece("real_products", f"draw {seed}", lambda seed=seed: draw(seed))


def kddb(runs: Runs, config: Config) -> None:
    """Figure 13c: a random matrix with kddb's rows, columns and words a row."""

    def draw() -> dict[str, Any]:
        shape = config["n"], config["p"]
        data = make_text_like_sparse(
            *shape, words_per_row=config["words"], labels=True, dtype=np.float32
        )
        curve: list[dict[str, float]] = []
        began = time.process_time()

        def watch(progress: Any) -> None:
            found = int(progress.state.columns.size)
            curve.append({"features": found, "seconds": time.process_time() - began})

        how = config["features"], config["batch"], 4.0, config["limit"]
        result, seconds = products(data.X, data.y, *how, [watch])
        return {
            "rows": shape[0],
            "columns": shape[1],
            "products": float(Polynomial(data.X[:1], gamma=4.0).shape[1]),
            "selected": int(result.columns.size),
            "seconds": seconds,
            "status": result.status.name,
            "curve": curve,
        }

    runs.piece("kddb", "draw 0", draw)
