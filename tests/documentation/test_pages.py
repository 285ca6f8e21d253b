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
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import atomlearn
from atomlearn import solve
from atomlearn.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"


def readme(names: dict[str, Any], printed: str) -> None:
    assert names["result"].relative_gap <= 1e-6
    assert names["selector"].get_support(indices=True).tolist() == list(range(10))
    assert set(names["selector"].predict(names["X"])) <= {-1.0, 1.0}


def data(names: dict[str, Any], printed: str) -> None:
    assert "dense float32" in printed
    assert names["result"].converged
    assert names["scan"].converged
    assert len(names["scan"].parts) > 0
    assert set(range(5)) <= set(names["polygenic"].active.tolist())
    assert names["again"].passes - names["result"].passes == 1


def first_contact(names: dict[str, Any], printed: str) -> None:
    lines = printed.splitlines()
    # v1 and the three columns of the city.
    assert lines[0] == "['v1', 'city=A', 'city=B', 'city=C']"
    assert float(lines[1]) > 0.7
    assert lines[2] == "False"


def implicit(names: dict[str, Any], printed: str) -> None:
    for part in ("['x11', 'x4'] True", "'x3:x10'", "[1.  0.5 0. ]", "rbf(gamma="):
        assert part in printed
    assert names["effect"].shape == (names["one"].size, names["other"].size)
    assert names["values"].size > 100
    assert names["model"].score(names["moons"], names["label"]) > 0.9


def matrices(names: dict[str, Any], printed: str) -> None:
    truth, size = names["truth"], np.linalg.norm(names["truth"])
    assert names["completed"].low_rank.rank == 3
    assert np.linalg.norm(names["completed"].coef - truth) < 0.2 * size
    assert np.linalg.norm(names["low_rank"] - truth) < 0.2 * size
    assert (names["sparse"][names["spikes"] > 0] > 5).all()
    assert all(names[name].converged for name in ("completed", "split", "fit"))
    assert names["tasks"].selected_.tolist() == [0, 1, 2]
    assert names["classes"].status_.is_converged
    assert np.linalg.norm(names["robust"].low_rank_ - truth) < 0.1 * size
    assert len({*zip(np.repeat([0, 1, 2], 20), names["labels"], strict=True)}) == 3


def own_norm(names: dict[str, Any], printed: str) -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal(9) if seed % 2 else -np.abs(rng.standard_normal(9))
        columns, values = names["best_interval"](z)
        sums = [abs(z[i:j].sum()) for i in range(9) for j in range(i + 1, 10)]
        assert values @ z[columns] == pytest.approx(max(sums))
    assert names["result"].relative_gap <= 1e-6
    assert names["model"].norm_ == names["intervals"]
    lasso = min(
        float(np.linalg.norm(solve(names["X"], names["y"], level=level).coef - names["truth"]))
        for level in (10.0, 20.0, 40.0, 80.0)
    )
    assert np.linalg.norm(names["model"].coef_ - names["truth"]) < 0.5 * lasso
    assert names["value"] == pytest.approx(2.5, rel=1e-8)
    assert names["gap"] <= 2.5e-8


def scaling(names: dict[str, Any], printed: str) -> None:
    assert names["result"].converged
    assert set(range(5)) <= set(names["result"].columns.tolist())
    assert "float32" in printed


def structured(names: dict[str, Any], printed: str) -> None:
    assert "repair" in printed
    assert "gene_a:gene_b" in printed
    assert names["model"].status_.is_converged


#: What the Python of a page finds, beside running as it stands.
FOUND: dict[str, Callable[[dict[str, Any], str], None]] = {
    "../README.md": readme,
    "data.md": data,
    "first_contact.md": first_contact,
    "implicit.md": implicit,
    "matrices.md": matrices,
    "own_norm.md": own_norm,
    "scaling.md": scaling,
    "structured.md": structured,
}
OTHERS = ("after-selection.md", "coming_from.md", "findings.md", "index.md", "interop.md")


# The affinity of exact planes is one of blocks.
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("page", [*FOUND, *OTHERS])
def test_the_blocks_of_the_page_run(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if page == "scaling.md":
        pytest.importorskip("dask.array")
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    if page == "own_norm.md":  # as its title says
        assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 30
    if page in FOUND:
        FOUND[page](names, capsys.readouterr().out)


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
