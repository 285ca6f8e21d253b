"""The Python of pages that show other packages beside ours runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
