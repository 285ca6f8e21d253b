"""Gaps against 60 digits: every loss and form, far and scaled data, sparse and single precision.

CERTIFICATES=5000 tries so many seeds.
"""

import os

import numpy as np
import pytest
from scipy import sparse

from atomlearn import losses
from atomlearn.core import loss_names
from atomlearn.result import Status
from tests.oracles.sums import solve_sum

mp = pytest.importorskip("mpmath")
from tests.certificates.high_precision import Small, exact  # noqa: E402

SEEDS = int(os.environ.get("CERTIFICATES", "30"))
MADE = {
    "huber": lambda rng: losses.Huber(float(rng.uniform(0.2, 2))),
    "quantile": lambda rng: losses.Quantile(float(rng.uniform(0.1, 0.9))),
    "tweedie": lambda rng: losses.Tweedie(float(rng.uniform(1.1, 1.9))),
    "negative_binomial": lambda rng: losses.NegativeBinomial(float(rng.uniform(0.5, 5))),
}
NAMES = ("squared", "logistic", "squared_hinge", "poisson", "gamma", "tweedie", "huber",
         "quantile", "negative_binomial", "binomial")  # fmt: skip
FORMS = ("penalized", "squared", "constrained")


def drawn(seed):
    """Return X as it is passed, X dense, y, weight, loss, form, amount, intercept, gap."""
    rng = np.random.default_rng([3, seed])
    name, form = NAMES[seed % len(NAMES)], FORMS[seed // len(NAMES) % 3]
    loss = MADE.get(name, lambda _: losses.as_loss(name))(rng)
    n, p = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    Z = rng.standard_normal((n, p))
    intercept = bool(rng.random() < 0.7)
    scale = 10.0 ** int(rng.integers(-8, 9)) if rng.random() < 0.5 else 1.0
    X = scale * Z
    if intercept and rng.random() < 0.4:
        X += scale * 10.0 ** int(rng.integers(1, 5))
    noisy = Z[:, 0] + 0.7 * rng.standard_normal(n)
    if losses.as_loss(loss).task == "classification":
        y = np.where(noisy > np.median(noisy), 1.0, -1.0)
    elif name == "binomial":
        y = np.round(5.0 + 5.0 * np.tanh(noisy)) / 10.0
    elif name in ("squared", "huber", "quantile"):
        size = 10.0 ** int(rng.integers(-8, 9)) if name != "huber" else 1.0
        y = size * noisy + (10.0 ** int(rng.integers(3, 13)) if rng.random() < 0.3 else 0.0)
    else:
        # Counts of any size: next to those of 1e8 a slope is a small difference.
        size = 10.0 ** (int(np.random.default_rng([4, seed]).integers(-12, 13)) % 13)
        y = rng.poisson(size * np.exp(np.clip(noisy, -2, 3))) + (0.5 if name == "gamma" else 0.0)
    way = rng.random()
    if way < 0.2:
        X = X.astype(np.float32).astype(np.float64)
        passed = X.astype(np.float32)
    elif way < 0.4:
        X = X * (rng.random(X.shape) < 0.6)
        passed = sparse.csr_array(X) if way < 0.3 else sparse.csc_array(X)
    else:
        passed = X
    spread = y - y.mean() if intercept else y
    polar = float(np.abs(X.T @ spread).max()) or 1.0
    strength = float(np.exp(rng.uniform(np.log(0.02), np.log(0.7))))
    value = 0.5 * float(spread @ spread) or 1.0
    amount = strength * {"penalized": polar, "squared": polar**2 / value,
                         "constrained": value / polar}[form]  # fmt: skip
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    return passed, X, y, weight, loss, form, amount, intercept, 10.0 ** -int(rng.integers(3, 10))


@pytest.mark.parametrize("name", ["poisson", "gamma", "negative_binomial", "tweedie"])
@pytest.mark.parametrize("size", [1e6, 1e8, 1e12])
def test_large_counts_are_proved_as_closely_as_small_ones(name, size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    y = rng.poisson(size * np.exp(X[:, :2] @ [0.3, -0.2])).astype(float)
    slopes = losses.as_loss(name).gradient(y, np.full(100, np.log(y.mean())), np.ones(100))
    level = 0.05 * float(np.abs(X.T @ slopes).max())
    result = solve_sum(X, y, loss=name, level=level, fit_intercept=True, tol=1e-8)
    assert result.status is Status.CONVERGED


def test_every_loss_is_drawn():
    fits = {losses.as_loss(name).name for name in loss_names()}
    # Those of a sample each: multinomial and Cox losses have suites of their own.
    assert fits - {"multinomial", "cox"} <= set(NAMES)


@pytest.mark.parametrize("start", range(0, SEEDS, 15))
def test_no_gap_is_refuted_in_sixty_digits(start):
    for seed in range(start, min(start + 15, SEEDS)):
        passed, X, y, weight, loss, form, amount, intercept, gap = drawn(seed)
        size = {"radius" if form == "constrained" else "level": amount}
        arguments = {"loss": loss, "form": form, "fit_intercept": intercept, "time_limit": 1.0}
        arguments |= {"sample_weight": weight, **size}
        result = solve_sum(passed, y, tol=gap, **arguments)
        tighter = solve_sum(passed, y, tol=1e-12, **arguments)
        small = Small(X, y, weight, loss, form, amount, intercept)
        at = exact(result.coef), mp.mpf(result.intercept)
        found = small.objective(*at)
        assert found is not None, (seed, "outside of the ball")
        near = exact(tighter.coef), mp.mpf(tighter.intercept)
        least = [small.objective(*near), small.better(*near), found]
        excess = found - min(value for value in least if value is not None)
        about = (seed, loss, form, result.status.name, float(excess), result.gap)
        assert excess <= mp.mpf(result.gap), about
        # The objective itself is that of the point, as closely as the gap.
        off = abs(found - mp.mpf(result.objective))
        assert off <= mp.mpf(result.gap) + mp.mpf(1e-9) * abs(found), (*about, float(off))
