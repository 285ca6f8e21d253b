"""The contests that continuous integration runs: what counts once, and what is too much."""

from __future__ import annotations

import pytest

from benchmarks.contest_problems import PROBLEMS
from benchmarks.contests import SIZES, Counts, faults

KEPT = {"passes": "4", "loss": "100", "norm": "20", "block": "0"}


@pytest.mark.parametrize(
    ("found", "bad"),
    [
        ({}, []),
        ({"passes": 5}, ["p: passes 4 -> 5"]),
        ({"loss": 115, "norm": 30, "block": 10}, []),
        ({"loss": 116, "norm": 31, "block": 11}, ["loss 100", "norm 20", "block 0"]),
        ({"passes": 1, "loss": 0}, []),
    ],
)
def test_what_is_too_much(found: dict[str, int], bad: list[str]) -> None:
    row = {"problem": "p"} | {what: int(value) for what, value in KEPT.items()} | found
    named = list(faults(row, KEPT))
    assert len(named) == len(bad)
    assert all(part in fault for part, fault in zip(bad, named, strict=True))


def test_what_is_not_kept_is_a_fault() -> None:
    assert list(faults({"problem": "p"}, None))


def test_a_question_passed_on_counts_once() -> None:
    counts = Counts()
    inner = counts._counting("loss", lambda: 1)
    outer = counts._counting("loss", lambda: inner() + inner())
    assert outer() + inner() == 3
    assert counts.calls == {"loss": 2}


def test_every_size_is_of_a_problem() -> None:
    assert set(SIZES) <= set(PROBLEMS)
