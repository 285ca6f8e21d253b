"""SubsetRegressor and SubsetClassifier: units of the data, classes, choices by cross-validation."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import SubsetClassifier, SubsetRegressor
from atomlearn.findings import held_out_verdict, trials

RNG = np.random.default_rng(3)
X = RNG.standard_normal((150, 20)) * np.geomspace(1e-3, 1e3, 20) + 5.0
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = 2.0 * Z[:, 4] - Z[:, 15] + 0.3 * RNG.standard_normal(150)


def test_columns_of_different_units_are_compared_by_their_deviations() -> None:
    model = SubsetRegressor(2, l2=0.01, standardize=True).fit(X, Y)
    assert model.selected_.tolist() == [4, 15]
    # The ridge fit of these columns, by hand.
    A = Z[:, [4, 15]]
    w = np.linalg.solve(A.T @ A / 150 + 0.01 * np.eye(2), A.T @ (Y - Y.mean()) / 150)
    np.testing.assert_allclose(model.predict(X), A @ w + Y.mean(), atol=1e-6)
    assert model.gap_ <= 1e-4 * model.objective_
    assert model.transform(X).shape == (150, 2)
    thin = SubsetRegressor(2, l2=0.01, standardize=True).fit(
        sparse.csr_array(np.where(np.abs(Z) > 1, Z, 0)), Y
    )
    assert thin.selected_.tolist() == [4, 15]


def test_names_weights_offsets_and_covariates() -> None:
    table = pd.DataFrame(Z, columns=[f"gene{j}" for j in range(20)])
    model = SubsetRegressor(1, unpenalized=["gene4"], standardize=True).fit(table, Y)
    assert model.selected_names_ == ["gene15"]
    assert model.coef_[4] != 0.0
    weight = np.r_[np.full(75, 2.0), np.ones(75)]
    twice = np.r_[np.arange(75), np.arange(150)]
    kept = {"l2": 0.05}
    one, two = (
        SubsetRegressor(2, **kept),
        SubsetRegressor(2, **kept),
    )
    one.fit(Z, Y, sample_weight=weight)
    two.fit(Z[twice], Y[twice])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-7)
    shifted = SubsetRegressor(2, **kept).fit(Z, Y - 3.0 * Z[:, 0], offset=-3.0 * Z[:, 0])
    plain = SubsetRegressor(2, **kept).fit(Z, Y)
    np.testing.assert_allclose(shifted.coef_, plain.coef_, atol=1e-7)


def test_classes_share_their_columns() -> None:
    labels = np.array(["a", "b", "c"])[np.argmax(np.c_[Z[:, 2], Z[:, 9], -Z[:, 2] - Z[:, 9]], 1)]
    model = SubsetClassifier(2, l2=0.01, tol=0.01, standardize=True).fit(Z, labels)
    assert model.selected_.tolist() == [2, 9]
    assert model.coef_.shape == (3, 20)
    assert model.score(Z, labels) > 0.9
    np.testing.assert_allclose(model.predict_proba(Z).sum(axis=1), 1.0)


def test_size_and_ridge_are_chosen_by_rows_left_out() -> None:
    model = SubsetRegressor([1, 2, 6], l2="cv", cv=3, standardize=True).fit(Z, Y)
    assert model.n_selected_ == 2
    assert len(model.cv_scores_) == 3 * 6
    best = max(model.cv_scores_, key=lambda each: model.cv_scores_[each].mean())
    assert best == (2, model.l2_)


def test_what_is_not_proved_is_said() -> None:
    noise = RNG.standard_normal((60, 200))
    with pytest.warns(ConvergenceWarning, match="no subset is better by more than"):
        model = SubsetRegressor(5, l2=1e-3, max_nodes=3, standardize=True).fit(
            noise, noise[:, 0] ** 2
        )
    assert model.lower_bound_ < model.objective_


def test_a_value_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="NaN"):
        SubsetRegressor(2, standardize=True).fit(np.where(np.arange(20) == 3, np.nan, Z), Y)


def test_refits_of_a_verdict_take_the_first_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "FEW_ROWS", 50)
    noise = RNG.standard_normal((60, 80))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SubsetRegressor(5, l2=1e-3, time_limit=0.2, standardize=True).fit(noise, Y[:60])
    asked = []
    fit = SubsetRegressor.fit
    monkeypatch.setattr(
        SubsetRegressor, "fit", lambda self, *rows: asked.append(self) or fit(self, *rows)
    )
    found = held_out_verdict(make_pipeline(StandardScaler(), model), noise, Y[:60])
    assert found.verdict != "better"
    assert len(asked) > 1
    assert {(each.max_nodes, each.within) for each in asked} == {(0, None)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_features": "all"}, "n_features must be"),
        ({"n_features": []}, "use n_features=20 or less"),
        ({"n_features": 21}, "n_features=21, but X has 20 columns"),
        ({"n_features": 20, "unpenalized": [0]}, "X has 19 columns to choose from"),
        ({"n_features": 3, "groups": [[0, 1], list(range(2, 20))]}, "2 groups"),
        ({"l2": 0}, "without a ridge"),
        ({"groups": [[0, 1], [1, 2]]}, "disjoint"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_bad_parameters_are_named(given: dict, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        SubsetRegressor(**{"n_features": 2, **given}, standardize=True).fit(Z, Y)
