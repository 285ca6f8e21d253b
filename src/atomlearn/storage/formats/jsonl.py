"""Lines of JSON: one object a sample, with the same numbers in each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from atomlearn.core.data.understood import understood
from atomlearn.storage.formats.table import (
    DataTable,
    Request,
    Schema,
    finite_matrix,
    require_name,
    tidy_target,
)


def read_jsonl(path: Path, request: Request) -> DataTable:
    """Return the table of a file of lines such as {"age": 61, "weight": 80.5, "y": 1.2}."""
    with understood(path, "file of JSON lines"):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        names = list(rows[0])
        cells = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    target = request.target
    kept = [j for j, name in enumerate(names) if name != target]
    y = None
    if target is not None:
        require_name(target, names, path)
        y = tidy_target(cells[:, names.index(target)], f"{target} of {path}")
    X = finite_matrix(cells[:, kept], path, request.missing)
    return DataTable(X, y, Schema(len(kept), tuple(names[j] for j in kept)), target, str(path))
