"""Survival times from file to file: what is fitted, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicSurvival, FeatureGenerator
from atomlearn.losses import survival_target
from atomlearn.reports import read_model
from atomlearn.reports.survival_displays import at_risk, kaplan_meier
from tests.oracles.commands import rows, run, written

N, P = 200, 12


def made() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, P)) * 2.0 ** rng.integers(-2, 3, P) + 5.0
    risk = 1.5 * (X[:, 2] - 5.0) / X[:, 2].std() - 1.5 * (X[:, 7] - 5.0) / X[:, 7].std()
    times, censored = rng.exponential(np.exp(-risk)), rng.exponential(2.0, N)
    return X, np.minimum(times, censored), times <= censored


@pytest.fixture
def study(tmp_path: Path) -> Path:
    X, time, event = made()
    columns = {f"x{j}": x for j, x in enumerate(X.T.tolist())}
    columns |= {"days": time.tolist(), "died": event.astype(int).tolist()}
    return written(columns, tmp_path / "study.csv")


def select(path: Path, *words: object) -> int:
    given = ["select", path, "--time", "days", "--event", "died", "--quiet"]
    return run(*given, "--out", path.parent / "out", *words)


def predicted(model: Path, data: Path, *words: object) -> np.ndarray:
    out = data.parent / "p.csv"
    assert run("predict", model, data, "--out", out, *words) == 0
    return np.array([float(row["prediction"]) for row in rows(out)])


def test_generation_equals_the_estimator_and_is_judged_by_concordance(study: Path) -> None:
    assert select(study, "--n-features", 2, "--gap", 1e-8) == 0
    out = study.parent / "out"
    assert {f.name for f in out.iterdir()} >= {"selected.csv", "model.json", "summary.json"}
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["task"], summary["target"]) == ("survival", "days until died")
    assert (summary["verdict"], summary["score_name"]) == ("better", "concordance")
    assert summary["score"] > 0.75
    assert summary["proved_gap"] <= 1e-8
    model = read_model(out / "model.json")
    assert (model.task, model.loss, model.classes) == ("survival", "cox", None)
    X, time, event = made()
    twin = FeatureGenerator(2, C=10.0, loss="cox", tol=1e-8, selected_tol=5e-9, standardize=True)
    twin.fit(X, survival_target(event, time))
    assert {item.name for item in model.inputs} == {"x2", "x7"}
    assert_allclose(predicted(out / "model.json", study), X @ twin.coef_, rtol=1e-3)
    page = (out / "report.html").read_text()
    assert "raises the hazard" in page
    assert "survival" in page


def test_a_norm_at_a_level_equals_the_estimator_with_its_baseline(study: Path) -> None:
    words = ["--norm", "l1", "--alpha", 0.1, "--gap", 1e-9, "--no-standardize"]
    assert select(study, *words) == 0
    X, time, event = made()
    twin = AtomicSurvival("l1", 0.1, tol=1e-9).fit(X, survival_target(event, time))
    file = study.parent / "out" / "model.json"
    scores = predicted(file, study)
    assert_allclose(scores, predicted(file.parent, study), rtol=0)  # the folder that was written
    assert_allclose(scores, twin.predict(X), rtol=1e-6, atol=1e-7)
    settings = read_model(file).settings
    assert_allclose(settings["baseline_times"], twin.unique_times_)
    row = np.exp(scores[0] - settings["baseline_score"]) * np.array(settings["baseline_hazard"])
    expected = twin.predict_cumulative_hazard_function(X[:1], return_array=True)[0]
    assert_allclose(row, expected, rtol=1e-5)


def test_the_level_is_chosen_by_cross_validation(study: Path) -> None:
    assert select(study, "--norm", "l1") == 0
    file = study.parent / "out" / "model.json"
    model = read_model(file)
    assert "cross-validation on 150 rows" in model.settings["alpha_chosen_by"]
    assert {"x2", "x7"} <= {item.name for item in model.inputs}
    X, time, event = made()
    scales = X.std(axis=0)
    twin = AtomicSurvival("l1", model.settings["alpha"]).fit(
        (X - X.mean(axis=0)) / scales, survival_target(event, time)
    )
    assert_allclose(predicted(file, study), X @ (twin.coef_ / scales), rtol=1e-3)
    assert "AtomicSurvival(alpha=" in (study.parent / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--event", ""], "--time goes with --event"),
        (["--target", "x1"], "--target does not go with"),
        (["--n-features", "auto"], "give a number"),
        (["--fdr", "0.1"], "--fdr does not go with"),
        (["--task", "regression"], "--task does not go with"),
        (["--event", "x3"], "must say 1 (seen) or 0"),
        (["--time", "nowhere"], "nowhere"),
        (["--loss", "squared"], "does not fit a survival"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    study: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if words == ["--event", ""]:
        arguments = ["select", str(study), "--time", "days", "--out", str(study.parent / "out")]
        assert run(*arguments) == 2
    else:
        assert select(study, *words) == 2
    said = capsys.readouterr().err
    assert told in said
    assert not (study.parent / "out").exists()


def test_an_offset_of_the_fit_is_an_option_of_the_prediction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(5)
    x, years = rng.standard_normal((N, 3)), rng.uniform(1.0, 9.0, N)
    counts = rng.poisson(years * np.exp(0.5 * x[:, 0]))
    path = tmp_path / "counts.csv"
    table = np.column_stack([x, years, np.log(years), counts])
    np.savetxt(path, table, delimiter=",", header="a,b,c,years,log_years,n", comments="")
    out = tmp_path / "out"
    given = ["select", path, "--target", "n", "--loss", "poisson", "--exposure", "years"]
    given += ["--drop", "log_years", "--n-features", 2, "--quiet", "--out", out]
    assert run(*given) == 0
    capsys.readouterr()
    plain = predicted(out / "model.json", path)
    assert "fitted with --exposure years" in capsys.readouterr().err
    assert_allclose(predicted(out / "model.json", path, "--exposure", "years"), plain * years)
    assert_allclose(predicted(out / "model.json", path, "--offset", "log_years"), plain * years)
    assert not capsys.readouterr().err.count("fitted with")
    model = str(out / "model.json")
    assert run("predict", model, path, "--exposure", "a") == 2
    assert "positive numbers" in capsys.readouterr().err


def test_start_and_stop_strata_and_the_pictures_of_held_out_rows(tmp_path: Path) -> None:
    """Coefficients are those of the estimator on (start, stop] in strata."""
    rng, n = np.random.default_rng(5), 240
    X, start = rng.standard_normal((n, 5)), rng.integers(0, 3, n).astype(float)
    length = rng.exponential(np.exp(-X[:, 1]))
    stop, site = start + np.minimum(length, 2.0) + 1e-3, np.repeat(["A", "B"], n // 2)
    died = length < 2.0
    columns = {f"x{j}": x for j, x in enumerate(X.T.tolist())}
    columns |= {"start": start.tolist(), "stop": stop.tolist(), "site": site.tolist()}
    path = written(columns | {"died": died.astype(int).tolist()}, tmp_path / "visits.csv")
    words = ["select", path, "--time", "stop", "--event", "died", "--entry", "start", "--quiet"]
    words += ["--norm", "l1", "--alpha", 0.02, "--no-standardize", "--gap", 1e-9]
    assert run(*words, "--stratum", "site", "--out", tmp_path / "out") == 0
    model = read_model(tmp_path / "out" / "model.json")
    twin = AtomicSurvival(alpha=0.02, tol=1e-9)
    twin.fit(X, survival_target(died, stop, start, site))
    assert [f.name for f in model.features] == [f"x{j}" for j in twin.selected_]
    assert_allclose(model.coefficients[0], twin.coef_[twin.selected_], atol=1e-4)
    assert "baseline_hazard" not in model.settings  # each stratum has its own
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert any(note.startswith("time-varying: a row is at risk") for note in summary["notes"])
    assert run(*words, "--drop", "site", "--out", tmp_path / "two") == 0
    page = (tmp_path / "two" / "report.html").read_text()
    for words_of_the_page in ("Held-out rows without an event", "Calibration at a time", "at risk"):
        assert words_of_the_page in page


def test_kaplan_meier_by_hand() -> None:
    """Three rows enter at 0, one at 2: the product of 1 - events / rows at risk."""
    y = survival_target([True, False, True, True], [1.0, 2.5, 3.0, 4.0], [0.0, 0.0, 0.0, 2.0])
    times, left = kaplan_meier(y)
    assert times.tolist() == [1.0, 3.0, 4.0]
    assert_allclose(left, [2 / 3, 2 / 3 / 2, 0.0])
    assert at_risk(y, np.array([1.0, 2.5, 4.0])).tolist() == [3.0, 3.0, 1.0]
