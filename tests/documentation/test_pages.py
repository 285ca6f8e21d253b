"""The Python of the pages runs as it stands, and finds what they say it finds."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import atomlearn
from atomlearn.cli import main
from atomlearn.core import catalogue
from atomlearn.maps import features
from atomlearn.storage.intake import registry
from tests.oracles.sums import solve_sum

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load(name: str) -> Any:
    """Return a script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BLOCKS = load("blocks")


def own_norm(names: dict[str, Any]) -> None:
    """The best interval is the best of all, and the intervals beat the lasso."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal(9) if seed % 2 else -np.abs(rng.standard_normal(9))
        columns, values = names["best_interval"](z)
        sums = [abs(z[i:j].sum()) for i in range(9) for j in range(i + 1, 10)]
        assert values @ z[columns] == pytest.approx(max(sums))
    lasso = min(
        float(np.linalg.norm(solve_sum(names["X"], names["y"], level=level).coef - names["truth"]))
        for level in (10.0, 20.0, 40.0, 80.0)
    )
    assert np.linalg.norm(names["model"].coef_ - names["truth"]) < 0.5 * lasso


#: What a page says beyond what it prints.
BEYOND: dict[str, Callable[[dict[str, Any]], None]] = {"own_norm.md": own_norm}
PAGES = [
    page
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))
    if BLOCKS.BLOCK.search(page.read_text(encoding="utf-8"))
]


# The affinity of exact planes is one of blocks.
@mock.patch.dict(catalogue.LOSSES)
@mock.patch.dict(catalogue.NORMS)
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # What docs/extending.md adds to the lists of the package leaves with it.
    monkeypatch.setattr(registry, "FORMATS", registry.FORMATS)
    monkeypatch.setattr(features, "FEATURES", dict(features.FEATURES))
    names: dict[str, Any] = {}
    for block, printed in BLOCKS.runs(page.read_text(encoding="utf-8"), page.name, names):
        assert BLOCKS.same(printed, block[2] or ""), f"{page.name} shows {block[2]}, not\n{printed}"
    BEYOND.get(page.name, lambda names: None)(names)


def test_output_that_differs_is_seen() -> None:
    """The comparison allows for another processor, and for nothing else."""
    assert BLOCKS.same("a 1.00 [2  3]", "a 1.01 [2 3]\n")
    for wrong in ("a 1.10 [2 3]", "b 1.00 [2 3]", "a 1.00 [2 3] 4", "", "a -1.00 [2 3]"):
        assert not BLOCKS.same("a 1.00 [2 3]", wrong)


@pytest.mark.parametrize("paper", ["argyriou", "liu", "vinyes", "tan"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_of_a_paper_runs(paper: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS.parent / "experiments" / paper / "page.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 20
    exec(compile(block, f"{paper}/page.md", "exec"), {})
    assert capsys.readouterr().out


def test_every_example_of_the_gallery_says_what_it_shows() -> None:
    examples = sorted((DOCS.parent / "examples" / "gallery").glob("*/plot_*.py"))
    assert len(examples) >= 25
    for example in examples:
        title, rule = example.read_text(encoding="utf-8").splitlines()[1:3]
        assert re.fullmatch(r"=+", rule), example.name
        assert len(rule) >= len(title), example.name


def test_the_reference_names_everything_public() -> None:
    """Every name of the package, and every door, stands in api.rst."""
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    doors = {
        p.stem for p in Path(atomlearn.__file__).parent.glob("*.py") if not p.stem.startswith("_")
    }
    doors -= {"result"}
    assert doors <= listed
    rooms = (
        importlib.import_module(f"atomlearn.{door}") for door in doors | {"findings", "reports"}
    )
    within = {name for room in rooms for name in room.__all__}
    assert set(atomlearn.__all__) - {"__version__"} <= listed | within


def test_the_chart_says_what_the_package_has() -> None:
    """Every name in it that looks like one of ours is one, and the picture is XML."""
    chart = load("chart")
    ElementTree.fromstring(chart.chart())
    known = {
        name
        for door in ("norms", "designs")
        for name in importlib.import_module(f"atomlearn.{door}").__all__
    }
    answers = " ".join(word for _, take in (*chart.QUESTIONS, ("", chart.LAST)) for word in take)
    named = set(re.findall(r"\b[A-Z]\w+\b", answers))
    assert named
    assert named <= known | set(atomlearn.__all__)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_model_file_is_read_by_base_r(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the page, as they stand, on a model with products and awkward names."""
    rng = np.random.default_rng(0)
    names = ["age", 'the "dose"', "x\\y", "d: [mg]"]
    X = rng.standard_normal((200, 4))
    y = np.where(X[:, 0] - 2.0 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(200) > 0, "a", "b")
    table = pd.DataFrame(X, columns=names)
    table.assign(sick=y).to_csv(tmp_path / "train.csv", index=False)
    table.to_csv(tmp_path / "new_patients.csv", index=False)
    command = ["select", "train.csv", "--target", "sick", "--interactions"]
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--n-features", "4", "--out", "selected"]) == 0
    text = (DOCS / "interop.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```r\n(read_model.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "read.R").write_text(block, encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "read.R"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert main(["predict", "selected/model.json", "new_patients.csv", "--out", "ours.csv"]) == 0
    theirs, ours = (pd.read_csv(tmp_path / name) for name in ("scores.csv", "ours.csv"))
    np.testing.assert_allclose(
        theirs["probability"], ours.filter(like="probability").iloc[:, -1], rtol=1e-9
    )
