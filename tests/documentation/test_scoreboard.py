"""The scoreboard is what the kept results say, and shows what we lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scoreboard

ROOT = Path(__file__).resolve().parents[2]
LINES = [line for source in scoreboard.SOURCES for line in scoreboard.contests(source)]


def test_the_page_and_the_readme_are_made_of_the_results() -> None:
    page = (ROOT / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    assert page == scoreboard.page(LINES)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert scoreboard.summary(LINES) in readme


def test_the_fastest_other_that_is_accurate_is_taken_and_a_loss_is_marked(tmp_path: Path) -> None:
    (tmp_path / "race.csv").write_text(
        "size,solver,seconds,error,ended\n"
        "1,ours,2.0,0,\n1,quick,0.5,0.1,\n1,slow,3.0,0,\n1,fair,1.0,0,\n1,cut,0.1,0,TIME_LIMIT\n"
        "2,ours,1.0,0,\n2,fair,4.0,0,\n3,fair,4.0,0,\n"
    )
    source = scoreboard.Source("race", ("size",), ("ours",), accuracy="error", at_most=0.01)
    lost, won = scoreboard.contests(source, tmp_path)
    assert (lost.name, lost.other, lost.ratio) == ("fair", 1.0, 0.5)
    assert (won.name, won.ratio) == ("fair", 4.0)
    text = scoreboard.table([lost, won])
    assert text.count("(lost)") == 1
    assert "fair: **1 s** | 0.5 (lost)" in text


@pytest.mark.parametrize("source", scoreboard.SOURCES, ids=lambda source: source.file)
def test_every_benchmark_has_contests(source: scoreboard.Source) -> None:
    assert list(scoreboard.contests(source))
