"""Classes fitted together with features for all of them or none: against CVXPY."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifier, norms
from atomlearn.core import TUNING
from atomlearn.designs import Tasks
from atomlearn.losses import Multinomial
from atomlearn.testing.tolerances import CLARABEL
from tests.oracles.sums import solve_sum

N, P, Q = 60, 8, 3


def classes(seed: int) -> tuple[Any, Any]:
    """Return X and codes of three classes, of which two features tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P))
    return X, np.argmax(X[:, :Q] + rng.gumbel(size=(N, Q)), axis=1)


def optimum(X: Any, y: Any, s: Any, level: float, form: str, intercept: bool) -> float:
    """Return min sum_i s_i (log sum_j exp(Z_ij) - Z_iy) + R(W), by CVXPY."""
    cp = importlib.import_module("cvxpy")
    W, b = cp.Variable((X.shape[1], Q)), cp.Variable((1, Q))
    Z = X @ W + (np.ones((X.shape[0], 1)) @ b if intercept else 0.0)
    each = cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(np.eye(Q)[y], Z), axis=1)
    gauge = cp.sum(cp.norm(W, 2, axis=1))
    penalty = level * gauge if form == "penalized" else 0.5 * level * cp.square(gauge)
    bounds = [gauge <= level] if form == "constrained" else []
    if bounds:
        penalty = 0.0
    program = cp.Problem(cp.Minimize(s @ each + penalty), bounds)
    return float(program.solve(solver="CLARABEL", **CLARABEL))


@pytest.mark.parametrize(("form", "seed"), [("penalized", 0), ("squared", 1), ("constrained", 2)])
def test_rows_of_classes_are_those_of_cvxpy(form: Any, seed: int) -> None:
    X, y = classes(seed)
    s, level = np.random.default_rng(seed).uniform(0.5, 2.0, N), 3.0
    amount: Any = {"radius" if form == "constrained" else "level": level}
    best = optimum(X, y, s, level, form, False)
    for norm in (norms.RowGroups(), norms.Groups(np.repeat(np.arange(P), Q))):
        fit = solve_sum(
            Tasks(X, Q), np.eye(Q)[y].ravel(), loss=Multinomial(Q), norm=norm, form=form,
            sample_weight=np.repeat(s, Q), tol=1e-8, **amount,
        )  # fmt: skip
        assert fit.converged
        assert fit.objective == pytest.approx(best, rel=2e-6)
        assert fit.objective - fit.gap <= best * (1 + 2e-6)
        rows = fit.coef.reshape(P, Q)
        assert np.all((rows == 0).all(axis=1) | (rows != 0).all(axis=1))


def test_the_classifier_of_rows_is_that_of_cvxpy() -> None:
    X, y = classes(7)
    model = AtomicClassifier("rows", alpha=0.05, multi_class="multinomial", tol=1e-8).fit(X, y)
    best = optimum(X, y, np.full(N, 1.0 / N), 0.05, "penalized", True)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    Z = X @ model.coef_.T + model.intercept_
    shares = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), shares, rtol=1e-10)


def test_more_columns_than_one_hessian_holds_are_still_newton_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Working sets of whole Hessians reach the same optimum in a few passes."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 200))
    y = np.argmax(X[:, :Q] + rng.gumbel(size=(80, Q)), axis=1)
    given: Any = {"loss": Multinomial(Q), "norm": norms.RowGroups(), "level": 1.5, "tol": 1e-9}
    target = np.eye(Q)[y].ravel()
    whole = solve_sum(Tasks(X, Q), target, **given)
    for module in ("choose", "model_newton"):
        place = f"atomlearn.core.masters.{module}.TUNING"
        monkeypatch.setattr(place, replace(TUNING, gram_columns=60, gram_entries=2**17))
    parts = solve_sum(Tasks(X, Q), target, **given)
    assert parts.converged
    assert_allclose(parts.objective, whole.objective, rtol=1e-8)
    assert parts.passes <= whole.passes + 4
