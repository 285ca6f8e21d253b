"""[T] 8.2 and 8.3: the results behind Figures 1 to 6 on random matrices, one piece a draw."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from atomlearn.designs import as_design
from atomlearn.interfaces import Master
from atomlearn.masters import AcceleratedGradient
from atomlearn.testing.synthetic import make_feature_generation
from experiments.common.runs import Runs
from experiments.rivals.linear_mkl import LinearMKL
from experiments.tan.methods import Liblinear, debiased, generated, l1_optimum, rows_of

Array = Any
Config = Mapping[str, Any]
#: SGD-SLR's lambda_2, and its range of lambda_1 in section 8.2.2.
RIDGE, LEVELS = 1e-4, (7.2e-4, 2.5e-3)


@dataclass(frozen=True)
class Noted(Master):
    """The paper's inner solver, its iterations counted."""

    tolerance: float
    steps: list[int] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    def solve(self, problem: Any, weights: Array, intercept: float, gap_target: float) -> Any:
        if problem is self.last.get("problem"):  # for a smaller gap: the paper's stop is the end
            return self.last["refit"]
        master = AcceleratedGradient(relative_decrease=self.tolerance)
        refit = master.solve(problem, weights, intercept, 0.0)
        self.steps.append(refit.steps)
        self.last.update(problem=problem, refit=refit)
        return refit


def relative_objectives(X: Array, y: Array, batch: int, tolerance: float, **how: Any) -> Any:
    """Return APG iterations so far and F / F_0 after each outer iteration."""
    master = Noted(tolerance)
    _, result = generated(X, y, batch, master=master, **how)
    values = [step.objective / result.state.first_objective for step in result.history]
    return {"steps": np.cumsum([1, *master.steps]).tolist(), "values": values}


def inexact(runs: Runs, config: Config) -> None:
    """Figure 1: exact (1e-6) and inexact (1e-3) FGM."""

    def draw(seed: int) -> dict[str, Any]:
        data = make_feature_generation(config["n"], config["p"], config["true"], 1, rng=seed)
        curves = {
            f"{name}, B={batch}": relative_objectives(
                data.X, data.y, batch, tolerance, rounds=config["rounds"]
            )
            for batch in config["batches"]
            for name, tolerance in (("exact", 1e-6), ("inexact", 1e-3))
        }
        return {"curves": curves}

    for seed in range(config["draws"]):
        runs.piece("inexact", f"draw {seed}", lambda seed=seed: draw(seed))


def small(runs: Runs, config: Config) -> None:
    """Figure 2: accuracy, recovered features, de-biasing and time, l1 by LIBLINEAR."""
    for seed in range(config["draws"]):
        runs.piece("small", f"draw {seed}", lambda seed=seed: _compared(seed, config))


def _compared(seed: int, config: Config) -> dict[str, Any]:
    data = make_feature_generation(config["n"], config["p"], config["true"], rng=seed)
    X, y, Xt, yt, truth = data.X, data.y, data.X_test, data.y_test, np.flatnonzero(data.coef)
    rival = Liblinear(X, y)
    fits = {
        "PROX-FGM": [generated(X, y, b)[0] for b in config["batches"]],
        "PROX-SLR": [generated(X, y, b, loss="logistic")[0] for b in config["batches"]],
        "l1-SVM": [rival.svm(c) for c in np.geomspace(*config["svm"])],
        "l1-LR": [rival.lr(c) for c in np.geomspace(*config["lr"])],
    }
    rows = {name: rows_of(found, Xt, yt, truth) for name, found in fits.items()}
    for name in ("PROX-FGM", "l1-SVM"):
        again = [debiased(X, y, fit) for fit in fits[name]]
        rows[f"{name}-debias"] = rows_of(again, Xt, yt)
    design, n = as_design(X), y.size
    optima = [
        l1_optimum(design, y, 1.0 / (n * level), loss="logistic", ridge=n * RIDGE)
        for level in np.geomspace(*LEVELS, config["levels"])
    ]
    rows["SGD-SLR, its optimum"] = rows_of(optima, Xt, yt, truth)
    whole = {name: fit.row(Xt, yt) for name, fit in rival.all_features().items()}
    return {"rows": rows, "all features": whole}


def large(runs: Runs, config: Config) -> None:
    """Figure 3: the paper's 8192 x 65,536, l1 by its proved optimum."""

    def draw(seed: int) -> dict[str, Any]:
        data = make_feature_generation(config["n"], config["p"], config["true"], rng=seed)
        X, y, Xt, yt, truth = data.X, data.y, data.X_test, data.y_test, np.flatnonzero(data.coef)
        design = as_design(X)
        fits = {
            "PROX-FGM": [generated(X, y, b)[0] for b in config["batches"]],
            "PROX-SLR": [generated(X, y, b, loss="logistic")[0] for b in config["batches"]],
            "l1-SVM": [
                l1_optimum(design, y, c, loss="squared_hinge") for c in np.geomspace(*config["svm"])
            ],
            "l1-LR": [
                l1_optimum(design, y, c, loss="logistic") for c in np.geomspace(*config["lr"])
            ],
        }
        rows = {name: rows_of(found, Xt, yt, truth) for name, found in fits.items()}
        for name in ("PROX-FGM", "l1-SVM"):
            again = [debiased(X, y, fit) for fit in fits[name]]
            rows[f"{name}-debias"] = rows_of(again, Xt, yt)
        return {"rows": rows}

    for seed in range(config["draws"]):
        runs.piece("large", f"draw {seed}", lambda seed=seed: draw(seed))


def best_of_levels(design: Any, y: Array, start: float, Xt: Array, yt: Array) -> dict[str, float]:
    """Return l1-LR at its best C: C grows until its accuracy has fallen, no edge of a grid."""
    rows: list[dict[str, float]] = []
    while len(rows) < 2 or rows[-1]["accuracy"] >= rows[-2]["accuracy"]:
        C = start * 1.6 ** len(rows)
        rows.append({"C": C} | l1_optimum(design, y, C, loss="logistic").row(Xt, yt))
    return max(rows, key=lambda row: row["accuracy"])


def density(runs: Runs, config: Config) -> None:
    """Figure 4a at the paper's size: the best accuracy of each method at several densities."""

    def draw(seed: int, share: float) -> dict[str, Any]:
        n, p, true = config["n"], config["p"], config["true"]
        data = thinned(n, p, true, seed, share)
        X, y, Xt, yt = data
        fits = [generated(X, y, b, loss="logistic")[0].row(Xt, yt) for b in config["batches"]]
        best = max(fits, key=lambda row: row["accuracy"])
        rival = best_of_levels(as_design(X), y, config["start"], Xt, yt)
        return {"density": share, "PROX-SLR": best, "l1-LR": rival}

    for seed in range(config["draws"]):
        for share in config["densities"]:
            key = f"draw {seed}, density {share:g}"
            runs.piece("density", key, lambda seed=seed, share=share: draw(seed, share))


def thinned(n: int, p: int, true: int, seed: int, share: float) -> tuple[Array, ...]:
    """Return X, y and a test part: Gaussian entries, each kept with probability ``share``."""
    rng = np.random.default_rng([seed, round(1000 * share)])
    support = rng.choice(p, true, replace=False)
    coef = rng.random(true)
    parts: list[Array] = []
    for rows in (n, 4096):
        X = np.empty((p, rows), dtype=np.float32)
        rng.standard_normal(out=X, dtype=np.float32)
        for begin in range(0, p, 4096) if share < 1 else ():
            part = X[begin : begin + 4096]
            part[rng.random(part.shape, dtype=np.float32) >= share] = 0.0
        parts += [X.T, np.where(X[support].T.astype(float) @ coef > 0, 1.0, -1.0)]
    return tuple(parts)


def times(runs: Runs, config: Config) -> None:
    """Figures 3d and 4b: seconds beside LIBLINEAR, at a size whose copies fit into memory."""

    def draw(seed: int, share: float, levels: Sequence[float]) -> dict[str, Any]:
        X, y, Xt, yt = thinned(config["n"], config["p"], config["true"], seed, share)
        if share < 0.5:
            X = sp.csc_array(X)
        rival = Liblinear(X, y)
        fits = {
            "PROX-SLR": [generated(X, y, b, loss="logistic")[0] for b in config["batches"]],
            "l1-LR": [rival.lr(c) for c in levels],
        }
        rows = {name: rows_of(found, Xt, yt) for name, found in fits.items()}
        return {"density": share, "rows": rows}

    for seed in range(config["draws"]):
        for share, levels in config["lr"].items():
            key = f"draw {seed}, density {share}"
            make = partial(draw, seed, float(share), levels)
            runs.piece("times", key, make)


def sparse_times(runs: Runs, config: Config) -> None:
    """Figure 4b at the paper's size and its lowest density: seconds beside LIBLINEAR."""

    def draw(seed: int) -> dict[str, Any]:
        X, y = scattered(config["n"], config["p"], config["true"], seed, config["density"])
        slr = [generated(X, y, b, loss="logistic")[0] for b in config["batches"]]
        A = sp.csr_matrix(X, dtype=float)
        copied, _ = l1_logistic(A, y, 1e-9)  # selects nothing: the time of LIBLINEAR's own copies
        found = [l1_logistic(A, y, C) for C in config["lr"]]
        rows = {
            "PROX-SLR": [{"features": int(f.columns.size), "seconds": f.seconds} for f in slr],
            "l1-LR": [{"features": count, "seconds": seconds} for seconds, count in found],
        }
        return {"density": config["density"], "rows": rows, "copies": copied}

    for seed in range(config["draws"]):
        runs.piece("sparse_times", f"draw {seed}", partial(draw, seed))


def l1_logistic(A: Array, y: Array, C: float) -> tuple[float, int]:
    """Return LIBLINEAR's seconds, with the copies that it makes, and the features selected."""
    machine = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=C, tol=0.01, fit_intercept=False
    )
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(A, y)
    return time.process_time() - began, int(np.count_nonzero(machine.coef_))


def scattered(n: int, p: int, true: int, seed: int, share: float) -> tuple[Array, Array]:
    """Return the X and y of ``thinned``, another draw of them, without the zeros."""
    rng = np.random.default_rng([seed, round(1000 * share)])
    parts = []
    for begin in range(0, p, 1024):
        chosen = np.flatnonzero(rng.random((min(1024, p - begin), n), dtype=np.float32) < share)
        parts.append((begin + chosen // n, chosen % n))
    columns, rows = (np.concatenate(of).astype(np.int32) for of in zip(*parts, strict=True))
    starts = np.searchsorted(columns, np.arange(p + 1)).astype(np.int32)
    values = rng.standard_normal(rows.size, dtype=np.float32)
    X = sp.csc_array((values, rows, starts), shape=(n, p))
    coef = np.zeros(p)
    coef[rng.choice(p, true, replace=False)] = rng.random(true)
    return X, np.where(X @ coef > 0, 1.0, -1.0)


def mkl(runs: Runs, config: Config) -> None:
    """The caption of Figure 2d: the last subproblem of FGM by SimpleMKL, in the dual."""

    def draw(seed: int) -> dict[str, Any]:
        data = make_feature_generation(config["n"], config["p"], config["true"], 1, rng=seed)
        fit, result = generated(data.X, data.y, 10)
        blocks = np.stack([data.X[:, block].astype(float) for block in result.state.blocks])
        told = []
        for gap in config["gaps"]:
            began = time.process_time()
            dual = LinearMKL(C=10.0, gap=gap, time_limit_s=config["limit"]).fit(blocks, data.y)
            seconds = time.process_time() - began
            reached = {"gap": dual.relative_gap, "machines": dual.machines, "cut": dual.cut}
            told.append({"seconds": seconds, "value": dual.machine.value} | reached)
        return {"primal": fit.seconds, "objective": result.objective, "dual": told}

    for seed in range(config["draws"]):
        runs.piece("mkl", f"draw {seed}", lambda seed=seed: draw(seed))


def shift(runs: Runs, config: Config) -> None:
    """Figures 5a and 6a: a hyperplane off the origin, b = 4."""

    def draw(seed: int) -> dict[str, Any]:
        n, p, true = config["n"], config["p"], config["true"]
        data = make_feature_generation(n, p, true, shift=4.0, rng=seed)
        X, y, Xt, yt = data.X, data.y, data.X_test, data.y_test
        rows: dict[str, Any] = {}
        curves: dict[str, Any] = {}
        for name, free in (("FGM", False), ("FGM-SHIFT", True)):
            found = [generated(X, y, b, shift=free) for b in config["batches"]]
            rows[name] = [
                fit.row(Xt, yt) | {"objective": float(result.objective)} for fit, result in found
            ]
            curves[name] = relative_objectives(X, y, config["batches"][-1], 1e-3, shift=free)
        for name, free in (("l1-SVM", False), ("l1-SVM-SHIFT", True)):
            rival = Liblinear(X, y, free)
            rows[name] = rows_of([rival.svm(c) for c in np.geomspace(*config["svm"])], Xt, yt)
        return {"rows": rows, "curves": curves}

    for seed in range(config["draws"]):
        runs.piece("shift", f"draw {seed}", lambda seed=seed: draw(seed))
