"""Further problems: matrices, survival, products, stores, bounds, free columns, own norms."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import designs, losses, norms
from atomlearn.datasets import convert
from benchmarks.certificate.bounded import draw_bounded
from benchmarks.certificate.drawn import FORMS, Task, amount

Gauge = Callable[[np.ndarray], float]


def draw_further(seed: int) -> Task:
    """Return a problem of a kind that ``drawn.draw`` has not."""
    rng = np.random.default_rng([9, seed])
    kinds = (_matrix, _survival, _products, draw_bounded, _free, _structured, _own, _on_disk)
    return kinds[int(rng.integers(len(kinds)))](rng, seed)


def _task(rng: Any, seed: int, X: Any, dense: np.ndarray, y: Any, loss: Any, norm: Any,
          way: str, gauge: Gauge | None = None, **more: Any) -> Task:  # fmt: skip
    form = FORMS[int(rng.integers(3))]
    n, p = dense.shape
    known = norm.on(p)
    at_zero = more.pop("at_zero", y / 2 if loss.task == "classification" else y)
    name = "radius" if form == "constrained" else "level"
    arguments = {
        "form": form,
        "tau": 0.0,
        "fit_intercept": False,
        "sample_weight": np.ones(n),
        **more,
    }
    arguments[name] = amount(rng, form, loss.name, norm, dense, at_zero)
    kind = (loss.name, type(norm).__name__, form, way)
    return Task(seed, kind, X, dense, y, np.ones(n), loss, norm, arguments,
                gauge or known.value)  # fmt: skip


def _regression(rng: Any, X: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return a loss and targets that some columns explain."""
    loss = ("squared", "logistic", "squared_hinge", "huber")[int(rng.integers(4))]
    signal = X @ (rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.4))
    y = signal / (signal.std() or 1.0) + 0.5 * rng.standard_normal(X.shape[0])
    y = y * 10.0 ** int(rng.integers(-4, 5)) if loss in ("squared", "huber") else y
    made = losses.as_loss(loss)
    return made, np.where(y > 0, 1.0, -1.0) if made.task == "classification" else y


def _matrix(rng: Any, seed: int) -> Task:
    """Several tasks, entries seen, or a matrix with noise, under a norm of matrices."""
    p, q, way = int(rng.integers(2, 8)), int(rng.integers(2, 6)), int(rng.integers(4))
    low = rng.standard_normal((p, 1)) @ rng.standard_normal((1, q))
    low += 0.3 * rng.standard_normal((p, q))
    more: dict[str, Any] = {}
    if way == 0:
        design, y, name = designs.Identity((p, q)), low.reshape(-1), "identity"
    elif way == 1:
        seen = rng.permutation(p * q)[: max(2, 2 * p * q // 3)]
        design, y = designs.Entries(seen // q, seen % q, (p, q)), low.reshape(-1)[seen]
        name = "entries"
    else:
        X = rng.standard_normal((int(rng.integers(4, 20)), p)) + (rng.random() < 0.2) * 100.0
        design, name = designs.Tasks(X, q), "tasks"
        y = (X @ low + 0.3 * rng.standard_normal((len(X), q))).reshape(-1)
    loss: Any = losses.as_loss(("squared", "huber", "logistic")[int(rng.integers(3))])
    if loss.task == "classification":
        y = np.where(y > np.median(y), 1.0, -1.0)
    elif way == 3:
        loss, labels = losses.Multinomial(q), y.reshape(-1, q).argmax(axis=1)
        y = np.eye(q)[labels].reshape(-1)
        more = {"at_zero": y - 1 / q}
    k = int(rng.integers(1, p + 1)), int(rng.integers(1, q + 1))
    norm: Any = (
        norms.TraceNorm(), norms.RowGroups(), norms.SparseRankOne(*k), norms.L1(),
        norms.Union([norms.TraceNorm(), norms.Scaled(norms.L1(), float(rng.uniform(0.2, 1)))]),
    )[int(rng.integers(5))]  # fmt: skip
    dense = np.asarray(design.gather(np.arange(p * q)).dense(), dtype=np.float64)
    sized = norm.on(p * q, (p, q))
    task = _task(rng, seed, design, dense, y, loss, sized, name, **more)
    # The gauge of sparse atoms is NP-hard: there, the objective that is claimed is compared.
    gauge = None if isinstance(norm, norms.SparseRankOne) else task.gauge
    # The gauge of a union is found by an iteration of its own, to 1e-8.
    slack = 2e-8 if isinstance(norm, norms.Union) else 0.0
    return replace(task, norm=norm, gauge=gauge, slack=slack)


def _survival(rng: Any, seed: int) -> Task:
    """Cox's partial likelihood, with ties."""
    n, p = int(rng.integers(6, 40)), int(rng.integers(1, 12))
    X = rng.standard_normal((n, p)) * 10.0 ** int(rng.integers(-2, 3))
    time = np.ceil(rng.exponential(size=n) * (3 if rng.random() < 0.5 else 1000))
    event = (rng.random(n) < 0.6) | (np.arange(n) == 0)
    y = losses.survival_target(event, time)
    loss = losses.Cox(ties=("efron", "breslow")[int(rng.integers(2))])
    norm = (norms.L1(), norms.L2(), norms.KSupport(max(1, p // 2)))[int(rng.integers(3))]
    at_zero = event - event.mean()
    return _task(rng, seed, X, X, y, loss, norm, "C", at_zero=at_zero)


def _products(rng: Any, seed: int) -> Task:
    """All squares and products of columns, never stored."""
    X = rng.standard_normal((int(rng.integers(6, 25)), int(rng.integers(2, 6))))
    design = designs.Polynomial(X, interaction_only=bool(rng.random() < 0.5))
    dense = np.asarray(design.gather(np.arange(design.shape[1])).dense(), dtype=np.float64)
    loss, y = _regression(rng, dense)
    norm = (norms.L1(), norms.KSupport(3), norms.L2())[int(rng.integers(3))]
    intercept = bool(rng.random() < 0.5)
    return _task(rng, seed, design, dense, y, loss, norm, "polynomial", fit_intercept=intercept)


def _free(rng: Any, seed: int) -> Task:
    """Columns free of any penalty, and an offset."""
    X = rng.standard_normal((int(rng.integers(8, 30)), int(rng.integers(3, 12))))
    X[:, 1:] += 10.0 ** int(rng.integers(0, 4)) * (rng.random() < 0.3)
    loss, y = _regression(rng, X)
    more = {"fit_intercept": bool(rng.random() < 0.5), "offset": 0.3 * rng.standard_normal(len(y))}
    task = _task(rng, seed, X, X[:, 1:], y, loss, norms.L1(), "free", unpenalized=[0], **more)
    return replace(task, dense=X, gauge=lambda w: float(np.abs(w[1:]).sum()))


def _structured(rng: Any, seed: int) -> Task:
    """Trees, hierarchies, latent k-support, blocks, operators."""
    p = int(rng.integers(3, 9))
    X = rng.standard_normal((int(rng.integers(6, 30)), p))
    loss, y = _regression(rng, X)
    groups = [list(range(j, min(j + 2, p))) for j in range(p)]
    makers: list[Callable[[], Any]] = [
        lambda: norms.Trees([list(range(p)), [0, 1], [p - 1]]),
        lambda: norms.LatentKSupport(2, groups),
        lambda: norms.Blocks([norms.L1(), norms.L2()], [[0], list(range(1, p))]),
        lambda: norms.Operators([np.eye(p)[: p - 1], np.eye(p)[1:]]),
        lambda: norms.Nonnegative(norms.KSupport(2)),
        lambda: norms.Nonnegative(norms.Groups([[0, 1], list(range(2, p))])),
    ]
    norm = makers[int(rng.integers(len(makers)))]()
    intercept = bool(rng.random() < 0.5)
    task = _task(rng, seed, X, X, y, loss, norm, "structured", fit_intercept=intercept)
    # The gauges of lifted norms are found by an iteration of their own, to 1e-8.
    return replace(task, slack=2e-8 if hasattr(norm, "lift") else 0.0)


def _own(rng: Any, seed: int) -> Task:
    """A norm that is one function: l1, the largest entry, or l2 in disguise."""
    p = int(rng.integers(2, 10))
    X = rng.standard_normal((int(rng.integers(6, 30)), p))
    loss, y = _regression(rng, X)
    oracle, known = (
        (lambda z: (np.array([np.abs(z).argmax()]), np.sign(z[[np.abs(z).argmax()]])), norms.L1()),
        (lambda z: np.where(z >= 0, 1.0, -1.0), norms.LInf()),
        (lambda z: z / (np.linalg.norm(z) or 1.0), norms.L2()),
    )[int(rng.integers(3))]  # fmt: skip
    intercept = bool(rng.random() < 0.5)
    task = _task(rng, seed, X, X, y, loss, known, "own", fit_intercept=intercept)
    kind = (task.kind[0], f"UserNorm({task.kind[1]})", *task.kind[2:])
    return replace(task, norm=norms.UserNorm(oracle), kind=kind)


def _on_disk(rng: Any, seed: int) -> Task:
    """Columns in a store."""
    p = int(rng.integers(1, 15))
    X = rng.standard_normal((int(rng.integers(5, 30)), p)) * 10.0 ** int(rng.integers(-3, 4))
    loss, y = _regression(rng, X)
    norm = (norms.L1(), norms.KSupport(max(1, p // 2)), norms.L2())[int(rng.integers(3))]
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "x.npy"), X)
        convert(Path(folder, "x.npy"), Path(folder, "x.store"))
        design = designs.OnDisk(Path(folder, "x.store"))
        # Read once, the files may go.
        intercept = bool(rng.random() < 0.5)
        task = _task(rng, seed, design, X, y, loss, norm, "store", fit_intercept=intercept)
        return replace(task, X=design)
