"""The command line and Python give the same answers: the report says which line to write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    KnockoffSelector,
    StabilitySelector,
    norms,
)
from atomlearn.cli.arguments import build_parser
from atomlearn.cli.fitting import fit
from atomlearn.cli.plan import read_plan
from atomlearn.cli.select import select
from atomlearn.cli.source import read_source
from atomlearn.cli.watching import Watch
from atomlearn.reports import read_model

NAMES = {
    "AtomicClassifier": AtomicClassifier,
    "AtomicRegressor": AtomicRegressor,
    "AtomicRegressorCV": AtomicRegressorCV,
    "FeatureGenerator": FeatureGenerator,
    "KFold": KFold,
    "KSupport": norms.KSupport,
    "KnockoffSelector": KnockoffSelector,
    "L1": norms.L1,
    "StabilitySelector": StabilitySelector,
    "StandardScaler": StandardScaler,
    "array": np.array,
    "make_pipeline": make_pipeline,
}


def _data(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 60)) * 10.0 ** rng.uniform(-2, 2, 60) + rng.standard_normal(60)
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ (rng.standard_normal(60) * (np.arange(60) < 25))
    z += rng.standard_normal(200)
    if kind == "regression":
        return X, z
    return X, np.digitize(z, np.quantile(z, [0.5] if kind == "classes" else [0.3, 0.6]))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("regression", ["--n-features", "20"]),
        ("classes", ["--n-features", "20", "--loss", "squared_hinge", "--no-standardize"]),
        ("regression", ["--norm", "l1", "--alpha", "0.1"]),
        ("three classes", ["--n-features", "10", "--loss", "squared_hinge"]),
        ("three classes", ["--norm", "ksupport:k=4", "--alpha", "0.01"]),
        ("regression", ["--fdr", "0.2"]),
        ("regression", ["--stability"]),
    ],
)
def test_the_line_in_the_report_selects_the_same(
    kind: str, words: list[str], tmp_path: Path
) -> None:
    X, y = _data(kind)
    np.savez(tmp_path / "d.npz", X=X, y=y)
    line = ["select", str(tmp_path / "d.npz"), "--out", str(tmp_path), "--test-fraction", "0"]
    options = build_parser().parse_args([*line, *words])
    options.given = line
    plan = read_plan(options)
    source = read_source(options, plan, lambda text: None)
    rows = np.arange(y.size)
    fitted = fit(source.design(), source.target, rows, plan, Watch(quiet=True), source.given)
    model = eval(fitted.in_python, NAMES).fit(X, y)
    last = model[-1] if "pipeline" in fitted.in_python else model
    columns = np.flatnonzero(np.atleast_2d(last.coef_).any(axis=0))
    if "Selector" in fitted.in_python:
        columns = model[-2].get_support(indices=True)[columns]
    assert_allclose(columns, fitted.columns)
    decisions = (model.predict if kind == "regression" else model.decision_function)(X)
    shown = fitted.decisions(source.design(), rows)
    assert "OneVsRest" not in fitted.in_python
    assert_allclose(decisions.reshape(shown.shape), shown, rtol=1e-4, atol=1e-3)


def test_settings_in_the_model_are_those_of_the_fit_on_all_rows(tmp_path: Path) -> None:
    X, y = _data("regression")
    np.savez(tmp_path / "d.npz", X=X[:, :8], y=y)
    words = ["select", str(tmp_path / "d.npz"), "--norm", "l1", "--cv", "--quiet"]
    options = build_parser().parse_args([*words, "--out", str(tmp_path / "out")])
    options.given = words
    assert select(options) == 0
    settings = json.loads((tmp_path / "out" / "model.json").read_text())["settings"]
    assert settings["rows_fitted"] == 200
    assert settings["alpha_chosen_by"] == "5-fold cross-validation on 150 rows"
    scaled = StandardScaler().fit_transform(X[:, :8])
    again = AtomicRegressor("l1", settings["alpha"]).fit(scaled, y)
    written = read_model(tmp_path / "out" / "model.json").coefficients[0]
    used = np.flatnonzero(again.coef_)
    assert_allclose(written, again.coef_[used] / X[:, used].std(axis=0), rtol=1e-3)


def test_the_last_round_is_as_exact_as_asked_for() -> None:
    X, y = _data("regression")
    X = StandardScaler().fit_transform(X)
    rough = FeatureGenerator(20, 4, loss="squared").fit(X, y)
    exact = FeatureGenerator(20, 4, loss="squared", selected_tol=1e-9).fit(X, y)
    assert exact.selected_gap_ is not None
    assert exact.selected_gap_ <= 1e-9
    assert exact.selected_.tolist() == rough.selected_.tolist()
