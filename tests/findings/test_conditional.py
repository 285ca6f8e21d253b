"""p-values of features given all others: by their definition, their level, and their groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh
from scipy.stats import chi2
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression

from atomlearn.findings import conditional_importance, p_values
from atomlearn.findings.gaussian import knockoffs_of
from atomlearn.findings.importance import coefficients, loss_for
from atomlearn.findings.precision import standardized
from atomlearn.losses import survival_target
from atomlearn.norms import L1


def autoregressive(n: int, p: int, rho: float, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def test_each_value_is_of_a_lasso_without_the_column_and_what_others_do_not_explain() -> None:
    """Nothing of ours in the fits: scikit-learn's lasso, without each column that is used."""
    rng, p = np.random.default_rng(0), 12
    X = autoregressive(80, p, 0.6, rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] - 0.4 * X[:, 5] + rng.standard_normal(80)
    known = 0.6 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    alpha = coefficients(X, y, L1(), loss_for(y, "auto"), 20, "auto", 0)[1]
    pairs = [[0, 1], [5], [7]]
    tests = p_values(X, y, covariance=known)
    joint = p_values(X, y, pairs[0], groups=[[0, 1]], covariance=known)
    for unit, told in zip([[j] for j in range(p)] + [[0, 1]], [*tests.p_values, *joint.p_values],
                          strict=True):  # fmt: skip
        others = np.setdiff1d(np.arange(p), unit)
        r = y - Lasso(alpha=alpha, tol=1e-10).fit(X[:, others], y).predict(X[:, others])
        slopes = np.linalg.solve(known[np.ix_(others, others)], known[np.ix_(others, unit)])
        sums = (X[:, unit] - X[:, others] @ slopes) * r[:, None]
        # Along each direction the larger one of two variances: robust, and of rows drawn anew.
        e, spread = sums / r[:, None], np.mean((r - r.mean()) ** 2)
        sizes, along = eigh(sums.T @ sums, e.T @ e * spread)
        square = np.sum((along.T @ sums.sum(axis=0)) ** 2 / np.maximum(sizes, 1.0))
        assert told == pytest.approx(chi2.sf(square, len(unit)), rel=0.03, abs=1e-12)
    assert [unit.tolist() for unit in joint.units] == [[0, 1]]


@pytest.mark.parametrize("kind", ["numbers", "classes", "three", "times"])
def test_columns_without_an_effect_are_small_as_often_as_promised(kind: str) -> None:
    """Beside a strong effect on a neighbor, which a test that is not conditional would tell."""
    small, strong = [], []
    for seed in range(8 if kind in ("numbers", "classes") else 2):
        rng = np.random.default_rng(seed)
        X = autoregressive(150, 30, 0.7, rng)
        score = X[:, 10]
        y = score + rng.standard_normal(150)
        if kind == "classes":
            y = np.where(y > 0, "yes", "no")
        elif kind == "three":
            y = np.digitize(y, [-0.7, 0.7])
        elif kind == "times":
            y = survival_target(rng.random(150) < 0.8, rng.exponential(np.exp(-score)))
        found = p_values(X, y).p_values
        strong.append(found[10])
        small.append(np.delete(found, 10) <= 0.05)
    assert np.mean(small) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / np.size(small)) + 0.01
    assert np.max(strong) < 0.01


@pytest.mark.parametrize("skewed", [False, True])
def test_rare_columns_are_no_finding_where_few_rows_matter(skewed: bool) -> None:
    """Alleles of 2% of 500 people, noise: 5% cases, of whom often none is a carrier, or amounts."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        X = rng.binomial(2, 0.02, (500, 40)).astype(float)
        y = np.exp(rng.standard_normal(500)) if skewed else rng.permutation(np.arange(500) < 25)
        found.append(p_values(X, y).p_values)
    for level in (0.05, 0.002):
        error = np.sqrt(level * (1 - level) / np.size(found))
        assert np.mean(np.array(found) <= level) <= level + 2 * error


def test_a_column_with_a_heavy_tail_is_found_by_all_of_its_rows() -> None:
    """The robust variance would be that of its largest row."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 6])
        X = rng.standard_t(2, (200, 10))
        found.append(p_values(X, X[:, 3] / X[:, 3].std() + 2 * rng.standard_normal(200)).p_values)
    assert np.median(np.array(found)[:, 3]) < 1e-6
    assert np.mean(np.delete(found, 3, axis=1) <= 0.05) < 0.1


def test_the_law_never_takes_columns_for_less_dependent_than_they_are() -> None:
    """Columns like genotypes, which knockoffs are drawn of by Ledoit-Wolf."""
    rng = np.random.default_rng(0)
    X = sum((autoregressive(150, 80, 0.9, rng) > 0.5).astype(float) for _ in range(2))
    with pytest.warns(UserWarning, match="Ledoit-Wolf"):
        assert knockoffs_of(standardized(X)[0]).covariance == "ledoit_wolf"
    y = X[:, 3] + rng.standard_normal(150)
    assert "nearest" in p_values(X, y, [3]).law


def test_a_cluster_is_found_where_its_columns_alone_are_not() -> None:
    rng = np.random.default_rng(1)
    blocks = np.repeat(rng.standard_normal((150, 8)), 5, axis=1)
    X = pd.DataFrame(blocks + 0.1 * rng.standard_normal(blocks.shape)).add_prefix("g")
    y = blocks[:, 10] + rng.standard_normal(150)
    together = p_values(X, y, groups="auto")
    assert [unit.tolist() for unit in together.units][2] == [10, 11, 12, 13, 14]
    assert together.selected(1e-6) == [10, 11, 12, 13, 14]
    with pytest.warns(UserWarning, match="40 columns are in 8 clusters"):
        assert p_values(X, y, X.columns[10:15]).p_values.min() > 1e-3
    one = p_values(X, y, ["g12"], groups="auto")
    assert len(one.units) == 1
    assert one.p_values[0] == pytest.approx(together.p_values[2])
    condition, sentence = one.sentences(list(X.columns))
    assert sentence.startswith("effect of g10, g11, g12, g13, g14: p = ")
    assert "where rows are independent" in condition  # no value without its condition


def test_importance_on_rows_left_out_is_of_what_a_column_has_of_its_own() -> None:
    rng = np.random.default_rng(2)
    X = autoregressive(300, 6, 0.8, rng)
    y = X[:, 2] + rng.standard_normal(300)
    found = conditional_importance(LinearRegression(), X, y, n_draws=99)
    assert found.p_values[2] == 0.01
    assert found.sizes[2] > 5 * np.abs(np.delete(found.sizes, 2)).max()
    # The loss rises by twice the variance that no other column explains, times the slope squared.
    assert found.sizes[2] == pytest.approx(2 * (1 - 0.8**2) / (1 + 0.8**2), rel=0.35)
    labels = (y > 0).astype(int)
    assert conditional_importance(LogisticRegression(), X, labels, [2]).p_values[0] == 0.005
    twin = np.column_stack([X, X[:, 2] + 0.05 * rng.standard_normal(300)])
    with pytest.warns(UserWarning, match="2 columns are in 1 clusters"):
        alone = conditional_importance(LinearRegression(), twin, y)
    both = conditional_importance(LinearRegression(), twin, y, groups="auto")
    assert both.sizes[2] > 2 * alone.sizes[2]
    assert both.units[2].tolist() == [2, 6]


def test_a_constant_column_has_no_finding_and_bad_input_is_told() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.standard_normal((60, 3)), np.ones(60)])
    y = X[:, 0] + rng.standard_normal(60)
    found = p_values(X, y)
    assert found.p_values[3] == 1.0
    assert found.p_values[0] < 0.01
    with pytest.raises(ValueError, match="60 rows and y has 59"):
        p_values(X, y[:-1])
    with pytest.raises(ValueError, match="not among the 4 columns"):
        p_values(X, y, [4])
