"""What weights, names and former fits may change in a fit, and what they may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification

from atomlearn import AtomicClassifier, AtomicRegressor, FeatureGenerator, designs, norms
from atomlearn.losses import Squared
from atomlearn.solvers import ColumnGeneration

#: So few columns would be taken at once: no step would be made.
STEPS = ColumnGeneration(batch=5)
X, Y = make_classification(150, 12, n_informative=6, n_classes=3, random_state=1)


def test_class_weights_leave_the_curves_of_inputs_where_they_are() -> None:
    """Knots are quantiles of the inputs: what weighs a class more does not move them."""

    def levels(**parameters: Any) -> Any:
        model = AtomicClassifier("groups", alpha=0.05, features="splines", **parameters)
        return model.fit(X, Y > 0).feature_map_

    columns = np.arange(levels().n_columns)
    plain, weighted = levels(), levels(class_weight={False: 9.0, True: 0.1})
    assert plain.names(columns) == weighted.names(columns)
    expected = plain.apply(X).gather(columns).dense()
    assert_allclose(weighted.apply(X).gather(columns).dense(), expected, rtol=0)


@pytest.mark.parametrize("opened", [True, False])
def test_names_of_a_former_fit_do_not_stay(opened: bool) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=[f"gene{j}" for j in range(X.shape[1])])
    plain = designs.as_design(X) if opened else X
    model = AtomicRegressor(alpha=0.1).fit(table, Y)
    assert list(model.feature_names_in_) == list(table.columns)
    assert model.selected_names_[0].startswith("gene")
    model.fit(plain, Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.selected_names_[0].startswith("x")


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_a_warm_start_is_where_the_last_fit_ended(multi_class: str) -> None:
    model = AtomicClassifier(alpha=0.01, warm_start=True, multi_class=multi_class, solver=STEPS)
    steps = [len(r.history) for r in model.fit(X, Y).results_]
    again = [len(r.history) for r in model.fit(X, Y).results_]
    assert max(steps) > 1
    assert max(again) == 1


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_a_fit_of_other_classes_starts_afresh(multi_class: str) -> None:
    """The same number of classes under other names are other classes: no step is saved."""
    model = AtomicClassifier(alpha=0.01, warm_start=True, multi_class=multi_class, solver=STEPS)
    names = np.array(["a", "b", "c"])[Y]
    afresh = [
        len(r.history)
        for r in AtomicClassifier(alpha=0.01, multi_class=multi_class, solver=STEPS)
        .fit(X, names)
        .results_
    ]
    assert [len(r.history) for r in model.fit(X, Y).fit(X, names).results_] == afresh
    assert max(afresh) > 1


def test_the_parts_of_a_latent_norm_are_taken_over() -> None:
    groups = [[0, 1, 2], [2, 3, 4], [4, 5, 6, 7], [7, 8, 9], [9, 10, 11]]
    model = AtomicRegressor(
        norms.LatentGroups(groups), alpha=0.05, warm_start=True, tol=1e-9, solver=STEPS
    )
    first = len(model.fit(X, Y).results_[0].history)
    assert first > 1
    assert len(model.fit(X, Y).results_[0].history) == 1


def test_scores_are_those_of_the_loss() -> None:
    weight = np.linspace(0.0, 2.0, Y.size)
    for model in (
        AtomicRegressor(alpha=0.1),
        FeatureGenerator(3, 1, loss="squared", standardize=True),
    ):
        model.fit(X, Y.astype(float))
        expected = Squared().score(Y.astype(float), model.predict(X), weight)
        assert model.score(X, Y, weight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("class_weight", ["balanced", None, {0: 3.0, 1: 1.0, 2: 0.5}])
def test_a_weight_of_two_is_the_row_twice_whatever_the_class_weights(class_weight: Any) -> None:
    counts = np.random.default_rng(0).integers(0, 4, size=Y.size)
    model = AtomicClassifier(alpha=0.01, class_weight=class_weight, tol=1e-11)
    weighted = model.fit(X, Y, sample_weight=counts)
    coef, intercept = weighted.coef_.copy(), weighted.intercept_.copy()
    rows = np.repeat(np.arange(Y.size), counts)
    repeated = model.fit(X[rows], Y[rows])
    assert_allclose(coef, repeated.coef_, atol=1e-6)
    assert_allclose(intercept, repeated.intercept_, atol=1e-6)
