"""The active-set QP against enumeration of supports, and CVXPY."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn._kernels import ActiveFactor, QPStatus, active_set_qp
from tests.oracles import exact as exact_twins

Array = NDArray[np.float64]

FORMS: list[dict[str, Any]] = [
    {},
    {"radius": 0.5},
    {"radius": 30.0},
    {"radius": 1.0, "equality": True},
    {"coupling": 0.7},
    {"ridge": 0.3},
    {"ridge": 0.1, "radius": 2.0},
]
KINDS = ["gaussian", "integers", "duplicates", "zero column", "scales", "negatives"]


def images_of(kind: str, n: int, m: int, rng: np.random.Generator) -> Array:
    A = rng.standard_normal((n, m))
    if kind == "integers":
        A = rng.integers(-1, 2, (n, m)).astype(np.float64)
    elif kind == "duplicates":
        A = A[:, rng.integers(0, max(1, m // 2), m)]
    elif kind == "zero column":
        A[:, rng.integers(m)] = 0.0
    elif kind == "scales":
        A *= 10.0 ** rng.integers(-3, 4, m)
    elif kind == "negatives" and m > 1:
        A[:, -1] = -A[:, 0]
    return A


def value(gram: Array, linear: Array, c: Array, form: dict[str, Any], p: Array) -> float:
    total = 0.5 * c @ gram @ c - linear @ c + 0.5 * form.get("coupling", 0.0) * (p @ c) ** 2
    return float(total + 0.5 * form.get("ridge", 0.0) * c @ c)


def assert_feasible(c: Array, form: dict[str, Any], p: Array) -> None:
    assert np.isfinite(c).all()
    assert (c >= 0).all()
    radius = form.get("radius", math.inf)
    assert p @ c <= radius * (1 + 1e-12)
    if form.get("equality"):
        assert p @ c >= radius * (1 - 1e-12)


@given(
    m=st.integers(1, 7),
    n=st.integers(1, 8),
    kind=st.sampled_from(KINDS),
    form=st.sampled_from(FORMS),
    penalty=st.sampled_from([0.0, 0.1, 2.0]),
    priced=st.booleans(),
    batch=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_enumeration(
    m: int, n: int, kind: str, form: dict[str, Any], penalty: float, priced: bool, batch: int,
    seed: int,
) -> None:  # fmt: skip
    """No support has a lower minimum, from a random start, whatever depends on whatever."""
    rng = np.random.default_rng(seed)
    A = images_of(kind, n, m, rng)
    p = rng.uniform(0.3, 3.0, m) if priced else np.ones(m)
    gram, y = A.T @ A, rng.standard_normal(n)
    linear = A.T @ y - penalty * p
    start = np.maximum(rng.standard_normal(m), 0.0)
    c, outcome = active_set_qp(gram, linear, start, price=p, batch=batch, **form)
    assert_feasible(c, form, p)
    other, _ = exact_twins.active_set_qp(gram, linear, price=p, **form)
    # On supports that nearly depend the twin misses p'c = radius in the ninth digit.
    spent, radius = float(p @ other), form.get("radius", math.inf)
    if form.get("equality") or spent > radius:
        assert abs(spent - radius) <= 1e-6 * radius
        other = other * (radius / spent)
    best = value(gram, linear, other, form, p)
    reached = value(gram, linear, c, form, p)
    size = 1.0 + float(np.abs(linear) @ c)
    # Enumeration misses minima of supports it takes for dependent: then ours is lower.
    assert reached <= best + 1e-9 * size, (outcome, reached, best)
    assert outcome.status in (QPStatus.OPTIMAL, QPStatus.INEXACT)
    if kind in ("gaussian", "integers"):
        assert_allclose(reached, best, rtol=0, atol=1e-8 * size)
        assert outcome.status is QPStatus.OPTIMAL


def program(gram_root: Array, linear: Array, form: dict[str, Any]) -> float:
    c = cp.Variable(linear.size, nonneg=True)
    total = 0.5 * cp.sum_squares(gram_root @ c) - linear @ c
    total += 0.5 * form.get("coupling", 0.0) * cp.square(cp.sum(c))
    total += 0.5 * form.get("ridge", 0.0) * cp.sum_squares(c)
    constraints = []
    if "radius" in form:
        sign = cp.sum(c) == form["radius"] if form.get("equality") else cp.sum(c) <= form["radius"]
        constraints.append(sign)
    problem = cp.Problem(cp.Minimize(total), constraints)
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    return float(problem.value)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(60, 30), (12, 30)])
def test_interior_point(form: dict[str, Any], n: int, m: int) -> None:
    """More atoms than dimensions included: the optimum uses affinely independent ones."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, m)) + 0.4
    y = A @ np.maximum(rng.standard_normal(m), 0.0) + rng.standard_normal(n)
    gram, linear = A.T @ A, A.T @ y - 1.0
    best = program(A, linear, form)
    for batch in (1, 5):
        for start in (np.zeros(m), rng.uniform(0.1, 1.0, m)):  # of the second all are in use
            c, outcome = active_set_qp(gram, linear, start, batch=batch, **form)
            assert outcome.status is QPStatus.OPTIMAL
            assert_feasible(c, form, np.ones(m))
            assert_allclose(value(gram, linear, c, form, np.ones(m)), best, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_start_of_many_dependent_atoms_never_gets_worse(form: dict[str, Any]) -> None:
    """Of 40 atoms of rank 10, all in use: signed, and after however many pivots."""
    rng = np.random.default_rng(5)
    A, p = rng.standard_normal((10, 40)), rng.uniform(0.5, 2.0, 40)
    gram, linear = A.T @ A, A.T @ rng.standard_normal(10)
    # On the plane where there is a bound, so that the start is not moved there first.
    start = rng.standard_normal(40)
    start *= form.get("radius", 1.0) / (p @ np.abs(start))

    def total(c: Array) -> float:
        signed = value(gram, linear, c, {"ridge": form.get("ridge", 0.0)}, p)
        spent = float(p @ np.abs(c))
        return signed + 0.1 * spent + 0.5 * form.get("coupling", 0.0) * spent**2

    keep = {"price": p, "level": 0.1, "signed": True, **form}
    best, outcome = active_set_qp(gram, linear, np.zeros(40), **keep)
    assert outcome.status is QPStatus.OPTIMAL
    for most in (0, 1, 3, 10, 30, 1000):
        c, outcome = active_set_qp(gram, linear, start, max_pivots=most, **keep)
        assert total(c) <= total(start) + 1e-12
    assert outcome.status is QPStatus.OPTIMAL
    assert_allclose(total(c), total(best), rtol=1e-10)


@pytest.mark.parametrize("form", [{}, {"radius": 3.0}, {"coupling": 0.5}], ids=str)
def test_growth_with_the_factor_kept_is_as_good_as_starting_afresh(form: dict[str, Any]) -> None:
    """Thousands of pivots on one factor while atoms come and go; both ends agree all along."""
    rng = np.random.default_rng(11)
    n, pivots, updates = 60, 0, 0
    state, atoms, c = ActiveFactor(), np.zeros((n, 0)), np.zeros(0)
    y = rng.standard_normal(n) + 1.0
    for turn in range(800):
        atoms = np.column_stack([atoms, rng.standard_normal(n) + 0.3])
        c = np.append(c, 0.0)
        if turn % 10 == 9:
            y += 0.3 * rng.standard_normal(n)  # the linear term may change, the factor stays
        gram, linear = atoms.T @ atoms, atoms.T @ y - 0.1
        c, outcome = active_set_qp(gram, linear, c, state=state, **form)
        assert outcome.status is QPStatus.OPTIMAL
        pivots, updates = pivots + outcome.pivots, max(updates, state.updates)
        if turn % 100 == 0:
            fresh, _ = active_set_qp(gram, linear, np.zeros_like(c), **form)
            both = [value(gram, linear, point, form, np.ones(c.size)) for point in (c, fresh)]
            assert_allclose(both[0], both[1], rtol=1e-12)
            assert_allclose(c, fresh, atol=1e-8)
        if c.size > 70:
            keep = np.flatnonzero(c)
            state.forget()
            atoms, c = atoms[:, keep], c[keep]
    assert pivots > 300
    assert updates > 50


def test_warm_starts_at_the_solution_make_no_pivot() -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 20))
    gram, linear = A.T @ A, A.T @ rng.standard_normal(40)
    for form in FORMS:
        state = ActiveFactor()
        c, _ = active_set_qp(gram, linear, np.zeros(20), state=state, **form)
        again, outcome = active_set_qp(gram, linear, c, state=state, **form)
        assert outcome.pivots == 0
        assert_allclose(again, c, atol=1e-14)


def test_the_gradient_at_the_start_stands_for_the_linear_term() -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((40, 20))
    gram, linear = A.T @ A, A.T @ rng.standard_normal(40)
    start = np.maximum(rng.standard_normal(20), 0.0)
    form: dict[str, Any] = {"coupling": 0.2, "ridge": 0.1, "radius": 1.0, "level": 0.3}
    slope = gram @ start + 0.1 * start - linear
    for signed in (False, True):
        c, _ = active_set_qp(gram, linear, start, signed=signed, **form)
        other, _ = active_set_qp(gram, slope, start, from_gradient=True, signed=signed, **form)
        assert_allclose(other, c, atol=1e-12)


@given(
    m=st.integers(1, 4),
    n=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
    form=st.sampled_from([form for form in FORMS if "equality" not in form]),
    level=st.sampled_from([0.0, 0.1, 2.0]),
    priced=st.booleans(),
    batch=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_weights_of_either_sign_are_two_atoms_each(
    m: int, n: int, kind: str, form: dict[str, Any], level: float, priced: bool, batch: int,
    seed: int,
) -> None:  # fmt: skip
    """An atom and its negative with weights >= 0: the same minimum, from any start."""
    rng = np.random.default_rng(seed)
    A = images_of(kind, n, m, rng)
    p = rng.uniform(0.3, 3.0, m) if priced else np.ones(m)
    gram, linear = A.T @ A, A.T @ rng.standard_normal(n)
    start = rng.standard_normal(m) * rng.integers(0, 2, m)
    c, outcome = active_set_qp(
        gram, linear, start, price=p, batch=batch, level=level, signed=True, **form
    )
    assert outcome.status in (QPStatus.OPTIMAL, QPStatus.INEXACT)
    plain = {name: number for name, number in form.items() if name != "ridge"}
    ridge = form.get("ridge", 0.0) * np.eye(m)
    both, prices = (
        np.block([[gram + ridge, -gram - ridge], [-gram - ridge, gram + ridge]]),
        np.r_[p, p],
    )
    lines = np.r_[linear, -linear] - level * prices
    other, _ = exact_twins.active_set_qp(both, lines, price=prices, **plain)
    spent, radius = float(prices @ other), form.get("radius", math.inf)
    if spent > radius:
        other = other * (radius / spent)
    magnitudes = np.r_[np.maximum(c, 0.0), np.maximum(-c, 0.0)]
    assert prices @ magnitudes <= radius * (1 + 1e-12)
    best = value(both, lines, other, plain, prices)
    reached = value(both, lines, magnitudes, plain, prices)
    size = 1.0 + float(np.abs(lines) @ magnitudes)
    assert reached <= best + 1e-9 * size, (outcome, reached, best)
    if kind in ("gaussian", "integers"):
        assert_allclose(reached, best, rtol=0, atol=1e-8 * size)


def test_weights_change_their_sign_on_the_factor_that_is_kept() -> None:
    """A path of targets that turns round: warm starts end where fresh ones do."""
    rng = np.random.default_rng(12)
    A = rng.standard_normal((60, 25))
    gram, here = A.T @ A, rng.standard_normal(60)
    there = rng.standard_normal(60) - here
    for form in ({}, {"coupling": 0.5}, {"radius": 1.0}):
        state, c, turned = ActiveFactor(), np.zeros(25), 0
        for share in np.linspace(0, 1, 6):
            linear = A.T @ ((1 - share) * here + share * there)
            before = c
            c, outcome = active_set_qp(gram, linear, c, state=state, level=2.0, signed=True, **form)
            fresh, _ = active_set_qp(gram, linear, np.zeros(25), level=2.0, signed=True, **form)
            assert outcome.status is QPStatus.OPTIMAL
            assert_allclose(c, fresh, atol=1e-10)
            turned += int((c * before < 0).sum())
        assert turned > 0


@pytest.mark.parametrize("radius", [1e-200, 1e-12, 1e12, 1e150])
def test_extreme_radii(radius: float) -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((30, 10)) + 0.5
    gram, linear = A.T @ A, A.T @ (rng.standard_normal(30) + 1.0)
    c, outcome = active_set_qp(gram, linear, np.zeros(10), radius=radius)
    free, _ = active_set_qp(gram, linear, np.zeros(10))
    assert outcome.status is QPStatus.OPTIMAL
    if radius > 1:
        assert_allclose(c, free, atol=1e-12)
    else:
        best = int(linear.argmax())
        assert_allclose(c, radius * (np.arange(10) == best), rtol=1e-9, atol=0)


def test_no_atoms_and_one() -> None:
    c, outcome = active_set_qp(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
    assert c.shape == (0,)
    assert outcome.status is QPStatus.OPTIMAL
    c, _ = active_set_qp(np.array([[4.0]]), np.array([2.0]), np.zeros(1))
    assert c[0] == 0.5
    c, _ = active_set_qp(np.array([[4.0]]), np.array([-2.0]), np.ones(1))
    assert c[0] == 0.0
    c, _ = active_set_qp(np.array([[4.0]]), np.array([-2.0]), np.zeros(1), radius=3, equality=True)
    assert c[0] == 3.0


def test_unbounded_and_unusable_programs_are_told() -> None:
    """No finite minimum is no OPTIMAL; NaN and infinity neither."""
    _, outcome = active_set_qp(np.zeros((2, 2)), np.ones(2), np.zeros(2))
    assert outcome.status in (QPStatus.INEXACT, QPStatus.NOT_FINITE)
    gram = np.array([[1.0, -1.0], [-1.0, 1.0]])
    c, outcome = active_set_qp(gram, np.ones(2), np.zeros(2))
    assert outcome.status in (QPStatus.INEXACT, QPStatus.NOT_FINITE)
    assert (c >= 0).all()
    for bad in (np.nan, np.inf):
        state = ActiveFactor()
        _, outcome = active_set_qp(np.eye(2), np.array([1.0, bad]), np.zeros(2), state=state)
        assert outcome.status is QPStatus.NOT_FINITE
        _, outcome = active_set_qp(np.full((2, 2), bad), np.ones(2), np.zeros(2), state=state)
        assert outcome.status is QPStatus.NOT_FINITE
        assert state.count == 0
    c, outcome = active_set_qp(np.eye(2), np.ones(2), np.array([np.nan, 1.0]))
    assert_allclose(c, [1.0, 1.0])


def test_the_bound_on_pivots_leaves_a_feasible_point_that_is_no_worse() -> None:
    rng = np.random.default_rng(6)
    A = rng.standard_normal((50, 30)) + 0.5
    gram, linear = A.T @ A, A.T @ (rng.standard_normal(50) + 1.0)
    values = []
    for most in range(1, 12):
        c, outcome = active_set_qp(gram, linear, np.zeros(30), radius=2.0, max_pivots=most)
        assert outcome.status is QPStatus.PIVOT_LIMIT
        assert outcome.pivots <= most
        assert_feasible(c, {"radius": 2.0}, np.ones(30))
        values.append(value(gram, linear, c, {}, np.ones(30)))
    assert values[0] <= 0.0
    assert (np.diff(values) <= 1e-12).all()


def test_a_stale_factor_costs_time_and_not_the_answer() -> None:
    """A factor of another matrix is noticed, for it leads uphill or leaves gradients behind."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((50, 20)) + 0.5
    linear = A.T @ (rng.standard_normal(50) + 1.0)
    state = ActiveFactor()
    c, _ = active_set_qp(A.T @ A, linear, np.zeros(20), state=state)
    assert state.count > 3
    other = rng.standard_normal((50, 20)) + 0.5
    gram = other.T @ other
    state.updates = 1
    stale, outcome = active_set_qp(gram, linear, c, state=state)
    fresh, _ = active_set_qp(gram, linear, np.zeros(20))
    assert outcome.status is QPStatus.OPTIMAL
    assert_allclose(stale, fresh, atol=1e-9)


def test_states_that_lead_outside_are_refused() -> None:
    for order in ([0, 7], [0, 0], [-1, 1]):
        state = ActiveFactor()
        state.reserve(2)
        state.order[:2], state.count = order, 2
        with pytest.raises(ValueError, match="forget"):
            active_set_qp(np.eye(2), np.ones(2), np.ones(2), state=state)
    state = ActiveFactor()
    state.reserve(3)
    state.order[:3], state.count = [0, 1, 2], 3
    with pytest.raises(ValueError, match="forget"):
        active_set_qp(np.eye(2), np.ones(2), np.ones(2), state=state)


def test_layouts_and_read_only_arrays() -> None:
    rng = np.random.default_rng(8)
    A = rng.standard_normal((30, 9))
    gram, linear, start = A.T @ A, A.T @ rng.standard_normal(30), np.ones(9)
    expected, _ = active_set_qp(gram, linear, start)
    wide = np.full((12, 12), np.nan)
    wide[:9, :9] = gram
    for matrix in (np.asfortranarray(gram), wide[:9, :9]):
        assert_allclose(active_set_qp(matrix, linear, start)[0], expected, atol=1e-13)
    for array in (gram, linear, start):
        array.flags.writeable = False
    assert_array_equal(active_set_qp(gram, linear, start)[0], expected)


def test_bad_arguments() -> None:
    eye, ones = np.eye(2), np.ones(2)
    with pytest.raises(ValueError, match="gram must have shape"):
        active_set_qp(np.eye(3), ones, ones)
    with pytest.raises(TypeError, match="incompatible"):
        active_set_qp(np.eye(2, dtype=np.float32), ones, ones)
    with pytest.raises(ValueError, match="contiguous"):
        active_set_qp(np.eye(4)[::2, ::2], ones, ones)
    with pytest.raises(ValueError, match="linear"):
        active_set_qp(eye, np.ones(3), ones)
    for price in ([0.0, 1.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="price"):
            active_set_qp(eye, ones, ones, price=np.array(price))
    for form in ({"radius": 0.0}, {"radius": math.nan}, {"equality": True}):
        with pytest.raises(ValueError, match="radius"):
            active_set_qp(eye, ones, ones, **form)
