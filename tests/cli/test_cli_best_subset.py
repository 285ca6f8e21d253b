"""``select --best-subset``: the same subset as from Python, and what is proved of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atomlearn import SubsetRegressor
from atomlearn.cli import main


def table(folder: Path, classes: int = 0) -> tuple[Path, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((120, 15)), columns=[f"f{j}" for j in range(15)])
    values = 2.0 * frame["f3"] - frame["f8"] + 0.2 * rng.standard_normal(120)
    frame["y"] = values if not classes else pd.qcut(values, classes, labels=list("abc")[:classes])
    frame.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv", frame


def select(data: Path, *words: str) -> tuple[dict, pd.DataFrame]:
    out = data.parent / "out"
    given = ["select", str(data), "--target", "y", "--out", str(out), "--quiet", *words]
    assert main(given) == 0
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return summary, pd.read_csv(out / "selected.csv")


def test_the_best_subset_of_numbers(tmp_path: Path) -> None:
    data, frame = table(tmp_path)
    summary, selected = select(data, "--n-features", "2", "--best-subset")
    found = dict(zip(selected["feature"], selected["coefficient"], strict=True))
    model = SubsetRegressor(2, standardize=True).fit(frame.drop(columns="y"), frame["y"])
    assert found == pytest.approx({"f3": model.coef_[3], "f8": model.coef_[8]}, rel=1e-4)
    assert "13 of 15 features are in no best model of 2 features." in summary["proved"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "13 of 15 features are in no best model of 2 features." in page
    assert "no statement about the world" in page


@pytest.mark.parametrize("classes", [2, 3])
def test_the_best_subset_of_classes(tmp_path: Path, classes: int) -> None:
    data, _ = table(tmp_path, classes)
    _, selected = select(data, "--n-features", "2", "--best-subset", "--test-fraction", "0")
    assert set(selected["feature"]) == {"f3", "f8"}


def test_subsets_within_a_share_of_the_best_one(tmp_path: Path) -> None:
    data, frame = table(tmp_path)
    wanted = ["--n-features", "2", "--best-subset", "--within", "2.0", "--test-fraction", "0"]
    summary, _ = select(data, *wanted)
    model = SubsetRegressor(2, standardize=True, within=2.0)
    models = model.fit(frame.drop(columns="y"), frame["y"]).result_.near_models
    shared = f"In all of them: f3. In some of them: {models.in_some.size} features."
    assert models.in_all.tolist() == [3]
    assert any(shared in sentence for sentence in summary["proved"])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert shared in page
    assert "This says nothing about the truth" in page
    given = ["select", str(data), "--target", "y", "--out", str(tmp_path / "out"), "--within", "2"]
    assert main(given) != 0


def test_what_it_does_not_go_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, _ = table(tmp_path)
    given = ["select", str(data), "--target", "y", "--out", str(tmp_path / "out")]
    assert main([*given, "--best-subset"]) != 0
    assert "--n-features" in capsys.readouterr().err
    assert main([*given, "--best-subset", "--n-features", "2", "--batch", "3"]) != 0
    assert "--batch" in capsys.readouterr().err
    assert main([*given, "--best-subset", "--n-features", "16"]) != 0
    assert "n_features=16, but X has 15 columns" in capsys.readouterr().err
    wanted = ["--best-subset", "--n-features", "15", "--covariates", "f0"]
    assert main([*given, *wanted]) != 0
    assert "X has 14 columns to choose from" in capsys.readouterr().err
