"""KeptPath: the points of a path on disk, so that one that was killed goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Record
from atomlearn.core.solvers.checkpoint import read_whole, readable, record_of, write_whole
from atomlearn.core.solvers.fingerprint import fingerprint, sample


@dataclass(frozen=True, slots=True)
class KeptPoint:
    """The last point of a level, how it came about, and whether it was the level's solution."""

    level: float
    columns: Columns
    weights: Array
    intercept: float
    history: list[Record]
    final: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What a file holds: the columns of the pool, and a point of each level that was priced."""

    pool: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    points: tuple[KeptPoint, ...] = ()


class KeptPath:
    """The file of one path, named by the fingerprint of its problem.

    Parameters
    ----------
    folder : path
        Made where needed; paths of several problems (folds, outputs, norms) have files of their
        own there.
    problem : Problem
        That of the path, whose amount plays no part.

    Notes
    -----
    Of what was proved nothing is kept: the first reading of a path that goes on proves each level
    again, at the very point. Levels are known again by their amounts, so that the grid may be
    another one; a tighter gap goes on from what is there.
    """

    #: What the file says it is.
    format: ClassVar[str] = "atomlearn path"

    def __init__(self, folder: str | os.PathLike[str], problem: Problem) -> None:
        regularizer = replace(problem.regularizer, amount=1.0)
        problem = replace(problem, regularizer=regularizer)
        self._digest, self._entries = fingerprint(problem), sample(problem)
        self.file = Path(folder) / f"path-{self._digest[:32]}.npz"

    def write(self, pool: Columns, points: Sequence[KeptPoint]) -> None:
        """Keep the points that were priced so far."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "format": self.format,
            "problem": self._digest,
            "columns": [point.columns.size for point in points],
            "steps": [len(point.history) for point in points],
        }
        rows = [astuple(record) for point in points for record in point.history]
        content = {
            "entries": self._entries,
            "pool": pool,
            "levels": np.array([point.level for point in points]),
            "final": np.array([point.final for point in points]),
            "intercepts": np.array([point.intercept for point in points]),
            "columns": np.concatenate([pool[:0], *(point.columns for point in points)]),
            "weights": np.concatenate([np.zeros(0), *(point.weights for point in points)]),
            "history": np.array(rows, dtype=np.float64),
        }
        write_whole(self.file, about, content)

    def read(self) -> Held:
        """Return what the file holds, nothing where there is none; raise where it is damaged."""
        if not self.file.exists():
            return Held()
        about, held = read_whole(self.file, self.format, self._digest, self._entries)
        with readable(self.file):
            sizes, steps = np.cumsum(about["columns"]), np.cumsum(about["steps"])
            histories = np.split(held["history"], steps)[:-1]
            parts = zip(
                held["levels"].tolist(),
                np.split(held["columns"].astype(np.int64), sizes)[:-1],
                np.split(held["weights"], sizes)[:-1],
                held["intercepts"].tolist(),
                [list(map(record_of, rows.tolist())) for rows in histories],
                held["final"].tolist(),
                strict=True,
            )
            points = tuple(KeptPoint(*part) for part in parts)
            return Held(held["pool"].astype(np.int64), points)
