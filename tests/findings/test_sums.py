"""Tails of sums of products against binomial laws, and against sums that are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from atomlearn.findings import sums
from atomlearn.findings.sums import Cumulants, SumOfProducts


@pytest.mark.parametrize("carriers", [0, 4, 5, 7, 10])
def test_the_tail_of_few_cases_is_the_binomial_one(carriers: int) -> None:
    """50 cases of 1,000, 40 carriers: so many of these are cases, where 2 are expected."""
    x, y = np.zeros(1000), (np.arange(1000) < 50).astype(float)
    x[:carriers], x[500 : 540 - carriers] = 1.0, 1.0
    found = SumOfProducts(x - 0.04, y - 0.05).p_value()
    # Cases among the carriers and among the others; the sum is a - 0.04 (a + b) up to a constant.
    a, b = np.arange(41)[:, None], np.arange(200)
    chance = binom.pmf(a, 40, 0.05) * binom.pmf(b, 960, 0.05)
    size = np.abs((1 - 0.04) * (a - 2.0) - 0.04 * (b - 48.0))
    exact = float(chance[size >= abs(carriers - 2.0)].sum())
    assert found is not None
    assert found == pytest.approx(exact, rel=0.3)


def test_the_tail_of_skewed_numbers_is_that_of_sums_drawn_from_them() -> None:
    rng = np.random.default_rng(0)
    r = rng.exponential(size=500) ** 1.5
    e = (np.arange(500) < 15) - 0.03
    kept, drawn = r - r.mean(), rng.random((20_000, 500)) < 0.03
    for target in (0.05, 0.005):
        sums = np.abs((drawn - 0.03) @ kept)
        size = np.quantile(sums, 1 - target)
        # Rows are put in an order with about this sum.
        order = np.argsort(-r)
        best = min(range(485), key=lambda at: abs(abs(e @ kept[np.roll(order, -at)]) - size))
        one = SumOfProducts(e, kept[np.roll(order, -best)])
        exact = float(np.mean(sums >= abs(one.e @ one.r)))
        found = one.p_value()
        assert found is not None
        assert found == pytest.approx(exact, rel=0.35)


def test_a_solution_that_is_cut_short_uses_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last step t, K(t) and K''(t) belong together, so that an early end costs little."""
    products = np.outer([0.96, -0.04], [0.95, -0.05])
    law = Cumulants(np.array([40.0, 960.0]), products, np.array([0.05, 0.95]))
    solved = law.beyond(9.0)
    monkeypatch.setattr(sums, "MOST_STEPS", 3)
    assert law.beyond(9.0) == pytest.approx(solved, rel=0.05)


def test_of_normal_numbers_the_normal_law_is_as_good() -> None:
    rng = np.random.default_rng(1)
    e, r = rng.standard_normal((2, 2000))
    one = SumOfProducts(e - e.mean(), r - r.mean())
    assert one.p_value() is None
    assert one.tail_correction(True) == 1.0
    assert one.noise < 0.1
