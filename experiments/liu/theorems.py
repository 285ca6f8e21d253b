"""[L] 3.2: the rate of Theorem 1 with its own constant, and inexact subproblems (Remark 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn.norms import KSupport
from experiments.common.runs import Runs
from tests.oracles.sums import solve_sum

Array = Any


def theorems(runs: Runs, config: Mapping[str, Any]) -> None:
    """Algorithm 1 step by step, with exact and with inexact subproblems."""
    for seed in range(config["draws"]):
        runs.piece("theorems", f"draw {seed}", lambda seed=seed: draw(seed, config))


def algorithm_1(
    X: Array, y: Array, k: int, penalty: float, steps: int, inexact: float = 0.0
) -> tuple[list[float], Array, float]:
    """Return F after each step, the atoms, and the largest ||top-k gradient|| / (2 lambda).

    ``inexact`` is the duality gap at which the subproblem over the simplex is left, 0 for its
    minimum.
    """
    U, V, alpha = np.zeros((X.shape[1], 1)), np.zeros(1), np.ones(1)
    values, radius = [0.5 * float(y @ y)], 0.0
    for _ in range(steps):
        gradient = X.T @ (X @ (U @ alpha) - y)
        top = np.zeros_like(gradient)
        best = np.argsort(-np.abs(gradient))[:k]
        top[best] = gradient[best]
        length = float(np.linalg.norm(top)) / (2.0 * penalty)
        radius = max(radius, length)
        U, V = np.column_stack([U, -top / (2.0 * penalty)]), np.append(V, length**2)
        A = X @ U
        H, b = A.T @ A, A.T @ y - penalty * V
        alpha = simplex(H, b, np.append(alpha, 0.0), inexact)
        values.append(0.5 * float(y @ y) + 0.5 * float(alpha @ H @ alpha) - float(b @ alpha))
    return values, U[:, 1:], radius


def simplex(H: Array, b: Array, alpha: Array, inexact: float) -> Array:
    """Minimize over the simplex: by Algorithm 2 of [V], or by pairwise steps to a gap."""
    if not inexact:
        return active_set_qp(H, b, alpha, radius=1.0, equality=True)[0]
    for _ in range(100_000):
        gradient = H @ alpha - b
        toward = int(gradient.argmin())
        if float(alpha @ gradient) - gradient[toward] <= inexact:
            break
        away = int(np.where(alpha > 0, gradient, -np.inf).argmax())
        bend = H[toward, toward] + H[away, away] - 2.0 * H[toward, away]
        step = min((gradient[away] - gradient[toward]) / max(bend, 1e-300), alpha[away])
        alpha = alpha.copy()
        alpha[toward] += step
        alpha[away] = max(alpha[away] - step, 0.0)
    return alpha


def draw(seed: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return errors, the rate that Theorem 1 promises, and the errors of inexact subproblems."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((config["n"], config["p"]))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(config["n"])
    k, penalty, steps = config["k"], config["lambda"], config["steps"]
    form = {"norm": KSupport(k), "form": "squared", "level": 2.0 * penalty}
    best = solve_sum(X, y, tol=1e-12, max_iter=10**4, **form).objective
    values, U, radius = algorithm_1(X, y, k, penalty, steps)
    errors = np.maximum(np.array(values) - best, 0.0)
    smooth, convex = (np.linalg.eigvalsh(X.T @ X)[i] for i in (-1, 0))
    # Fewer columns have a larger least singular value: this promises no less than the theorem.
    least = [float(np.linalg.svd(U[:, :t], compute_uv=False)[-1]) for t in range(1, steps + 1)]
    zeta = [min(float(convex * s / (4.0 * smooth * radius**2)), 0.5) for s in least]
    promised = errors[0] * np.exp(-np.array(zeta) * np.arange(1, steps + 1))
    late = {}
    for share in config["inexact"]:
        inexact, _, _ = algorithm_1(X, y, k, penalty, steps, share * best)
        late[str(share)] = float(max(inexact[steps // 2 :]) / best - 1.0)
    return {
        "errors": (errors / best).tolist(),
        "broken": int(np.sum(errors[1:] > promised + 1e-9 * best)),
        "zeta": [zeta[0], zeta[-1]],
        "steps": steps,
        "inexact": late,
    }
