"""Public names change on purpose only, and each old word is answered by its new one."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from tests.architecture.public_names import FILE, PAGE, page, public

KEPT = json.loads(FILE.read_text())
#: Renamed parameters, and renamed methods of base classes; other lines of the table are of names,
#: attributes and values.
PARAMETERS = [row for row in KEPT["renamed"] if "owner" in row]
METHODS = [row for row in KEPT["renamed"] if "base" in row]


def test_the_public_names_are_those_of_the_file() -> None:
    found = public()
    changed = sorted(
        name for name in {*found, *KEPT["names"]} if found.get(name) != KEPT["names"].get(name)
    )
    assert not changed, "if on purpose: python -m tests.architecture.public_names, see its diff"


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(KEPT["renamed"])


@pytest.mark.parametrize("row", PARAMETERS, ids=lambda row: f"{row['owner']}-{row['old']}")
def test_an_old_word_is_answered_by_the_new_one(row: dict[str, Any]) -> None:
    module, name = row["owner"].rsplit(".", 1)
    owner = getattr(importlib.import_module(module), name)
    with pytest.raises(TypeError, match="has no parameter") as caught:
        owner(**{row["old"]: 1.0})
    assert row["says"] in str(caught.value)


@pytest.mark.parametrize("row", METHODS, ids=lambda row: f"{row['base']}-{row['old']}")
def test_a_class_with_a_method_under_an_old_word_is_refused(row: dict[str, Any]) -> None:
    module, name = row["base"].rsplit(".", 1)
    base = getattr(importlib.import_module(module), name)
    with pytest.raises(TypeError, match="which Mine defines") as caught:
        type("Mine", (base,), {row["old"]: None})
    assert row["says"] in str(caught.value)
