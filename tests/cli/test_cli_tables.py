"""Tables with gaps, categories, identifiers and roles, from the file to predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atomlearn import FeatureGenerator
from atomlearn.cli import main, targets
from atomlearn.reports import read_model
from tests.oracles.commands import names, rows, run, written

N = 160


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    rng = np.random.default_rng(11)
    age, dose = rng.integers(20, 80, N), rng.standard_normal(N)
    city, sex = rng.choice(["A", "B", "C"], N), rng.choice(["F", "M"], N)
    noise = rng.standard_normal((N, 4))
    y = 0.1 * age + 2.0 * (city == "B") + dose + 0.3 * rng.standard_normal(N)
    places = np.arange(N)
    columns = {
        "id": [f"P{i}" for i in places],
        "age": np.where(places % 10 == 4, "", age.astype(str)),
        "dose": dose.round(6),
        "city": city,
        "sex": sex,
        **{f"n{j + 1}": values.round(6) for j, values in enumerate(noise.T)},
        "w": 1 + places % 2,
        "y": np.where(places < 3, "", y.round(6).astype(str)),
    }
    return written(columns, tmp_path / "patients.csv")


def select(path: Path, *words: object) -> Path:
    out = path.parent / "out"
    arguments = ["select", path, "--target", "y", "--quiet", "--out", out, *words]
    assert run(*arguments) == 0
    return out


def features(out: Path) -> set[str]:
    return names(out / "selected.csv")


def test_gaps_categories_and_names_of_rows(patients: Path, tmp_path: Path) -> None:
    out = select(patients, "--drop", "w", "--missing", "indicator", "--n-features", 3)
    assert features(out) == {"age", "age=missing", "dose", "city=A", "city=B", "city=C"}
    model = read_model(out / "model.json")
    assert model.settings["rows_fitted"] == N - 3
    plan = next(plan for plan in model.columns if plan.name == "age")
    ages = [float(row["age"]) for row in rows(patients)[3:] if row["age"]]
    assert plan.fill == np.median(ages)
    file = tmp_path / "p.csv"
    assert main(["predict", str(out / "model.json"), str(patients), "--out", str(file)]) == 0
    predicted = rows(file)
    assert [row["id"] for row in predicted] == [f"P{i}" for i in range(N)]
    truth = [
        (float(r["prediction"]), float(p["y"]))
        for r, p in zip(predicted, rows(patients), strict=True)
        if p["y"]
    ]
    assert np.corrcoef(np.array(truth).T)[0, 1] > 0.9


def test_covariates_are_in_the_model_beside_what_is_selected(patients: Path) -> None:
    words = ["--drop", "w", "--missing", "median", "--n-features", 1, "--covariates", "sex,n1"]
    out = select(patients, *words)
    summary = json.loads((out / "summary.json").read_text())
    assert features(out) == {"age"}
    assert {item["name"] for item in summary["covariates"]} == {"sex=M", "n1"}
    roles = {row["feature"]: (row["role"], row["reference"]) for row in rows(out / "selected.csv")}
    assert roles == {
        "age": ("selected", ""),
        "sex=M": ("covariate", "F"),
        "n1": ("covariate", ""),
    }
    assert (summary["n_selected"], summary["n_covariates"]) == (1, 2)
    used = {feature.name for feature in read_model(out / "model.json").features}
    assert used == {"age", "sex=M", "n1"}


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["--fdr", 0.1], "group"),
        (["--stability"], "y"),
        (["--n-features", 1], "three"),
        (["--norm", "l1", "--alpha", 1e6], "group"),
    ],
)
def test_covariates_stay_in_the_model_whatever_selects(
    words: list[Any], target: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    genes, age = rng.standard_normal((60, 3)), rng.uniform(20, 80, 60)
    y = age / 10 + rng.standard_normal(60)
    three = np.array(list("pqr"))[np.digitize(y, [4, 6])]
    columns = [*genes.T, age, rng.choice(["f", "m"], 60), y, np.where(y > 5, "ill", "well"), three]
    names = ["g0", "g1", "g2", "age", "sex", "y", "group", "three"]
    data = tmp_path / "data.csv"
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    data.write_text("\n".join([",".join(names), *lines]) + "\n")
    others = sorted({"y", "group", "three"} - {target})
    given = ["--covariates", "age,sex", "--drop", ",".join(others), "--target", target]
    found = read_model(select(data, *given, *words) / "model.json")
    assert {"age", "sex=m"} <= {feature.name for feature in found.features}


def test_weights_are_those_of_python(patients: Path) -> None:
    from atomlearn.datasets import read

    words = ["--weights", "w", "--missing", "median", "--n-features", 2, "--test-fraction", 0]
    out = select(patients, *words)
    table = read(patients, "y", missing="median", roles={"weights": "w"})
    model = FeatureGenerator(2, loss="squared", groups=table.groups, standardize=True)
    model.fit(table.X, table.y, table.extras["weights"].astype(float))
    assert features(out) == {table.feature_names[j] for j in model.selected_}  # type: ignore[index]


def test_groups_of_a_file(patients: Path, tmp_path: Path) -> None:
    (tmp_path / "groups.txt").write_text("noise n*\nclinic age dose city\n")
    words = ["--drop", "w", "--missing", "median", "--groups", tmp_path / "groups.txt"]
    found = features(select(patients, *words, "--n-features", 1))
    assert found == {"age", "dose", "city=A", "city=B", "city=C"}
    found = features(select(patients, *words, "--norm", "groups", "--alpha", 0.5))
    assert "age" in found
    assert not any(name.startswith("n") for name in found)


def test_a_category_is_a_group_by_its_own_name(patients: Path, tmp_path: Path) -> None:
    out = select(patients, "--drop", "w", "--missing", "median", "--norm", "l1", "--alpha", 1e-3)
    page = (out / "report.html").read_text()
    assert "<td>city</td>" in page.replace(' class="wide-only"', "")
    assert "group 0" not in page


def test_the_number_that_predicts_best(patients: Path) -> None:
    out = select(patients, "--drop", "w", "--missing", "median", "--n-features", "auto")
    assert {"age", "dose", "city=B"} <= features(out)
    # Fewer than are asked for is no fault of a number that nobody gave.
    assert not [
        note
        for note in json.loads((out / "summary.json").read_text())["notes"]
        if "asked for" in note
    ]


def test_a_column_says_which_rows_are_held_out(patients: Path, tmp_path: Path) -> None:
    lines = patients.read_text().splitlines()
    parts = ["part", *("test" if i % 4 == 0 else "train" for i in range(N))]
    patients.write_text("".join(f"{a},{b}\n" for a, b in zip(lines, parts, strict=True)))
    words = ["--drop", "w", "--missing", "median", "--split-column", "part", "--n-features", 2]
    out = select(patients, *words)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["n_fitted_for_the_score"] == sum(i % 4 != 0 for i in range(3, N))


def test_interactions_do_not_square_0_1_columns(patients: Path) -> None:
    """A category is a group of columns, and products of its columns are in none."""
    asked = ["--drop", "w,n*", "--missing", "indicator", "--interactions", "--n-features", 9]
    out = select(patients, *asked)
    assert main(["predict", str(out / "model.json"), str(patients), "--out", str(out / "p")]) == 0
    found = features(out)
    assert not found & {"sex=M^2", "city=B^2"}
    assert any("city=B" in name for name in found)


def test_counts_are_no_classes_and_codes_are() -> None:
    rng = np.random.default_rng(0)
    # A thin tail is no smooth one, and lacks numbers; a mean of 5 has its summit inside.
    counts = [np.minimum(rng.poisson(1.2, 300), 5), *(rng.poisson(m, 300) for m in (0.8, 2.0, 5.0))]
    codes = [rng.binomial(4, 0.6, 300) + 1, *(rng.integers(0, n, 300) for n in (10, 6, 3))]
    for drawn, task in ((counts, "regression"), (codes, "classification")):
        assert {targets.prepare_target(y, "y", "auto", None).task for y in drawn} == {task}


def test_inspect_tells_and_writes_what_select_obeys(
    patients: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "schema.json"
    assert main(["inspect", str(patients), "--target", "y", "--out", str(schema)]) == 0
    told = capsys.readouterr().out
    assert "identifier" in told
    assert "--missing median, indicator or drop" in told
    content = json.loads(schema.read_text())
    for column in content["columns"]:
        if column["name"] in ("age", "w"):
            column["use"] = "leave out"
    schema.write_text(json.dumps(content))
    out = patients.parent / "out"
    words = ["--schema", str(schema), "--n-features", "2", "--quiet", "--out", str(out)]
    assert main(["select", str(patients), *words]) == 0
    assert features(out) == {"dose", "city=A", "city=B", "city=C"}


def test_ctrl_c_in_cross_validation_keeps_what_was_tried(
    patients: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of the levels that were solved, not a guess."""
    from atomlearn.core.paths.shared_levels import SharedLevels

    learn, calls = SharedLevels.learn, list[int]()

    def interrupted(task: Any, answer: Any) -> None:
        learn(task, answer)
        calls.append(0 if answer is None else 1)
        if sum(calls) == 3 and calls[-1]:  # each of three folds has learned from one reading
            raise KeyboardInterrupt

    monkeypatch.setattr(SharedLevels, "learn", interrupted)
    out = patients.parent / "cut"
    words = ["--drop", "w", "--missing", "median", "--norm", "l1", "--quiet", "--out", str(out)]
    assert main(["select", str(patients), "--target", "y", *words]) == 130
    model = read_model(out / "model.json")
    assert "3-fold cross-validation, interrupted after 20 of 20 levels" in str(
        model.settings["alpha_chosen_by"]
    )
    assert len(model.features) > 0


def test_ctrl_c_in_the_search_for_a_number_keeps_the_best(
    patients: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from atomlearn import FeatureGenerator

    score = FeatureGenerator.score

    def interrupted(model: FeatureGenerator, *arguments: Any) -> float:
        if model.n_features == 5:
            raise KeyboardInterrupt
        return float(score(model, *arguments))

    monkeypatch.setattr(FeatureGenerator, "score", interrupted)
    out = patients.parent / "cut"
    words = ["--drop", "w", "--missing", "median", "--n-features", "auto", "--C", "10"]
    assert main(["select", str(patients), "--target", "y", *words, "--out", str(out)]) == 130
    assert "of the values that were tried" in capsys.readouterr().err
    assert read_model(out / "model.json").settings["n_features"] in (1, 2, 3)


def test_covariates_of_another_file_are_joined_at_prediction_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    names, genes = [f"s{i}" for i in range(40)], rng.standard_normal((6, 40))
    age = rng.integers(20, 80, 40)
    lines = [",".join(["gene", *names])]
    lines += [",".join([f"g{j}", *(f"{x:.4f}" for x in row)]) for j, row in enumerate(genes)]
    data, samples, out = tmp_path / "genes.csv", tmp_path / "samples.csv", tmp_path / "out"
    data.write_text("\n".join(lines) + "\n")
    rows = [f"{s},{2 * g + a:.3f},{a}" for s, g, a in zip(names, genes[2], age, strict=True)]
    samples.write_text("\n".join(["sample,y,age", *rows[::-1]]) + "\n")
    joined = ["--transpose", "--covar", str(samples)]
    asked = ["--pheno", str(samples), "--pheno-name", "y", "--n-features", "1", "--quiet"]
    assert main(["select", str(data), *joined, *asked, "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["predict", str(out / "model.json"), str(data), *joined]) == 0
    told = [line.split(",")[:2] for line in capsys.readouterr().out.split()[1:]]
    assert [name for name, _ in told] == names
    expected = [2 * g + a for g, a in zip(genes[2], age, strict=True)]
    np.testing.assert_allclose([float(value) for _, value in told], expected, atol=0.02)


def test_labels_of_different_numbers_differ() -> None:
    cells = np.array([1.0, 2.5, 1234567890123456.0, 1234567890123457.0])
    assert targets.labels_in(cells) == ["1", "2.5", "1234567890123456", "1234567890123457"]
