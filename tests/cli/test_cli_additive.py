"""`atomlearn select --additive`: curves in the report and the model file, predictions from both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from atomlearn.reports import read_model
from tests.oracles.commands import rows, run, written


def table(path: Path, kind: str, n: int = 240) -> Path:
    """y is cos(2 a) + c^2 and noise, in columns of different units; classes cut it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 6))
    y = np.cos(2 * X[:, 0]) + X[:, 2] ** 2 + 0.1 * rng.standard_normal(n)
    X *= [1, 10, 100, 1000, 1, 1]
    cuts = {"regression": [], "two": [0.5], "three": [0.33, 0.67]}[kind]
    target = y.tolist()
    if cuts:
        target = [f"c{code}" for code in np.digitize(y, np.quantile(y, cuts))]
    return written(dict(zip("abcdefy", [*X.T.tolist(), target], strict=True)), path)


@pytest.mark.parametrize(
    ("kind", "additive"),
    [
        ("regression", ["--additive"]),
        ("two", ["--additive", "intersection"]),
        ("three", ["--additive"]),
    ],
)
def test_curves_are_selected_drawn_saved_and_read_back(tmp_path, kind, additive, capsys):
    data, out = table(tmp_path / "data.csv", kind), tmp_path / "out"
    arguments = ["--target", "y", "--n-features", 2, "--batch", 1, "--out", out, "--quiet"]
    assert run("select", data, *arguments, *additive) == 0
    selected = rows(out / "selected.csv")
    assert {"a", "c"} <= {row["feature"] for row in selected}
    if kind != "three":
        assert len(selected) == 2
        assert ": 2 of 6 features were" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "What each feature adds" in page
    assert page.count("<svg") >= len(selected)
    assert "NaN" not in page
    assert run("predict", out / "model.json", data, "--out", tmp_path / "p.csv") == 0
    predicted = [row["prediction"] for row in rows(tmp_path / "p.csv")]
    truth = [row["y"] for row in rows(data)]
    if kind == "regression":
        errors = np.array(predicted, dtype=float) - np.array(truth, dtype=float)
        assert errors.var() < 0.1 * np.array(truth, dtype=float).var()
    else:
        assert np.mean(np.array(predicted) == np.array(truth)) > 0.85


def test_predictions_are_the_sum_of_the_saved_curves(tmp_path):
    data, out = table(tmp_path / "data.csv", "regression"), tmp_path / "out"
    for extra in (["--norm", "l1", "--alpha", 0.1], ["--norm", "ksupport:k=2", "--alpha", 0.1]):
        arguments = ["--target", "y", "--additive", "gaussian", *extra, "--out", out, "--quiet"]
        assert run("select", data, *arguments) == 0
        model = read_model(out / "model.json")
        content = json.loads((out / "model.json").read_text())
        expected = np.full(240, content["intercepts"][0])
        given = rows(data)
        for feature in content["features"]:
            x = np.array([float(row[feature["name"]]) for row in given])
            levels = np.array(feature["curve"]["levels"])
            place = np.argmin(np.abs(x[:, None] - levels), axis=1)
            expected += np.array(feature["curve"]["values"][0])[place]
        assert {feature.name for feature in model.features} >= {"a", "c"}
        assert run("predict", out / "model.json", data, "--out", tmp_path / "p.csv") == 0
        predicted = [float(row["prediction"]) for row in rows(tmp_path / "p.csv")]
        np.testing.assert_allclose(predicted, expected, rtol=1e-10, atol=1e-10)


def test_cross_validation_of_curves(tmp_path):
    data, out = table(tmp_path / "data.csv", "two", 120), tmp_path / "out"
    arguments = ["--target", "y", "--additive", "--norm", "l1", "--out", out, "--quiet"]
    assert run("select", data, *arguments) == 0
    assert {"a", "c"} <= {row["feature"] for row in rows(out / "selected.csv")}


def test_damaged_curves_are_refused(tmp_path):
    data, out = table(tmp_path / "data.csv", "regression", 60), tmp_path / "out"
    run("select", data, "--target", "y", "--additive", "--out", out, "--quiet")
    text = (out / "model.json").read_text()
    for change, message in (
        ({"levels": [1.0, 1.0]}, "increasing"),
        ({"levels": [1.0, float("1e999")]}, "finite|Infinity"),
        ({"factors": [0, 0]}, "of a curve one"),
        ({"values": None}, "list"),
    ):
        content = json.loads(text)
        feature = content["features"][0]
        (feature if "factors" in change else feature["curve"]).update(change)
        (out / "model.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            read_model(out / "model.json")


def test_a_time_limit_holds_while_curves_are_made(tmp_path):
    data, out = table(tmp_path / "data.csv", "two"), tmp_path / "out"
    arguments = ["--target", "y", "--n-features", 2, "--batch", 1, "--out", out, "--quiet"]
    limit = ["--time-limit", 1e-6]
    assert run("select", data, *arguments, "--additive", *limit) == 0
    assert read_model(out / "model.json").certificates[0].status == "TIME_LIMIT"
    assert not rows(out / "selected.csv")
    page = (out / "report.html").read_text()
    assert "raise --time-limit" in page
    assert "not to the gap asked for" in page
