"""Names of columns in the parameters of norms: lists, patterns, mappings, tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from atomlearn.core import named_columns, resolved
from atomlearn.core.norms.names import named_groups

NAMES = ["age", "dose_1", "dose_2", "sex"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(["sex", "age"], [3, 0]), ("dose_*", [1, 2]), (["dose_?", "age"], [1, 2, 0]), ("sex", [3]),
     (pd.Index(["sex"]), [3]), (["age", "age", "a*"], [0]), (["age", 2], [0, 2])],
)  # fmt: skip
def test_columns_by_name(given: Any, expected: list[int]) -> None:
    assert named_columns(given, NAMES, "L1").tolist() == expected


@pytest.mark.parametrize("given", [None, [0, 2], np.array([True, False]), np.zeros(0)])
def test_columns_by_number_stay_as_they_are(given: Any) -> None:
    assert named_columns(given, None, "L1") is given


@pytest.mark.parametrize(
    ("given", "names", "message"),
    [("sex", None, "no names"), ("height", NAMES, "does not have the column 'height'"),
     ("x*", NAMES, r"no column matches the pattern 'x\*'$")],
)  # fmt: skip
def test_names_that_no_column_has(given: str, names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        named_columns(given, names, "L1")


@pytest.mark.parametrize(
    ("groups", "needed"),
    [(["a", "a", "b"], False), ([["age"], [1]], True), ([[0], [1]], False),
     (["age", ["sex"]], True), ({"one": "dose_*"}, True),
     ({"one": ["age"], "two": [1]}, True), ({"one": [0]}, False),
     (np.array(["a"]), False), (sp.eye(2), False), ("age", False), (7, False), ([], False),
     (pd.DataFrame({"g": ["one"], "f": ["age"]}), True),
     (SimpleNamespace(columns=["g"]), False), (SimpleNamespace(to_numpy=len), False)],
)  # fmt: skip
def test_which_groups_speak_of_names(groups: Any, needed: bool) -> None:
    assert (resolved(groups, NAMES, "Groups", "ignore") is not groups) == needed
    if not needed:
        assert named_groups(groups, NAMES, "Groups") is groups


def test_groups_by_name() -> None:
    given = {"doses": ["dose_*"], "one": "age", 3: ["sex", 1]}
    expected = {"doses": [1, 2], "one": [0], "3": [3, 1]}
    assert resolved(given, NAMES, "Groups") == expected
    assert named_groups(given, NAMES, "Groups") == list(expected.values())
    assert named_groups([["sex"], "dose_*"], NAMES, "Groups") == [[3], [1, 2]]


def test_names_that_are_missing_are_left_out_where_that_is_asked_for() -> None:
    given = {"one": ["age", "height"], "none": ["x*", "width"]}
    assert resolved(given, NAMES, "Groups", "ignore") == {"one": [0]}
    assert resolved(list(given.values()), NAMES, "Groups", "ignore") == [[0], []]
    assert resolved({"empty": []}, NAMES, "Groups") == {"empty": []}
    for wrong in given.values():
        with pytest.raises(ValueError, match="of group 'g'; correct it, or pass missing='ignore'"):
            resolved({"g": wrong}, NAMES, "Groups")
    with pytest.raises(ValueError, match="'error' or 'ignore', got 'skip'"):
        resolved(given, NAMES, "Groups", "skip")


def test_groups_of_tables() -> None:
    long = pd.DataFrame({"group": ["b", "a", "b"], "feature": ["sex", "age", "dose_1"]})
    assert resolved(long, NAMES, "Groups") == {"b": [3, 1], "a": [0]}
    wide = pd.DataFrame({"b": [True, False], "a": [True, True]}, index=["sex", "age"])
    assert resolved(wide, NAMES, "Groups") == {"b": [3], "a": [3, 0]}
    with pytest.raises(ValueError, match="two columns"):
        resolved(long.assign(more=1), NAMES, "Groups")
