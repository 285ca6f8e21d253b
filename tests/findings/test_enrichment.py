"""Over-representation of selected features in sets."""

from __future__ import annotations

import itertools
import math

import pytest
from numpy.testing import assert_allclose

from atomlearn.findings import enrichment


def test_against_every_draw() -> None:
    universe = "abcdefgh"
    sets = {"one": "abcz", "two": "cdefg", "none": "xyz", "missed": "h"}
    found = enrichment("abd", universe, sets)
    assert [one.name for one in found] == ["one", "two"]
    draws = [*itertools.combinations(universe, 3)]
    for one in found:
        own = set(sets[one.name]) & set(universe)
        as_many = [len(own.intersection(draw)) >= len(one.members) for draw in draws]
        assert_allclose(one.p_value, sum(as_many) / len(draws))
        assert_allclose(one.expected, sum(len(own.intersection(d)) for d in draws) / len(draws))
        assert one.size == len(own)
    assert found[0].members == ("a", "b")
    # Three sets have a member in the universe, and count for the adjusted p-values.
    assert_allclose(found[0].p_adjusted, 3 * found[0].p_value)


def test_a_textbook_table() -> None:
    """Fisher's tea: 4 of 4 cups of the one kind named among 8, with probability 1 / 70."""
    [tea] = enrichment(range(4), range(8), {"milk first": range(4)})
    assert_allclose(tea.p_value, 1 / math.comb(8, 4))


def test_the_universe_holds_what_is_selected() -> None:
    with pytest.raises(ValueError, match="'z' is selected and not in the universe"):
        enrichment("az", "abc", {"one": "ab"})
    assert enrichment([], "abc", {"one": "ab"}) == []
    assert enrichment("a", "abc", {}) == []
