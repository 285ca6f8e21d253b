"""Levels of many sparse columns, solved without a Hessian: as of the dense array."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn import losses
from atomlearn._kernels import KeptHessian, newton_qp
from atomlearn.testing.cases import each

LOSSES = ["huber", "logistic", "poisson", "squared", "squared_hinge"]
COUNT = 240


def _data(rng, loss, kind):
    """Return a sparse X (400, 240) and y; columns are "drawn", "chained" or "copied"."""
    X = sp.random_array((400, COUNT), density=0.01, rng=rng, format="csc")
    X.data[:] = rng.uniform(0.5, 2.0, X.nnz)
    if kind == "copied":  # no unique solution, and a Hessian of half the rank
        X = sp.csc_array(X[:, np.arange(COUNT) // 2])
    if kind == "chained":  # adjacent columns are nearly alike: so slow that a Hessian takes over
        X = sp.csc_array(sp.hstack([X[:, :1] + 0.02 * X[:, [j]] for j in range(COUNT)]))
    z = X @ rng.standard_normal(COUNT)
    y = {
        "huber": z + rng.standard_t(2, 400),
        "squared": z + rng.standard_normal(400),
        "poisson": rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float),
    }.get(loss, np.where(z + rng.standard_normal(400) > 0, 1.0, -1.0))
    return sp.csc_array(X), y


def _slopes(X, y, s, loss, w, b, free):
    """Return X'f' and the slopes of the free columns at the predictions X w + free'b."""
    return loss.gradient(y, X @ w + free.T @ b, s) @ np.column_stack([X.toarray(), free.T])


@each("loss", LOSSES)
@pytest.mark.parametrize("kind", ["drawn", "chained", "copied"])
@pytest.mark.parametrize("n_free", [0, 1, 3])
@pytest.mark.parametrize(("ridge", "signed"), [(0.0, True), (0.3, True), (0.0, False)])
def test_levels_end_where_no_slope_is_beyond_its_price(
    loss: str, kind: str, n_free: int, ridge: float, signed: bool
) -> None:
    rng = np.random.default_rng(3)
    X, y = _data(rng, loss, kind)
    the_loss, s = losses.as_loss(loss), rng.uniform(0.5, 2.0, 400)
    free = np.linalg.qr(np.column_stack([np.ones(400), rng.standard_normal((400, 2))]))[0].T
    free, price = np.ascontiguousarray(free[:n_free]), rng.uniform(0.5, 2.0, COUNT)
    start = np.zeros(COUNT)
    z = the_loss.gradient(y, np.zeros(400), s)
    top = np.abs(X.T @ z / price).max()
    terms = np.array([[level * top, 0.0, ridge, np.inf] for level in np.geomspace(0.3, 0.01, 6)])
    options = {"price": price, "terms": terms, "basis": free, "signed": signed}
    kept = KeptHessian()
    W, B, _ = newton_qp(X, y, s, the_loss, start, np.zeros(n_free), kept=kept, **options)
    dense, shifts, _ = newton_qp(X.toarray(), y, s, the_loss, start, np.zeros(n_free), **options)
    assert len(W) == len(dense) == 6
    for w, b, v, c, term in zip(W, B, dense, shifts, terms, strict=True):
        slopes = _slopes(X, y, s, the_loss, w, b, free)
        pull, rest = -slopes[:COUNT] - ridge * w, slopes[COUNT:]
        limit = term[0] * price
        assert (pull <= limit * (1 + 1e-6)).all()
        assert not signed or (pull >= -limit * (1 + 1e-6)).all()
        used = w != 0
        np.testing.assert_allclose(pull[used], (limit * np.sign(w))[used], rtol=1e-5)
        assert signed or (w >= 0).all()
        assert np.abs(rest).max(initial=0.0) <= 1e-6 * np.abs(z).sum()
        reached = [
            the_loss.value(y, X @ x + free.T @ a, s) + limit @ np.abs(x) + 0.5 * ridge * x @ x
            for x, a in ((w, b), (v, c))
        ]
        assert reached[0] == pytest.approx(reached[1], rel=1e-9)
    # The kept Hessian, if any, is of no other columns.
    again, _, _ = newton_qp(X, y, s, the_loss, W[-1], B[-1], kept=kept, **options)
    assert price @ np.abs(again[-1]) == pytest.approx(price @ np.abs(W[-1]), rel=1e-6)
