"""Intervals of coefficients against other ways to the same numbers, and against the truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm as normal
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import Lasso, LinearRegression

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, report
from atomlearn.designs import as_design
from atomlearn.estimators.dependent_rows import held_out
from atomlearn.findings import estimates, power
from atomlearn.findings.carving import carved
from atomlearn.findings.nodewise import directions
from atomlearn.findings.one_step import FitData, unpenalized_fit


def data(n: int = 150, p: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 4] += 0.7 * X[:, 0]
    return X, X[:, 0] - 2 * X[:, 1] + rng.standard_normal(n)


def test_directions_keep_the_bound_of_their_level_and_leave_covariates_out() -> None:
    X, _ = data()
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 150)
    model = FitData.of(AtomicRegressor(alpha=0.1).fit(X, X[:, 0]), X, X[:, 0], weight, None)
    price = model.lengths(weight)
    unit = np.array([0, 4])
    [Z] = directions(model.design, weight, [unit], price, np.array([7]))
    for z in Z.T:
        cosine = np.abs((weight * z) @ (X - np.average(X, axis=0, weights=weight))) / price
        cosine /= np.sqrt(weight @ z**2)
        others = np.setdiff1d(np.arange(20), [0, 4, 7])
        assert cosine[others].max() <= np.sqrt(2 * np.log(20) / 150) * 1.01
        assert cosine[7] < 1e-3  # a covariate has nothing in common with it
        assert cosine[[0, 4]].max() > 0.5  # nor is anything of its own group taken off


@pytest.mark.parametrize("seed", range(3))
def test_a_path_ends_where_its_error_has_grown_by_a_quarter_from_the_bound_of_noise(
    seed: int,
) -> None:
    """The rule of Zhang and Zhang over lassos of scikit-learn at the same levels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 14)) + rng.standard_normal((60, 1))
    centered = X - X.mean(axis=0)
    price = np.sqrt(np.sum(centered**2, axis=0))
    x, others = centered[:, 3], np.delete(centered / price, 3, axis=1)
    levels = np.abs(others.T @ x).max() * np.geomspace(1.0, 0.01, 30)
    limit, expected, left = np.inf, 0, [x]
    for level in levels:
        fit = Lasso(level / 60, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(others, x)
        left.append(x - fit.predict(others))
        length = np.sqrt(left[-1] @ left[-1])
        error = length / (left[-1] @ x)
        if error > limit:
            break
        expected = len(left) - 1
        if level / length <= np.sqrt(2 * np.log(14) / 60) and limit == np.inf:
            limit = 1.25 * error
    assert 1 < expected < 30
    none = np.zeros(0, dtype=np.int64)
    [[z]] = [Z.T for Z in directions(as_design(X), np.ones(60), [np.array([3])], price, none)]
    far = [np.linalg.norm(z - one) for one in left]
    assert int(np.argmin(far)) == expected
    assert far[expected] < 0.02 * np.linalg.norm(z)


def test_named_columns_of_few_are_near_least_squares_with_its_error() -> None:
    X, y = data()
    found = estimates(AtomicRegressor(alpha=0.3).fit(X, y), X, y, [0, 1, 9])
    plain = LinearRegression().fit(X, y)
    left = y - plain.predict(X)
    Z = np.column_stack([np.ones(150), X])
    errors = np.sqrt(np.diag(np.linalg.inv(Z.T @ Z))[1:] * (left @ left) / (150 - 21))
    width = found.intervals[:, 1] - found.intervals[:, 0]
    np.testing.assert_allclose(found.values, plain.coef_[[0, 1, 9]], atol=0.15)
    np.testing.assert_allclose(width, 2 * normal.isf(0.025) * errors[[0, 1, 9]], rtol=0.2)
    assert found.penalized[1] > -1.8 > found.values[1]
    assert "named before" in str(found).splitlines()[0]


def test_sparse_weighted_and_grouped_rows_say_the_same_as_what_they_stand_for() -> None:
    X, y = data()
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    model = AtomicRegressor(alpha=0.1).fit(X, y)
    dense = estimates(model, X, y, [0, [1, 2]])
    sparse = estimates(model, sp.csr_array(X), y, [0, [1, 2]])
    np.testing.assert_allclose(sparse.intervals, dense.intervals, rtol=1e-3, atol=1e-3)
    assert dense.group_p_values[1] < 1e-8
    # Each row three times: as many groups say what the rows said, three times as many rows do not.
    rows = np.repeat(np.arange(150), 3)
    thrice = estimates(model, X[rows], y[rows], how="split", groups=rows)
    alone = estimates(model, X[rows], y[rows], how="split")
    widths = [float(np.median(np.diff(found.intervals))) for found in (thrice, alone)]
    assert 1.3 < widths[0] / widths[1] < 2.3


def test_near_duplicates_are_told_as_a_group_only() -> None:
    X, y = data()
    X[:, 2] = X[:, 1] + 0.02 * np.random.default_rng(5).standard_normal(150)
    found = estimates(AtomicRegressor(alpha=0.1).fit(X, y), X, y, [[1, 2], [11, 12]])
    assert found.p_values[0] > 1e-4 > 1e-10 > found.group_p_values[0]
    assert found.group_p_values[1] > 1e-3


def test_a_carved_interval_is_that_of_the_conditional_law() -> None:
    """One coefficient, drawn a million times, kept where it was selected."""
    rng = np.random.default_rng(0)
    theta, v, v_d, c = 0.3, 1.0, 1.5, 0.8
    b = theta + np.sqrt(v) * rng.standard_normal(1_000_000)
    kept = b[b + np.sqrt(v_d) * rng.standard_normal(b.size) > c]
    # The interval that ends at theta begins where theta has this share below.
    for level in (0.5, 0.9):
        one = (np.eye(1), np.zeros(1) + 0.2, v_d * np.eye(1), np.ones(1), np.array([c]), 0, level)
        at = np.quantile(kept, (1 + level) / 2)
        _, low, _, _ = carved(np.array([at]), *one)
        assert low == pytest.approx(theta, abs=0.01)


def test_carving_holds_what_was_selected_and_is_the_shorter_one() -> None:
    shorter, held = [], []
    for seed in range(12):
        X, y = data(200, 40, seed)
        model = AtomicRegressor(alpha=0.12).fit(X, y)
        found = estimates(model, X, y, rng=seed)
        other = estimates(model, X, y, how="split", rng=seed)
        assert (found.how, other.how) == ("carved", "split")
        truth = np.isin(found.columns, [0]) * 1.0 - 2.0 * (found.columns == 1)
        held += ((found.intervals[:, 0] <= truth) & (truth <= found.intervals[:, 1])).tolist()
        shorter.append(float(np.mean(np.diff(found.intervals) / np.diff(other.intervals))))
    assert np.mean(shorter) < 0.97
    assert np.mean(held) > 0.9  # of 95%


def test_split_intervals_are_those_of_the_other_rows() -> None:
    X, y = data()
    model = AtomicRegressorCV(n_alphas=8).fit(X, y)
    found = estimates(model, X, y, rng=3)
    assert found.how == "split"  # a level that was searched for is no plain lasso
    assert estimates(AtomicRegressor(alpha=0.1, fit_intercept=False).fit(X, y), X, y).how == "split"
    _, rest = held_out(150, 0.5, 3)
    plain = LinearRegression().fit(X[rest][:, found.columns], y[rest])
    np.testing.assert_allclose(found.values, plain.coef_)


@pytest.mark.parametrize("size", [1, 4])
def test_errors_are_those_of_leaving_out_each_row_or_group(size: int) -> None:
    """The jackknife: least squares again without each of them, whatever the spread is."""
    X, y = data(160)
    y += 2 * X[:, 1] * np.random.default_rng(4).standard_normal(160)
    groups = np.arange(160) // size
    model, of = AtomicRegressor(alpha=0.3).fit(X, y), None if size == 1 else groups
    found = estimates(model, X, y, how="split", groups=of, rng=3)
    _, rest = held_out(160, 0.5, 3, groups=of)
    Z, target, groups = X[rest][:, found.columns], y[rest], groups[rest]
    whole, each = LinearRegression().fit(Z, target).coef_, np.unique(groups)
    moves = [
        LinearRegression().fit(Z[groups != g], target[groups != g]).coef_ - whole for g in each
    ]
    errors = np.sqrt(np.sum(np.square(moves), axis=0))
    left = each.size - 1 if size > 1 else each.size - 1 - found.columns.size
    widths = np.diff(found.intervals)[:, 0]
    np.testing.assert_allclose(widths, 2 * student.isf(0.025, left) * errors, rtol=1e-6)


@pytest.mark.parametrize("how", ["split", "carved"])
def test_intervals_hold_where_the_spread_depends_on_a_column(how: str) -> None:
    held = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 8])
        X = rng.standard_normal((160, 12))
        y = X[:, 3] + (0.2 + np.abs(X[:, 3]) ** 1.3) * rng.standard_normal(160)
        found = estimates(AtomicRegressor(alpha=0.25).fit(X, y), X, y, how=how, rng=seed)
        low, high = found.intervals[found.columns == 3].T
        held += ((low <= 1) & (high >= 1)).tolist()
    assert np.mean(held) > 0.87  # with one spread for all rows: three quarters


def test_named_columns_of_rows_that_repeat_are_as_sure_as_without_the_copies() -> None:
    X, y = data()
    rows = np.repeat(np.arange(150), 3)
    model = AtomicRegressor(alpha=0.1).fit(X, y)
    widths = [
        float(np.median(np.diff(found.intervals)))
        for found in (
            estimates(model, X, y, [0, 1, 9]),
            estimates(model, X[rows], y[rows], [0, 1, 9], groups=rows),
            estimates(model, X[rows], y[rows], [0, 1, 9]),
        )
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.25)
    assert widths[2] < 0.75 * widths[0]


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_firths_likelihood_is_at_its_maximum(loss: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 3))
    y = rng.poisson(np.exp(0.5 * X[:, 0])) if loss == "poisson" else (X[:, 0] > 0).astype(int)
    model = AtomicClassifier() if loss == "logistic" else AtomicRegressor(alpha=0.1, loss=loss)
    given = FitData.of(model.fit(X, y), X, y, None, None)
    b = unpenalized_fit(given, np.arange(3)).values
    Z = np.column_stack([np.ones(60), X])

    def penalized(b: np.ndarray) -> float:
        mean = np.exp(Z @ b) if loss == "poisson" else 1 / (1 + np.exp(-Z @ b))
        W = mean if loss == "poisson" else mean * (1 - mean)
        value = (
            y * np.log(mean) - mean if loss == "poisson" else np.log(np.where(y, mean, 1 - mean))
        )
        return float(value.sum() + 0.5 * np.linalg.slogdet(Z.T @ (W[:, None] * Z))[1])

    # Classes that can be separated: the likelihood itself has no maximum.
    best = penalized(b)
    for change in np.vstack([np.eye(4), -np.eye(4)]) * 1e-3:
        assert penalized(b + change) < best


def test_what_cannot_be_asked_is_said() -> None:
    X, y = data()
    model = AtomicRegressor(alpha=0.3).fit(X, y)
    for given, message in (
        ({"columns": [99]}, "not among the 20 columns"),
        ({"columns": []}, "names none"),
        ({"columns": [1], "how": "split"}, "selected columns"),
        ({"confidence": 95}, "between 0 and 1"),
        ({"how": "carved", "groups": np.arange(150) // 2}, "belong together"),
    ):
        with pytest.raises(ValueError, match=message):
            estimates(model, X, y, **given)
    quantile = AtomicRegressor(alpha=0.1, loss="quantile").fit(X, y)
    with pytest.raises(ValueError, match="one output and a smooth loss"):
        estimates(quantile, X, y)


def test_page_and_summary_have_each_interval_with_its_condition(tmp_path: Path) -> None:
    X, y = data()
    model = AtomicRegressor(alpha=0.3).fit(X, y)
    found = estimates(model, X, y, [1])
    report(model, X, y, tmp_path / "report.html", effects=found)
    notes = json.loads((tmp_path / "summary.json").read_text())["notes"]
    assert "at most 0 of these 1 effects are zero or have the other sign" in notes[-1]
    assert all("named before the data was seen" in note for note in notes)
    for text in (*notes[:-1], (tmp_path / "report.html").read_text()):
        start = text.index("effect of column 1: ")
        sentence = text[start : text.index("\n", start) if "\n" in text[start:] else None]
        assert (
            f"from {found.intervals[0, 0]:.4g} to {found.intervals[0, 1]:.4g} for col" in sentence
        )
        assert "named before the data was seen" in sentence


def test_power_counts_what_a_selector_finds() -> None:
    X, _ = data(120, 20)

    class Largest(SelectorMixin, BaseEstimator):
        """The three columns most correlated with the target."""

        def fit(self, X: np.ndarray, y: np.ndarray) -> Largest:
            self.n_features_in_ = X.shape[1]
            self.score_ = np.abs((X - X.mean(axis=0)).T @ (y - y.mean()))
            return self

        def _get_support_mask(self) -> np.ndarray:
            return np.asarray(np.argsort(np.argsort(-self.score_)) < 3)

    for classes in (False, True):
        curve = power(Largest(), X, [5.0, 0.01], n_true=2, n_draws=30, classes=classes)
        assert curve.sizes.tolist() == [0.01, 5.0]
        assert curve.found[1] > 0.8
        assert abs(curve.found[0] - 3 / 20) < 0.2
        # Three are told: two of them true leave one that is false.
        np.testing.assert_allclose(3 * (1 - curve.false), 2 * curve.found)
    with pytest.raises(ValueError, match="n_true of at most the number of columns"):
        power(Largest(), X, n_true=21)
