"""[V] 3.3: linear convergence, finite convergence, and the price of an update."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn._kernels.active_set import ActiveFactor, QPStatus
from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import as_design
from atomlearn.losses import Squared
from atomlearn.masters import ActiveSetQP
from atomlearn.norms import L1, Chains
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import AtomGeneration, run
from experiments.common.runs import Runs

Array = Any


def theorems(runs: Runs, config: Mapping[str, Any]) -> None:
    """Rates of Algorithm 1, pivots of Algorithm 2, and seconds of one more atom."""
    for seed in range(config["draws"]):
        for name in ("lasso", "chains"):
            runs.piece(
                "theorems", f"rate, {name}, draw {seed}", lambda n=name, s=seed: rate(n, s, config)
            )
    runs.piece("theorems", "finite", lambda: finite(config["programs"]))
    runs.piece("theorems", "updates", lambda: updates(config["atoms"], config["repeats"]))


def rate(name: str, seed: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the factor a step of F - F* under Algorithm 1, where f is strongly convex."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((config["n"], config["p"]))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(config["n"])
    norm = L1() if name == "lasso" else Chains(8)
    level = 0.02 * norm.on(config["p"]).polar(X.T @ y)
    problem = Problem.build(as_design(X), y, Squared(), Regularizer(norm, "penalized", level))
    values: list[float] = []
    solver = AtomGeneration(master=ActiveSetQP(), inner_ratio=1e-9)
    run(
        problem,
        solver,
        RelativeGap(1e-12) | Iterations(3000),
        [lambda progress: values.append(progress.state.certificate.objective)],
    )
    errors = np.array(values) - min(values)
    errors = errors[errors > 1e-9 * min(values)]
    steps = np.arange(errors.size)
    slope, constant = np.polyfit(steps, np.log(errors), 1)
    off = np.log(errors) - (slope * steps + constant)
    fit = 1.0 - float(np.var(off) / np.var(np.log(errors)))
    return {"norm": name, "rate": float(np.exp(slope)), "R2": fit, "steps": int(errors.size)}


def finite(programs: int) -> dict[str, Any]:
    """Algorithm 2 from zero on random programs, some of them singular: pivots and KKT residuals."""
    rng = np.random.default_rng(0)
    residuals, pivots, ended = [], [], 0
    for _ in range(programs):
        atoms, rows = int(rng.integers(1, 31)), int(rng.integers(1, 41))
        A, y = rng.standard_normal((rows, atoms)), rng.standard_normal(rows)
        H, b, level = A.T @ A, A.T @ y, float(rng.uniform(0.0, 1.0))
        c, outcome = active_set_qp(H, b, np.zeros(atoms), level=level)
        gradient = H @ c - b + level
        worst = max(float(-gradient.min()), float(np.abs(gradient[c > 0]).max(initial=0.0)))
        residuals.append(worst / max(float(np.abs(b).max()), 1.0))
        pivots.append([atoms, outcome.pivots])
        ended += outcome.status == QPStatus.OPTIMAL
    most = max(done / atoms for atoms, done in pivots)
    naive = all(done <= 2.0**atoms + 1 for atoms, done in pivots)
    found = {"residual": max(residuals), "ended": ended, "programs": programs}
    return found | {"pivots an atom": most, "below 2^k": naive}


def updates(atoms: list[int], repeats: int) -> dict[str, Any]:
    """Seconds of Algorithm 2 where one atom joins k active ones, and from a factor of its own."""
    warm, cold = [], []
    for k in atoms:
        rng = np.random.default_rng(k)
        A = rng.standard_normal((2 * k, k + 1)) / np.sqrt(2.0 * k)
        H, b = A.T @ A, A.T @ (A @ np.ones(k + 1))
        times: list[list[float]] = [[], []]
        for _ in range(repeats):
            state = ActiveFactor()
            old, _ = active_set_qp(H[:k, :k].copy(), b[:k], np.ones(k), state=state)
            start = np.append(old, 0.0)
            for kept, where in ((state, times[0]), (ActiveFactor(), times[1])):
                began = time.process_time()
                active_set_qp(H, b, start, state=kept)
                where.append(time.process_time() - began)
        warm.append(min(times[0]))
        cold.append(min(times[1]))
    slopes = [float(np.polyfit(np.log(atoms), np.log(of), 1)[0]) for of in (warm, cold)]
    return {"atoms": atoms, "warm": warm, "cold": cold, "slopes": slopes}
