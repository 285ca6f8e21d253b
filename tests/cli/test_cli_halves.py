"""What random halves of the rows select stands in the report, whatever was asked for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atomlearn.cli import main
from atomlearn.reports import halves


@pytest.fixture(autouse=True)
def halves_in_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As people have it, on a machine that is never too slow."""
    monkeypatch.setattr(halves, "MOST_WORK", 10**15)


KINDS = {
    "regression": ["--n-features", 4],
    "classes": ["--norm", "l1", "--alpha", 0.02],
    "survival": ["--time", "time", "--event", "event", "--norm", "l1", "--alpha", 0.02],
    "curves": ["--additive", "--n-features", 3],
}


def selected(tmp_path: Path, kind: str, *more: object) -> tuple[dict[str, float], str]:
    """Return the share of halves beside each feature of the report, and the report."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8))
    z = 2.0 * X[:, [1, 4]].sum(axis=1) + 0.3 * rng.standard_normal(150)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    if kind == "survival":
        frame["time"], frame["event"] = np.exp(-z), rng.random(150) < 0.8
    else:
        cuts = [0.0] if kind == "classes" else None
        frame["y"] = z if cuts is None else np.array(["p", "q"])[np.digitize(z, cuts)]
    target = [] if kind == "survival" else ["--target", "y"]
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = [tmp_path / "data.csv", *target, *KINDS[kind], *more, "--out", tmp_path / "out"]
    assert main(["select", *map(str, words), "--quiet"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    found = re.findall(
        r'class="feature">(\w).*?(?:data-value="([\d.]+)">\d+%</td>|</tr>)', page, re.S
    )
    assert found
    return {name: float(share) for name, share in found if share}, page


@pytest.mark.parametrize("kind", KINDS)
def test_true_features_are_selected_by_every_half(tmp_path: Path, kind: str) -> None:
    shares, page = selected(tmp_path, kind)
    assert shares["b"] == shares["e"] == 1.0
    others = [share for name, share in shares.items() if name not in "be"]
    assert min(others, default=0.0) < 1.0
    assert ("Shades hold the middle 80%" in page) == (kind == "curves")


@pytest.mark.parametrize("left_out", ["large", "late", "limited"])
def test_halves_that_would_take_long_are_left_out(
    tmp_path: Path, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if left_out == "large":
        monkeypatch.setattr(halves, "SMALL", 1199)
    if left_out == "late":
        monkeypatch.setattr(halves, "MOST_WORK", 0)
    more = ["--time-limit", 100] if left_out == "limited" else []
    assert not selected(tmp_path, "regression", *more)[0]
