"""The papers' experiments run at smoke sizes, and the claims that are kept are whole."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
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
VERDICTS = {"holds", "does not hold", "data not at hand", "not run"}


@pytest.mark.parametrize("paper", PARTS)
def test_smoke_sizes_run(paper: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"experiments.{paper}.run", "--smoke", *PARTS[paper]]
    search = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "build" / "experiments" / paper / "claims.json").read_text())
    assert sum(kept["counts"].values()) == len(kept["claims"]) > 0


@pytest.mark.parametrize("paper", PARTS)
def test_claims_that_are_kept_say_everything(paper: str) -> None:
    kept = json.loads((ROOT / "experiments" / paper / "claims.json").read_text())
    for claim in kept["claims"]:
        assert set(claim) == {"key", "says", "paper", "ours", "verdict", "why"}
        assert claim["verdict"] in VERDICTS
        assert claim["ours"] or claim["verdict"] in ("data not at hand", "not run")


def test_smoke_sizes_of_real_data(tmp_path: Path) -> None:
    """The parts on real data, where it is at hand."""
    if not any(directory.exists() for directory in data_directories()):
        pytest.skip("no real data on this machine: set ATOMLEARN_DATA")
    command = [sys.executable, "-m", "experiments.argyriou.run", "--smoke", "heart"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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
