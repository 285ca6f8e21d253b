"""P-values, power and knockoffs take the data frames that the estimators take."""

from __future__ import annotations

import numpy as np
import pandas as pd

from atomlearn import AtomicRegressor, KnockoffSelector
from atomlearn.findings import estimates, p_values, power


def _table() -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with words, dates and gaps, and a target of g0 and of stage III."""
    rng = np.random.default_rng(0)
    n_rows = 300
    table = pd.DataFrame(rng.standard_normal((n_rows, 8)), columns=[f"g{j}" for j in range(8)])
    table["stage"] = rng.choice(["I", "II", "III"], n_rows)
    table["when"] = pd.date_range("2020-01-01", periods=n_rows)
    y = 2 * table["g0"] + 2 * (table["stage"] == "III") + rng.standard_normal(n_rows)
    table.loc[rng.random(n_rows) < 0.1, "g0"] = np.nan
    return table, y.to_numpy()


def test_p_values_of_a_table_are_those_of_its_numbers() -> None:
    table, y = _table()
    tests = p_values(table, y)
    numbers = table.assign(g0=table["g0"].fillna(table["g0"].median()))
    numbers["when"] = (table["when"] - table["when"].min()).dt.days
    for label in ("II", "III"):
        numbers[label] = (table["stage"] == label) * 1.0
    numbers = numbers[[*(f"g{j}" for j in range(8)), "II", "III", "when"]]
    same = p_values(numbers.to_numpy(), y, groups=[*range(8), 8, 8, 9])
    np.testing.assert_allclose(tests.p_values, same.p_values, rtol=1e-6)
    assert tests.selected(fdr=0.01) == [0, 8, 9]
    assert "effect of stage=II, stage=III: p = " in str(tests)
    [unit] = p_values(table, y, columns=["stage"]).units
    assert unit.tolist() == [8, 9]


def test_power_of_a_table_is_that_of_its_numbers() -> None:
    table, _ = _table()
    curve = power(KnockoffSelector(fdr=0.3, random_state=0), table, [5.0], n_true=5, n_draws=1)
    assert curve.found.shape == (1,)


def test_planned_covariates_beside_many_columns_have_errors_as_of_least_squares() -> None:
    """A covariate is not among the free columns that its own direction is cleared of."""
    rng = np.random.default_rng(3)
    n_rows = 150
    X = rng.standard_normal((n_rows, 203))
    y = X[:, 200:] @ [0.5, 0.5, 0.0] + rng.standard_normal(n_rows)
    planned = [200, 201, 202]
    model = AtomicRegressor(alpha=0.1, unpenalized=planned).fit(X, y)
    found = estimates(model, X, y, planned)
    known = np.column_stack([X[:, 200:], np.ones(n_rows)])
    coefficients, square, *_ = np.linalg.lstsq(known, y, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(known.T @ known)) * square[0] / (n_rows - 4))[:3]
    widths = np.diff(found.intervals, axis=1)[:, 0]
    np.testing.assert_array_less(np.abs(found.values - coefficients[:3]), 2.5 * errors)
    np.testing.assert_array_less(widths, 2 * 3.92 * errors)
