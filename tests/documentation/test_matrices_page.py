"""The Python of docs/matrices.md runs as it stands, and finds what the page is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "matrices.md"


# The affinity of exact planes is one of blocks.
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_the_page_runs() -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    truth, completed, split = names["truth"], names["completed"], names["split"]
    assert completed.converged
    assert completed.low_rank.rank == 3
    assert np.linalg.norm(completed.coef - truth) < 0.2 * np.linalg.norm(truth)
    assert split.converged
    assert np.linalg.norm(names["low_rank"] - truth) < 0.2 * np.linalg.norm(truth)
    assert (names["sparse"][names["spikes"] > 0] > 5).all()
    assert names["fit"].converged
    assert names["tasks"].selected_.tolist() == [0, 1, 2]
    assert names["classes"].status_.is_converged
    assert np.linalg.norm(names["robust"].low_rank_ - truth) < 0.1 * np.linalg.norm(truth)
    assert len({*zip(np.repeat([0, 1, 2], 20), names["labels"], strict=True)}) == 3
