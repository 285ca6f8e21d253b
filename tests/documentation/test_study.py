"""The page "A study, from file to table": its commands run, in order, and do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from atomlearn.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "study.md"


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    made, _ = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(made, PAGE.name, "exec"), names)
    capsys.readouterr()
    said = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert main(shlex.split(line)[1:]) == 0, line
            out = capsys.readouterr()
            said.append(out.out + out.err)
    inspected, selected, _, shares = said
    asked = "--missing median --time days --event status=2"
    assert f"next: atomlearn select liver.csv {asked} --out selected/" in inspected
    assert "'1' (50 rows) is another event, censored at its time" in selected
    assert "'1' (50 rows) is a competing event" in shares
    table = pd.read_csv("study/selected.csv").set_index("feature")
    assert {"bilirubin", "albumin"} <= set(table.index[table.role == "selected"])
    forced = {"age", "sex=m", "arm=high dose", "arm=low dose"}
    assert set(table.index[table.role == "covariate"]) == forced
    assert table.reference["arm=high dose"] == "placebo"
    assert table.lower["age"] > 1.0
    assert table.hazard_ratio["albumin"] < 1.0 < table.hazard_ratio["bilirubin"]
    page = Path("study/report.html").read_text(encoding="utf-8")
    for shown in ("at time 365", "at time 1825", "values of columns in the model were missing"):
        assert shown in page
    risks = pd.read_csv("risks.csv").set_index("id")
    assert list(risks.columns) == ["log_hazard_ratio", "risk by 365", "risk by 1825", "remark"]
    assert list(risks.index) == ["P000", "P001", "P002"]
    assert risks.remark["P001"].startswith("age 102 is outside")
    assert risks["risk by 365"].between(0, 1).all()
    assert (risks["risk by 365"] < risks["risk by 1825"]).all()
