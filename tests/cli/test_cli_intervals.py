"""--interval of predictions, and --power of a selection."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from atomlearn import FeatureGenerator
from atomlearn.cli import main
from atomlearn.estimators.prediction_sets import thinned
from atomlearn.findings import estimates
from atomlearn.reports import read_model


def table(path: Path, n: int = 240, classes: bool = False) -> tuple[Path, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 12))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(n)
    y = y > 0 if classes else y
    rows = [[*map(repr, x.tolist()), repr(t)] for x, t in zip(X, y.tolist(), strict=True)]
    header = [*(f"g{j}" for j in range(12)), "y"]
    path.write_text("\n".join(map(",".join, [header, *rows])))
    return path, y


def test_intervals_are_by_the_errors_on_held_out_rows(tmp_path: Path) -> None:
    data, y = table(tmp_path / "d.csv")
    told = ["select", str(data), "--target", "y", "--norm", "l1", "--quiet"]
    assert main([*told, "--out", str(tmp_path)]) == 0
    out = tmp_path / "p.csv"
    given = ["predict", str(tmp_path), str(data), "--out", str(out), "--interval"]
    assert main([*given, "0.8"]) == 0
    with out.open() as stream:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(stream)]
    errors = np.array(read_model(tmp_path / "model.json").settings["held_out_errors"])
    assert errors.size == 60
    far = np.sort(errors)[math.ceil(0.8 * 61) - 1]
    for row in rows[:5]:
        assert row["upper"] - row["prediction"] == pytest.approx(far)
        assert row["prediction"] - row["lower"] == pytest.approx(far)
    held = [row["lower"] <= t <= row["upper"] for row, t in zip(rows, y, strict=True)]
    assert 0.7 < np.mean(held) < 0.95
    assert main([*given, "0.999"]) == 2  # 60 rows do not tell
    assert main([*told, "--test-fraction", "0", "--out", str(tmp_path)]) == 0
    assert main([*given, "0.8"]) == 2


def test_of_times_it_is_the_one_that_events_come_after(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(2), 4000
    X = rng.standard_normal((n, 4)) + 3.0
    times = rng.exponential(np.exp(X[:, 1] - X[:, 0]))
    ends = rng.exponential(3.0, n)
    header = "a,b,c,d,days,died"
    old = np.column_stack([X, np.minimum(times, ends), times <= ends])[: n // 4]
    np.savetxt(tmp_path / "old.csv", old, delimiter=",", header=header, comments="")
    new = np.column_stack([X, times, np.ones(n)])[n // 4 :]
    np.savetxt(tmp_path / "new.csv", new, delimiter=",", header=header, comments="")
    told = ["select", str(tmp_path / "old.csv"), "--time", "days", "--event", "died", "--quiet"]
    assert main([*told, "--norm", "l1", "--alpha", "0.01", "--out", str(tmp_path)]) == 0
    out = tmp_path / "p.csv"
    given = ["predict", str(tmp_path), str(tmp_path / "new.csv"), "--out", str(out), "--interval"]
    assert main([*given, "0.8"]) == 0
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"log_hazard_ratio", "remark", "lower"}
    lower = np.array([float(row["lower"]) for row in rows])
    assert 0.75 < np.mean(times[n // 4 :] >= lower) < 0.86
    assert lower.min() > 0
    assert np.corrcoef(np.log(lower), X[n // 4 :, 1] - X[n // 4 :, 0])[0, 1] > 0.9


def test_classes_have_probabilities_and_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, _ = table(tmp_path / "d.csv", classes=True)
    told = ["select", str(data), "--target", "y", "--n-features", "3", "--quiet"]
    assert main([*told, "--out", str(tmp_path)]) == 0
    assert main(["predict", str(tmp_path), str(data), "--interval", "0.9"]) == 2
    assert "probabilities" in capsys.readouterr().err


def test_many_errors_are_kept_as_fewer_that_are_none_too_small() -> None:
    errors = np.random.default_rng(0).exponential(size=5001)
    kept = np.array(thinned(errors))
    assert kept.size == 1000
    for share in (0.5, 0.9, 0.99):
        of_all = np.sort(errors)[math.ceil(share * 5002) - 1]
        assert of_all <= kept[math.ceil(share * 1001) - 1] < 1.05 * of_all


def test_power_is_told_beside_what_was_selected(tmp_path: Path) -> None:
    data, _ = table(tmp_path / "d.csv", n=160)
    told = ["select", str(data), "--target", "y", "--power", "--quiet", "--out", str(tmp_path)]
    assert main(told) == 2  # it is the power of --fdr
    assert main([*told, "--fdr", "0.5"]) == 0
    notes = json.loads((tmp_path / "summary.json").read_text())["notes"]
    [note] = [note for note in notes if "made up on this X" in note]
    assert note.startswith("of 4 features with an effect")
    assert "effect 0.8: " in note
    assert "effect 0.8" in (tmp_path / "report.html").read_text()


def test_p_values_are_in_the_table_and_in_one_sentence_with_their_condition(
    tmp_path: Path,
) -> None:
    data, _ = table(tmp_path / "d.csv", n=160)
    told = ["select", str(data), "--target", "y", "--norm", "l1", "--alpha", "0.02", "--quiet"]
    assert main([*told, "--p-values", "--out", str(tmp_path)]) == 0
    with (tmp_path / "selected.csv").open() as stream:
        rows = {row["feature"]: row for row in csv.DictReader(stream)}
    assert float(rows["g0"]["p_value"]) < 1e-4
    others = [float(row["p_value"]) for name, row in rows.items() if name not in ("g0", "g1")]
    assert min(others) > 1e-3
    assert all(float(row["p_adjusted"]) >= float(row["p_value"]) for row in rows.values())
    notes = json.loads((tmp_path / "summary.json").read_text())["notes"]
    [note] = [note for note in notes if note.startswith("p-values of no effect given all other")]
    assert "where rows are independent" in note
    assert "g0 " in note
    assert "where rows are independent" in (tmp_path / "report.html").read_text()
    assert main([*told, "--p-values", "--interactions", "--out", str(tmp_path)]) == 2


def test_selected_features_are_estimated_from_the_other_half(tmp_path: Path) -> None:
    data, y = table(tmp_path / "d.csv")
    words = ["select", str(data), "--target", "y", "--n-features", "2", "--C", "1", "--quiet"]
    assert main([*words, "--intervals", "--out", str(tmp_path / "out")]) == 0
    X = np.loadtxt(data, delimiter=",", skiprows=1)[:, :-1]
    model = FeatureGenerator(2, C=1.0, loss="squared", standardize=True).fit(X, y)
    expected = estimates(model, X, y, how="split")
    with (tmp_path / "out" / "selected.csv").open() as stream:
        rows = {int(row["index"]): row for row in csv.DictReader(stream)}
    assert sorted(expected.columns.tolist()) == sorted(rows) == [0, 1]
    for column, value, (low, high) in zip(
        expected.columns.tolist(), expected.values, expected.intervals, strict=True
    ):
        found = [float(rows[column][key]) for key in ("estimate", "lower", "upper")]
        np.testing.assert_allclose(found, [value, low, high], rtol=1e-4)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "intervals of features that half of the rows select hold" in page
    assert f"({float(rows[0]['lower']):.4g} to {float(rows[0]['upper']):.4g})" in page
    words = ["select", str(data), "--target", "y", "--additive", "splines", "--intervals"]
    assert main([*words, "--quiet", "--out", str(tmp_path / "curves")]) == 2
