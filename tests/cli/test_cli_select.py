"""`atomlearn select` and `atomlearn predict` from file to file, through main([...])."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import PolynomialFeatures

from atomlearn import norms
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.core import Progress
from atomlearn.reports import read_model
from atomlearn.solvers import FeatureGeneration
from tests.oracles.commands import rows, run, written
from tests.oracles.sums import solve_sum

N_SAMPLES, N_FEATURES = 120, 12
TRUE = (1, 4, 7)


def make_data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return X in units that differ by 10^4 from column to column, and a clean linear signal."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    signal = X[:, TRUE].sum(axis=1) + 0.1 * rng.standard_normal(N_SAMPLES)
    return 3.0 + X * 10.0 ** rng.integers(-2, 3, N_FEATURES), signal


@pytest.fixture
def classes_csv(tmp_path: Path) -> Path:
    X, signal = make_data()
    columns = {f"gene {j}": x for j, x in enumerate(X.T.tolist())}
    labels = np.where(signal > 0, "sick", "healthy")
    return written(columns | {"outcome": labels}, tmp_path / "data.csv")


@pytest.fixture
def numbers_csv(tmp_path: Path) -> Path:
    X, signal = make_data()
    columns = {f"v{j}": x for j, x in enumerate(X.T.tolist())}
    return written(columns | {"price": signal.tolist()}, tmp_path / "numbers.csv")


# --- the three formats, end to end -----------------------------------------------------------


def test_csv_n_features_finds_the_true_ones_and_predicts_again(
    classes_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, predictions = tmp_path / "out", tmp_path / "predictions.csv"
    assert run("select", classes_csv, "--target", "outcome", "--n-features", 3, "--out", out) == 0
    captured = capsys.readouterr()
    assert "held-out accuracy" in captured.out
    assert "always the largest class" in captured.out
    assert (out / "report.html").as_uri() in captured.out
    assert "proved gap" not in captured.err
    assert " s to select and test" in captured.err
    selected = rows(out / "selected.csv")
    assert {int(row["index"]) for row in selected} == set(TRUE)
    assert [row["rank"] for row in selected] == ["1", "2", "3"]
    assert selected[0]["feature"] == f"gene {selected[0]['index']}"
    assert run("predict", out / "model.json", classes_csv, "--out", predictions) == 0
    predicted = [row["prediction"] for row in rows(predictions)]
    truth = [row["outcome"] for row in rows(classes_csv)]
    assert np.mean([p == t for p, t in zip(predicted, truth, strict=True)]) > 0.95


def test_coefficients_are_in_data_units_and_predictions_follow_from_the_table(
    numbers_csv: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("--norm", "l1", "--alpha", 0.01, "--out", out, "--quiet")
    assert run("select", numbers_csv, "--target", "price", *arguments) == 0
    assert run("predict", out / "model.json", numbers_csv, "--out", tmp_path / "p.csv") == 0
    X, _ = make_data()
    model = read_model(out / "model.json")
    expected = np.full(N_SAMPLES, model.intercepts[0])
    for row in rows(out / "selected.csv"):
        expected += float(row["coefficient"]) * X[:, int(row["index"])]
        deviation = X[:, int(row["index"])].std()
        assert float(row["standardized_coefficient"]) == pytest.approx(
            float(row["coefficient"]) * deviation, rel=1e-10
        )
    predicted = [float(row["prediction"]) for row in rows(tmp_path / "p.csv")]
    np.testing.assert_allclose(predicted, expected, rtol=1e-12, atol=1e-10)


def test_the_model_is_the_certified_optimum_on_all_rows(numbers_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--norm", "ksupport:k=2", "--alpha", 0.05, "--gap", 1e-8, "--out", out)
    assert run("select", numbers_csv, "--target", "price", *arguments) == 0
    X, y = make_data()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    reference = solve_sum(
        scaled,
        y,
        norm=norms.KSupport(k=2),
        form="squared",
        level=0.05 * N_SAMPLES,
        fit_intercept=True,
        tol=1e-10,
    )
    model = read_model(out / "model.json")
    [certificate] = model.certificates
    assert certificate.status == "CONVERGED"
    assert certificate.relative_gap <= 1e-8
    objective = reference.objective / N_SAMPLES
    assert certificate.objective == pytest.approx(objective, rel=1e-8)
    assert [feature.index for feature in model.features] == reference.columns.tolist()
    scores = model.scores(X[:, [item.index for item in model.inputs]])[:, 0]
    mine = 0.5 * np.mean((y - scores) ** 2)
    best = 0.5 * np.mean((y - scaled @ reference.coef - reference.intercept) ** 2)
    assert mine == pytest.approx(best, rel=1e-4)


def test_libsvm_sparse_and_compressed(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = sp.random(150, 40, density=0.2, format="csr", random_state=rng)
    dense = X.toarray()
    y = np.where(dense[:, 3] + dense[:, 8] - dense[:, 20] > 0.05, 1, -1)
    path = tmp_path / "data.svm.gz"
    with gzip.open(path, "wb") as stream:
        dump_svmlight_file(X, y, stream, zero_based=False)
    out = tmp_path / "out"
    assert run("select", path, "--n-features", 3, "--out", out, "--quiet") == 0
    selected = rows(out / "selected.csv")
    assert {row["feature"] for row in selected} == {"x4", "x9", "x21"}
    assert run("predict", out / "model.json", path, "--out", tmp_path / "p.csv") == 0
    told = rows(tmp_path / "p.csv")
    scores = np.array([float(row["score[1]"]) for row in told])
    model = read_model(out / "model.json")
    by_hand = dense[:, [f.index for f in model.features]] @ model.coefficients[0]
    np.testing.assert_allclose(scores, by_hand + model.intercepts[0], rtol=1e-10, atol=1e-10)
    assert np.mean([int(row["prediction"]) == t for row, t in zip(told, y, strict=True)]) > 0.85


def test_npz_with_names_and_classes_predicts_in_any_column_order(tmp_path: Path) -> None:
    X, signal = make_data()
    path, shuffled = tmp_path / "data.npz", tmp_path / "shuffled.npz"
    names = np.array([f"probe_{j}" for j in range(N_FEATURES)])
    y = (signal > 0).astype(np.int64)
    np.savez(path, X=X, y=y, classes=np.array(["ALL", "AML"]), features=names)
    order = np.random.default_rng(1).permutation(N_FEATURES)
    np.savez(shuffled, X=X[:, order], features=names[order])
    out = tmp_path / "out"
    assert run("select", path, "--n-features", 4, "--out", out, "--quiet") == 0
    model = read_model(out / "model.json")
    assert model.classes == ("ALL", "AML")
    for data, name in ((path, "a.csv"), (shuffled, "b.csv")):
        assert run("predict", out / "model.json", data, "--out", tmp_path / name) == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    probability = float(rows(tmp_path / "a.csv")[0]["probability[AML]"])
    score = float(rows(tmp_path / "a.csv")[0]["score[AML]"])
    assert probability == pytest.approx(1 / (1 + np.exp(-score)), rel=1e-12)


def test_npz_without_names_goes_by_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, signal = make_data()
    np.savez(tmp_path / "data.npz", X=X, y=signal)
    out = tmp_path / "out"
    assert run("select", tmp_path / "data.npz", "--n-features", 3, "--out", out, "--quiet") == 0
    assert {row["feature"] for row in rows(out / "selected.csv")} == {"x1", "x4", "x7"}
    # A loss of numbers settles that whole numbers are no classes.
    np.savez(tmp_path / "counts.npz", X=X, y=(signal > 0) + (signal > 1))
    loss = ("--loss", "squared", "--n-features", 3, "--out", tmp_path / "c", "--quiet")
    assert run("select", tmp_path / "counts.npz", *loss) == 0
    assert read_model(tmp_path / "c" / "model.json").task == "regression"
    np.savez(tmp_path / "narrow.npz", X=X[:, :5])
    capsys.readouterr()
    assert run("predict", out / "model.json", tmp_path / "narrow.npz") == 2
    assert "5 columns" in capsys.readouterr().err


# --- options ---------------------------------------------------------------------------------


def test_cross_validation_chooses_among_norms(numbers_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--norm", "ksupport:k=1,3", "--cv", "--gap", 1e-4, "--out", out, "--quiet")
    assert run("select", numbers_csv, "--target", "price", *arguments) == 0
    settings = read_model(out / "model.json").settings
    assert settings["norm"] in ("KSupport(k=1)", "KSupport(k=3)")
    assert settings["alpha"] > 0
    assert "5-fold cross-validation on 90 rows" in settings["alpha_chosen_by"]
    selected = rows(out / "selected.csv")
    assert {1, 4, 7} <= {int(row["index"]) for row in selected}


def test_many_classes_share_their_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 9))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, [0, 3, 6]], axis=1)]
    np.savez(tmp_path / "d.npz", X=X, y=y)
    out = tmp_path / "out"
    assert run("select", tmp_path / "d.npz", "--n-features", 3, "--out", out) == 0
    selected = rows(out / "selected.csv")
    assert {0, 3, 6} == {int(row["index"]) for row in selected}
    assert len(read_model(out / "model.json").certificates) == 1
    assert {f"coefficient[{label}]" for label in "abc"} <= set(selected[0])
    assert run("predict", out / "model.json", tmp_path / "d.npz", "--out", out / "p.csv") == 0
    told = rows(out / "p.csv")
    assert np.mean([row["prediction"] == t for row, t in zip(told, y, strict=True)]) > 0.8
    total = sum(float(told[0][f"probability[{label}]"]) for label in "abc")
    assert total == pytest.approx(1.0, abs=1e-12)
    assert "One fit for each class" not in (out / "report.html").read_text()


def test_positive_makes_one_against_rest(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((90, 5))
    np.savez(tmp_path / "d.npz", X=X, y=rng.integers(0, 4, 90))
    out = tmp_path / "out"
    arguments = ("--positive", "1,3", "--n-features", 2, "--out", out, "--quiet")
    assert run("select", tmp_path / "d.npz", *arguments) == 0
    assert read_model(out / "model.json").classes == ("not 1, 3", "1, 3")


def test_interactions_have_names_and_predict_from_the_plain_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((200, 6))
    y = X[:, 0] * X[:, 3] + X[:, 5] ** 2
    columns = dict(zip("abcdef", X.T.tolist(), strict=True))
    path = written(columns | {"t": y.tolist()}, tmp_path / "d.csv")
    out = tmp_path / "out"
    arguments = ("--target", "t", "--interactions", "--n-features", 2, "--C", 1e4, "--out", out)
    assert run("select", path, *arguments, "--quiet") == 0
    selected = rows(out / "selected.csv")
    assert {row["feature"] for row in selected} == {"a:d", "f^2"}
    names = (out / "report.html").read_text().partition('aria-label="Interactions"')[2]
    assert re.findall(r">([a-f])</text>", names)[:6] == ["a", "d", "f"] * 2
    powers = PolynomialFeatures(2, include_bias=False).fit(X).powers_
    for row in selected:
        assert (powers[int(row["index"])].sum(), len(powers)) == (2, 27)
    assert [item.name for item in read_model(out / "model.json").inputs] == ["a", "d", "f"]
    assert run("predict", out / "model.json", path, "--out", tmp_path / "p.csv") == 0
    predicted = [float(row["prediction"]) for row in rows(tmp_path / "p.csv")]
    np.testing.assert_allclose(predicted, y, atol=0.05)


@pytest.mark.parametrize(
    ("storage", "flag"),
    [("sparse", "--standardize"), ("dense", "--no-standardize")],
)
def test_products_too_many_to_be_listed(
    storage: str, flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs are scaled instead of products: the written model is in units of the data."""
    monkeypatch.setattr("atomlearn.estimators.units.MOST_LISTED", 20)
    rng = np.random.default_rng(9)
    X = rng.standard_normal((2000, 8))
    if flag == "--standardize":
        X *= 10.0 ** rng.integers(-2, 3, 8)
    if storage == "sparse":
        X *= rng.random(X.shape) < 0.045
    y = 3 * X[:, 2] / X[:, 2].std() + 2 * X[:, 5] ** 2 / X[:, 5].var()
    name = tmp_path / "d.npz"
    if storage == "sparse":
        name = tmp_path / "d.svm"
        dump_svmlight_file(X, y, str(name))
    else:
        np.savez(name, X=X, y=y)
    out = tmp_path / "out"
    arguments = ("--interactions", "--n-features", 2, "--C", 1e5, "--task", "regression", flag)
    assert run("select", name, *arguments, "--out", out, "--quiet") == 0
    model = read_model(out / "model.json")
    assert model.n_features == 8 + 36
    assert {feature.index for feature in model.features} == {2, 8 + 8 + 7 + 6 + 5 + 4}
    assert run("predict", out / "model.json", name, "--out", tmp_path / "p.csv") == 0
    predicted = [float(row["prediction"]) for row in rows(tmp_path / "p.csv")]
    np.testing.assert_allclose(predicted, y, atol=0.02 * np.abs(y).max())
    selected = {row["feature"]: row for row in rows(out / "selected.csv")}
    assert len(selected) == 2
    page = (out / "report.html").read_text()
    assert ("columns divided by their" in page) == (flag == "--standardize")


def test_no_standardize_reports_coefficients_per_deviation(
    numbers_csv: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("--norm", "l1", "--alpha", 0.01, "--no-standardize", "--out", out, "--quiet")
    assert run("select", numbers_csv, "--target", "price", *arguments) == 0
    X, y = make_data()
    reference = solve_sum(X, y, norm="l1", level=0.01 * N_SAMPLES, fit_intercept=True, tol=1e-9)
    for row in rows(out / "selected.csv"):
        index = int(row["index"])
        assert float(row["coefficient"]) == pytest.approx(reference.coef[index], abs=1e-4)
        assert float(row["standardized_coefficient"]) == pytest.approx(
            float(row["coefficient"]) * X[:, index].std(), rel=1e-9
        )


def test_test_fraction_zero_has_no_held_out_scores(
    classes_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ("--target", "outcome", "--n-features", 2, "--test-fraction", 0, "--out", out)
    assert run("select", classes_csv, *arguments) == 0
    captured = capsys.readouterr()
    assert "held-out" not in captured.out
    assert "fitting on all 120 rows" in captured.err
    assert read_model(out / "model.json").settings["rows_fitted"] == N_SAMPLES


def test_fewer_features_than_asked_for_is_said(
    numbers_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a tiny C the optimum itself has fewer features than the twelve there are."""
    out = tmp_path / "out"
    arguments = ("--target", "price", "--n-features", 12, "--batch", 1, "--C", 1e-3, "--out", out)
    assert run("select", numbers_csv, *arguments) == 0
    count = len(rows(out / "selected.csv"))
    assert count < 12
    assert f"{count} of the 12 features asked for have a coefficient" in capsys.readouterr().err
    assert read_model(out / "model.json").certificates[0].status == "CONVERGED"


def test_existing_files_are_replaced_and_no_temporary_ones_stay(
    classes_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "summary.json").write_text('{"format": "atomlearn-summary"}')
    (out / "model.json").write_text("old")
    (out / "mine.txt").write_text("keep")
    arguments = ("--target", "outcome", "--n-features", 2, "--quiet", "--out", out)
    assert run("select", classes_csv, *arguments) == 0
    assert capsys.readouterr().err == ""
    assert sorted(entry.name for entry in out.iterdir()) == [
        "mine.txt",
        "model.json",
        "report.html",
        "selected.csv",
        "summary.json",
    ]
    assert json.loads((out / "model.json").read_text())["version"] == 1


# --- cut short -------------------------------------------------------------------------------


def interrupt_at(monkeypatch: pytest.MonkeyPatch, step: int, fit: int = 1) -> None:
    """Raise KeyboardInterrupt at the given step of the given fit, both counted from 1."""
    watches: list[ProgressPrinter] = []
    seen = 0
    original = ProgressPrinter.__call__

    def note(self: ProgressPrinter, progress: Progress) -> None:
        nonlocal seen
        if not any(watch is self for watch in watches):
            watches.append(self)
        seen += len(watches) == fit
        if seen == step:
            seen += 1
            raise KeyboardInterrupt
        original(self, progress)

    monkeypatch.setattr(ProgressPrinter, "__call__", note)


def test_interrupt_in_the_first_fit_still_writes_everything(
    classes_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt_at(monkeypatch, 4)
    out = tmp_path / "out"
    arguments = ("--target", "outcome", "--n-features", 6, "--batch", 1, "--C", 10, "--out", out)
    assert run("select", classes_csv, *arguments) == 130
    assert "interrupted: this model was fitted to the 90 training rows" in capsys.readouterr().err
    model = read_model(out / "model.json")
    assert model.certificates[0].status == "INTERRUPTED"
    assert len(model.features) == 3
    assert "interrupted from the keyboard" in (out / "report.html").read_text()
    assert run("predict", out / "model.json", classes_csv, "--out", tmp_path / "p.csv") == 0


def test_interrupt_in_the_refit_keeps_the_model_that_was_scored(
    classes_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--target", "outcome", "--norm", "l1", "--alpha", 0.05, "--quiet")
    assert run("select", classes_csv, *arguments, "--out", tmp_path / "whole") == 0
    interrupt_at(monkeypatch, 1, fit=2)
    assert run("select", classes_csv, *arguments, "--out", tmp_path / "cut") == 130
    model = read_model(tmp_path / "cut" / "model.json")
    assert model.settings["rows_fitted"] == 90
    assert model.certificates[0].status == "CONVERGED"
    assert read_model(tmp_path / "whole" / "model.json").settings["rows_fitted"] == 120


def test_interrupt_before_there_is_a_model(
    classes_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FeatureGeneration, "start", interrupted)
    out = tmp_path / "out"
    arguments = ("--target", "outcome", "--n-features", 2, "--out", out)
    assert run("select", classes_csv, *arguments) == 130
    assert "nothing written" in capsys.readouterr().err
    assert not out.exists()


def test_interrupt_before_a_level_is_scored_writes_the_one_that_was_fitted(
    numbers_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = ProgressPrinter.end

    def interrupted(self: ProgressPrinter, progress: Progress) -> None:
        end(self, progress)
        if progress.search:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressPrinter, "end", interrupted)
    out, level = tmp_path / "out", ("--norm", "l1", "--quiet")
    assert run("select", numbers_csv, "--target", "price", *level, "--out", out) == 130
    settings = read_model(out / "model.json").settings
    assert settings["alpha_chosen_by"].startswith("Ctrl-C, before a level was scored")
    assert settings["alpha"] > 0


def test_without_the_extra_the_other_files_are_written(
    classes_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    out = tmp_path / "out"
    arguments = ("--target", "outcome", "--n-features", 2, "--out", out)
    assert run("select", classes_csv, *arguments) == 0
    assert "pip install jinja2 matplotlib" in capsys.readouterr().err
    assert sorted(entry.name for entry in out.iterdir()) == [
        "model.json",
        "selected.csv",
        "summary.json",
    ]


def test_predict_finds_columns_by_name_in_any_order(classes_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("select", classes_csv, "--target", "outcome", "--n-features", 3, "--out", out) == 0
    lines = rows(classes_csv)
    other = {"note": [f"text here {i}" for i in range(len(lines))]}
    other |= {name: [line[name] for line in lines] for name in reversed(lines[0])}
    del other["outcome"]
    others = written(other, tmp_path / "other.csv")
    for data, name in ((classes_csv, "a.csv"), (others, "b.csv")):
        assert run("predict", out / "model.json", data, "--out", tmp_path / name) == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_selected_is_what_has_a_coefficient(tmp_path: Path) -> None:
    """The C that is chosen leaves some of the features that the search takes up at zero."""
    X, noise = np.split(np.random.default_rng(3).standard_normal((300, 6)), [5], axis=1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["y"] = np.where(X[:, 0] + noise[:, 0] > 0, "ill", "well")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "y", "--n-features", 4, "--quiet"]
    assert run("select", tmp_path / "t.csv", *words, "--out", tmp_path / "out") == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    lines = rows(tmp_path / "out" / "selected.csv")
    assert all(float(line["coefficient"]) for line in lines)
    assert summary["n_selected_columns"] == len(lines)
    assert summary["considered"]
    assert not {line["feature"] for line in lines} & set(summary["considered"])
    assert summary["n_selected"] + len(summary["considered"]) == 4
    assert summary["headline"].startswith(f"{summary['n_selected']} of 5 features")
    assert read_model(tmp_path / "out" / "model.json").coefficients.all()
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"with the coefficient 0: {', '.join(summary['considered'])}" in page


def test_a_target_made_of_columns_is_told_in_page_terminal_and_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((400, 2)).round(3), columns=["a", "b"])
    events = (rng.random((400, 3)) < 0.06).astype(int)
    frame[["mi", "stroke", "death"]] = events
    frame["lab"] = np.where(events.any(axis=1), rng.standard_normal(400).round(2), np.nan)
    frame["any_event"] = events.max(axis=1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "any_event", "--n-features", 4, "--C", 1, "--missing", "median"]
    assert run("select", tmp_path / "t.csv", *words, "--out", tmp_path / "out") == 0
    told = [
        "any_event is 1 in just the rows in which mi is 1 or stroke is 1 or death is 1",
        "lab is missing in just the rows in which any_event is 0",
    ]
    printed = capsys.readouterr().out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    for sentence in told:
        assert sentence in " ".join(summary["warnings"])
        assert f"warning: {sentence}" in printed
        assert sentence in page
