"""Frank-Wolfe methods over matrices: against CVXPY, the same steps over columns, and in memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms
from atomlearn.interfaces import Norm
from atomlearn.matrices.norms import sparse_search
from atomlearn.matrices.settings import SETTINGS
from atomlearn.papers import frank_wolfe
from atomlearn.result import Result, Status
from atomlearn.solvers import FrankWolfe, MatrixGeneration
from tests.oracles.sums import solve_sum

P, Q = 6, 5
FORMS: list[dict[str, Any]] = [
    {"form": "penalized", "level": 1.5},
    {"form": "squared", "level": 0.3},
    {"form": "constrained", "radius": 3.0},
]
DIRECTIONS = ["toward", "away", "blended"]


def truth(seed: int = 0, p: int = P, q: int = Q) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(p, 2)) @ rng.normal(size=(2, q)) + 0.1 * rng.normal(size=(p, q))


def data(kind: str) -> tuple[Any, np.ndarray]:
    rng, W = np.random.default_rng(1), truth()
    if kind == "identity":
        return designs.Identity((P, Q)), W.reshape(-1)
    if kind == "entries":
        flat = rng.permutation(P * Q)[:20]
        return designs.Entries(flat // Q, flat % Q, (P, Q)), W.reshape(-1)[flat]
    X = rng.normal(size=(9, P)) / 3
    return designs.Tasks(X, Q), (X @ W + 0.1 * rng.normal(size=(9, Q))).reshape(-1)


def optimum(design: Any, y: np.ndarray, gauge: Any, W: Any, form: dict[str, Any]) -> float:
    X = np.asarray(design.gather(np.arange(design.shape[1])).dense())
    fit = 0.5 * cp.sum_squares(X @ cp.vec(W, order="C") - y)
    if form["form"] == "constrained":
        program = cp.Problem(cp.Minimize(fit), [gauge <= form["radius"]])
    else:
        squared = form["form"] == "squared"
        term = 0.5 * cp.square(gauge) if squared else gauge
        program = cp.Problem(cp.Minimize(fit + form["level"] * term))
    return float(program.solve(solver=cp.CLARABEL))


def check_between(r: Result, best: float, gap: float) -> None:
    """The point is as good as its certificate says, and not better than the best."""
    assert r.status is Status.CONVERGED
    assert best * (1 - 1e-6) <= r.objective <= best * (1 + gap) + 1e-6 * best
    assert r.objective - r.gap <= best * (1 + 1e-6)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_trace_norm(form: dict[str, Any], direction: Any) -> None:
    """Designs in turn, so that each direction and each form meets each."""
    turn = FORMS.index(form) + DIRECTIONS.index(direction)
    design, y = data(("identity", "entries", "tasks")[turn % 3])
    gap = 1e-2 if direction == "toward" else 1e-3
    solver = FrankWolfe(direction=direction)
    r = solve_sum(design, y, norm="trace", solver=solver, tol=gap, max_iter=5000, **form)
    W = cp.Variable((P, Q))
    check_between(r, optimum(design, y, cp.normNuc(W), W, form), gap)
    (part,) = r.matrix_parts or ()
    assert part.factored is not None
    left, right = part.factored.left, part.factored.right
    assert_allclose(left.T @ left, np.eye(left.shape[1]), atol=1e-9)
    assert_allclose(right.T @ right, np.eye(right.shape[1]), atol=1e-9)
    # The sum of the shares, which objective and gap are made of, bounds the norm of the point.
    assert np.linalg.svd(r.coef, compute_uv=False).sum() <= part.gauge * (1 + 1e-9)
    z = np.asarray(design.predict(np.asarray(r.coef).reshape(-1)))
    amount, gauge = form.get("level", 0.0), part.gauge
    penalty = {"penalized": amount * gauge, "squared": 0.5 * amount * gauge**2}
    smooth = losses.as_loss("squared").value(y, z, np.ones_like(y))
    assert_allclose(r.objective, smooth + penalty.get(form["form"], 0.0), rtol=1e-9)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
@pytest.mark.parametrize("direction", ["toward", "pairwise"])
def test_positive_semidefinite(form: dict[str, Any], direction: Any) -> None:
    Y = truth(3, 5, 5)
    y, gap = (Y + Y.T).reshape(-1), 1e-2 if direction == "toward" else 1e-3
    solver = FrankWolfe(direction=direction)
    design = designs.Identity((5, 5))
    r = solve_sum(design, y, norm=norms.PSD(), solver=solver, tol=gap, max_iter=5000, **form)
    W = cp.Variable((5, 5), PSD=True)
    check_between(r, optimum(design, y, cp.trace(W), W, form), gap)
    assert np.linalg.eigvalsh(r.coef)[0] >= -1e-12


@pytest.mark.parametrize(
    ("norm", "direction"),
    [
        (norms.SparsePSD(2), "pairwise"),
        (norms.SparseRankOne(2, 2), "pairwise"),
        (norms.Scaled(norms.SparseRankOne(1, 2), 0.5), "pairwise"),
    ],
    ids=["psd", "pairs", "scaled"],
)
def test_sparse_atoms(norm: Norm, direction: Any) -> None:
    """Branch and bound proves the gap; the optimum is that of generation; atoms are sparse."""
    Y = truth(4, 5, 5)
    y, gap = (Y + Y.T).reshape(-1), 1e-2
    design, solver = designs.Identity((5, 5)), FrankWolfe(direction=direction, tol=gap)
    ours = solve_sum(design, y, norm=norm, level=1.5, tol=1e-6)
    assert ours.converged
    r = solve_sum(design, y, norm=norm, level=1.5, solver=solver, tol=gap, max_iter=5000)
    check_between(r, ours.objective, gap)
    (part,) = r.matrix_parts or ()
    assert part.factored is not None
    assert (np.count_nonzero(part.factored.left, axis=0) <= 2).all()
    assert_allclose(np.linalg.norm(part.factored.left, axis=0), 1.0)


def test_a_search_without_a_bound_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_search, "SETTINGS", replace(SETTINGS, branch_nodes=0))
    y, solver = truth(5, 6, 6).reshape(-1), FrankWolfe(direction="pairwise", tol=2e-2)
    norm = norms.SparseRankOne(3, 2)
    r = solve_sum(designs.Identity((6, 6)), y, norm=norm, level=1.0, solver=solver, tol=2e-2)
    assert r.status is Status.SEARCH_RELATIVE
    assert r.search_gap is not None
    assert r.search_gap <= 2e-2 * r.objective < r.gap


@pytest.mark.parametrize(
    ("form", "step_size"), [(FORMS[0], "classic"), (FORMS[1], "line_search"), (FORMS[2], "classic")]
)
def test_factors_make_the_steps_of_columns(
    form: dict[str, Any], step_size: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same objectives, step by step, as with atoms as the entries of their columns."""
    design, y = data("entries")
    settings: dict[str, Any] = {"norm": "trace", "tol": 1e-12, "max_iter": 25, **form}
    settings["solver"] = FrankWolfe(step_size=step_size)
    factored = solve_sum(design, y, **settings)
    monkeypatch.setattr(frank_wolfe, "factored_atoms", lambda problem: None)
    plain = solve_sum(design, y, **settings)
    assert plain.matrix_parts is None
    objectives = [[h.objective for h in r.history] for r in (factored, plain)]
    assert_allclose(objectives[0], objectives[1], rtol=1e-7)
    assert_allclose(factored.coef, plain.coef, atol=1e-4)


def test_unions_have_columns() -> None:
    """Trace norm and l1 together: atoms of both kinds, as columns."""
    design, y = data("identity")
    norm = norms.Union([norms.TraceNorm(), norms.Scaled(norms.L1(), 0.6)])
    form = {"form": "penalized", "level": 1.0}
    solver = FrankWolfe(direction="pairwise")
    r = solve_sum(design, y, norm=norm, solver=solver, tol=1e-3, max_iter=5000, **form)
    L, S = cp.Variable((P, Q)), cp.Variable((P, Q))
    gauge = cp.normNuc(L) + 0.6 * cp.sum(cp.abs(S))
    check_between(r, optimum(design, y, gauge, L + S, form), 1e-3)
    assert r.matrix_parts is None


@pytest.mark.parametrize("norm", [norms.TraceNorm(), norms.PSD()])
def test_warm_starts_go_both_ways(norm: Norm) -> None:
    Y = truth(6, 5, 5)
    design, y = designs.Identity((5, 5)), (Y + Y.T).reshape(-1)
    ours = solve_sum(design, y, norm=norm, level=1.0, tol=1e-6)
    solver = FrankWolfe(direction="pairwise", tol=1e-5)
    taken = solve_sum(design, y, norm=norm, level=1.0, solver=solver, tol=1e-5, warm_start=ours)
    assert taken.passes == 1
    assert_allclose(taken.objective, ours.objective, rtol=1e-8)
    rough = solve_sum(design, y, norm=norm, level=1.0, solver=solver, max_iter=20)
    again = solve_sum(
        design, y, norm=norm, level=1.0, tol=1e-6, solver=MatrixGeneration(), warm_start=rough
    )
    assert again.converged
    again.state.check()
    assert again.history[0].objective <= rough.objective * (1 + 1e-9)
    inside = solve_sum(
        design, y, norm=norm, form="constrained", radius=1.0, solver=solver, max_iter=20,
        warm_start=ours,
    )  # fmt: skip
    assert sum(part.gauge for part in inside.matrix_parts) <= 1.0 + 1e-9


@pytest.mark.parametrize("direction", ["toward", "pairwise"])
def test_the_matrix_is_never_formed(direction: Any) -> None:
    """20,000 x 20,000, of which a dense atom would take 3.2 GB."""
    rng, side, count = np.random.default_rng(0), 20_000, 5000
    rows, cols = rng.integers(0, side, (2, count))
    y = np.where(rng.random(count) < 0.5, 1.0, -1.0)
    design, solver = designs.Entries(rows, cols, (side, side)), FrankWolfe(direction=direction)
    tracemalloc.start()
    r = solve_sum(design, y, norm="trace", loss="logistic", level=0.5, solver=solver, max_iter=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e8
    low = r.low_rank
    z = low.at(rows, cols)
    expected = np.logaddexp(0.0, -y * z).sum() + 0.5 * (r.matrix_parts or ())[0].gauge
    assert_allclose(r.objective, expected, rtol=1e-9)
    assert r.history[-1].objective < r.history[0].objective
