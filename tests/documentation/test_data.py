"""The example of genotypes scans real traits."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks.harness.real_data import data_file

ROOT = Path(__file__).resolve().parents[2]


FILES = {
    "mice": "gwas_mice_bglr/mice_geno.npz",
    "hapmap": "plink_hapmap3/hapmap3_1kg_plink.tar.xz",
}


@pytest.mark.parametrize("study", FILES)
def test_the_example_scans(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not data_file(FILES[study]).is_file():
        pytest.skip("the data are not on this machine")
    monkeypatch.setenv("ATOMLEARN_DATA", str(data_file("")))
    path = ROOT / "examples" / "genotype_scan.py"
    spec = importlib.util.spec_from_file_location("genotype_scan", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for result in module.main([study]).values():
        assert result.converged
        assert result.columns.size > 0
