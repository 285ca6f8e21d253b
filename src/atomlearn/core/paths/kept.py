"""KeptPath: the points of a path on disk, so that one that was killed goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np

from atomlearn.core.data.numpy_files import load_npz
from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Record
from atomlearn.core.solvers.checkpoint import record_of, write_whole
from atomlearn.core.solvers.fingerprint import fingerprint, sample

_FORMAT, _VERSION = "atomlearn path", 1


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

    def __init__(self, folder: str | os.PathLike[str], problem: Problem) -> None:
        regularizer = replace(problem.regularizer, amount=1.0)
        problem = replace(problem, regularizer=regularizer)
        self._digest, self._entries = fingerprint(problem), sample(problem)
        self.file = Path(folder) / f"path-{self._digest[:32]}.npz"

    def write(self, pool: Columns, points: Sequence[KeptPoint]) -> None:
        """Keep the points that were priced so far."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "format": _FORMAT,
            "version": _VERSION,
            "problem": self._digest,
            "columns": [point.columns.size for point in points],
            "steps": [len(point.history) for point in points],
        }
        rows = [astuple(record) for point in points for record in point.history]
        content = {
            "about": np.array(json.dumps(about)),
            "entries": self._entries,
            "pool": pool,
            "levels": np.array([point.level for point in points]),
            "final": np.array([point.final for point in points]),
            "intercepts": np.array([point.intercept for point in points]),
            "columns": np.concatenate([pool[:0], *(point.columns for point in points)]),
            "weights": np.concatenate([np.zeros(0), *(point.weights for point in points)]),
            "history": np.array(rows, dtype=np.float64),
        }
        write_whole(self.file, content)

    def read(self) -> Held:
        """Return what the file holds, nothing where there is none; raise where it is damaged."""
        if not self.file.exists():
            return Held()
        try:
            held = load_npz(self.file)[0]
            about = json.loads(held["about"].item())
            if about["format"] != _FORMAT or about["version"] != _VERSION:
                raise ValueError(f"it is version {about['version']!r} of {about['format']!r}")
            same = about["problem"] == self._digest and held["entries"].shape == self._entries.shape
            same = same and bool(np.allclose(held["entries"], self._entries, rtol=1e-6))
            sizes, steps = np.cumsum(about["columns"]), np.cumsum(about["steps"])
            parts = zip(
                held["levels"].tolist(),
                np.split(held["columns"].astype(np.int64), sizes)[:-1],
                np.split(held["weights"], sizes)[:-1],
                held["intercepts"].tolist(),
                [list(map(record_of, rows.tolist())) for rows in np.split(held["history"], steps)][
                    :-1
                ],
                held["final"].tolist(),
                strict=True,
            )
            points = tuple(KeptPoint(*part) for part in parts)
            found = Held(held["pool"].astype(np.int64), points)
        except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(
                f"the checkpoint {self.file} cannot be read ({error}); remove it to begin afresh"
            ) from error
        if not same:
            raise ValueError(
                f"the checkpoint {self.file} is of other data (X); remove it, or give another "
                "folder"
            )
        return found
