"""Every lifted and ordered norm on random small cases, against enumeration and convex programs.

A thousand cases a kind: polar and best atom against the sets of the definition, one by one; value
against the convex program of the definition (CVXPY with Clarabel). Then random penalized problems
with each loss: the objective recomputed with the value of that program, and the gap with the
enumerated polar at the returned point; a gap that is larger than the one claimed is counted.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from atomlearn.core.interfaces.scores import ArrayScores
from benchmarks.harness import Options, Table
from tests.oracles.lifted_cases import KINDS, LiftedCase, random_scores
from tests.oracles.sums import solve_sum

Array = np.ndarray[Any, np.dtype[np.float64]]
LOSSES = ("squared", "logistic", "squared_hinge")
GAP = 1e-6
#: Accuracy of the convex program, relative to the objective, and rounding of the check itself.
PROGRAM = 1e-7


def main() -> None:
    """One row a kind of norm."""
    options = Options.parse(__doc__)
    cases, problems = (20, 2) if options.smoke else (1000, 50)
    warnings.filterwarnings("ignore", message="Solution may be inaccurate")
    with Table("norm_oracles", options) as table:
        for kind in KINDS:
            began = time.perf_counter()
            errors = _errors(kind, cases)
            table.add(kind=kind, **errors, **_problems(kind, problems))
            print(f"{kind}: {time.perf_counter() - began:.0f} s", flush=True)


def _errors(kind: str, count: int) -> dict[str, Any]:
    """Return the worst relative errors of polar, best atom and value."""
    polar = atom = value = 0.0
    for seed in range(count):
        rng = np.random.default_rng(10_000 + seed)
        case = KINDS[kind](rng)
        w = random_scores(rng, case.n_features)
        w /= np.abs(w).max()
        z = random_scores(rng, case.n_features)
        scores, exact = ArrayScores(z), case.polar(z)
        best = case.norm.best_atom(scores)
        polar = max(polar, abs(case.norm.polar(scores) / exact - 1.0))
        atom = max(atom, abs(float(best.values @ z[best.columns]) / exact - 1.0))
        value = max(value, abs(case.norm.value(w) / case.value(w) - 1.0))
    return {"cases": count, "polar_error": polar, "atom_error": atom, "value_error": value}


def _problems(kind: str, count: int) -> dict[str, Any]:
    """Solve problems with each loss; return how many gaps were claimed, confirmed and refuted."""
    claimed, refuted, worst = 0, [], 0.0
    for loss in LOSSES:
        for seed in range(count):
            rng = np.random.default_rng(50_000 + seed)
            case = KINDS[kind](rng)
            X = rng.standard_normal((30, case.n_features))
            y = X @ random_scores(rng, case.n_features) + rng.standard_normal(30)
            y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
            level = 0.2 * case.polar(X.T @ _dual(loss, y, np.zeros(30)))
            result = solve_sum(X, y, loss=loss, norm=case.norm, level=level, tol=GAP)
            if not result.converged:
                continue
            claimed += 1
            w = np.zeros(case.n_features)
            w[result.columns] = result.weights
            true = _relative_gap(case, loss, X, y, level, w)
            worst = max(worst, true)
            if true > GAP + PROGRAM:
                refuted.append((loss, seed))
    return {
        "problems": 3 * count,
        "converged": claimed,
        "refuted": refuted or "none",
        "worst_true_gap": worst,
    }


def _dual(loss: str, y: Array, z: Array) -> Array:
    """Return -f'(z)."""
    if loss == "squared":
        return y - z
    if loss == "logistic":
        return y / (1.0 + np.exp(y * z))
    return y * np.maximum(1.0 - y * z, 0.0)


def _values(loss: str, y: Array, z: Array, v: Array) -> tuple[float, float]:
    """Return f(z) and the conjugate f*(-v), from their formulas."""
    if loss == "squared":
        return 0.5 * float((y - z) @ (y - z)), float(0.5 * v @ v - v @ y)
    a = np.clip(v * y, 0.0, None)
    if loss == "logistic":
        a = np.clip(a, 1e-300, 1.0 - 1e-16)
        entropy = float((a * np.log(a) + (1.0 - a) * np.log1p(-a)).sum())
        return float(np.logaddexp(0.0, -y * z).sum()), entropy
    return 0.5 * float((np.maximum(1.0 - y * z, 0.0) ** 2).sum()), float(0.5 * a @ a - a.sum())


def _relative_gap(case: LiftedCase, loss: str, X: Array, y: Array, level: float, w: Array) -> float:
    """Return the gap at w: value by the convex program, polar by enumeration."""
    z = X @ w
    v = _dual(loss, y, z)
    smooth, conjugate = _values(loss, y, z, v)
    objective = smooth + level * (case.value(w) if w.any() else 0.0)
    polar = case.polar(X.T @ v)
    scaled = _values(loss, y, z, min(1.0, level / polar) * v)[1] if polar > 0 else conjugate
    excess = objective / level * max(0.0, polar - level)
    return (objective + min(scaled, conjugate + excess)) / objective


if __name__ == "__main__":
    main()
