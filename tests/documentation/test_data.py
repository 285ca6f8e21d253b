"""The Python of docs/data.md runs as it stands, and the example scans real traits."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from atomlearn.datasets.loaders import data_directories

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "data.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "dense float32" in printed
    assert names["result"].converged
    assert names["scan"].converged
    assert len(names["scan"].parts) > 0
    assert set(range(5)) <= set(names["polygenic"].active.tolist())
    assert names["again"].passes - names["result"].passes == 1


FILES = {
    "mice": "gwas_mice_bglr/mice_geno.npz",
    "hapmap": "plink_hapmap3/hapmap3_1kg_plink.tar.xz",
}


@pytest.mark.parametrize("study", FILES)
def test_the_example_scans(study: str) -> None:
    if not any((folder / FILES[study]).is_file() for folder in data_directories()):
        pytest.skip("the data are not on this machine")
    path = ROOT / "examples" / "genotype_scan.py"
    spec = importlib.util.spec_from_file_location("genotype_scan", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for result in module.main([study]).values():
        assert result.converged
        assert result.columns.size > 0
