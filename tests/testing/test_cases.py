"""The cases that every suite goes through."""

from __future__ import annotations

import itertools

from atomlearn.testing.problems import all_cases


def test_any_two_settings_meet() -> None:
    cases = [
        (case.loss, case.form, case.intercept, case.weighted, case.tau > 0) for case in all_cases()
    ]
    for i, j in itertools.combinations(range(5), 2):
        first, second = ({case[k] for case in cases} for k in (i, j))
        assert {(case[i], case[j]) for case in cases} == set(itertools.product(first, second))
    assert len(cases) == 18
