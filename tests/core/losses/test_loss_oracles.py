"""The independent optimum is that of the very loss asked for, or there is none."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from atomlearn.core import FreeColumns, loss_names
from atomlearn.interfaces import Loss
from atomlearn.losses import Multinomial, Squared, as_loss
from atomlearn.testing.loss_oracles import oracle_of, targets_of


@pytest.mark.parametrize("name", loss_names("regression") + loss_names("classification"))
def test_the_expression_is_the_loss(name: str) -> None:
    cp = importlib.import_module("cvxpy")
    loss, rng = as_loss(name), np.random.default_rng(0)
    y = loss.check_target(targets_of(loss, rng.standard_normal(20)))
    z, s = rng.standard_normal(20), rng.uniform(0.0, 2.0, 20)
    expression = oracle_of(loss).expression(cp, y, cp.Constant(z), s)
    assert expression.is_convex()
    assert float(expression.value) == pytest.approx(loss.value(y, z, s), rel=1e-12)


@pytest.mark.parametrize("loss", [Multinomial(2), FreeColumns.of_tasks(Squared(), 3, 2)])
def test_an_unknown_loss_has_no_optimum_to_be_compared_with(loss: Loss) -> None:
    with pytest.raises(ValueError, match=r"no independent optimum for .*add its CVXPY expression"):
        oracle_of(loss)
