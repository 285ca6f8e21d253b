"""A few kills and interrupts in each run of the suite; ``python -m tests.fuzz.kills`` for more."""

import os

import pytest

from tests.fuzz import kills

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_conversions_that_are_killed_go_on():
    counts = kills.conversions(3)
    assert counts["killed"] >= 3
    assert counts["stores"]


def test_solves_that_are_killed_go_on_from_their_checkpoint():
    counts = kills.solves(3)
    assert counts["killed"] >= 3
    assert counts["answers"]


def test_solves_that_are_interrupted_give_a_certified_point():
    counts = kills.interrupts(4)
    assert counts["interrupted"] + counts["before a point"] >= 4
