"""What rounding leaves of a loss and its conjugate is what a certificate adds for it, no more."""

import numpy as np
import pytest

from atomlearn import losses

mp = pytest.importorskip("mpmath")
from tests.certificates.high_precision import per_sample  # noqa: E402

LOSSES = (
    losses.Squared(), losses.Poisson(), losses.Gamma(), losses.Tweedie(1.2), losses.Tweedie(1.9),
    losses.NegativeBinomial(0.3), losses.NegativeBinomial(1e4),
)  # fmt: skip
EPS = float(np.finfo(np.float64).eps)


def drawn(loss):
    """Targets of all sizes, and predictions near to and far from them."""
    rng = np.random.default_rng(0)
    y = np.round(10.0 ** rng.uniform(0, 13, 300))
    near = 10.0 ** rng.uniform(-9, 0.7, 300) * rng.choice([-1.0, 1.0], 300)
    if loss.name == "squared":
        return y, y + near
    y[:20] = 0.0 if loss.name != "gamma" else 1e-8
    return y, np.log(np.maximum(y, 1e-3)) + near


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_each_sample_is_off_by_what_the_certificate_allows(loss):
    y, z = drawn(loss)
    one = np.ones(1)
    for i in range(y.size):
        at, to = y[i : i + 1], z[i : i + 1]
        u = loss.gradient(at, to, one)
        value, conjugate = loss.value(at, to, one), loss.conjugate(at, u, one)
        # Of one sample, the sum with y is off by five units in the last place.
        beside = abs(float(z[i] * u[0])) + loss.slack(at, to, u, one) / (5.0 * EPS)
        allowed = 4.0 * EPS * (value + beside)
        true = per_sample(loss, mp.mpf(float(y[i])), mp.mpf(float(z[i])))
        assert abs(true - mp.mpf(value)) <= allowed, (i, y[i], z[i])
        # Fenchel's inequality, which is an equality at the slope itself.
        assert -allowed <= value + conjugate - float(u[0] * to[0]) <= 2 * allowed, (i, y[i], z[i])


@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
def test_rounding_is_allowed_as_much_as_logarithms_of_targets_are_far_from_zero(loss):
    """A target is met in its logarithm, which is as large for tiny targets as for huge ones."""
    u, s = np.array([3.0]), np.ones(1)
    for size in (0.0, 1.0, 30.0, 300.0):
        allowed = 5.0 * EPS * 3.0 * (1.0 + size)
        for y in (np.exp(size), np.exp(-size)):
            found = loss.slack(np.array([y]), np.zeros(1), u, s)
            assert found == pytest.approx(allowed, rel=1e-9, abs=0.0), y
