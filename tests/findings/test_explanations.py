"""Twins and explanations against what they stand for, by another way."""

from __future__ import annotations

import csv
import json
from itertools import combinations
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from atomlearn import AtomicClassifier, AtomicRegressor, norms
from atomlearn.cli import main
from atomlearn.designs import as_design
from atomlearn.findings import explain, twins
from atomlearn.findings.twins import correlated_columns


def data(n: int = 120, p: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 5] = X[:, 0] + 0.2 * rng.standard_normal(n)
    return X, X[:, 0] - 2 * X[:, 1] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["regression", "classes", "k-support"])
def test_the_rise_is_that_of_a_fit_without_the_column(kind: str) -> None:
    X, y = data()
    norm = norms.KSupport(2) if kind == "k-support" else norms.L1()
    form = "squared" if kind == "k-support" else "penalized"
    if kind == "classes":
        y = (y > 0).astype(int)
    make = AtomicClassifier if kind == "classes" else AtomicRegressor
    model = make(norm, 0.1, form=form, tol=1e-9).fit(X, y)
    for twin in twins(model, X, y, most=3):
        others = np.delete(np.arange(12), twin.feature)
        without = make(norm, 0.1, form=form, tol=1e-9).fit(X[:, others], y)
        rise = without.objective_ / model.objective_ - 1
        assert twin.rise == pytest.approx(rise, abs=2 * twin.rise_error + 1e-7)
    # x0 and x5 are twins; which of them is selected is the model's affair.
    found = {twin.name: twin for twin in twins(model, X, y, most=3)}
    one, other = ("x0", "x5") if "x0" in found else ("x5", "x0")
    assert found[one].replaced_by[0] == other
    assert found[one].correlated[0][0] == other


def test_correlations_are_pearsons() -> None:
    X, _ = data()
    near = correlated_columns(as_design(X), [0], 2, least=0.0)
    whole = np.corrcoef(X.T)[0]
    for column, r in near[0]:
        assert r == pytest.approx(whole[column])
    assert near[0][0][0] == 5


def shapley(value, n: int) -> np.ndarray:
    """Return Shapley values of ``value(set)`` for n players by their definition."""
    found = np.zeros(n)
    for player in range(n):
        others = [j for j in range(n) if j != player]
        for size in range(n):
            for group in combinations(others, size):
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                found[player] += weight * (value({*group, player}) - value(set(group)))
    return found


@pytest.mark.parametrize("features", ["linear", "quadratic", "splines"])
def test_explanations_are_shapley_values(features: str) -> None:
    X, y = data(60, 6)
    y = y + X[:, 0] * X[:, 1]
    model = AtomicRegressor(alpha=0.05, features=features).fit(X, y)
    found = explain(model, X[:4], X)
    predicted = model.predict(X[:4])
    np.testing.assert_allclose(found.decisions[:, 0], predicted, atol=1e-9)
    used = found.inputs.tolist()
    for row in range(2):

        def value(players: set[int], row: int = row) -> float:
            mixed = X.copy()
            for player in players:
                mixed[:, used[player]] = X[row, used[player]]
            return float(model.predict(mixed).mean())

        np.testing.assert_allclose(
            found.contributions[row, :, 0], shapley(value, len(used)), atol=1e-8
        )


def test_models_of_scikit_learn_are_explained_and_surfaces_refused() -> None:
    X, y = data()
    model = LogisticRegression().fit(X, y > 0)
    found = explain(model, X[:5], X)
    np.testing.assert_allclose(found.decisions[:, 0], model.decision_function(X[:5]))
    surfaces = AtomicRegressor("groups", 0.05, features="anova").fit(X[:, :3], X[:, 0] * X[:, 1])
    with pytest.raises(ValueError, match="surfaces"):
        explain(surfaces, X[:5, :3])


def write(path: Path, X: np.ndarray, y: np.ndarray) -> Path:
    rows = ["y," + ",".join(f"g{j}" for j in range(X.shape[1]))]
    rows += [",".join(repr(float(v)) for v in (t, *x)) for x, t in zip(X, y, strict=True)]
    path.write_text("\n".join(rows))
    return path


def test_the_command_line_explains_and_controls_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 60))
    table = write(tmp_path / "d.csv", X, X[:, :15].sum(axis=1) + rng.standard_normal(200))
    given = [str(table), "--target", "y", "--quiet"]
    for option in (["--fdr", "0.1"], ["--stability"]):
        out = tmp_path / option[0].strip("-")
        assert main(["select", *given, *option, "--out", str(out)]) == 0
        summary = json.loads((out / "summary.json").read_text())
        assert summary["verdict"] == "better"
        with (out / "selected.csv").open() as stream:
            chosen = {int(row["index"]) for row in csv.DictReader(stream)}
        # One draw may have more false ones than a tenth, which holds on average.
        assert len(chosen - set(range(15))) <= 8
        assert chosen & set(range(15))
        assert option[0].strip("-") in ("fdr", "stability")
        page = (out / "report.html").read_text()
        assert ("knockoffs: of the features" if "fdr" in option[0] else "random halves") in page
    model, told = tmp_path / "fdr" / "model.json", tmp_path / "why.csv"
    assert main(["predict", str(model), str(table), "--explain", str(told),
                 "--out", str(tmp_path / "p.csv")]) == 0  # fmt: skip
    with told.open() as stream:
        rows = list(csv.reader(stream))
    with (tmp_path / "p.csv").open() as stream:
        predicted = [float(row["prediction"]) for row in csv.DictReader(stream)]
    for row, value in zip(rows[1:], predicted, strict=True):
        assert sum(map(float, row[3:])) == pytest.approx(float(row[2])) == pytest.approx(value)
    assert main(["select", *given, "--fdr", "0.1", "--norm", "l1", "--out", str(tmp_path)]) == 2
