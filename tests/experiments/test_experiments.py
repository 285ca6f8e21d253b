"""The papers' experiments run at smoke sizes, and the claims that are kept are whole."""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from atomlearn.datasets.loaders import data_directories

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "argyriou": ["norms", "prox", "synthetic"],
    "liu": ["rate", "logistic"],
    "vinyes": ["algorithm", "figure_2"],
    "tan": ["inexact", "synthetic", "trees", "optima"],
}
VERDICTS = {"holds", "does not hold", "undecided"}


def smoke(paper: str, parts: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Run these parts in this process, which has imported all that they need."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["run", "--smoke", *parts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_module(f"experiments.{paper}.run", run_name="__main__")


@pytest.mark.parametrize("paper", PARTS)
def test_smoke_sizes_run(paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smoke(paper, PARTS[paper], monkeypatch, tmp_path)
    kept = json.loads((tmp_path / "build" / "experiments" / paper / "claims.json").read_text())
    assert sum(kept["counts"].values()) == len(kept["claims"]) > 0


@pytest.mark.parametrize("paper", PARTS)
def test_claims_that_are_kept_say_everything(paper: str) -> None:
    kept = json.loads((ROOT / "experiments" / paper / "claims.json").read_text())
    for claim in kept["claims"]:
        assert set(claim) == {"key", "says", "paper", "ours", "verdict", "why"}
        assert claim["verdict"] in VERDICTS
        assert claim["ours"] or claim["verdict"] == "undecided"


def test_smoke_sizes_of_real_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts on real data, where it is at hand."""
    if not any(directory.exists() for directory in data_directories()):
        pytest.skip("no real data on this machine: set ATOMLEARN_DATA")
    smoke("argyriou", ["heart"], monkeypatch, tmp_path)


SCRIPTS = sorted((ROOT / "experiments" / "authors").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_author_needs_twenty_lines(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each item an author would try first runs as it stands."""
    lines = script.read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(("import", "from", '"'))]
    assert len(code) <= 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
