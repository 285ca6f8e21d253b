"""Ctrl-C at any moment of a long step: a point whose objective and gap are its own."""

import gc
import signal

import numpy as np
import pytest

from atomlearn import norms, solvers
from atomlearn.result import Status
from tests.oracles.sums import solve_sum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 400))
Y = X[:, :10].sum(axis=1) + RNG.standard_normal(120)
SIGNS = np.sign(Y)

KINDS = {
    "l1": ("squared", norms.L1(), "penalized", 0.5, None),
    "k-support": ("logistic", norms.KSupport(k=20), "squared", 0.05, None),
    "atoms": ("squared", norms.KSupport(k=20), "squared", 0.5, solvers.AtomGeneration()),
    "pinball": ("quantile", norms.L1(), "penalized", 0.5, None),
}


def loss_of(name, z, y):
    if name == "logistic":
        return np.logaddexp(0, -y * z).sum()
    return 0.5 * np.abs(z - y).sum() if name == "quantile" else 0.5 * ((z - y) ** 2).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_returns_a_point_with_its_own_certificate(kind):
    assert_interrupts_return_certified_points(*KINDS[kind])


def assert_interrupts_return_certified_points(loss, norm, form, level, solver):
    y = SIGNS if loss == "logistic" else Y
    arguments = {"loss": loss, "norm": norm, "form": form, "level": level}
    best = solve_sum(X, y, solver=solver, tol=1e-5, time_limit=5.0, **arguments)
    lowest = best.objective - best.gap
    interrupted = 0
    for delay in np.geomspace(2e-3, 0.2, 5):
        result = interrupted_solve(delay, solver, y, arguments)
        if result is None:
            continue  # before there was a point
        interrupted += result.status is Status.INTERRUPTED
        gauge = norm.on(400).value(result.coef)
        penalty = level * gauge if form == "penalized" else 0.5 * level * gauge**2
        value = loss_of(loss, X @ result.coef, y) + penalty
        # Solvers over atoms bound the gauge by the sum of their weights.
        assert value <= result.objective * (1 + 1e-7)
        assert solver is not None or value >= result.objective * (1 - 1e-7)
        assert result.objective - result.gap <= best.objective * (1 + 1e-9)
        assert value >= lowest * (1 - 1e-9)
    assert interrupted


def interrupted_solve(delay, solver, y, arguments):
    """Return what a solve returns that is interrupted after so long; None where it raises."""
    armed = [True]

    def ring(*_):
        if armed[0]:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    # Python drops what is raised in a callback of its collector, and tools for tests have such.
    gc.disable()
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        result = solve_sum(X, y, solver=solver, tol=1e-14, time_limit=5.0, **arguments)
        armed[0] = False
        return result
    except KeyboardInterrupt:
        return None
    finally:
        armed[0] = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
