"""``atomlearn verify``: what `select` wrote is proved again, and other files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn.cli import main
from atomlearn.verification import claim_digest


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with numbers, a category, gaps, two targets and survival times."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.standard_normal((80, 12)).round(6))
    frame.columns = [f"gene{number}" for number in range(12)]
    frame["city"] = np.array(["Bonn", "Cork", "Graz"])[rng.integers(0, 3, 80)]
    frame.loc[5, "gene7"] = np.nan
    score = 2 * frame["gene0"] - frame["gene1"] + rng.standard_normal(80)
    frame["outcome"] = score.round(3)
    frame["status"] = np.where(score > 0, "ill", "well")
    frame["days"] = np.ceil(rng.exponential(30 * np.exp(-score / 3)))
    frame["dead"] = (rng.random(80) < 0.7).astype(int)
    file = tmp_path_factory.mktemp("verify") / "data.csv"
    frame.to_csv(file, index=False)
    return file


CASES = {
    "l1": ["--target", "outcome", "--norm", "l1", "--alpha", "0.1", "--drop", "status,days,dead"],
    "covariates": [
        *("--target", "status", "--norm", "l1", "--alpha", "0.05", "--covariates", "city"),
        *("--drop", "outcome,days,dead"),
    ],
    "generated": ["--target", "outcome", "--n-features", "2", "--drop", "status,days,dead"],
    "survival": [
        *("--time", "days", "--event", "dead", "--norm", "l1", "--alpha", "0.05"),
        *("--drop", "outcome,status"),
    ],
}


def run(*words: Any) -> int:
    return main([*map(str, words)])


def selected(data: Path, folder: Path, case: str) -> Path:
    """Return the folder of a selection."""
    more = ["--missing", "median", "--test-fraction", "0", "--quiet", "--C", "1"]
    more = more if case == "generated" else more[:-2]
    assert run("select", data, *CASES[case], *more, "--out", folder / case) == 0
    return folder / case


@pytest.mark.parametrize("case", CASES)
def test_a_selection_is_verified(
    case: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = selected(data, tmp_path, case)
    said = capsys.readouterr().out
    assert "verified: the objective is within" in said
    assert run("verify", folder, data) == 0
    again = capsys.readouterr().out
    assert "rounding included" in again
    content = json.loads((folder / "model.json").read_text())
    assert content["sha256"] in again
    assert content["sha256"] in (folder / "report.html").read_text()
    assert again.splitlines()[0] in said
    assert str(data) not in json.dumps(content["proof"]["select"])


def test_other_data_are_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = selected(data, tmp_path, "l1")
    frame = pd.read_csv(data, float_precision="round_trip")
    other = tmp_path / "other.csv"

    def answer(table: pd.DataFrame) -> tuple[int, dict[str, Any]]:
        table.to_csv(other, index=False)
        capsys.readouterr()
        code = run("verify", folder, other, "--json")
        return code, json.loads(capsys.readouterr().out)

    code, found = answer(frame[frame.columns[::-1]])
    assert (code, found["holds"]) == (0, True)
    assert found["relative_gap"] < 1.1e-6
    code, found = answer(frame.iloc[1:])
    assert (code, found["holds"]) == (1, False)
    assert "rows" in found["explanation"]
    frame.loc[7, "gene3"] += 1e-6
    code, found = answer(frame)
    assert code == 1
    assert "sha256 of X" in found["explanation"]
    code, found = answer(frame.rename(columns={"gene3": "gene three"}))
    assert code == 1
    assert "gene3" in found["explanation"]


def test_a_changed_file_is_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = selected(data, tmp_path, "l1")
    file = tmp_path / "changed.json"
    content = json.loads((folder / "model.json").read_text())
    content["coefficients"][0][0] *= 1 + 1e-9
    for forged, words in ((False, "changed after it was written"), (True, "as claimed")):
        content |= {"sha256": claim_digest(content)} if forged else {}
        file.write_text(json.dumps(content))
        capsys.readouterr()
        assert run("verify", file, data) == 1
        assert words in capsys.readouterr().out
    file.write_text("{}")
    assert run("verify", file, data) == 2


def test_what_is_no_convex_problem_is_selected_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--target", "outcome", "--n-features", "2", "--best-subset", "--missing", "drop"]
    words += ["--drop", "status,days,dead", "--test-fraction", "0", "--quiet"]
    assert run("select", data, *words, "--out", tmp_path / "best") == 0
    assert run("verify", tmp_path / "best", data) == 1
    assert "--full" in capsys.readouterr().out
    assert run("verify", tmp_path / "best", data, "--full") == 0
    assert "the same 2 columns" in capsys.readouterr().out
