"""Rules of safe screening: without what is ruled out the polar is the same, anywhere near."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from atomlearn.designs import ArrayScores
from atomlearn.norms import (
    L1,
    L2,
    Blocks,
    ElasticNetNorm,
    Groups,
    KSupport,
    Nonnegative,
    Restricted,
    Scaled,
)

P = 12
GROUPS = [[0, 5, 6], [1, 2], [3, 4, 7, 8]]
NORMS = {
    "l1": L1(),
    "groups": Groups(GROUPS, [1.0, 0.5, 2.0]),
    "k-support": KSupport(3),
    "k-support of one": KSupport(1),
    "k-support of all": KSupport(20),
    "k-support of groups": KSupport(2, GROUPS),
    "scaled": Scaled(KSupport(2), 3.0),
    "nonnegative": Nonnegative(L1()),
    "nonnegative k-support": Nonnegative(KSupport(3)),
    "nonnegative groups": Nonnegative(Groups(GROUPS)),
    "restricted": Restricted(KSupport(2), [1, 4, 5, 9, 11]),
    "blocks": Blocks([L1(), KSupport(2), L2()], [[0, 2, 4], [1, 3, 5, 7, 9], [6, 8, 10, 11]]),
    "blocks with signs": Blocks([Nonnegative(L1()), Scaled(L1(), 0.5)], [range(6), range(6, 12)]),
}


def polar(norm, z):
    return norm.polar(ArrayScores(np.ascontiguousarray(z)))


@pytest.mark.parametrize("name", NORMS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0.0, 1.0), known=st.booleans())
def test_the_polar_does_not_need_what_is_out(name, seed, size, known):
    """For z* in the box, corners and all: gauge°(z*) = gauge°(z* without those coordinates).

    And still when they grow a little, which is what makes them strictly out.
    """
    norm, rng = NORMS[name], np.random.default_rng(seed)
    z = rng.normal(size=P) * rng.choice([1.0, 0.2, 0.0, 5.0], size=P)
    z[rng.integers(P)] = z[rng.integers(P)]  # ties
    error = size * rng.exponential(size=P) * rng.choice([0.0, 0.3, 1.0], size=P)
    steps = rng.choice([-1.0, 1.0, 0.0, 0.5], size=(30, P))
    steps[:2] = -np.sign(z), np.sign(z)
    stars = [z + error * step for step in steps]
    level = min(polar(norm, star) for star in stars) if known else 0.0
    marked = norm.possible_support(z, error, level)
    if marked is None:
        assert name == "k-support of all" or not marked
        return
    for star in stars:
        whole = polar(norm, star)
        inside = polar(norm, np.where(marked, star, 0.0))
        assert inside == pytest.approx(whole, rel=1e-12)
        grown = polar(norm, np.where(marked, star, star * (1 + 1e-9)))
        assert grown == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("name", NORMS)
def test_the_bound_on_the_polar_holds(name):
    rng = np.random.default_rng(1)
    for _ in range(50):
        z, error = rng.normal(size=P), 0.5 * rng.exponential(size=P)
        low = NORMS[name].least_polar(z, error)
        stars = z + error * rng.uniform(-1, 1, size=(20, P))
        assert all(low <= polar(NORMS[name], star) * (1 + 1e-12) for star in stars)
    assert NORMS[name].least_polar(z, np.zeros(P)) == pytest.approx(polar(NORMS[name], z))


def test_with_exact_scores_only_the_best_are_left():
    z, none = np.array([3.0, -3.0, 2.0, -1.0, 0.0]), np.zeros(5)
    assert_array_equal(L1().possible_support(z, none, 0.0), [1, 1, 0, 0, 0])
    assert_array_equal(KSupport(3).possible_support(z, none, 0.0), [1, 1, 1, 0, 0])
    assert_array_equal(Nonnegative(L1()).possible_support(z, none, 0.0), [1, 0, 0, 0, 0])
    groups = Groups([[0, 3], [1, 2], [4]], [1.0, 2.0, 1.0])
    assert_array_equal(groups.possible_support(z, none, 0.0), [1, 0, 0, 1, 0])
    # A polar that is known rules out more: at 3.5 no column of l1 can be best.
    assert not L1().possible_support(z, none, 3.5).any()
    # sqrt(3.9^2 - 3^2) = 2.49: the second largest is at least that, although scores say 2 or more.
    error = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    assert_array_equal(KSupport(2).possible_support(z, error, 0.0), [1, 1, 1, 1, 0])
    assert_array_equal(KSupport(2).possible_support(z, error, 4.9), [1, 1, 1, 0, 0])


def test_infinite_errors_rule_nothing_out():
    z, error = np.arange(5.0), np.array([0.0, np.inf, 0.0, np.inf, 0.0])
    for norm in (L1(), KSupport(2), Groups([[0, 1], [2, 3]])):
        assert norm.possible_support(z, error, 0.0)[[1, 3]].all()


def test_norms_without_a_rule_say_so():
    for norm in (L2(), ElasticNetNorm(3)):
        assert norm.possible_support(np.arange(5.0), np.ones(5), 0.0) is None
        assert not norm.possible_support(np.arange(5.0), np.ones(5), 100.0).any()
