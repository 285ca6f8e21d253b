"""Generation over matrices against CVXPY, dense proximal gradient and recomputed certificates."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms, paths, solve
from atomlearn.core import ArrayScores, DenseDesign
from atomlearn.interfaces import Design, Factored
from atomlearn.matrices.norms import sparse_search, spectral
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver import spans as span_module
from atomlearn.paths import path
from atomlearn.result import Result, Status
from atomlearn.solvers import (
    FISTA,
    AtomGeneration,
    MatrixGeneration,
)
from atomlearn.testing import tolerances
from tests.core.problem.test_verification import X as VERIFIED
from tests.core.problem.test_verification import Y, assert_verified
from tests.core.solvers.test_contracts_of_run import data as vectors
from tests.oracles.sums import solve_sum

P, Q = 8, 6
FORMS = [
    {"form": "penalized", "level": 1.5},
    {"form": "squared", "level": 0.2},
    {"form": "constrained", "radius": 6.0},
]
GAP = 1e-7


@pytest.fixture(autouse=True)
def spans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are held whole; these tests see spans grow, unless they ask for both."""
    if getattr(request, "param", "growing spans") == "growing spans":
        monkeypatch.setattr(span_module, "SETTINGS", replace(span_module.SETTINGS, whole_entries=0))


def truth(seed: int = 0, p: int = P, q: int = Q) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(p, 2)) @ rng.normal(size=(2, q))
    low[0, 0] += 5.0
    return low + 0.1 * rng.normal(size=(p, q))


def data(kind: str) -> tuple[designs.Tasks | designs.Identity | designs.Entries, np.ndarray]:
    """A design with targets, and by ``dense_of`` its array."""
    rng = np.random.default_rng(1)
    W = truth()
    if kind == "identity":
        return designs.Identity((P, Q)), W.reshape(-1)
    if kind == "entries":
        flat = rng.permutation(P * Q)[:30]
        return designs.Entries(flat // Q, flat % Q, (P, Q)), W.reshape(-1)[flat]
    X = rng.normal(size=(10, P)) / 3
    return designs.Tasks(X, Q), (X @ W + 0.1 * rng.normal(size=(10, Q))).reshape(-1)


def dense_of(design) -> np.ndarray:
    return np.asarray(design.gather(np.arange(design.shape[1])).dense())


def optimum(
    X: np.ndarray, y: np.ndarray, gauge, constraints, form: dict, loss: str, W, tau: float = 0.0
) -> float:
    """The optimal value as a cone program over W (p, q), a cvxpy variable, and gauge."""
    z = X @ cp.vec(W, order="C")
    fit = {
        "squared": lambda: 0.5 * cp.sum_squares(z - y),
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(y, z))),
    }[loss]()
    if tau:
        fit += 0.5 * tau * cp.sum_squares(W)
    if form["form"] == "penalized":
        objective = fit + form["level"] * gauge
    elif form["form"] == "squared":
        objective = fit + 0.5 * form["level"] * cp.square(gauge)
    else:
        objective, constraints = fit, [*constraints, gauge <= form["radius"]]
    program = cp.Problem(cp.Minimize(objective), constraints)
    return float(program.solve(solver=cp.CLARABEL, **tolerances.CLARABEL))


def gauge_of(kind: str):
    """A norm, and its gauge with W and constraints in CVXPY's words."""
    low, rest = cp.Variable((P, Q)), cp.Variable((P, Q))
    if kind == "trace":
        return norms.TraceNorm(), low, cp.normNuc(low), []
    if kind == "trace + l1":
        gauge = cp.normNuc(low) + 0.5 * cp.sum(cp.abs(rest))
        return (
            norms.Union([norms.TraceNorm(), norms.Scaled(norms.L1(), 0.5)]),
            low + rest,
            gauge,
            [],
        )
    if kind == "spectral k-support":
        # gauge = min (tr(W' N^-1 W) + s) / 2 over 0 <= N <= s I, tr N <= 2 s.
        N, s = cp.Variable((P, P), PSD=True), cp.Variable(nonneg=True)
        bounds = [s * np.eye(P) - N >> 0, cp.trace(N) <= 2 * s]
        return norms.SpectralKSupport(2), low, 0.5 * (cp.matrix_frac(low, N) + s), bounds
    labels = np.repeat(np.arange(P), Q)
    gauge = cp.normNuc(low) + 0.8 * cp.sum(cp.norm(rest, 2, axis=1))
    rows = norms.Scaled(norms.Groups(labels), 0.8)
    return norms.Union([norms.TraceNorm(), rows]), low + rest, gauge, []


def check_certificate(r: Result, design, y: np.ndarray, gauge: float, polar, form: dict, loss: str):
    """Recompute objective and gap from the dense W, in plain NumPy."""
    X, w, f = dense_of(design), np.asarray(r.coef).reshape(-1), losses.as_loss(loss)
    z, ones = X @ w + r.intercept, np.ones_like(y)
    v = -f.gradient(y, z, ones)
    top = polar((X.T @ v).reshape(r.coef.shape))
    smooth = f.value(y, z, ones)
    if form["form"] == "penalized":
        level = form["level"]
        objective, shrink = smooth + level * gauge, min(1.0, level / top)
        gap = objective + f.conjugate(y, -shrink * v, ones)
    elif form["form"] == "squared":
        objective = smooth + 0.5 * form["level"] * gauge**2
        gap = objective + f.conjugate(y, -v, ones) + 0.5 * top**2 / form["level"]
    else:
        assert gauge <= form["radius"] * (1 + 1e-9)
        objective = smooth
        gap = objective + f.conjugate(y, -v, ones) + form["radius"] * top
    assert_allclose(r.objective, objective, rtol=1e-9)
    assert gap <= 1.01 * GAP * objective + 1e-12
    assert r.gap >= gap * (1 - 1e-3) - 1e-11 * objective


KINDS, NORMS = (
    ("identity", "entries", "tasks"),
    (
        "trace",
        "trace + l1",
        "trace + rows",
        "spectral k-support",
    ),
)


@pytest.mark.parametrize(
    ("loss", "spans"),
    [("logistic", "growing spans"), ("squared", "whole spans")],
    indirect=["spans"],
)
@pytest.mark.parametrize("form", range(3), ids=[form["form"] for form in FORMS])
@pytest.mark.parametrize("norm", range(4), ids=NORMS)
def test_it_finds_the_optimum(norm: int, form: int, loss: str, request) -> None:
    """Each norm in each form; designs in turn, so that each norm and each form meets each."""
    whole = "whole" in request.node.callspec.params["spans"]
    kind, norm_kind, form = KINDS[(norm + form + whole) % 3], NORMS[norm], FORMS[form]
    design, y = data(kind)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    norm, W, gauge, constraints = gauge_of(norm_kind)
    r = solve_sum(design, y, norm=norm, loss=loss, tol=GAP, **form)
    assert r.status is Status.CONVERGED
    assert r.coef.shape == (P, Q)
    best = optimum(dense_of(design), y, gauge, constraints, form, loss, W)
    assert_allclose(r.objective, best, rtol=tolerances.ORACLE)
    r.state.check()
    assert_allclose(r.coef, sum(part.dense((P, Q)) for part in r.matrix_parts), atol=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_certificates_are_those_of_the_dense_point(form: dict, loss: str) -> None:
    """Designs in turn, so that each form and each loss meets most."""
    kind = KINDS[(FORMS.index(form) + (loss == "logistic")) % 3]
    design, y = data(kind)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    r = solve_sum(design, y, norm="trace", loss=loss, tol=GAP, **form)
    gauge = np.linalg.svd(r.coef, compute_uv=False).sum()
    check_certificate(r, design, y, gauge, lambda Z: np.linalg.norm(Z, 2), form, loss)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
def test_factored_and_dense_iterates_agree(form: dict) -> None:
    """The same optimum as FISTA over all p q entries; factors are what coef is."""
    design, y = data("entries")
    ours = solve_sum(design, y, norm="trace", tol=1e-9, **form)
    dense = solve_sum(design, y, norm="trace", tol=1e-9, solver=FISTA(), max_iter=50_000, **form)
    assert ours.converged
    assert dense.converged
    assert_allclose(ours.objective, dense.objective, rtol=3e-9)
    low = ours.low_rank
    assert isinstance(low, Factored)
    assert low.rank < Q
    assert_allclose(low.toarray(), ours.coef, atol=1e-13)
    rows, cols = np.indices((P, Q)).reshape(2, -1)
    assert_allclose(low.at(rows, cols), ours.coef.reshape(-1), atol=1e-13)
    other = np.random.default_rng(0).normal(size=(Q, 3))
    assert_allclose(low.dot(other), ours.coef @ other, atol=1e-12)
    assert_allclose(low.T.toarray(), ours.coef.T, atol=1e-13)


def test_denoising_is_the_proximal_map() -> None:
    """min 1/2 ||W - Y||^2 + level ||W||_* is a soft threshold: one pass to find, one to prove."""
    Y = truth()
    r = solve_sum(designs.Identity(Y.shape), Y.reshape(-1), norm="trace", level=1.5)
    assert_allclose(
        r.coef.reshape(-1), norms.TraceNorm(Y.shape).prox(Y.reshape(-1), 1.5), atol=1e-9
    )
    assert r.passes == 2


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
def test_psd(form: dict) -> None:
    """Covariance fitting: the cone program finds the same, and W is positive semidefinite."""
    Y = truth(3, 6, 6)
    Y = Y + Y.T
    r = solve_sum(designs.Identity((6, 6)), Y.reshape(-1), norm=norms.PSD(), tol=GAP, **form)
    assert r.converged
    W = cp.Variable((6, 6), PSD=True)
    best = optimum(np.eye(36), Y.reshape(-1), cp.trace(W), [], form, "squared", W)
    assert_allclose(r.objective, best, rtol=tolerances.ORACLE)
    assert_allclose(r.coef, r.coef.T, atol=1e-12)
    assert np.linalg.eigvalsh(r.coef)[0] >= -1e-12


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
@pytest.mark.parametrize("solver", [None, AtomGeneration()], ids=["matrix", "atoms"])
def test_sparse_atoms(form: dict, solver) -> None:
    """Rays: gap proved by branch and bound, the same optimum from both solvers, atoms sparse."""
    Y = truth(4, 6, 5)
    norm = norms.SparseRankOne(2, 2)
    r = solve_sum(designs.Identity(Y.shape), Y.reshape(-1), norm=norm, solver=solver, **form)
    assert r.status is Status.CONVERGED
    other = solve_sum(
        designs.Identity(Y.shape), Y.reshape(-1), norm=norm, solver=MatrixGeneration(), **form
    )
    assert_allclose(r.objective, other.objective, rtol=2e-6)
    (part,) = other.matrix_parts
    assert (np.count_nonzero(part.factored.left, axis=0) <= 2).all()
    assert (np.count_nonzero(part.factored.right, axis=0) <= 2).all()
    assert (part.factored.weights > 0).all()
    assert_allclose(part.gauge, part.factored.weights.sum())


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
def test_unions_of_everything(form: dict) -> None:
    """Spans, rays and entries together: where no part could take over, none of it is better."""
    Y = truth(6, 5, 5)
    parts = [
        norms.TraceNorm(),
        norms.Scaled(norms.SparseRankOne(2, 2), 0.9),
        norms.Scaled(norms.L1(), 0.8),
        norms.PSD(),
    ]
    design, y = designs.Identity((5, 5)), Y.reshape(-1)
    r = solve_sum(design, y, norm=norms.Union(parts), **form)
    assert r.status is Status.CONVERGED
    assert len(r.matrix_parts) == 4
    Z = y.reshape(5, 5) - r.coef
    polars = [part.on(25, (5, 5)) for part in parts]
    top = max(n.polar(ArrayScores(Z.reshape(-1))) for n in polars)
    gauge = sum(part.gauge for part in r.matrix_parts)
    assert (Z * r.coef).sum() >= gauge * top * (1 - 1e-2)


@pytest.mark.parametrize("kind", ["identity", "entries"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
def test_tensors(form: dict, kind: str) -> None:
    """The latent trace norm of a tensor: the same optimum as FISTA over the lifted entries."""
    shape, rng = (4, 3, 5), np.random.default_rng(7)
    W = np.einsum("i,j,k->ijk", *(rng.normal(size=size) for size in shape))
    W = (W + 0.1 * rng.normal(size=shape)).reshape(-1)
    flat = np.sort(rng.permutation(60)[:40])
    design = designs.Identity(shape) if kind == "identity" else designs.Entries(flat, None, shape)
    y = W if kind == "identity" else W[flat]
    norm = norms.TensorTrace(shape)
    if "radius" in form:  # a ball that holds an interpolating tensor has the optimum zero
        form = {**form, "radius": 0.5 * norm.value(W)}
    r = solve_sum(design, y, norm=norm, **form)
    dense = solve_sum(design, y, norm=norm, solver=FISTA(), max_iter=50_000, **form)
    assert r.status is Status.CONVERGED
    assert dense.converged
    assert_allclose(r.objective, dense.objective, rtol=2e-6)
    assert r.coef.shape == shape
    assert len(r.matrix_parts) == 3
    direct = (
        0.5 * ((r.coef.reshape(-1) if kind == "identity" else r.coef.reshape(-1)[flat]) - y) ** 2
    )
    gauge = sum(part.gauge for part in r.matrix_parts)
    value = {"penalized": gauge * form.get("level", 0.0), "constrained": 0.0}.get(
        form["form"], 0.5 * form.get("level", 0.0) * gauge**2
    )
    assert_allclose(r.objective, direct.sum() + value, rtol=1e-9)


def test_targets_of_two_dimensions_are_tasks() -> None:
    rng = np.random.default_rng(8)
    X, Y = rng.normal(size=(20, 5)), rng.normal(size=(20, 4))
    r = solve_sum(X, Y, norm="trace", level=2.0)
    same = solve_sum(designs.Tasks(X, 4), Y.reshape(-1), norm="trace", level=2.0)
    assert r.coef.shape == (5, 4)
    assert_allclose(r.coef, same.coef, atol=1e-7)
    rows = norms.Groups(np.repeat(np.arange(5), 4))
    grouped = solve_sum(X, Y, norm=rows, level=8.0)
    assert grouped.coef.shape == (5, 4)
    assert grouped.converged
    weights = rng.random(20)
    weighted = solve_sum(X, Y, norm="trace", level=2.0, sample_weight=weights)
    scaled = np.sqrt(weights)[:, None]
    assert_allclose(
        weighted.objective,
        solve_sum(X * scaled, Y * scaled, norm="trace", level=2.0).objective,
        rtol=1e-5,
    )
    moved = Y + np.array([3.0, -2.0, 5.0, 1.0])
    shifted = solve_sum(X + 1.0, moved, norm="trace", level=1.0, fit_intercept=True)
    centered = solve_sum(X - X.mean(axis=0), Y - Y.mean(axis=0), norm="trace", level=1.0)
    assert_allclose(shifted.coef, centered.coef, atol=1e-4)
    means = moved.mean(axis=0) - (X.mean(axis=0) + 1.0) @ shifted.coef
    assert_allclose(shifted.intercept, means)


def test_intercepts_and_sample_weights() -> None:
    design, y = data("entries")
    y = np.where(y > np.median(y), 1.0, -1.0)
    weight = np.random.default_rng(9).random(y.size)
    r = solve_sum(
        design,
        y,
        norm="trace",
        loss="logistic",
        level=0.3,
        fit_intercept=True,
        sample_weight=weight,
    )
    assert r.converged
    X = dense_of(design)
    dense = solve_sum(
        X,
        y,
        norm=norms.TraceNorm((P, Q)),
        loss="logistic",
        level=0.3,
        fit_intercept=True,
        sample_weight=weight,
    )
    assert dense.converged
    assert dense.coef.shape == (P, Q)
    assert_allclose(r.objective, dense.objective, rtol=2e-6)


@pytest.mark.parametrize("kind", ["trace", "trace + l1"])
def test_warm_starts_take_the_terms_over(kind: str) -> None:
    design, y = data("entries")
    norm = gauge_of(kind)[0]
    first = solve_sum(design, y, norm=norm, level=1.5)
    again = solve_sum(design, y, norm=norm, level=1.5, warm_start=first)
    assert again.passes == 1
    assert again.converged
    near = solve_sum(design, y, norm=norm, level=1.4, warm_start=first)
    cold = solve_sum(design, y, norm=norm, level=1.4)
    assert near.history[0].objective < cold.history[0].objective
    assert_allclose(near.objective, cold.objective, rtol=2e-6)
    inside = solve_sum(design, y, norm=norm, form="constrained", radius=1.0, warm_start=first)
    assert inside.converged
    assert sum(part.gauge for part in inside.matrix_parts) <= 1.0 + 1e-9


def test_a_search_without_a_bound_says_so(monkeypatch) -> None:
    """Without branch and bound the gap stays open: SEARCH_RELATIVE, never CONVERGED."""
    monkeypatch.setattr(sparse_search, "SETTINGS", replace(SETTINGS, branch_nodes=0))
    Y = truth(10, 8, 8)
    for solver in (MatrixGeneration(), AtomGeneration()):
        r = solve_sum(
            designs.Identity((8, 8)),
            Y.reshape(-1),
            norm=norms.SparseRankOne(3, 2),
            level=0.3,
            solver=solver,
        )
        assert r.status is Status.SEARCH_RELATIVE
        assert not r.converged
        assert r.search_gap <= 1e-6 * r.objective < r.gap
        assert math.isfinite(r.gap)


class ScoresOnly(Design):
    """A design whose columns are too many to be listed, by its own account."""

    listable = False

    def __init__(self, X: np.ndarray) -> None:
        self.inner = DenseDesign(X)

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> np.dtype:
        return self.inner.dtype

    def scores(self, v: np.ndarray):
        return self.inner.scores(v)

    def gather(self, columns: np.ndarray):
        return self.inner.gather(columns)


def test_refusals_name_the_remedy() -> None:
    design, y = data("identity")
    both = norms.Union([norms.TraceNorm(), norms.L1()])
    for mixed in (both, norms.SparseRankOne(2, 2)):
        with pytest.raises(ValueError, match="a ridge term mixes"):
            solve_sum(design, y, norm=mixed, level=1.0, tau=0.1, solver=MatrixGeneration())
    with pytest.raises(TypeError, match="norms of matrices"):
        solve_sum(design, y, norm="l1", level=1.0, solver=MatrixGeneration())
    with pytest.raises(ValueError, match="shape"):
        solve_sum(np.ones((3, 6)), np.ones(3), norm="trace", level=1.0)
    with pytest.raises(ValueError, match="leave shape out"):
        solve_sum(design, y, norm=norms.TraceNorm((Q, P)), level=1.0)
    with pytest.raises(TypeError, match="cannot multiply"):
        solve_sum(ScoresOnly(np.ones((3, 4))), np.ones(3), norm=norms.TraceNorm((2, 2)), level=1.0)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_memory_of_completion_is_a_few_numbers_a_sample(loss: str) -> None:
    """Under three times the observed entries (row, column, value), the factors included."""
    rng = np.random.default_rng(11)
    side, count = 600, 300_000
    flat = np.sort(rng.permutation(side * side)[:count])
    z = (rng.normal(size=(side, 2)) @ rng.normal(size=(2, side))).reshape(-1)[flat]
    y = z if loss == "squared" else np.where(z + rng.normal(size=count) > 0, 1.0, -1.0)
    rows, cols = flat // side, flat % side
    slope = y if loss == "squared" else 0.5 * y
    pull = np.zeros(side * side)
    pull[flat] = slope
    level = 0.5 * np.linalg.norm(pull.reshape(side, side), 2)
    solve_sum(designs.Entries(rows[:9], cols[:9], (side, side)), y[:9], norm="trace", level=1.0)
    tracemalloc.start()
    design = designs.Entries(rows, cols, (side, side))
    r = solve_sum(design, y, loss=loss, norm="trace", level=level, tol=1e-4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert r.converged
    assert 1 <= r.low_rank.rank <= 5
    assert peak < 3 * 24 * count


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["form"])
@pytest.mark.parametrize(("loss", "scale"), [("squared", 2.0), ("logistic", 1.0)])
def test_ridge_beside_the_trace_norm(form: dict, loss: str, scale: float) -> None:
    """tau/2 ||W||_F^2 is that of S: the cone program's optimum, and a gap recomputed from W."""
    kind = KINDS[(FORMS.index(form) + (loss == "logistic")) % 3]
    design, y = data(kind)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    tau, norm = 0.7, norms.Scaled(norms.TraceNorm(), scale) if scale != 1.0 else norms.TraceNorm()
    r = solve_sum(design, y, norm=norm, loss=loss, tol=GAP, tau=tau, **form)
    assert r.status is Status.CONVERGED
    X, W = dense_of(design), cp.Variable((P, Q))
    best = optimum(X, y, scale * cp.normNuc(W), [], form, loss, W, tau)
    assert_allclose(r.objective, best, rtol=tolerances.ORACLE)
    w = r.coef.reshape(-1)
    f, ones = losses.as_loss(loss), np.ones_like(y)
    v = -f.gradient(y, X @ w, ones)
    top = np.linalg.norm((X.T @ v - tau * w).reshape(P, Q), 2) / scale
    value = scale * np.linalg.svd(r.coef, compute_uv=False).sum()
    gap = f.value(y, X @ w, ones) + f.conjugate(y, -v, ones) + tau * w @ w
    if form["form"] == "penalized":
        gap += form["level"] * value + max(top - form["level"], 0.0) * r.objective / form["level"]
    elif form["form"] == "squared":
        gap += 0.5 * form["level"] * value**2 + 0.5 * top**2 / form["level"]
    else:
        gap += form["radius"] * top
    assert gap <= 1.01 * GAP * r.objective + 1e-12
    assert r.gap >= gap * (1 - 1e-3) - 1e-11 * r.objective


def test_ridge_beside_psd_and_with_lanczos(monkeypatch) -> None:
    """The proximal map of the ridge is a shrinkage; also where singular values are searched for."""
    Y = truth(3, 6, 6)
    Y = Y + Y.T
    psd = solve_sum(designs.Identity((6, 6)), Y.reshape(-1), norm=norms.PSD(), level=1.0, tau=0.5)
    values, U = np.linalg.eigh(Y)
    expected = (U * np.maximum(values - 1.0, 0.0) / 1.5) @ U.T
    assert psd.converged
    assert_allclose(psd.coef, expected, atol=1e-4)
    monkeypatch.setattr(spectral, "SETTINGS", replace(spectral.SETTINGS, decomposed_entries=0))
    design, y = data("entries")
    ours = solve_sum(design, y, norm="trace", level=1.0, tau=0.5)
    monkeypatch.undo()
    dense = solve_sum(design, y, norm="trace", level=1.0, tau=0.5, solver=FISTA(), max_iter=9999)
    assert ours.converged
    assert dense.converged
    assert_allclose(ours.objective, dense.objective, rtol=2e-6)


def test_a_path_goes_on_where_it_was() -> None:
    """Terms and directions of one level reach the next: two thirds of the passes from zero."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(100, 70)) + rng.normal(size=(100, 1))
    Y = X @ (rng.normal(size=(70, 3)) @ rng.normal(size=(3, 20)))
    Y += 0.5 * Y.std() * rng.normal(size=Y.shape)
    design, y = designs.Tasks(X, 20), Y.reshape(-1)
    along = path(
        design, y, norm=norms.TraceNorm(), n_alphas=10, alpha_ratio=0.05, fit_intercept=False
    )
    shared: dict[str, Any] = {"norm": norms.TraceNorm(), "fit_intercept": False}
    cold = [solve(design, y, alpha=alpha, **shared) for alpha in along.alphas]
    assert along.converged
    assert_allclose(along.objectives, [fit.objective for fit in cold], rtol=2e-6)
    assert along.passes <= 2 / 3 * sum(fit.passes for fit in cold)


@pytest.mark.parametrize("rows", [(8, 6)])
def test_paths_over_matrix_norms_start_where_the_level_before_ended(rows: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    p, q = rows
    W = rng.standard_normal((p, 2)) @ rng.standard_normal((2, q))
    X = rng.standard_normal((120, p * q))
    y = X @ W.ravel() + 0.1 * rng.standard_normal(120)
    norm = norms.TraceNorm((p, q))
    found = paths.path(X, y, norm=norm, alphas=[20.0, 19.999], tol=1e-6, fit_intercept=False)
    cold = solve_sum(X, y, norm=norm, level=19.999, tol=1e-6)
    assert found.converged
    # A level next to the one before begins next to its solution.
    assert found.results[1].history[0].relative_gap < 1e-3 * cold.history[0].relative_gap
    assert found.results[1].iterations < cold.iterations


def test_a_result_of_several_targets_predicts_what_it_fitted() -> None:
    X, y = vectors()
    result = solve_sum(X, np.column_stack([y, -y]), norm=norms.TraceNorm(), level=5.0)
    assert_allclose(result.predict(X), X @ result.coef, atol=1e-12)


@pytest.mark.parametrize(
    ("norm", "rest"), [("rows", {}), ("trace", {}), ("trace", {"unpenalized": [3]})]
)
def test_both_bounds_are_those_of_the_run(norm: str, rest: dict[str, Any]) -> None:
    assert_verified(VERIFIED, np.column_stack([Y, -Y]), norm=norm, level=40.0, **rest)
