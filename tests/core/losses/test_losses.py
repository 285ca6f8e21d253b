"""The three losses: conformance, properties, and an exact reference at high precision."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score

from atomlearn import losses
from atomlearn.core import EDGE_TOLERANCE, Loss, catalogue, loss_names, mean_loss
from atomlearn.core.interfaces.targets import binary_target, regression_target
from atomlearn.core.losses.shift import optimal_shift
from atomlearn.losses import (
    Gamma,
    Huber,
    Logistic,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    Tweedie,
    as_loss,
)
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.loss_oracles import targets_of
from atomlearn.testing.losses import LossChecks

# Every loss that has a name meets the suite: TestSquared, TestLogistic, TestSquaredHinge, ...
# (Those of survival couple all samples, and have theirs in test_cox.py.)
for _name in (*loss_names("regression"), *loss_names("classification")):
    _loss = as_loss(_name)
    _suite = f"Test{type(_loss).__name__}"
    globals()[_suite] = type(_suite, (LossChecks,), {"loss": _loss})


class TestSmoothQuantile(LossChecks):
    loss = Quantile(0.3).smoothed(0.2)


class TestTweedieNearPoisson(LossChecks):
    loss = Tweedie(1.05)


class TestTweedieNearGamma(LossChecks):
    loss = Tweedie(1.9)


class TestNegativeBinomialOfLittleSpread(LossChecks):
    loss = NegativeBinomial(40.0)


class TestQuantileNearTheEdge(LossChecks):
    loss = Quantile(0.95)


@pytest.mark.parametrize("suite", LossChecks.__subclasses__(), ids=lambda suite: suite.__name__)
def test_no_constant_is_better_than_the_best_shift(suite: type[LossChecks]) -> None:
    """f(z + b) is least: its slopes on both sides of b have opposite signs, or vanish."""
    loss = suite.loss
    if loss.smoothed(1.0) is not None:
        pytest.skip("a loss with kinks is solved by smooth ones")
    for seed in range(6):
        y, linear, weight = suite().sample(seed)
        if seed % 2 and np.isfinite(loss.curvature_bounds[1]):
            linear *= 30.0
        b = optimal_shift(loss, y, weight, linear, 40.0 * (seed % 3 == 0))
        step = 1e-6 * (1.0 + abs(b))
        size = 1e-9 * float(np.abs(loss.gradient(y, linear + b, weight)).sum())
        assert loss.gradient(y, linear + b - step, weight).sum() <= size
        assert loss.gradient(y, linear + b + step, weight).sum() >= -size


LOSSES = (Squared(), Logistic(), SquaredHinge())
numbers = st.floats(min_value=-1e4, max_value=1e4, allow_nan=False)
labels = st.sampled_from([-1.0, 1.0])
weights = st.floats(min_value=0.0, max_value=1e3)


def exact_loss(loss: Loss, y: float, z: float) -> Decimal:
    """Return loss(y, z) in 60 digits, by the textbook formula."""
    with localcontext() as context:
        context.prec = 60
        if isinstance(loss, Squared):
            return (Decimal(z) - Decimal(y)) ** 2 / 2
        margin = Decimal(y) * Decimal(z)
        if isinstance(loss, Logistic):
            # log(1 + exp(-m)) = log(1 + exp(m)) - m, and log(1 + t) = t - t^2 / 2 + ...
            tail = (-abs(margin)).exp()
            series = sum(-((-tail) ** j) / j for j in range(1, 40))
            return max(Decimal(0), -margin) + ((1 + tail).ln() if abs(margin) < 30 else series)
        return max(Decimal(0), 1 - margin) ** 2 / 2


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(y=labels, z=st.one_of(st.floats(-60, 60), st.sampled_from([-700.0, 800.0, 1e4])))
def test_value_agrees_with_sixty_digits(loss: Loss, y: float, z: float) -> None:
    received = loss.value(np.array([y]), np.array([z]), np.ones(1))
    expected = float(exact_loss(loss, y, z))
    assert math.isclose(received, expected, rel_tol=1e-14, abs_tol=1e-300)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(data=st.lists(st.tuples(labels, numbers, numbers, weights), min_size=1, max_size=20))
def test_fenchel_young_on_any_numbers(
    loss: Loss, data: list[tuple[float, float, float, float]]
) -> None:
    y, z, other, weight = (np.array(column) for column in zip(*data, strict=True))
    dual = loss.gradient(y, other, weight)
    conjugate = loss.conjugate(y, dual, weight)
    assert np.isfinite(conjugate)
    slack = tolerances.SAME_FLOAT64 * (weight @ (1.0 + np.abs(z) + np.abs(other)) ** 2)
    slack += np.finfo(np.float64).tiny  # a weight may be as small as 5e-324
    assert loss.value(y, z, weight) + conjugate >= z @ dual - slack
    assert abs(loss.value(y, other, weight) + conjugate - other @ dual) <= slack
    assert loss.value(y, z, weight) >= 0.0


def test_logistic_keeps_relative_accuracy_in_the_tail() -> None:
    y, z, one = np.ones(1), np.array([600.0]), np.ones(1)
    assert Logistic().value(y, z, one) == pytest.approx(math.exp(-600.0), rel=1e-14)
    assert Logistic().gradient(y, z, one)[0] == pytest.approx(-math.exp(-600.0), rel=1e-14)
    assert Logistic().curvature(y, -z, one)[0] == pytest.approx(math.exp(-600.0), rel=1e-14)
    # a log a + (1 - a) log(1 - a) for a tiny a: the second term is -a, not lost to rounding.
    share = 1e-10
    expected = share * math.log(share) + (1.0 - share) * math.log1p(-share)
    assert Logistic().conjugate(y, np.array([-share]), one) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("loss", "edge"),
    [
        (Logistic(), -1.0),
        (Huber(1e3), 1e3),
        (Huber(1e3), -1e3),
        (Quantile(0.2), 0.8),
        (Quantile(1e-6), -1e-6),
        (Quantile(0.2).smoothed(0.1), 0.8),
        (Poisson(), -1.0),
        (Gamma(), 1.0),
        (NegativeBinomial(3.0), 3.0),
        (NegativeBinomial(3.0), -1.0),
    ],
)
@each("weight", [1.0, 0.3, 7.0])
def test_conjugate_at_the_edges_of_its_domain(loss: Loss, edge: float, weight: float) -> None:
    y, s = np.ones(1), np.array([weight])
    at_edge = loss.conjugate(y, np.array([weight * edge]), s)
    within = loss.conjugate(y, np.array([weight * edge * (1.0 + 0.5 * EDGE_TOLERANCE)]), s)
    beyond = loss.conjugate(y, np.array([weight * edge * (1.0 + 2.0 * EDGE_TOLERANCE)]), s)
    assert math.isfinite(at_edge)
    assert within == pytest.approx(at_edge, rel=1e-13, abs=1e-13)
    assert beyond == math.inf


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Multinomial(2)], ids=repr)
def test_an_edge_at_zero_is_not_left_by_slopes_however_small(loss: Loss) -> None:
    """Where all slopes are small, a share of the largest there can be is no rounding of them."""
    y, s, wrong = np.ones(1), np.ones(1), np.array([1e-17])
    if loss.coupled == 2:
        y, s, wrong = np.array([1.0, 0.0]), np.ones(2), np.array([1e-17, -1e-17])
    assert loss.conjugate(y, -wrong, s) <= 0.0
    assert loss.conjugate(y, wrong, s) == math.inf


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_conjugate_of_nan_is_never_a_number(loss: Loss) -> None:
    value = loss.conjugate(np.ones(2), np.array([-0.5, np.nan]), np.ones(2))
    assert not np.isfinite(value)


def test_kinks_are_curved() -> None:
    y = np.array([1.0, -1.0, 1.0, 1.0])
    z = np.array([1.0, -1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)])
    weight = np.array([2.0, 3.0, 5.0, 7.0])
    assert SquaredHinge().curvature(y, z, weight).tolist() == [2.0, 3.0, 0.0, 7.0]
    assert SquaredHinge().gradient(y, z, weight)[:3].tolist() == [0.0, 0.0, 0.0]
    curvature = Huber(1.0).curvature(np.zeros(4), np.array([-1.5, -1.0, 1.0, 1.5]), np.full(4, 2.0))
    assert curvature.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_links_and_scores() -> None:
    z, s = np.array([-2.0, 0.0, 3.0]), np.array([1.0, 2.0, 0.0])
    numbers, labels = np.array([1.0, 0.5, 7.0]), np.array([-1.0, 1.0, 1.0])
    assert Squared().mean(z).tolist() == z.tolist()
    assert Squared().score(numbers, numbers, s) == 1.0
    assert Squared().score(numbers, z, s) == pytest.approx(r2_score(numbers, z, sample_weight=s))
    assert Squared().score(np.ones(3), z, s) == 0.0
    assert mean_loss(Squared(), numbers, z, s) == pytest.approx((4.5 + 0.25) / 3)
    assert Logistic().score(labels, z, s) == pytest.approx(1 / 3)
    pairs = np.exp(Logistic().log_probabilities(z))
    assert pairs.sum(axis=1) == pytest.approx(1.0)
    assert pairs[:, 1] == pytest.approx(Logistic().mean(z))
    assert Logistic().mean(z.astype(np.float32)).dtype == np.float32
    with pytest.raises(AttributeError, match="no probabilities"):
        SquaredHinge().log_probabilities(z)


def test_the_name_of_a_loss_with_parameters_asks_for_an_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Shifted(losses.Squared):  # type: ignore[misc]
        name = "shifted"

        def __init__(self, shift: float) -> None:
            super().__init__()

    monkeypatch.setitem(catalogue.LOSSES, "shifted", (Shifted, "regression"))
    with pytest.raises(TypeError, match=r"loss='shifted'.*'shift'; pass Shifted\(...\)"):
        as_loss("shifted")


def test_as_loss_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'squared_hinge'\?"):
        as_loss("squaredhinge")
    with pytest.raises(ValueError, match=r"'logistic', .*'squared_hinge'.*'cubic'"):
        as_loss("cubic")
    with pytest.raises(TypeError, match=r"Logistic\(\)"):
        as_loss(Logistic)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="received int"):
        as_loss(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"AtomicClassifier\(multi_class='multinomial'\)"):
        as_loss("multinomial")


def test_target_messages_name_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"shape \(3, 1\); pass y\.ravel\(\)"):
        Squared().check_target(np.ones((3, 1)))
    with pytest.raises(ValueError, match="2 values that are NaN or infinite, the first at index 1"):
        Logistic().check_target([1.0, np.nan, np.inf])
    with pytest.raises(ValueError, match="type int, str"):
        Squared().check_target(np.array([1, "a"], dtype=object))
    for text in (["3", "4"], np.array(["3", 4], dtype=object)):
        with pytest.raises(ValueError, match=r"str|U1.*y\.astype\(float\)"):
            Poisson().check_target(text)
    with pytest.raises(ValueError, match=r"found 0, 1, 2, 3, 4, \.\.\. \(9 distinct values\)"):
        SquaredHinge().check_target(np.arange(9))


def test_a_single_label_is_accepted() -> None:
    assert Logistic().check_target([0, 0]).tolist() == [-1.0, -1.0]
    assert Logistic().check_target([1, 1]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("loss", [*(as_loss(n) for n in loss_names("regression")), Huber(1e6)])
@each("seed", range(5))
def test_a_best_shift_that_a_formula_knows_balances_the_slopes(loss: Loss, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, z = targets_of(loss, rng.normal(size=30)), rng.normal(size=30)
    s = rng.uniform(0.5, 2.0, size=30) * (rng.random(30) < 0.8)
    b = loss.best_shift(y, z, s, 123.0)
    if b == 123.0:
        return  # no formula
    step = 1e-9 * (1.0 + abs(b))
    behind, ahead = (loss.gradient(y, z + b + move, s) for move in (-step, step))
    assert behind.sum() <= 1e-7 * np.abs(behind).sum()
    assert ahead.sum() >= -1e-7 * np.abs(ahead).sum()


@pytest.mark.parametrize("loss", [Poisson(), Tweedie(1.5), NegativeBinomial(2.0)])
def test_counts_without_weight_are_no_counts(loss: Loss) -> None:
    y, z, s = np.array([0.0, 5.0, 0.0]), np.array([1.0, 2.0, -3.0]), np.array([1.0, 0.0, 2.0])
    b = loss.best_shift(y, z, s, 0.0)
    assert -1e5 < b < -700.0
    assert loss.value(y, z + b, s) < 1e-300
    assert loss.best_shift(y, z, np.ones(3), 0.0) > -10.0


def test_a_pinball_on_its_target_pulls_nowhere() -> None:
    y, ones = np.zeros(3), np.ones(3)
    z = np.array([0.0, 1.0, -1.0])
    assert Quantile(0.3).gradient(y, z, ones).tolist() == [0.0, 0.7, -0.3]


def test_five_labels_are_named_and_a_sixth_is_counted():
    with pytest.raises(ValueError, match=r"found 0\.0, 1\.0, 2\.0, 3\.0, 4\.0\. Map"):
        binary_target(np.arange(5.0))
    with pytest.raises(ValueError, match=r"4\.0, \.\.\. \(6 distinct values\)"):
        binary_target(np.arange(6.0))


@pytest.mark.parametrize(
    ("shape", "remedy"), [((3, 1), r"pass y\.ravel\(\)"), ((3, 2), "one target per sample"),
                          ((1, 3, 1), "one target per sample"), ((0, 2), "one target per sample")],
)  # fmt: skip
def test_targets_of_one_column_are_told_how_to_be_flat(shape, remedy):
    with pytest.raises(ValueError, match=remedy):
        regression_target(np.zeros(shape))


class PseudoHuber(Loss):
    """sqrt(1 + (z - y)^2), of which Newton's steps from afar lead ever farther away."""

    name, task, curvature_bounds = "pseudo-huber", "regression", (0.0, 1.0)

    def check_target(self, y):
        return np.asarray(y, dtype=float)

    def value(self, y, prediction, weight):
        return float(weight @ np.sqrt(1.0 + (prediction - y) ** 2))

    def gradient(self, y, prediction, weight):
        return weight * (prediction - y) / np.sqrt(1.0 + (prediction - y) ** 2)

    def curvature(self, y, prediction, weight):
        return weight * (1.0 + (prediction - y) ** 2) ** -1.5

    def conjugate(self, y, dual, weight):
        raise NotImplementedError


@pytest.mark.parametrize("far", [7.0, -7.0, 3e3])
def test_shifts_are_halved_between_where_newton_leaves_the_bracket(far):
    y = far + np.array([-1.0, 0.0, 1.0])
    assert_allclose(optimal_shift(PseudoHuber(), y, np.ones(3), np.zeros(3)), far, rtol=1e-12)


def test_deviance_explained_does_not_depend_on_the_unit_of_weights(table):
    _, y = table
    prediction, whole = y + 0.1, np.ones(40)
    explained = [Huber(1e6).score(y, prediction, f * whole) for f in (1, 1e-6)]
    assert_allclose(explained, 1.0 - 0.01 / y.var(), rtol=1e-12)


def test_targets_that_are_constant_are_explained_when_none_is_missed():
    y, ones = np.full(4, 2.0), np.ones(4)
    assert Huber().score(y, y, ones) == 1.0
    assert Huber().score(y, y + 0.1, ones) == 0.0
    small = 0.01 * np.arange(4.0)  # small deviances are explained as large ones
    assert Huber(1e6).score(small, 0.9 * small, ones) == pytest.approx(
        Huber(1e6).score(1e3 * small, 900.0 * small, ones)
    )


@pytest.mark.parametrize("loss", [Squared(), Huber(1.0), Quantile(0.3), PseudoHuber()])
@pytest.mark.parametrize("far", [0.0, 1e5, 1e12])
@pytest.mark.parametrize("unit", [1e-140, 1e-6, 1.0, 1e140])
def test_the_best_shift_is_found_in_any_units(loss, far, unit):
    """A step in the dark that is 1 long leads nowhere from 0 to targets around 1e12, or 1e140."""
    y = unit * (far + np.array([-2.0, 0.1, 0.5, 3.0]))
    if loss.name == "huber":
        loss = Huber(unit)
    if loss.name == "pseudo-huber":
        y /= unit
        unit = 1.0
    b, s = optimal_shift(loss, y, np.ones(4), np.zeros(4)), np.ones(4)
    step = 1e-9 * unit + 4.0 * np.spacing(abs(b))
    assert loss.gradient(y, np.full(4, b - step), s).sum() <= 0.0
    assert loss.gradient(y, np.full(4, b + step), s).sum() >= 0.0
