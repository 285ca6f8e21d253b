"""What mutation testing leaves out is named line by line, and the lines are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.known import SRC
from tests.mutation.ways import WAYS


@pytest.mark.parametrize("file", WAYS)
def test_lines_that_choose_a_way_are_still_there(file: str) -> None:
    """Else the list would hide other lines, or none."""
    source = (Path(__file__).parents[2] / SRC / "core" / file).read_text(encoding="utf-8")
    for part in WAYS[file]:
        assert not part or source.count(part) == 1, part
