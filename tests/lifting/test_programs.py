"""Norms of overlapping sets against programs of others."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from atomlearn import norms
from atomlearn.losses import Quantile
from tests.core.losses.test_programs import (
    assert_quantiles_are_those_of_cvxpy,
    assert_signs_are_those_of_cvxpy,
    table,
)
from tests.oracles.sums import solve_sum

LATENT = norms.LatentGroups([[0, 1, 2], [2, 3, 4], [5, 6, 7]])


@pytest.mark.parametrize(
    ("loss", "form"),
    [("squared", "penalized"), ("poisson", "squared"), ("squared", "constrained")],
)
def test_signs_are_those_of_cvxpy(loss: str, form: Any) -> None:
    assert_signs_are_those_of_cvxpy(loss, LATENT, form)


def test_quantiles_beside_free_columns_are_those_of_cvxpy() -> None:
    assert_quantiles_are_those_of_cvxpy(LATENT, "penalized")


def test_few_programs_are_solved_for_free_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps begin at the last coefficients of the free columns; a program a step took minutes."""
    module = importlib.import_module("atomlearn.core.losses.quantile")
    asked, ask = [], module.quantile_along

    def counted(*arguments: Any) -> Any:
        asked.append(1)
        return ask(*arguments)

    monkeypatch.setattr(module, "quantile_along", counted)
    X, z = table(6)
    y = 2.0 + z + np.random.default_rng(7).standard_t(2, 50)
    settings: Any = {"loss": Quantile(0.7), "level": 2.0, "fit_intercept": True, "tol": 1e-6}
    fit = solve_sum(X, y, norm=LATENT, unpenalized=[0, 4], **settings)
    assert fit.converged
    assert len(asked) <= 200
