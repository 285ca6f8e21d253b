"""Every entry point with odd data: some of the pairs here, all of them in ``make nightly``."""

import pytest

from tests.fuzz.odd_data import ENTRIES, NUMBERS, X, cases, judged, where
from tests.fuzz.rule import Impolite

#: One of so many pairs is tried; of each entry others, so that each case meets some of them.
STRIDE = 9


@pytest.mark.parametrize("start", range(3))
def test_odd_data_is_answered_or_refused_in_one_line(start):
    pairs = list(cases())
    assert len(pairs) > 50 * sum(len(entries) for entries, _ in ENTRIES.values())
    for name, case, entry, odd_x, odd_y in pairs[start :: 3 * STRIDE]:
        try:
            judged(entry, odd_x, odd_y)
        except Impolite as fault:
            pytest.fail(f"{name}, {case}: {fault} ({where(fault)})")


def test_the_rule_is_broken_by_texts_from_inside():
    def of_numpy(X, y):
        raise IndexError("index 3 is out of bounds")

    def of_many_lines(X, y):
        raise ValueError("one\ntwo")

    def of_warnings(X, y):
        return [1.0] / (X - X)

    for entry in (of_numpy, of_many_lines, of_warnings):
        with pytest.raises(Impolite):
            judged(entry, X, NUMBERS)
