"""A solver never learns where X lives: every design gives the same answer to the same problem."""

from __future__ import annotations

import functools
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn import norms
from atomlearn.datasets import convert
from atomlearn.designs import Dask, OnDevice
from atomlearn.interfaces import Norm
from atomlearn.losses import as_loss
from atomlearn.result import Result
from tests.oracles.sums import solve_sum
from tests.oracles.tensors import CUPY, cupy_tensor, strict_tensor, torch_tensor

Array = np.ndarray[Any, np.dtype[np.float64]]
N_SAMPLES, N_FEATURES = 150, 24

LOSSES = ("squared", "logistic", "squared_hinge")
#: A norm, its form and a level at which about a third of the columns are in use.
NORMS: dict[str, tuple[Norm, str, float]] = {
    "l1": (norms.L1(), "penalized", 6.0),
    "k-support": (norms.KSupport(4), "penalized", 9.0),
    "squared k-support": (norms.KSupport(4), "squared", 6.0),
    "groups": (norms.Groups(np.arange(N_FEATURES) // 4), "penalized", 22.0),
    "latent groups": (
        norms.LatentGroups([list(range(j, j + 4)) for j in range(0, N_FEATURES - 3, 2)]),
        "penalized",
        14.0,
    ),
    "chains": (norms.Chains(3), "penalized", 8.0),
    "owl": (norms.OWL.oscar(N_FEATURES, 0.02), "penalized", 4.0),
    "elastic net": (norms.ElasticNetNorm(4), "penalized", 9.0),
}


@functools.cache
def data() -> tuple[Array, Array]:
    """Return X, a third of it zeros, in multiples of 1/8 that every type holds, and a target."""
    rng = np.random.default_rng(5)
    X = np.round(8 * rng.standard_normal((N_SAMPLES, N_FEATURES))) / 8
    X[rng.random(X.shape) < 0.3] = 0.0
    y = X[:, :6] @ rng.uniform(0.5, 1.5, 6) + 0.5 * rng.standard_normal(N_SAMPLES)
    return X, y


_FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def stored(kind: str, dtype: str) -> Path:
    """Return a column store of X."""
    X, source = data()[0], Path(_FOLDER.name) / f"{kind}.npz"
    np.savez(source, X=X) if kind == "dense" else sp.save_npz(source, sp.csc_array(X))
    out = Path(_FOLDER.name) / f"{kind}-{dtype}.store"
    convert(source, out, dtype=dtype)
    return out


def chunked(X: Array, chunks: tuple[int, int]) -> Dask:
    array = pytest.importorskip("dask.array").from_array(X, chunks=chunks)
    return Dask(array)


def sparse_chunks(X: Array) -> Dask:
    array = pytest.importorskip("dask.array").from_array(X, chunks=(60, 10))
    return Dask(array.map_blocks(sp.csr_array))


def sparse_tensor(X: Array, dtype: type, layout: str) -> OnDevice:
    with warnings.catch_warnings():
        # Once in a process, that sparse tensors may change.
        warnings.filterwarnings("ignore", message="Sparse ")
        tensor = torch_tensor(X.astype(dtype))
        return OnDevice(getattr(tensor, f"to_sparse{layout}")())


DESIGNS: dict[str, Callable[[Array], Any]] = {
    "float32, C order": lambda X: np.ascontiguousarray(X.astype(np.float32)),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "store": lambda X: stored("dense", "float64"),
    "store of float16": lambda X: stored("dense", "float16"),
    "sparse store": lambda X: stored("csc", "float64"),
    "dask by rows": lambda X: chunked(X, (40, N_FEATURES)),
    "dask by both": lambda X: chunked(X, (60, 7)),
    "dask, sparse chunks": sparse_chunks,
    "torch, float64": lambda X: OnDevice(torch_tensor(X)),
    "torch, float32": lambda X: OnDevice(torch_tensor(X.astype(np.float32))),
    "torch, sparse, float64": lambda X: sparse_tensor(X, np.float64, "_csr"),
    "torch, sparse, float32": lambda X: sparse_tensor(X, np.float32, "_csc"),
    "torch, COO, float32": lambda X: sparse_tensor(X, np.float32, ""),
    "array API, float32": lambda X: OnDevice(strict_tensor(X.astype(np.float32))),
}
if CUPY:
    DESIGNS["cupy, float32"] = lambda X: OnDevice(cupy_tensor(X.astype(np.float32)))


def fit(X: Any, loss: str, norm: str) -> Result:
    y = data()[1]
    target = y - y.mean() if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    the_norm, form, level = NORMS[norm]
    # Classification losses are smaller than squared ones.
    level = level if loss == "squared" else 0.4 * level
    return solve_sum(
        X, target, loss=loss, norm=the_norm, form=form, level=level, fit_intercept=True, tol=1e-10
    )


@functools.cache
def expected(loss: str, norm: str) -> tuple[Result, float]:
    """Return the fit of the plain array, and how far its coefficients are from the optimal ones.

    F(u) - F* >= mu/2 ||u - u*||^2 with mu the least eigenvalue of the Hessian of the loss in
    u = (w, b); taken at the solution and halved, as the Hessian varies little so near to it.
    """
    X, y = data()
    result = fit(X, loss, norm)
    assert result.converged, result.status
    with_ones = np.column_stack([X, np.ones(N_SAMPLES)])
    target = y - y.mean() if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    prediction = X @ result.coef + result.intercept
    curvature = as_loss(loss).curvature(target, prediction, np.ones(N_SAMPLES))
    mu = 0.5 * float(np.linalg.eigvalsh(with_ones.T @ (curvature[:, None] * with_ones))[0])
    assert mu > 0.01
    return result, mu


@pytest.mark.parametrize("norm", NORMS)
def test_the_problems_select(norm: str) -> None:
    for loss in LOSSES:
        active = np.count_nonzero(expected(loss, norm)[0].coef)
        assert 0 < active < N_FEATURES or norm in ("k-support", "squared k-support", "elastic net")


@pytest.mark.parametrize(
    ("design", "loss", "norm"),
    [
        (design, LOSSES[(i + j) % 3], norm)  # each design meets four norms, and each loss
        for i, design in enumerate(DESIGNS)
        for j, norm in enumerate(NORMS)
        if (i + j) % 2 == 0
    ],
)
def test_same_answer(design: str, loss: str, norm: str) -> None:
    reference, mu = expected(loss, norm)
    result = fit(DESIGNS[design](data()[0]), loss, norm)
    assert result.converged, result.status
    # Each objective is within its own proved gap of the same optimum.
    rounding = 1e-13 * abs(reference.objective)
    between = result.objective - reference.objective
    assert -reference.gap - rounding <= between <= result.gap + rounding
    # And so each point is within sqrt(2 gap / mu) of the same solution.
    reach = sum(np.sqrt(2 * (one.gap + rounding) / mu) for one in (reference, result))
    # Coefficients come back in the dtype of the data.
    reach += np.finfo(result.coef.dtype).eps * np.abs(reference.coef).max()
    assert np.abs(result.coef - reference.coef).max() <= reach
    assert abs(result.intercept - reference.intercept) <= reach
    # What is surely in the support of one is in that of the other.
    for one, other in ((reference, result), (result, reference)):
        sure = np.flatnonzero(np.abs(one.coef) > 2 * reach)
        assert set(sure) <= set(np.flatnonzero(other.coef))
