"""Selectors with error control: their rules against definitions, their bounds, scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    KnockoffSelector,
    StabilitySelector,
    datasets,
    norms,
)
from atomlearn.core import mean_loss
from atomlearn.estimators.dependent_rows import folds
from atomlearn.findings import gaussian_knockoffs, p_values
from atomlearn.findings.gaussian import _eigenvalue_range, generator, knockoffs_of
from atomlearn.findings.importance import RATIO, coefficients, path_with_scores
from atomlearn.findings.knockoffs import e_threshold, e_values, knockoff_threshold
from atomlearn.findings.precision import independent, means_of, near_duplicates, standardized
from atomlearn.findings.stability import meinshausen_buhlmann, unimodal
from atomlearn.losses import as_loss
from atomlearn.paths import NoImprovement

pytestmark = pytest.mark.filterwarnings(
    "ignore:No features were selected:UserWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


# --- knockoffs -------------------------------------------------------------------------------


def autoregressive(n: int, p: int, rho: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


@pytest.mark.parametrize("kind", ["known", "sparse_precision", "ledoit_wolf", "factors"])
def test_swapping_leaves_the_covariance_as_it_is(kind: str) -> None:
    """Cov(x~) = Cov(x), Cov(x_i, x~_j) = Cov(x_i, x_j) for i != j: over many rows, to sampling."""
    # Factors are estimated by averages over columns: of few columns they are not exact.
    # A known precision with few entries is kept as one from some columns on.
    n, p = 10_000, {"factors": 60, "known": 120}.get(kind, 12)
    X = autoregressive(n, p, 0.6, seed=1)
    if kind == "factors":
        rng = np.random.default_rng(2)
        X = rng.standard_normal((n, 1)) @ np.full((1, p), 1.5) + rng.standard_normal((n, p))
    given: Any = kind
    if kind == "known":
        given = 0.6 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    made = gaussian_knockoffs(
        X * 3.0 + 1.0, covariance=given if kind != "known" else 9 * given, rng=0
    )
    both = np.cov(np.hstack([X, (made - 1.0) / 3.0]).T)
    own, cross, other = both[:p, :p], both[:p, p:], both[p:, p:]
    apart = ~np.eye(p, dtype=bool)
    tolerance = 0.05 * own.max()
    np.testing.assert_allclose(other, own, atol=tolerance)
    np.testing.assert_allclose(cross[apart], own[apart], atol=tolerance)
    assert (np.diag(cross) < np.diag(own) - tolerance).all()


def test_the_precision_of_a_chain_is_found_whatever_the_order_of_its_columns() -> None:
    order = np.random.default_rng(0).permutation(150)
    X = standardized(autoregressive(400, 150, 0.7, seed=3)[:, order])[0]
    made = knockoffs_of(X)
    assert "nearest" in made.words
    # s is that of the true covariance, nearly: no column is taken for more correlated than it is.
    true = 0.7 ** np.abs(np.subtract.outer(order, order))
    assert made.s == pytest.approx(knockoffs_of(X, true).s, rel=0.1)


def test_few_neighbors_that_do_not_explain_are_told_and_strong_correlation_warns() -> None:
    rng = np.random.default_rng(0)
    blocks = np.repeat(rng.standard_normal((200, 12)), 25, axis=1)
    X = standardized(np.sqrt(0.85) * blocks + np.sqrt(0.15) * rng.standard_normal((200, 300)))[0]
    with pytest.warns(UserWarning, match="strongly correlated"):
        assert knockoffs_of(X).covariance == "ledoit_wolf"
    # Then draws are joined, unless their number is given.
    y = X[:, 0] + rng.standard_normal(200)
    for asked, made in ((None, 10), (1, 1)):
        selector = KnockoffSelector(n_draws=asked, random_state=0, n_alphas=5)
        with pytest.warns(UserWarning, match="ten draws"):
            assert len(selector.fit(X, y).coefficients_) == made
    assert len(KnockoffSelector(random_state=0, n_alphas=5).fit(X[:, ::25], y).coefficients_) == 1
    duplicates = np.column_stack([X[:, ::25], X[:, :100:25] + 0.05])
    with (
        pytest.warns(UserWarning, match="8 columns are in 4 clusters"),
        pytest.warns(UserWarning, match="ten draws"),  # however many rows there are
    ):
        KnockoffSelector(random_state=0, n_alphas=5).fit(duplicates, y)


def test_a_target_may_depend_on_factors_that_columns_share() -> None:
    """They are in the model of column and knockoff without a penalty: no size changes by them."""
    rng = np.random.default_rng(3)
    X = 1.5 * rng.standard_normal((200, 3)) @ rng.standard_normal((3, 60))
    X = standardized(X + rng.standard_normal(X.shape))[0]
    y = X[:, :12].sum(axis=1) + rng.standard_normal(200)
    shared = knockoffs_of(X).shared
    assert shared.shape == (200, 3)
    alone, driven = (
        KnockoffSelector(fdr=0.2, random_state=0).fit(X, target)
        for target in (y, y + shared @ np.array([9.0, -5.0, 7.0]))
    )
    np.testing.assert_allclose(driven.coefficients_, alone.coefficients_, atol=1e-3)
    assert alone.get_support()[:12].mean() > 0.9


def test_folds_decide_where_a_row_has_a_high_leverage() -> None:
    """Columns with heavy tails: the formula would end the path at its first level."""
    for seed in range(3):
        rng = np.random.default_rng([seed, 2])
        X = rng.standard_t(2, (200, 60))
        y = standardized(X)[0][:, :15].sum(axis=1) + rng.standard_normal(200)
        formula, cut = (KnockoffSelector(random_state=seed, cv=cv).fit(X, y) for cv in ("auto", 5))
        np.testing.assert_array_equal(formula.statistics_, cut.statistics_)
        assert formula.get_support()[:15].mean() > 0.9


def test_the_threshold_is_the_least_with_the_bound() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        W = np.round(rng.standard_normal(40) + 0.8, 1)
        for q in (0.1, 0.3):
            allowed = [
                t
                for t in np.unique(np.abs(W[W != 0]))
                if (1 + (-t >= W).sum()) / max(1, (t <= W).sum()) <= q
            ]
            assert knockoff_threshold(W, q) == (min(allowed) if allowed else np.inf)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([1.0, np.nan], 0.1), "statistics must hold one finite number"),
        (([1.0, np.inf], 0.1), "statistics must hold one finite number"),
        (([[1.0], [2.0]], 0.1), r"statistics must hold .* shape \(2, 1\)"),
        (([1.0, 2.0], -1.0), "fdr must be between 0 and 1"),
        (([1.0, 2.0], 1.0), "fdr must be between 0 and 1"),
    ],
)
def test_a_threshold_of_what_is_none_is_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        knockoff_threshold(*given)


def test_targets_of_one_value_and_columns_that_are_all_alike() -> None:
    X = np.random.default_rng(0).standard_normal((6, 2))
    for y in (np.full(6, 3.0), np.full(6, "a")):
        for fit in (lambda y: KnockoffSelector(random_state=0).fit(X, y), lambda y: p_values(X, y)):
            with pytest.raises(ValueError, match="y holds one value only"):
                fit(y)
    # Of two rows all standardized columns are the same but for their sign.
    assert set(near_duplicates(standardized(np.random.default_rng(1).normal(size=(2, 40)))[0])) == {
        0
    }


@pytest.mark.parametrize("unit", [2.0**900, 2.0**-900])
def test_columns_are_standardized_in_any_units(unit: float) -> None:
    X = np.random.default_rng(0).standard_normal((20, 5))
    X[:, 3] = 2.5
    found, expected = standardized(X * unit), standardized(X)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[2][3] == expected[2][3] == 1.0
    np.testing.assert_array_equal(found[1], expected[1] * unit)
    varies = np.arange(5) != 3
    np.testing.assert_array_equal(found[2][varies], expected[2][varies] * unit)


def test_e_values_select_by_their_definition() -> None:
    W = np.concatenate([np.arange(1.0, 31), [-0.5, 0.2]])
    values = e_values(W, 0.1)
    assert values[:30] == pytest.approx([W.size * (w >= 0.5) / 2 if w >= 0.5 else 0 for w in W[:30]]
                                        if knockoff_threshold(W, 0.1) <= 0.5
                                        else values[:30])  # fmt: skip
    ordered = np.sort(values)[::-1]
    ks = [k for k in range(1, W.size + 1) if ordered[k - 1] >= W.size / (0.1 * k)]
    assert e_threshold(values, 0.1) == (ordered[max(ks) - 1] if ks else np.inf)


def signal(n: int, p: int, seed: int, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    X = autoregressive(n, p, rho, seed)
    rng = np.random.default_rng([seed, 1])
    return X, X[:, :20].sum(axis=1) + rng.standard_normal(n)


def test_true_features_are_found_and_exchanging_columns_changes_nothing_else() -> None:
    X, y = signal(300, 80, 0)
    first = KnockoffSelector(fdr=0.2, random_state=3).fit(X, y)
    assert first.get_support()[:20].all()
    assert first.get_support()[20:].sum() <= 10
    # What fits columns and knockoffs does not know which is which.
    Z = standardized(X)[0]
    K = gaussian_knockoffs(Z, rng=5)
    swapped = np.arange(80) % 3 == 0
    one = KnockoffSelector(knockoffs=K, random_state=0).fit(Z, y).statistics_
    A, B = np.where(swapped, K, Z), np.where(swapped, Z, K)
    sizes = np.hstack([A, B])
    both = KnockoffSelector(knockoffs=K, random_state=0).fit(Z, y).coefficients_[0]
    from atomlearn.findings.importance import coefficients

    seed = int(generator(0).integers(2**31))
    found, _ = coefficients(sizes, y, norms.L1(), "auto", KnockoffSelector().n_alphas, "auto", seed)
    W = (found[:80] - found[80:]) * np.where(swapped, -1.0, 1.0)
    np.testing.assert_allclose(W, one, atol=2e-3 * np.abs(both).max())


@pytest.mark.parametrize("told", [{"groups": np.arange(60) // 6}, {"order": np.arange(60)}, {}])
def test_rows_that_belong_together_are_left_out_together(told: dict[str, Any]) -> None:
    """The level is that of a search over the same folds, not that of single rows."""
    rng = np.random.default_rng(4)
    X = np.repeat(rng.standard_normal((10, 8)), 6, axis=0) + 0.1 * rng.standard_normal((60, 8))
    y = X[:, 0] + np.repeat(rng.standard_normal(10), 6)
    cv = "auto" if told else 4
    sizes, level = coefficients(X, y, norms.L1(), "squared", 8, cv, 0, **told)
    search = AtomicRegressorCV(
        "l1", n_alphas=16, alpha_ratio=RATIO**2, cv=folds(60, 5 if told else 4, 0, **told),
        until=NoImprovement(),
    ).fit(X, y)  # fmt: skip
    assert level == search.alpha_
    assert_allclose(sizes, np.abs(search.coef_))
    assert coefficients(X, y, norms.L1(), "squared", 8, "auto", 0)[1] != level


def test_a_path_whose_last_level_is_the_best_goes_on() -> None:
    X = np.random.default_rng(0).standard_normal((80, 6))
    y = X.sum(axis=1)
    path = path_with_scores(X, y, as_loss("squared"), norms.L1(), 5, 0.5)
    step = 0.5**0.25
    np.testing.assert_allclose(np.divide(path.levels, path.levels[0]), step ** np.arange(10))
    assert len(path.results) == len(path.scores) == 10
    assert np.argmin(path.scores) == 9


@pytest.mark.parametrize("chosen", ["0.5", "factors"])
def test_the_ends_of_a_spectrum_are_known_to_a_hundredth(chosen: str) -> None:
    rng = np.random.default_rng(1)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(300), np.arange(300)))
    if chosen == "factors":
        loadings = rng.standard_normal((300, 3))
        covariance = loadings @ loadings.T + np.eye(300)
    matrix = np.linalg.inv(covariance)
    values = np.linalg.eigvalsh(matrix)
    least, largest = _eigenvalue_range(matrix)
    assert largest == pytest.approx(values[-1], rel=0.02)
    assert least == pytest.approx(values[0], abs=0.02)


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_the_formula_of_left_out_rows_is_that_of_leaving_them_out(name: str) -> None:
    """Of least squares: each row left out in turn, columns and signs as they are; exact."""
    rng = np.random.default_rng(0)
    X = standardized(rng.standard_normal((60, 40)))[0]
    score = X[:, :5].sum(axis=1)
    y = (
        score + rng.standard_normal(60)
        if name == "squared"
        else np.sign(score + rng.normal(size=60))
    )
    loss = as_loss(name)
    path = path_with_scores(X, y, loss, norms.L1(), 6, 0.1)
    for result, score_of_level in zip(path.results, path.scores, strict=True):
        A = np.hstack([np.ones((60, 1)), X[:, result.columns]])
        w = np.concatenate([[result.intercept], result.weights])
        ones = np.ones(60)
        pull = A.T @ loss.gradient(y, A @ w, ones)  # the slope of the penalty at the optimum
        left = np.empty(60)
        for i in range(60):
            others = ones.copy()
            others[i] = 0.0
            v = w.copy()
            for _ in range(1 if name == "squared" else 20):
                z = A @ v
                hessian = (A.T * loss.curvature(y, z, others)) @ A
                v = v - np.linalg.solve(hessian, A.T @ loss.gradient(y, z, others) - pull)
            left[i] = A[i] @ v
        expected = mean_loss(loss, y, left, ones)
        assert score_of_level == pytest.approx(expected, rel=1e-7 if name == "squared" else 0.1)


def test_the_false_discovery_proportion_is_small_on_average() -> None:
    shares, power = [], []
    for seed in range(12):
        X, y = signal(200, 60, seed, rho=0.5)
        chosen = (
            KnockoffSelector(fdr=0.2, random_state=seed, cv=3, n_alphas=8).fit(X, y).get_support()
        )
        shares.append(chosen[20:].sum() / max(1, chosen.sum()))
        power.append(chosen[:20].mean())
    # 12 repetitions: three standard errors of a proportion of 0.2 with spread 0.1 are 0.09.
    assert np.mean(shares) < 0.29
    assert np.mean(power) > 0.8


def test_the_seed_of_the_data_may_be_that_of_the_knockoffs() -> None:
    X = np.random.default_rng(0).standard_normal((300, 20))
    made = gaussian_knockoffs(X, rng=0)
    found = np.array([np.corrcoef(X[:, j], made[:, j])[0, 1] for j in range(20)])
    assert np.abs(found + 1 / 3).max() < 0.3  # 1 - s = -1/3, of independent columns


@pytest.mark.parametrize(
    ("norm", "groups"),
    [("ksupport", None), ("l1", "pairs"), ("ksupport", "pairs")],
    ids=["k-support", "groups", "k-support of groups"],
)
def test_other_norms_and_groups(norm: str, groups: str | None) -> None:
    X, y = signal(250, 60, 1)
    labels = None if groups is None else np.arange(60) // 2
    the_norm: Any = norms.KSupport(5) if norm == "ksupport" else norm
    found = KnockoffSelector(the_norm, 0.25, random_state=0, groups=labels, n_alphas=8, cv=3).fit(
        X, y
    )
    assert found.statistics_.size == (60 if groups is None else 30)
    assert found.get_support()[:20].all()
    assert found.get_support()[20:].sum() <= 12


def test_labels_several_classes_and_counts() -> None:
    X, _ = signal(400, 40, 2)
    rng = np.random.default_rng(0)
    score = X[:, :12] @ np.full(12, 1.2)
    two = np.array(["no", "yes"])[(score + rng.standard_normal(400) > 0).astype(int)]
    three = np.digitize(score, [-1.5, 1.5])
    counts = rng.poisson(np.exp(0.25 * score))
    for y, loss in ((two, "auto"), (three, "auto"), (counts, "poisson")):
        found = KnockoffSelector(fdr=0.3, random_state=0, loss=loss, n_alphas=6, cv=3).fit(X, y)
        assert found.get_support()[:12].mean() > 0.6
        # One draw may have more false ones than 0.3 on average; all at once would be a fault.
        assert found.statistics_[:12].min() > np.median(found.statistics_[12:])
        assert found.get_support()[12:].mean() < 0.6


def test_several_draws_agree_on_what_is_strong() -> None:
    X, y = signal(300, 60, 3)
    found = KnockoffSelector(fdr=0.2, n_draws=4, random_state=0, n_alphas=8, cv=3).fit(X, y)
    assert found.e_values_ is not None
    assert found.get_support()[:20].all()
    assert not found.get_support()[20:].any()
    assert found.coefficients_.shape == (4, 60, 2)


def test_near_duplicates_are_found_and_selected_as_one() -> None:
    rng = np.random.default_rng(1)
    base = rng.standard_normal((300, 40))
    near = base[:, :30] * np.where(np.arange(30) % 2, -1.0, 1.0)
    X = np.hstack([base, near + 0.1 * rng.standard_normal((300, 30))])
    labels = near_duplicates(standardized(X)[0])
    assert (labels[:30] == labels[40:]).all()
    assert np.unique(labels).size == 40
    # The mean of a pair points where its first column does, and varies nearly as much.
    means = means_of(standardized(X)[0], labels)
    for j in (0, 1, 35):
        assert np.corrcoef(means[:, labels[j]], X[:, j])[0, 1] > 0.99
    # In a chain not all pairs are near each other: no group of all of them.
    chain = autoregressive(300, 40, 0.97, 0)
    found = near_duplicates(standardized(chain)[0])
    correlations = np.abs(np.corrcoef(chain.T))
    same = found[:, None] == found
    assert correlations[same].min() > 0.95
    assert 3 < np.unique(found).size < 40
    y = X[:, :20] @ np.full(20, 0.6) + rng.standard_normal(300)
    both = KnockoffSelector(groups="auto", random_state=0).fit(X, y).get_support()
    assert both[:20].mean() > 0.9
    np.testing.assert_array_equal(both[:30], both[40:])
    with pytest.warns(UserWarning, match="60 columns are in 30 clusters"):
        alone = KnockoffSelector(random_state=0).fit(X, y).get_support()
    assert alone[:20].mean() < 0.5


# --- stability -------------------------------------------------------------------------------


def test_probabilities_count_the_halves() -> None:
    X, y = signal(120, 15, 0)
    base = Lasso(alpha=0.5)
    found = StabilitySelector(base, n_resamples=6, random_state=1).fit(X, y)
    rng, counts = np.random.default_rng(1), np.zeros(15)
    for _ in range(3):
        order = rng.permutation(120)
        for rows in (order[:60], order[60:]):
            counts += Lasso(alpha=0.5).fit(X[np.sort(rows)], y[np.sort(rows)]).coef_ != 0
    np.testing.assert_allclose(found.selection_probabilities_, counts / 6)
    assert found.n_selected_ == pytest.approx(counts.sum() / 6)
    assert found.expected_false_ == found.bounds_["unimodal"] <= found.bounds_[
        "meinshausen_buhlmann"]  # fmt: skip


@pytest.mark.parametrize("threshold", [0.6, 0.9])
def test_the_bounds_are_their_formulas_and_ordered(threshold: float) -> None:
    q, p, pairs = 20.0, 1000, 50
    plain = meinshausen_buhlmann(q, p, threshold)
    assert plain == pytest.approx(q**2 / ((2 * threshold - 1) * p))
    assert unimodal(q, p, threshold, pairs) <= plain


def test_noise_is_below_the_bound_and_signal_is_found() -> None:
    rng = np.random.default_rng(0)
    false, bounds = [], []
    for seed in range(5):
        X = rng.standard_normal((100, 100))
        y = X[:, :3].sum(axis=1) * 2 + rng.standard_normal(100)
        model = StabilitySelector(
            AtomicRegressor(tol=1e-3), n_resamples=20, threshold=0.75,
            random_state=seed, n_features=6, alphas=np.geomspace(3.0, 0.1, 8),
        ).fit(X, y)  # fmt: skip
        assert model.get_support()[:3].all()
        false.append(int(model.get_support()[3:].sum()))
        bounds.append(model.expected_false_)
        assert model.n_selected_ <= 6
    assert np.mean(false) <= np.mean(bounds) + 0.5


def test_copies_of_columns_share_what_they_explain() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    X = np.hstack([X, X, X[:, :2].sum(axis=1, keepdims=True)])
    y = X[:, :3].sum(axis=1) + rng.standard_normal(60)
    model = StabilitySelector(
        AtomicRegressor(), 10, random_state=0, alphas=[0.5, 0.2, 0.05], n_features=8
    ).fit(X, y)
    assert model.n_selected_ <= 8
    pairs = model.selection_probabilities_[:20].reshape(2, 10).sum(axis=0)
    assert pairs[2] >= 0.9  # the others may be told by their sum


@pytest.mark.parametrize(
    "model",
    [
        AtomicRegressor(tol=1e-8),
        AtomicRegressor(norms.KSupport(3), form="squared", tol=1e-8),
        AtomicClassifier(tol=1e-8),
        AtomicRegressor(loss="huber", fit_intercept=False, tol=1e-8),
    ],
    ids=["lasso", "k-support", "logistic", "huber"],
)
def test_halves_that_are_read_together_select_what_each_would(model: Any) -> None:
    X, y = signal(100, 40, 0)
    alphas = None if isinstance(model, AtomicClassifier) else [0.3, 0.1, 0.05]
    target = (y > 0).astype(int) if isinstance(model, AtomicClassifier) else y
    together = StabilitySelector(model.set_params(alpha=0.1), 6, random_state=0, alphas=alphas)
    alone = clone(together)
    together.fit(X, target)
    alone.fit(X, target, sample_weight=None)  # what is passed on to fit asks for one at a time
    np.testing.assert_array_equal(together.selection_probabilities_, alone.selection_probabilities_)


def test_anything_that_selects_may_be_resampled() -> None:
    X, y = signal(100, 10, 0)
    labels = (y > 0).astype(int)
    for model, target in (
        (AtomicClassifier(alpha=0.1), labels),
        (LogisticRegression(), labels),
        (FeatureGenerator(n_features=3, batch=1, loss="logistic", standardize=True), labels),
        (AtomicRegressor(norms.KSupport(3), 0.1, form="squared"), y),
        (AtomicRegressor("groups", 0.05, features="splines"), y),
    ):
        found = StabilitySelector(model, n_resamples=4, random_state=0).fit(X, target)
        assert found.selection_probabilities_.shape == (10,)
        assert (
            0 <= found.selection_probabilities_.min() <= found.selection_probabilities_.max() <= 1
        )
    grouped = StabilitySelector(
        AtomicRegressor(alpha=0.3), 4, random_state=0, groups=np.arange(10) // 5
    )
    assert grouped.fit(X, y).selection_probabilities_.shape == (2,)
    with pytest.raises(ValueError, match="threshold must be above"):
        StabilitySelector(threshold=0.5).fit(X, y)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"covariance": np.eye(3)}, "4 x 4 finite numbers.*got shape \\(3, 3\\)"),
        ({"covariance": np.full((4, 4), np.nan)}, "4 x 4 finite numbers.*NaN"),
        ({"n_draws": 2.5}, "n_draws must be a whole number"),
    ],
)
def test_what_cannot_be_drawn_from_is_told(given: dict[str, Any], said: str) -> None:
    X, y = signal(30, 4, 0)
    with pytest.raises((TypeError, ValueError), match=said):
        KnockoffSelector(**given).fit(X, y)


def test_groups_of_names_are_those_of_numbers() -> None:
    X, y = signal(100, 20, 0)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(20)])
    pairs = np.arange(20).reshape(10, 2)
    one = KnockoffSelector(fdr=0.3, random_state=0, groups=pairs.tolist()).fit(X, y)
    named = [[f"g{j}" for j in pair] for pair in pairs.tolist()]
    two = KnockoffSelector(fdr=0.3, random_state=0, groups=named).fit(frame, y)
    np.testing.assert_allclose(one.statistics_, two.statistics_, rtol=1e-9)


def test_noise_selects_nothing_mostly() -> None:
    rng = np.random.default_rng(0)
    counts = []
    for seed in range(5):
        X = rng.standard_normal((100, 50))
        y = rng.standard_normal(100)
        counts.append(
            KnockoffSelector(random_state=seed, cv=3, n_alphas=6).fit(X, y).get_support().any()
        )
    assert sum(counts) <= 2


def test_knockoffs_tell_each_category_as_one() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{j}": rng.standard_normal(300) for j in range(12)})
    for j in range(6):
        table[f"c{j}"] = pd.Categorical(rng.choice(["a", "b", "c"], 300))
    table["text"], table["whole"] = rng.choice(["u", "v"], 300), pd.array([1, 2, 3] * 100, "Int64")
    true = ["x0", "x1", "x2", "x3", "c0", "c1", "c2", "text"]
    y = rng.standard_normal(300)
    for name in true:
        y += table[name] if name[0] == "x" else 2.0 * (table[name].isin(["a", "u"]))
    found = KnockoffSelector(fdr=0.2, random_state=0).fit(table, y)
    assert found.statistics_.shape == (20,)
    assert set(true) <= set(found.get_feature_names_out())
    assert list(found.set_output(transform="pandas").transform(table).columns) == list(
        found.get_feature_names_out()
    )
    # Indicator columns with their groups are the same as the categories themselves.
    read = datasets.read(table.assign(y=y), "y")
    kept = [name for name in table if name != "text"]
    both = KnockoffSelector(fdr=0.2, random_state=0, groups=read.groups).fit(read.X, y)
    assert len(both.statistics_) == len(kept) + 1
    assert set(np.array(read.feature_names)[both.get_support()]) >= {"x0", "c0=a", "c0=b", "c0=c"}
    # Gaps are filled as those of the estimators are.
    gaps = table.assign(c0=table["c0"].where(table.index > 3))
    assert "c0" in KnockoffSelector(fdr=0.2, random_state=0).fit(gaps, y).get_feature_names_out()
    with pytest.raises(ValueError, match="'one' of X: the same value in all rows"):
        KnockoffSelector().fit(table.assign(one="u"), y)
    with pytest.raises(ValueError, match="X has categories"):
        KnockoffSelector(groups="auto").fit(table, y)


def test_what_replaces_dependent_columns_spans_the_same() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    X = np.column_stack([rng.standard_normal(200), np.eye(4)[codes], rng.standard_normal((200, 2))])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    turned, labels = independent(X, np.array([0, 1, 1, 1, 1, 2, 2]))
    assert labels.tolist() == [0, 1, 1, 1, 2, 2]
    made = X @ turned
    assert independent(X, np.array([0, 1, 1, 1, 2, 3, 3]))[0] is None
    assert_allclose(made[:, [0, 4, 5]], X[:, [0, 5, 6]])  # these do not depend on each other
    assert_allclose(made[:, 1:4].T @ made[:, 1:4] / 200, np.eye(3), atol=1e-12)
    left = made[:, 1:4] @ np.linalg.lstsq(made[:, 1:4], X[:, 1:5], rcond=None)[0] - X[:, 1:5]
    assert np.abs(left).max() < 1e-12


def test_knockoffs_of_sparse_columns_are_those_of_dense_ones() -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((150, 20), density=0.3, rng=rng, format="csr")
    y = X @ np.ones(20) + rng.standard_normal(150)
    sparse, dense = (KnockoffSelector(random_state=0).fit(each, y) for each in (X, X.toarray()))
    assert_allclose(sparse.statistics_, dense.statistics_)


def test_stability_without_an_estimator_does_not_depend_on_units():
    """An alpha of 1 is in units of the target: it selects all of a large one, none of a small."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 12))
    base = X[:, :3] @ [3.0, -2.0, 1.0] + rng.normal(size=60)
    plain = StabilitySelector(n_resamples=10, random_state=0).fit(X, base)
    assert plain.get_support(indices=True).tolist() == [0, 1]
    assert plain.bounds_["meinshausen_buhlmann"] <= 1.0
    for y in (1e6 * (base + 300.0), 1e-6 * (base - 1e5), 1e-9 * base):
        other = StabilitySelector(n_resamples=10, random_state=0).fit(X, y)
        np.testing.assert_array_equal(
            other.selection_probabilities_, plain.selection_probabilities_
        )
    labels = base > 0
    named = StabilitySelector(AtomicClassifier(), 4, random_state=0, alphas="auto").fit(X, labels)
    assert set(named.get_support(indices=True)) <= {0, 1, 2}
    with pytest.raises(ValueError, match="alphas must be an array, or 'auto' for AtomicRegressor"):
        StabilitySelector(LogisticRegression(), alphas="auto").fit(X, labels)
    with pytest.raises(ValueError, match="got alphas='all'"):
        StabilitySelector(alphas="all").fit(X, base)


def test_halves_keep_the_squares_of_the_penalty() -> None:
    """Halves that share readings select what single fits select, at each alpha and l1_ratio."""
    X, y = signal(120, 30, 0, rho=0.5)
    alphas = np.geomspace(2.0, 0.5, 3)
    one, other = (
        StabilitySelector(model, 6, random_state=0, alphas=alphas).fit(X, y)
        for model in (AtomicRegressor(l1_ratio=0.4, tol=1e-9), ElasticNet(l1_ratio=0.4, tol=1e-9))
    )
    assert 0 < one.selection_probabilities_.mean() < 1
    np.testing.assert_array_equal(one.selection_probabilities_, other.selection_probabilities_)
