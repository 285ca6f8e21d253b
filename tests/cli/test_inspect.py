"""What inspect prints can be pasted, and select takes it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn.cli import main
from atomlearn.cli.arguments import build_parser
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.settings import read_settings
from atomlearn.cli.source import Dataset, read_source

N = 60


def patients(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    known = {
        "age": rng.integers(20, 80, N),
        "sex": rng.choice(["f", "m"], N),
        "crp": rng.normal(size=N).round(3),
        "stage (I-IV)": rng.choice(["I", "II", "III"], N),
        "time": rng.exponential(9, N).round(2) + 0.1,
        "status": rng.integers(0, 2, N),
    }
    return pd.DataFrame(known | columns)


class Inspected:
    """What inspect printed, and the data that its command reads."""

    def __init__(self, folder: Path, table: pd.DataFrame, *words: str) -> None:
        self.path = folder / "patients.csv"
        table.to_csv(self.path, index=False)
        self.words = words

    def told(self, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
        assert main(["inspect", str(self.path), *self.words]) == code
        return capsys.readouterr().out

    def command(self, told: str) -> list[str]:
        lines = told.splitlines()
        assert lines[-1].startswith("next: atomlearn select ")
        return shlex.split(lines[-1].removeprefix("next: "))

    def read(self, told: str) -> Dataset:
        """Return the data that the printed command reads, as ``select`` reads them."""
        words = self.command(told)[1:]
        options = build_parser().parse_args(words)
        options.given = words
        return read_source(options, read_settings(options), ProgressPrinter(quiet=True))


def test_the_command_keeps_all_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--time", "time", "--event", "status", "--missing", "median"]
    given += ["--covariates", "age,sex", "--drop", "stage (I-IV)", "--na=-9,unknown"]
    inspected = Inspected(tmp_path, patients(), *given)
    told = inspected.told(capsys)
    words = inspected.command(told)
    for option in given[:2] + given[-1:]:
        assert option in words
    read = inspected.read(told)
    assert read.target.task == "survival"
    assert {read.names[column] for column in read.roles.covariates} == {"age", "sex=m"}
    assert "crp" in read.names
    assert not any("stage" in name for name in read.names)
    assert "task: survival, time until status" in told


def test_names_with_blanks_and_brackets_are_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inspected = Inspected(tmp_path, patients(), "--target", "stage (I-IV)")
    told = inspected.told(capsys)
    assert "'stage (I-IV)'" in told.splitlines()[-1]
    assert inspected.read(told).target.labels == ["I", "II", "III"]
    assert "task: classification, 3 classes" in told


def test_samples_in_columns_and_targets_in_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    genes = pd.DataFrame(np.random.default_rng(0).integers(0, 99, (9, 12)), columns=range(12))
    genes = genes.add_prefix("s").assign(gene=[f"g{j}" for j in range(9)]).set_index("gene")
    other = tmp_path / "samples.csv"
    other.write_text("id,cond\n" + "".join(f"s{i},{'ab'[i % 2]}\n" for i in range(12)))
    words = ["--transpose", "--pheno", str(other), "--pheno-name", "cond"]
    inspected = Inspected(tmp_path, genes.reset_index(), *words)
    told = inspected.told(capsys)
    assert "--target" not in told
    assert inspected.read(told).target.labels == ["a", "b"]


def test_what_it_asks_is_answered_in_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.arange(N)
    table = patients(
        bp=np.where(rows % 7, rows + 80, -9),
        lab=[f"<{0.5}" if i % 9 == 0 else f"{i}" for i in rows],
        hb=["n/k" if i % 11 == 0 else f"{i % 17}.5" for i in rows],
        smoker=np.where(rows % 5, np.where(rows % 2, "yes", "no"), "unknown"),
    )
    inspected = Inspected(tmp_path, table, "--target", "crp")
    told = inspected.told(capsys)
    assert "is -9 in 'bp' a missing value? If not, type --keep-codes" in told
    assert "'unknown' of 'smoker' is a level; --na unknown makes it a missing value" in told
    words = inspected.command(told)
    assert {"--na=-9", "n/k", "--limits", "--missing"} <= set(words)
    read = inspected.read(told)
    X = read.X[:, [read.names.index(name) for name in ("bp", "lab", "hb")]]
    assert X.min() == 0.5  # no -9, and the limit is a number
    assert np.isfinite(X).all()


def test_counts_of_missing_values_are_those_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = patients(crp=np.where(np.arange(N) % 6, 1.0 + np.arange(N), np.nan))
    table.loc[:9, "status"] = None
    told = Inspected(tmp_path, table, "--target", "status").told(capsys)
    line = next(line for line in told.splitlines() if line.strip().startswith("crp "))
    assert line.split()[3] == "10"
    assert "10 values are missing, in 1 columns" in told


@pytest.mark.parametrize("task", [(), ("--task", "regression")])
def test_grades_are_classes_or_numbers(
    task: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grades = np.random.default_rng(0).choice(
        [3, 4, 5, 6, 7, 8, 9], N, p=[0.05, 0.1, 0.3, 0.3, 0.1, 0.1, 0.05]
    )
    inspected = Inspected(tmp_path, patients(grade=grades), "--target", "grade", *task)
    told = inspected.told(capsys)
    expected = "task: regression"
    if not task:
        expected = "task: classification, 7 classes, as 'grade' has 7 different values; --task "
        expected += "regression predicts it as a number"
    assert expected in told
    assert inspected.read(told).target.task == ("regression" if task else "classification")


def test_hourly_rows_get_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hours = pd.date_range("2021-03-01", periods=N, freq="h").strftime("%d/%m/%Y %H:%M")
    told = Inspected(tmp_path, patients(**{"at time": hours}), "--target", "crp").told(capsys)
    assert "the rows are in the order of 'at time'" in told
    assert "--order 'at time' holds its end out" in told
    mixed = np.random.default_rng(0).permutation(hours)
    told = Inspected(tmp_path, patients(at=mixed), "--target", "crp").told(capsys)
    assert "--order" not in told
    told = Inspected(tmp_path, patients(at=hours), "--target", "crp", "--order", "at").told(capsys)
    assert "holds its end out" not in told


def test_what_select_refuses_inspect_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = patients(status=np.arange(N) % 3)
    inspected = Inspected(tmp_path, table, "--time", "time", "--event", "status")
    assert main(["inspect", str(inspected.path), *inspected.words]) == 2
    captured = capsys.readouterr()
    assert "crp" in captured.out  # the columns are shown
    assert "--event status=" in captured.err
    told = Inspected(tmp_path, table, "--time", "time", "--event", "status=2").told(capsys)
    assert "next: " in told
    told = Inspected(tmp_path, table[["age"]].assign(y="a"), "--target", "y").told(capsys, 2)
    assert "next: " not in told


def test_the_schema_is_in_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "my schema.json"
    words = ("--target", "crp", "--out", str(schema))
    inspected = Inspected(tmp_path, patients(), *words)
    told = inspected.told(capsys)
    assert f"--schema '{schema}'" in told
    content = json.loads(schema.read_text())
    for column in content["columns"]:
        column["use"] = "leave out" if column["name"] == "age" else column["use"]
    schema.write_text(json.dumps(content))
    assert "age" not in inspected.read(told).names
    assert main(["inspect", str(inspected.path), *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == N


def test_new_rows_have_the_missing_values_and_limits_of_the_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"bp": rng.integers(80, 160, N), "lab": rng.integers(2, 60, N)})
    table["y"] = 0.1 * table.bp + 0.2 * table.lab + rng.normal(size=N)
    told = table.assign(lab=table.lab.astype(str))
    told.loc[:9, ["bp", "lab"]] = [-9, "<1"]
    data, new, out = tmp_path / "d.csv", tmp_path / "new.csv", tmp_path / "out"
    told.to_csv(data, index=False)
    words = ["--na=-9", "--limits", "--missing", "median", "--norm", "l1", "--alpha", "0.01"]
    words += ["--test-fraction", "0", "--quiet", "--out", str(out)]
    assert main(["select", str(data), "--target", "y", *words]) == 0
    new.write_text("bp,lab\n-9,<1\n,1\n")
    capsys.readouterr()
    assert main(["predict", str(out / "model.json"), str(new)]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split(",")[-1] == second.split(",")[-1] != ""
