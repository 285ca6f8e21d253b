"""An offset around any loss: every method is that of the loss at z + o, with its own signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core import Array, Loss, Offset, bare_loss, loss_names
from atomlearn.losses import Multinomial, Quantile, as_loss
from atomlearn.testing.loss_oracles import targets_of

N, Q = 24, 3
OTHERS: list[Loss] = [Multinomial(Q), Quantile(0.3).smoothed(0.2)]
NAMED = [as_loss(name) for name in (*loss_names("regression"), *loss_names("classification"))]
Case = tuple[Loss, Any, Array, Array, Array]


@pytest.fixture(params=[*NAMED, *OTHERS], ids=lambda loss: type(loss).__name__)
def case(request: pytest.FixtureRequest) -> Case:
    """Return a loss, targets, predictions, weights (some of them zero) and offsets."""
    loss, rng = request.param, np.random.default_rng(0)
    z, o = rng.normal(size=(2, N))
    rows = rng.uniform(0.5, 2.0, size=N // Q) * (np.arange(N // Q) != 1)
    if loss.name == "multinomial":
        y = np.eye(Q)[np.arange(N // Q) % Q].ravel()
    else:
        y = targets_of(loss, rng.normal(size=N))
    return loss, y, z, np.repeat(rows, Q), o


def test_an_offset_moves_the_predictions(case: Case) -> None:
    loss, y, z, s, o = case
    whole, other = z + o, Offset(loss, o)
    assert other.value(y, z, s) == loss.value(y, whole, s)
    u = loss.gradient(y, whole, s)
    assert_allclose(other.gradient(y, z, s), u)
    assert_allclose(other.curvature(y, z, s), loss.curvature(y, whole, s))
    assert other.coupled == loss.coupled
    c, K = other.coupling(y, z, s)
    expected, of_inner = loss.coupling(y, whole, s)
    assert_allclose(c, expected)
    assert_allclose(np.asarray(K @ np.asarray(K.T @ z)), of_inner @ (of_inner.T @ z), atol=1e-14)


def test_an_offset_is_a_linear_term_of_the_conjugate(case: Case) -> None:
    loss, y, z, s, o = case
    whole, other = z + o, Offset(loss, o)
    u = loss.gradient(y, whole, s)
    assert_allclose(other.conjugate(y, u, s), loss.conjugate(y, u, s) - u @ o)
    along = loss.conjugate_along(y, whole, u, s, 0.5) - 0.5 * (u @ o)
    assert_allclose(other.conjugate_along(y, z, u, s, 0.5), along)
    lost = np.finfo(float).eps * np.linalg.norm(u) * np.linalg.norm(o)
    of_inner = loss.slack(y, whole, u, s)
    assert lost <= other.slack(y, z, u, s) - of_inner <= 30.0 * lost


def test_an_offset_is_taken_off_what_is_told_of_predictions(case: Case) -> None:
    loss, y, z, s, o = case
    whole, other = z + o, Offset(loss, o)
    assert other.best_shift(y, z, s, 0.3) == loss.best_shift(y, whole, s, 0.3)
    Q_, _ = np.linalg.qr(o[:, None])
    known, of_inner = other.along(y, z, s, Q_), loss.along(y, whole, s, Q_)
    assert (known is None) == (of_inner is None)
    if known is not None and of_inner is not None:
        assert_allclose(known[0], of_inner[0])


def test_an_offset_goes_with_its_samples(case: Case) -> None:
    loss, y, z, s, o = case
    other, whole = Offset(loss, o), z + o
    rows = np.arange(9, 18)
    part = other.part(rows)
    assert part.value(y[rows], z[rows], s[rows]) == loss.value(y[rows], whole[rows], s[rows])
    smooth, of_inner = other.smoothed(0.4), loss.smoothed(0.4)
    assert (smooth is None) == (of_inner is None)
    if smooth is not None and of_inner is not None:
        assert smooth.value(y, z, s) == of_inner.value(y, whole, s)


def test_scores_are_of_whole_predictions(case: Case) -> None:
    """What predictions mean, with all that is added to them, the loss inside says."""
    loss, y, z, s, o = case
    other = Offset(loss, o)
    assert bare_loss(other) is bare_loss(loss)
    assert (other.name, other.task) == (loss.name, loss.task)
    assert_allclose(other.mean(z), loss.mean(z))
    assert_allclose(other.score(y, z, s), loss.score(y, z, s))
