"""The Python of pages that show other packages beside ours runs as it stands."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import atomlearn

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["coming_from.md", "faq.md", "interop.md", "findings.md"])
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
    assert set(atomlearn.__all__) - {"__version__"} <= listed
    doors = {p.stem for p in Path(atomlearn.__file__).parent.glob("*.py")} - {"__init__", "result"}
    assert doors <= listed


def test_the_chart_says_what_the_package_has() -> None:
    """Every name in it that looks like one of ours is one, and the picture is XML."""
    spec = importlib.util.spec_from_file_location("chart", DOCS / "chart.py")
    assert spec is not None
    assert spec.loader is not None
    chart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chart)
    ElementTree.fromstring(chart.chart())
    known = {name for door in ("norms", "designs") for name in getattr(atomlearn, door).__all__}
    answers = " ".join(word for _, take in (*chart.QUESTIONS, ("", chart.LAST)) for word in take)
    named = set(re.findall(r"\b[A-Z]\w+\b", answers))
    assert named
    assert named <= known | set(atomlearn.__all__)
