"""Survival times from file to file: what is fitted, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicSurvival, FeatureGenerator, report
from atomlearn.losses import survival_target
from atomlearn.reports import read_model
from atomlearn.reports.survival_displays import CalibratedAtDisplay, at_risk, kaplan_meier
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
    found = rows(out)
    if "prediction" in found[0]:
        return np.array([float(row["prediction"]) for row in found])
    file = model / "model.json" if model.is_dir() else model
    center = read_model(file).settings["baseline_score"]  # ratios are against the mean row
    return np.array([float(row["log_hazard_ratio"]) for row in found]) + center


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
    assert settings["baseline_score"] == pytest.approx(twin.predict(X).mean(), abs=1e-6)
    assert settings["followed_until"] == time.max()
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
        (["--at", "1e9"], "beyond the last time of days"),
        (["--at", "soon"], "times such as 365,1825"),
        (["--competing"], "no competing event"),
        (["--event", "died=7"], "no label '7'"),
        (["--reference", "x1=2"], "'x1' is no category"),
        (["--intervals", "--additive", "splines"], "give --covariates NAMES"),
        (["--fdr", "0.1"], "--fdr does not go with"),
        (["--task", "regression"], "--task does not go with"),
        (["--event", "x3"], "x3 has 200 different values; expected a column of a few labels"),
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


def test_start_and_stop_strata_and_the_pictures_of_held_out_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    given = "predict", tmp_path / "out", path, "--at", "1,2"
    assert run(*given, "--out", tmp_path / "risks.csv") == 0
    found = pd.read_csv(tmp_path / "risks.csv")[["risk by 1", "risk by 2"]].to_numpy()
    codes = (site == "B").astype(int)
    curves = twin.predict_survival_function(X, stratum=codes)
    assert_allclose(found, [[1 - curve(1.0), 1 - curve(2.0)] for curve in curves], atol=1e-4)
    other = written(columns | {"site": ["C"] * n}, tmp_path / "others.csv")
    assert run("predict", tmp_path / "out", other, "--at", "1") == 2
    assert "stratum 'C': it has 'A', 'B'" in capsys.readouterr().err
    no_site = {name: values for name, values in columns.items() if name != "site"}
    lacking = written(no_site, tmp_path / "lacking.csv")
    assert run("predict", tmp_path / "out", lacking, "--at", "1") == 2
    assert "stratum" in capsys.readouterr().err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert any(note.startswith("time-varying: a row is at risk") for note in summary["notes"])
    assert run(*words, "--drop", "site", "--out", tmp_path / "two") == 0
    page = (tmp_path / "two" / "report.html").read_text()
    for words_of_the_page in ("Held-out rows without an event", "Calibration at a time", "at risk"):
        assert words_of_the_page in page


def test_the_page_of_a_fit_is_checked_at_the_times_asked_for(tmp_path: Path) -> None:
    X, time, event = made()
    y = survival_target(event, time)
    model = AtomicSurvival(alpha=0.05, standardize=True).fit(X, y)
    report(model, X, y, tmp_path / "report.html", n_resamples=0, at=[0.2, 0.5])
    page = (tmp_path / "report.html").read_text()
    assert "at time 0.2" in page
    assert "at time 0.5" in page


def test_kaplan_meier_by_hand() -> None:
    """Three rows enter at 0, one at 2: the product of 1 - events / rows at risk."""
    y = survival_target([True, False, True, True], [1.0, 2.5, 3.0, 4.0], [0.0, 0.0, 0.0, 2.0])
    times, left = kaplan_meier(y)
    assert times.tolist() == [1.0, 3.0, 4.0]
    assert_allclose(left, [2 / 3, 2 / 3 / 2, 0.0])
    assert at_risk(y, np.array([1.0, 2.5, 4.0])).tolist() == [3.0, 3.0, 1.0]


def test_aalen_and_johansen_by_hand() -> None:
    """Of four rows one has the other event: 1 - 1/4, then less 1/2 of all rows at once."""
    y = survival_target([1, 2, 0, 1], [1.0, 2.0, 3.0, 4.0], observed=1, competing=2)
    times, left = kaplan_meier(y)
    assert times.tolist() == [1.0, 4.0]
    assert_allclose(left, [3 / 4, 1 / 4])
    shown = CalibratedAtDisplay.of(y, lambda time: np.full(4, 0.1 * time), (1.0, 4.0))
    assert list(shown.labels) == ["at time 1", "at time 4"]
    assert_allclose(shown.points, [[[0.1], [0.75]], [[0.4], [0.25]]])


def clinic(tmp_path: Path) -> Path:
    """Return a study with three labels of status, a category of three levels, and a gap."""
    rng, n = np.random.default_rng(8), 220
    age, dose = rng.normal(60.0, 9.0, n).round(1), rng.normal(size=n).round(3)
    arm = rng.choice(["drug", "placebo", "surgery"], n)
    rate = np.exp(0.05 * (age - 60.0) + 0.8 * dose - 0.7 * (arm == "drug"))
    times = np.stack([rng.exponential(900.0 / rate), rng.exponential(2500.0, n)])
    ends = rng.uniform(300.0, 3000.0, n)
    status = np.where(times.min(axis=0) < ends, np.where(times[0] < times[1], 2, 1), 0)
    columns = {"patient": [f"P{i:03d}" for i in range(n)], "age": age.tolist()}
    columns |= {"arm": arm.tolist(), "dose": [*dose[:-3].tolist(), "", "", ""]}
    columns |= {"noise": rng.normal(size=n).tolist(), "status": status.tolist()}
    days = np.minimum(times.min(axis=0), ends).round(1)
    return written(columns | {"days": days.tolist()}, tmp_path / "clinic.csv")


def test_a_study_from_its_codes_to_risks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Codes, forced covariates with a reference level, ratios, risks, remarks."""
    path = clinic(tmp_path)
    words = ["select", path, "--time", "days", "--event", "status=2", "--missing", "median"]
    words += ["--covariates", "age,arm", "--reference", "arm=placebo", "--at", "365,1000"]
    words += ["--n-features", 1, "--quiet"]
    assert run(*words, "--intervals", "--out", tmp_path / "cause") == 0
    said = capsys.readouterr()
    assert "hazard ratio (95%)" in said.out
    assert "95% intervals of the covariates hold if the model has all columns" in said.err
    assert "'1' (" in said.err
    assert "is another event, censored at its time" in said.err
    assert "arm=drug (vs placebo)" in said.out
    table = {row["feature"]: row for row in rows(tmp_path / "cause" / "selected.csv")}
    assert {name: row["role"] for name, row in table.items()} == {
        "dose": "selected",
        "age": "covariate",
        "arm=drug": "covariate",
        "arm=surgery": "covariate",
    }
    assert table["arm=drug"]["reference"] == "placebo"
    assert table["age"]["rank"] == ""
    ratio = float(table["arm=drug"]["hazard_ratio"])
    assert ratio == pytest.approx(np.exp(float(table["arm=drug"]["coefficient"])), rel=1e-12)
    value, low, high, p = (
        float(table["age"][key]) for key in ("estimate", "lower", "upper", "estimate_p")
    )
    assert 1.0 < low < value < high
    assert p < 1e-3
    assert float(table["arm=drug"]["upper"]) < 1.0
    assert table["dose"]["estimate"] == ""
    summary = json.loads((tmp_path / "cause" / "summary.json").read_text())
    assert any(warning.startswith("values of columns") for warning in summary["warnings"])
    assert any("dose 1.4% (3)" in warning for warning in summary["warnings"])
    page = (tmp_path / "cause" / "report.html").read_text()
    for shown in ("at time 365", "at time 1000", "arm=drug (vs placebo)", "(strata: 1); status: "):
        assert shown in page

    new = tmp_path / "new.csv"
    new.write_text("patient,age,arm,dose\nA7,60,drug,0.1\nB8,130,placebo,\n")
    assert run("predict", tmp_path / "cause", new, "--out", tmp_path / "p.csv") == 0
    said = capsys.readouterr()
    assert "age: 1 of 2 values are outside" in said.err
    assert "such as 130 of id B8" in said.err
    assert "dose: 1 of 2 values are missing, such as that of id B8; filled with" in said.err
    assert "events 1 were censored: risks are those of a world without them" in said.err
    first, second = rows(tmp_path / "p.csv")
    assert [*first] == ["id", "log_hazard_ratio", "risk by 365", "risk by 1000", "remark"]
    assert (first["id"], first["remark"]) == ("A7", "")
    assert second["remark"].startswith("age 130 is outside ")
    assert "; dose is missing, filled with " in second["remark"]
    assert 0.0 < float(first["risk by 365"]) < float(first["risk by 1000"]) < 1.0
    model = read_model(tmp_path / "cause" / "model.json")
    settings = model.settings
    place = np.searchsorted(settings["baseline_times"], 365.0, side="right") - 1
    hazard = settings["baseline_hazard"][place] * np.exp(float(first["log_hazard_ratio"]))
    assert float(first["risk by 365"]) == pytest.approx(1.0 - np.exp(-hazard), rel=1e-9)
    new.write_text("patient,age,arm,dose\nA7,60,herbs,0.1\n")
    assert run("predict", tmp_path / "cause", new) == 2
    assert "column 'arm' of" in (told := capsys.readouterr().err)
    assert "'herbs'" in told

    assert run(*words, "--competing", "--out", tmp_path / "shares") == 0
    assert "1' (" in (told := capsys.readouterr().err)
    assert "is a competing event" in told
    assert run("predict", tmp_path / "shares", path, "--out", tmp_path / "q.csv") == 0
    assert run("predict", tmp_path / "cause", path, "--out", tmp_path / "p.csv") == 0
    capsys.readouterr()
    name = "risk by 1000"
    shares, causes = (
        np.mean([float(row[name]) for row in rows(tmp_path / file)]) for file in ("q.csv", "p.csv")
    )
    assert shares < causes - 0.02  # the other event takes some of the rows away
    assert run("predict", tmp_path / "cause", path, "--at", "5000") == 2
    assert "beyond the last time that was observed" in capsys.readouterr().err


def test_the_number_of_features_of_survival_times_is_chosen(study: Path) -> None:
    words = ["--n-features", "auto", "--test-fraction", 0, "--drop", "x0,x1,x3,x4,x5"]
    assert select(study, *words) == 0
    assert {row["feature"] for row in rows(study.parent / "out" / "selected.csv")} == {"x2", "x7"}
