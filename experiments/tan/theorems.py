"""[T]: Theorems 1, 3 and 4, Proposition 3 and Remark 3, each computed on small problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FeatureGeneration, run
from experiments.common.runs import Runs

Array = Any
PENALTY = 2.0  # C


def theorems(runs: Runs, config: Mapping[str, Any]) -> None:
    """One piece a statement."""
    cases = config["cases"]
    runs.piece("theorems", "Theorem 1", lambda: minimax(cases))
    runs.piece("theorems", "Theorem 3", lambda: recovered(cases))
    runs.piece("theorems", "Theorem 4", lambda: accelerated(cases, config["steps"]))
    runs.piece("theorems", "Proposition 3", lambda: regularizer(config["vectors"]))
    runs.piece("theorems", "Remark 3", lambda: counted(cases))


def drawn(seed: int) -> tuple[Array, Array, int]:
    """Return X (30, 12), labels with some noise, and B."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 12))
    y = np.where(X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(30) > 0, 1.0, -1.0)
    return X, y, int(rng.integers(1, 6))


def minimax(cases: int) -> dict[str, Any]:
    """min over d of max over alpha (the primal in w, d) against max over alpha of min over d."""
    off = []
    for seed in range(cases):
        X, y, batch = drawn(seed)
        w, b, d = cp.Variable(12), cp.Variable(), cp.Variable(12)
        lost = cp.sum_squares(cp.pos(1.0 - cp.multiply(y, X @ w - b)))
        scaled = sum(cp.quad_over_lin(w[j], d[j]) for j in range(12))
        outer = cp.Minimize(0.5 * scaled + 0.5 * PENALTY * lost)
        first = cp.Problem(outer, [d >= 0, d <= 1, cp.sum(d) <= batch]).solve(cp.CLARABEL)
        a = cp.Variable(30)
        c = X.T @ cp.multiply(a, y)
        best = cp.sum_largest(cp.square(c), batch)
        inner = cp.Maximize(cp.sum(a) - 0.5 * best - cp.sum_squares(a) / (2.0 * PENALTY))
        second = cp.Problem(inner, [a >= 0, a @ y == 0]).solve(cp.CLARABEL)
        off.append(abs(first - second) / abs(first))
    return {"worst": max(off), "cases": cases}


def fitted(seed: int, loss: str) -> tuple[Array, Array, Any, Any]:
    """Return X, y, the problem and the result of FGM after three rounds."""
    X, y, batch = drawn(seed)
    level = Regularizer(KSupport(batch), "squared", 1.0)
    form = {"sample_weight": PENALTY, "fit_intercept": True}
    problem = Problem.build(as_design(X), y, as_loss(loss), level, **form)
    solver = FeatureGeneration(max_blocks=3, inner_tol=1e-9)
    return X, y, problem, run(problem, solver, RelativeGap(1e-10) | Iterations(50))


def recovered(cases: int) -> dict[str, Any]:
    """(31) in the primal, and the value of (29) at alpha = C xi or C sigmoid(xi): equal?"""
    off: dict[str, list[float]] = {"squared_hinge": [], "logistic": []}
    for loss, seed in ((loss, seed) for loss in off for seed in range(cases)):
        X, y, _, result = fitted(seed, loss)
        z = X[:, result.columns] @ result.weights + result.intercept
        if loss == "squared_hinge":
            a = PENALTY * np.maximum(1.0 - y * z, 0.0)
            dual = float(a.sum() - a @ a / (2.0 * PENALTY))
        else:
            a = PENALTY / (1.0 + np.exp(y * z))
            rest = PENALTY - a
            dual = -float(rest @ np.log(rest) + a @ np.log(a)) + a.size * PENALTY * np.log(PENALTY)
        c = X.T @ (a * y)
        dual -= 0.5 * max(float(c[block] @ c[block]) for block in result.state.blocks)
        primal = float(result.state.restricted_objective)
        off[loss].append(max(abs(primal - dual) / primal, abs(float(a @ y)) / float(a.sum())))
    return {"worst": {loss: max(of) for loss, of in off.items()}, "cases": 2 * cases}


def moreau(v: Array, labels: Array, step: float) -> Array:
    """Algorithm 3: the proximal map of step/2 (sum of the blocks' norms)^2 at v."""
    sizes = np.sqrt(np.bincount(labels, v * v))
    ordered = np.sort(sizes)[::-1]
    counts = np.arange(1, sizes.size + 1)
    thresholds = step / (1.0 + counts * step) * np.cumsum(ordered)
    rho = int(np.count_nonzero(ordered > thresholds))
    kept = np.maximum(sizes - thresholds[rho - 1], 0.0) if rho else np.zeros_like(sizes)
    return v * (kept / np.maximum(sizes, 1e-300))[labels]


def accelerated(cases: int, steps: int) -> dict[str, Any]:
    """Algorithm 4 from zero: F_k - F* over the bound of Theorem 4, the largest over k."""
    worst, eta = [], 0.5
    for seed in range(cases):
        X, y, batch = drawn(seed)
        rng = np.random.default_rng(seed)
        columns = np.concatenate([rng.choice(12, batch, replace=False) for _ in range(3)])
        labels, A = np.repeat(np.arange(3), batch), X[:, columns]
        lipschitz = PENALTY * float(np.linalg.norm(A, 2)) ** 2, PENALTY * y.size
        (w, b), objectives = algorithm_4(A, y, labels, eta, lipschitz, 20 * steps)
        far = 2.0 * (lipschitz[0] * float(w @ w) + lipschitz[1] * b**2) / eta
        k = np.arange(1, steps + 1)
        errors = np.array(objectives[:steps]) - min(objectives)
        worst.append(float(np.max(errors * (k + 1.0) ** 2 / far)))
    return {"worst": max(worst), "cases": cases, "steps": steps}


def algorithm_4(
    A: Array, y: Array, labels: Array, eta: float, lipschitz: tuple[float, float], steps: int
) -> tuple[tuple[Array, float], list[float]]:
    """Return the last point and F after each step; both steps are found by line search."""
    w, b = np.zeros(A.shape[1]), 0.0
    v, vb, momentum, taus = w, b, 1.0, list(lipschitz)
    objectives = []

    def slack(w: Array, b: float) -> Array:
        return np.maximum(1.0 - y * (A @ w - b), 0.0)

    def loss(w: Array, b: float) -> float:
        return 0.5 * PENALTY * float(slack(w, b) @ slack(w, b))

    for _ in range(steps):
        pull = slack(v, vb)
        gradient, gradient_b = -PENALTY * (A.T @ (y * pull)), PENALTY * float(y @ pull)
        taus = [eta * tau for tau in taus]
        while True:
            new = moreau(v - gradient / taus[0], labels, 1.0 / taus[0])
            off = new - v
            model = loss(v, vb) + float(gradient @ off) + 0.5 * taus[0] * float(off @ off)
            if loss(new, vb) <= model + 1e-12 * abs(model) or taus[0] >= lipschitz[0]:
                break
            taus[0] = min(taus[0] / eta, lipschitz[0])
        while True:
            new_b = vb - gradient_b / taus[1]
            enough = loss(v, vb) - gradient_b**2 / (2.0 * taus[1])
            if loss(v, new_b) <= enough + 1e-12 * abs(enough) or taus[1] >= lipschitz[1]:
                break
            taus[1] = min(taus[1] / eta, lipschitz[1])
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        share = (momentum - 1.0) / following
        v, vb = new + share * (new - w), new_b + share * (new_b - b)
        w, b, momentum = new, new_b, following
        total = float(np.sqrt(np.bincount(labels, w * w)).sum())
        objectives.append(0.5 * total**2 + loss(w, b))
    return (w, b), objectives


def regularizer(vectors: int) -> dict[str, Any]:
    """Proposition 3: ||w||_B and the d that attains it, in the cases that it names."""
    rng = np.random.default_rng(0)
    off: dict[str, list[float]] = {"kappa <= B": [], "flat": []}
    while sum(map(len, off.values())) < vectors:
        m = int(rng.integers(2, 20))
        w = rng.standard_normal(m) * (rng.random(m) < rng.uniform(0.2, 1.0))
        kappa, batch = np.count_nonzero(w), int(rng.integers(1, m + 1))
        if not kappa:
            continue
        total, used = float(np.abs(w).sum()), w != 0
        value = KSupport(batch).value(w)
        if kappa <= batch:
            off["kappa <= B"].append(abs(value / float(np.linalg.norm(w)) - 1.0))
        elif total >= batch * float(np.abs(w).max()):
            d = batch * np.abs(w) / total
            attained = float(np.sqrt((w[used] ** 2 / d[used]).sum()))
            feasible = d.max() <= 1 + 1e-12 and d.sum() <= batch * (1 + 1e-12)
            reached = max(abs(value * np.sqrt(batch) / total - 1.0), abs(attained / value - 1.0))
            off["flat"].append(reached if feasible else np.inf)
    return {name: max(of, default=np.inf) for name, of in off.items()} | {"vectors": vectors}


def counted(cases: int) -> dict[str, Any]:
    """Remark 3: the features of the blocks in use, between B and t B?"""
    outside = 0
    for seed in range(cases):
        _, _, problem, result = fitted(seed, "squared_hinge")
        batch, state = problem.regularizer.norm.k, result.state
        used = [
            block
            for number, block in enumerate(state.blocks)
            if np.any(state.omega[state.labels == number])
        ]
        selected = np.unique(np.concatenate(used)).size
        outside += not batch <= selected <= batch * len(state.blocks)
    return {"outside": outside, "cases": cases}
