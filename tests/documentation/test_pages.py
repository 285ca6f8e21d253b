"""The Python of pages that show other packages beside ours runs as it stands."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import atomlearn
from atomlearn.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    "page", ["coming_from.md", "faq.md", "findings.md", "index.md", "interop.md"]
)
def test_the_blocks_of_the_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, page, "exec"), names)


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
    spec = importlib.util.spec_from_file_location("chart", DOCS / "chart.py")
    assert spec is not None
    assert spec.loader is not None
    chart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chart)
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
