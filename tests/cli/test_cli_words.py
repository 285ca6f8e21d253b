"""What the terminal says and what it does not; groups as a person counts them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn.cli import main
from tests.oracles.commands import rows


@pytest.fixture
def expression(tmp_path: Path) -> Path:
    """Genes of overlapping pathways, of which the second holds the truth."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    table = pd.DataFrame(X, columns=[f"G{j}" for j in range(30)])
    table.assign(y=X[:, 6:12].sum(axis=1) + 0.3 * rng.standard_normal(80)).to_csv(
        tmp_path / "expression.csv", index=False
    )
    sets = [[f"G{j}" for j in range(start, start + 8)] for start in (0, 6, 12)]
    lines = ["\t".join([f"PATHWAY_{k}", "-", *genes]) for k, genes in enumerate(sets)]
    lines += ["PATHWAY_X\t-\tZZ1\tZZ2"]
    (tmp_path / "sets.gmt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_terminal_is_quiet_unless_asked(
    expression: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["select", str(expression / "expression.csv"), "--target", "y", "--n-features", "4"]
    assert main([*words, "--out", str(expression / "a")]) == 0
    plain = capsys.readouterr()
    assert "proved gap" not in plain.err
    assert "relative gap" not in plain.out
    assert plain.err.count("pass ") == 0
    assert (expression / "a" / "report.html").as_uri() in plain.out
    for part in ("to start", "to read", "to select and test", "to write"):
        assert part in plain.err
    assert main([*words, "--verbose", "--out", str(expression / "b")]) == 0
    told = capsys.readouterr().err
    assert "proved gap on these" in told
    assert "regression, as 'y' has 80 different numbers (--task says otherwise)" in told
    assert main([*words, "--quiet", "--out", str(expression / "c")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("options", [("--norm", "latentgroups"), ("--n-features", "1")])
def test_pathways_are_counted_told_and_never_dumped(
    expression: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = expression / "out"
    words = ["--groups", str(expression / "sets.gmt"), *options, "--quiet", "--out", str(out)]
    assert main(["select", str(expression / "expression.csv"), "--target", "y", *words]) == 0
    captured = capsys.readouterr()
    groups = rows(out / "groups.csv")
    assert groups[0]["group"] == "PATHWAY_1"
    assert "<code>groups.csv</code>" in (out / "report.html").read_text()
    assert groups[0]["members"] == groups[0]["selected"] == "8"
    # Three pathways, and ten genes in none of them, which are counted apart.
    alone = sum(int(row["index"]) >= 20 for row in rows(out / "selected.csv"))
    assert f"{len(groups)} of 3 groups (" in captured.out
    assert f"and {alone} of 10 columns in no group" in captured.out
    assert "10 of 30 columns are in none" in captured.err
    assert "1 groups have no column of the data: 'PATHWAY_X'" in captured.err
    assert "2 members of groups are no column" in captured.err
    for file in ("model.json", "report.html", "summary.json"):
        assert "array([" not in (out / file).read_text()
    assert "PATHWAY_1" in (out / "report.html").read_text()
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    assert summary["n_selected"] == len(groups) + alone
    assert summary["n_selected_columns"] == len(rows(out / "selected.csv"))


def test_categories_count_as_one_feature_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, n = np.random.default_rng(0), 160
    table = pd.DataFrame({"age": rng.normal(size=n), "city": rng.choice([*"abcd"], n),
                          "b": rng.normal(size=n), "c": rng.normal(size=n)})  # fmt: skip
    y = table["age"] + table["city"].map({"a": 2.0, "b": -2.0, "c": 1.0, "d": 0.0})
    table.assign(y=y + 0.1 * rng.normal(size=n)).to_csv(tmp_path / "a.csv", index=False)
    words = ["--target", "y", "--n-features", "2", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["select", str(tmp_path / "a.csv"), *words]) == 0
    told = capsys.readouterr().out
    assert "2 of 4 features (5 of 7 columns) were selected; " in told
    assert "a model of 2 features" in told


def test_ten_classes_are_told_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, kinds = np.random.default_rng(1), np.arange(200) % 10
    X = rng.standard_normal((200, 14))
    X[np.arange(200), kinds] += 4.0
    labels = [f"a label that is long, number {kind}" for kind in kinds]
    pd.DataFrame(X).add_prefix("f").assign(kind=labels).to_csv(tmp_path / "a.csv", index=False)
    words = ["--target", "kind", "--n-features", "10", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["select", str(tmp_path / "a.csv"), *words]) == 0
    told = capsys.readouterr().out
    assert "    a label that is long, number 7: 100% of 5" in told
    assert "rank  feature  for " in told
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(f"var(--series-{at})" in page for at in range(10))
    assert "a label that is long, number 9</th>" in page


def test_each_key_of_the_summary_is_documented(expression: Path) -> None:
    out = expression / "out"
    words = ["--target", "y", "--n-features", "2", "--quiet", "--out", str(out)]
    assert main(["select", str(expression / "expression.csv"), *words]) == 0
    summary = json.loads((out / "summary.json").read_text())
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    lines = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", "".join(lines)) == sorted(
        summary, key=re.findall(r"`(\w+)`", "".join(lines)).index
    )
    assert summary["proved_gap_over"] == "the selected features"
    assert len(summary["status"]) == 1


def test_a_task_that_is_a_guess_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    grade = rng.integers(1, 6, 150)
    table = pd.DataFrame({"a": grade + rng.normal(size=150), "b": rng.normal(size=150)})
    table.assign(grade=grade).to_csv(tmp_path / "a.csv", index=False)
    words = ["--target", "grade", "--n-features", "1", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["select", str(tmp_path / "a.csv"), *words]) == 0
    said = "note: classification, as 'grade' has 5 different values (--task says otherwise)"
    assert said in capsys.readouterr().err
