"""The papers' experiments run at small sizes; claims are decided by one rule, from results."""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from benchmarks.harness.real_data import data_file
from experiments import pages
from experiments.common.claims import Claim, close, faster, more, never
from experiments.common.runs import Kept, Runs
from experiments.pages import Results, counted, decided, row, said
from experiments.tan.found import apart, reached
from experiments.tan.groups import enclosed

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "argyriou": ["compared", "prox", "theorems"],
    "liu": ["rate", "proxes", "theorems"],
    "vinyes": ["algorithm", "figure_2", "theorems"],
    "tan": ["inexact", "small", "trees", "optima", "theorems"],
}


def smoke(paper: str, parts: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Run these parts in this process, which has imported all that they need."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["run", "--smoke", *parts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_module(f"experiments.{paper}.run", run_name="__main__")


@pytest.mark.parametrize("paper", PARTS)
def test_small_sizes_are_run_decided_and_drawn(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    smoke(paper, PARTS[paper], monkeypatch, tmp_path)
    results = Results(paper, smoke=True)
    assert all(results[part].seconds > 0 for part in PARTS[paper])
    monkeypatch.setattr(sys, "argv", ["pages", "--smoke", paper])
    capsys.readouterr()
    pages.main()
    printed = capsys.readouterr().out
    for claim in decided(paper, results):
        assert f"**{claim.key}: {claim.verdict}.**" in printed
        assert f"“{claim.quote}” ({claim.place})" in printed
        assert claim.judged.draws == 0 or claim.part in PARTS[paper]
    assert list((tmp_path / "build" / "experiments" / paper / "figures").glob("*.svg"))


def test_a_run_is_taken_up_where_it_was_cut(tmp_path: Path) -> None:
    made: list[str] = []

    def piece(runs: Runs, key: str) -> None:
        runs.piece("part", key, lambda: made.append(key) or {"value": len(made)})

    first = Runs(tmp_path, smoke=False, resume=False)
    piece(first, "a")
    second = Runs(tmp_path, smoke=False, resume=True)
    piece(second, "a")
    piece(second, "b")
    assert made == ["a", "b"]
    kept = Kept(tmp_path / "results" / "part.json")
    assert [one["value"] for one in kept] == [1, 2]
    piece(Runs(tmp_path, smoke=False, resume=False), "b")  # afresh: nothing of before
    assert list(Kept(tmp_path / "results" / "part.json").pieces) == ["b"]


@pytest.mark.parametrize(
    ("differences", "margin", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.0, 1.2], 0.5, "holds here"),
        ([1.0, 1.1, 0.9, 1.0, 1.2], 1.0, "undecided"),  # not beyond the margin
        ([3.0, -2.0, 3.0, -1.0, 2.0], 0.0, "undecided"),  # the draws disagree
        ([-1.0, -1.1, -0.9, -1.0, -1.2], 0.5, "not so here"),
        ([0.0, 0.1, -0.1, 0.0, 0.1], 0.5, "not so here"),  # alike is not more
        ([1.0, 1.0, 1.0, 1.0], 0.0, "undecided"),  # four draws
        ([], 0.0, "undecided"),
    ],
)
def test_a_margin_over_five_draws_decides(
    differences: list[float], margin: float, verdict: str
) -> None:
    assert more(differences, margin).verdict == verdict


def test_times_are_decided_by_factors_and_never_by_milliseconds() -> None:
    slow, quick = [2.0, 2.2, 1.9, 2.1, 2.0], [1.0] * 5
    assert faster(quick, slow).verdict == "holds here"
    assert faster(slow, quick).verdict == "not so here"
    assert faster(quick, slow, 2.5).verdict == "not so here"
    assert (
        faster([0.001] * 5, [0.002, 0.003, 0.002, 0.003, 0.002], brief=0.05).verdict == "undecided"
    )
    assert faster(quick, [None] * 5, limit=8.0).verdict == "holds here"
    assert faster([None] * 5, [None] * 5, limit=8.0).verdict == "undecided"
    assert close([0.1, -0.1, 0.0, 0.1, -0.1], 0.5).verdict == "holds here"
    assert close([1.1, 0.9, 1.0, 1.1, 0.9], 0.5).verdict == "not so here"
    assert never(1, 100, "").verdict == "not so here"


def test_curves_are_compared_only_where_all_of_them_are() -> None:
    short = [{"features": 10, "accuracy": 80.0}, {"features": 100, "accuracy": 90.0}]
    long = [*short, {"features": 300, "accuracy": 95.0}]
    kept = [{"rows": {"ours": long, "theirs": short}}] * 5
    assert reached(kept, ("ours", "theirs"), (5, 50, 100, 200)) == (50, 100)
    assert apart(kept, "accuracy", "ours", ("theirs",), 55) == [0.0] * 5
    for first, second in (("ours", "theirs"), ("theirs", "ours")):
        assert more(apart(kept, "accuracy", first, (second, first), 200)).verdict == "undecided"


def test_choices_of_ours_weigh_the_same_on_both_sides_and_are_named() -> None:
    fields = ("key", "place", "quote", "part", "size", "ours")
    holds, fails = more([1.0] * 5), more([-1.0] * 5)
    for judged, verdict in ((holds, "holds here"), (fails, "not so here")):
        claim = Claim(*fields, judged, chosen="lambda = 1")
        assert claim.verdict == Claim(*fields, judged).verdict == verdict
        assert not claim.why
        words = said(claim, Results("argyriou", smoke=True))
        assert words.startswith(f"**key: {verdict}.** *Ours, not the paper's: lambda = 1.*")
        assert Claim(*fields, judged, reduced="reduced: half").verdict == "undecided"
    shown = Claim(*fields, holds, seen="a plot without words")
    assert shown.verdict == "seen"
    assert counted([shown]) == counted([])
    reasons = [
        Claim(*fields, holds, reduced="reduced: half").why,
        Claim(*fields, more([])).why,
        Claim(*fields, more([1.0])).why,
        Claim(*fields, more([1.0, -1.0, 1.0, -1.0, 1.0])).why,
    ]
    assert len(set(reasons)) == 4
    assert all(reasons)
    waiting = Claim(*fields, more([1.0]), minutes="3 minutes")
    assert "It would take 3 minutes." in said(waiting, Results("argyriou", smoke=True))


def test_a_rise_and_an_optimum_outside_of_its_bounds_are_seen() -> None:
    """What Lemma 1 says, for rounds that break it."""
    assert enclosed([(3.0, 0.0), (2.0, 0.5)], 1.0) == [(0.0, 0.0), (0.0, 0.0)]
    assert enclosed([(2.0, 0.0), (3.0, 1.5)], 1.0) == [(0.0, 0.0), (0.5, 1.0)]


@pytest.mark.parametrize("paper", PARTS)
def test_claims_that_are_kept_are_those_of_the_results(paper: str) -> None:
    """The page cannot say what the results do not: verdicts are decided anew from what is kept."""
    kept = json.loads((ROOT / "experiments" / paper / "claims.json").read_text(encoding="utf-8"))
    results = Results(paper, smoke=False)
    claims = decided(paper, results)
    assert [row(claim, results) for claim in claims] == kept
    page = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    assert all(said(claim, results) in page for claim in claims)
    assert counted(claims) in page


def test_smoke_sizes_of_real_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts on real data, where it is at hand."""
    if not data_file("saheart").exists():
        pytest.skip("no real data on this machine: set ATOMLEARN_DATA")
    smoke("argyriou", ["heart"], monkeypatch, tmp_path)
    assert len(Results("argyriou", smoke=True)["heart"]) == 1


SCRIPTS = sorted((ROOT / "experiments" / "authors").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_author_needs_twenty_lines(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each item an author would try first runs as it stands."""
    lines = script.read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(("import", "from", '"'))]
    assert len(code) <= 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
