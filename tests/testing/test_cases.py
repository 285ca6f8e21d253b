"""Tests of many values run each of them, and name the one that fails."""

from __future__ import annotations

import inspect
from itertools import product

import pytest

from atomlearn.testing.cases import each
from tests.oracles.covering import in_turn


def test_every_value_is_run_each_time_and_the_one_that_fails_is_named() -> None:
    seen = []

    @each("size, word", iter([(1, "a"), (2, "b"), (3, "c")]))
    def check(path: str, size: int, word: str) -> None:
        seen.append((path, size, word))
        assert len(seen) < 5

    assert list(inspect.signature(check).parameters) == ["path"]
    check(path="p")
    assert seen == [("p", 1, "a"), ("p", 2, "b"), ("p", 3, "c")]
    with pytest.raises(AssertionError) as caught:
        check(path="q")
    assert caught.value.__notes__ == ["in the case size, word = (2, 'b')"]


def test_each_pair_of_values_meets() -> None:
    cases = in_turn("abcd", range(3), (True, False))
    assert len(cases) == 12
    assert {(one, three) for one, _, three in cases} == set(product("abcd", (True, False)))
    assert {(two, three) for _, two, three in cases} == set(product(range(3), (True, False)))
