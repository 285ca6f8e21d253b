"""Checkpoint: an observer that saves the state of a solve to disk and resumes from it."""

from __future__ import annotations

import io
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from atomlearn._support import clear_left, write_whole
from atomlearn.core.interfaces import Array, Arrays
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Record
from atomlearn.core.solvers.fingerprint import fingerprint, sample
from atomlearn.core.solvers.progress import Progress, Resumed, RunObserver
from atomlearn.core.solvers.solver import Solver

_FORMAT = "atomlearn checkpoint"
_VERSION = 2


class Checkpoint(RunObserver):
    """``solve(..., observers=[Checkpoint(folder)])`` resumes a solve that was killed.

    Parameters
    ----------
    folder : path
        Created if needed. The file ``checkpoint.npz`` in it appears as a whole or not at all, and
        has only arrays and text.
    every_s : float, default=1.0
        Minimum number of seconds between two checkpoints; one is always written at the end. 0
        writes one after every step.
    many : bool, default=False
        Write a file for each problem, named by its fingerprint: for paths, cross-validation, and
        other sequences of solves.

    Raises
    ------
    ValueError
        When the solve begins, if the folder has the checkpoint of another problem or a damaged
        one.

    Notes
    -----
    A checkpoint has the active columns and their weights (or atoms), the intercept, and passes,
    seconds and history so far. Settings of the solver and of the stop may change: a smaller gap or
    more time continues the solve. The first step of a resumed solve is a pass that proves the gap
    of the point; its record replaces the last one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = solve(X, y, alpha=0.3, observers=[solvers.Checkpoint(folder)])
    ...     again = solve(X, y, alpha=0.3, observers=[solvers.Checkpoint(folder)])
    >>> again.passes == first.passes + 1
    True
    """

    resumes = True

    def __init__(
        self, folder: str | os.PathLike[str], every_s: float = 1.0, many: bool = False
    ) -> None:
        """Store the settings, which the class documents; nothing is written yet."""
        if not every_s >= 0:
            raise ValueError(f"every_s must be a number of seconds >= 0, got {every_s!r}")
        self.folder = Path(folder)
        self.every_s = float(every_s)
        self.many = many
        #: The file of each problem, by the ``id`` of the problem.
        self._places: dict[int, _Place] = {}

    def begin(self, problem: Problem, solver: Solver) -> Resumed | None:
        """Register ``problem``; return its saved state to resume from, or None.

        ``solver`` must store states in the same format as the solver that wrote the file.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the checkpoint folder {self.folder} is a file; give a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        problem_hash = fingerprint(problem)
        entries = self._sample(problem)
        # With ``many``, each problem has a file named by its hash.
        file = self.folder / (f"{problem_hash[:32]}.npz" if self.many else "checkpoint.npz")
        # Remove parts of this file that a killed process left.
        clear_left(file)
        self._places[id(problem)] = _Place(problem, file, problem_hash, entries, time.monotonic())
        return _read(file, problem_hash, entries, solver.state_format) if file.exists() else None

    def _sample(self, problem: Problem) -> Array:
        """Return some entries of the X of ``problem``, (rows, columns); see ``sample``.

        They are gathered only once for all problems that share this X.
        """
        samples = (p.entries for p in self._places.values() if p.problem.design is problem.design)
        entries = next(samples, None)
        return sample(problem) if entries is None else entries

    def __call__(self, progress: Progress) -> None:
        """Write the state of ``progress``, but not more often than every ``every_s`` seconds."""
        place = self._places.get(id(progress.problem))
        if place is None or time.monotonic() - place.written >= self.every_s:
            self.end(progress)

    def end(self, progress: Progress) -> None:
        """Write a checkpoint of ``progress`` now, whenever the last one was written."""
        place = self._places.get(id(progress.problem))
        if place is None:
            raise RuntimeError("a Checkpoint is saved by `run`, which it is given to as observer")
        _write(place, progress)
        place.written = time.monotonic()


@dataclass(slots=True)
class _Place:
    """The file of one problem, with the hash and the entries of X that identify the problem.

    Attributes
    ----------
    problem : Problem
    file : Path
        Where its checkpoint is written.
    digest : str
        Its ``fingerprint``.
    entries : array
        The ``sample`` of its X.
    written : float
        Time of the last write, on the monotonic clock.
    """

    problem: Problem
    file: Path
    digest: str
    entries: Array
    written: float


def _write(checkpoint: _Place, progress: Progress) -> None:
    """Write the state of ``progress`` and the history of its run to the file of ``checkpoint``."""
    state = progress.state
    solver = progress.solver
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "problem": checkpoint.digest,
        "solver": solver.state_format,
        "iteration": state.iteration,
        "passes": progress.passes,
        "seconds": progress.seconds,
        "history": [asdict(record) for record in progress.history],
    }
    # One archive without pickled objects: the header as text, the sample of X, and the state.
    arrays = solver.saved(state)
    content: Arrays = {f"state_{name}": array for name, array in arrays.items()}
    stream = io.BytesIO()
    text = np.array(json.dumps(header))
    np.savez(stream, allow_pickle=False, about=text, entries=checkpoint.entries, **content)
    write_whole(checkpoint.file, stream.getbuffer())


def _are_same_entries(saved: Array, entries: Array) -> bool:
    """Return whether two samples of X agree to 1e-8 of the largest entry of a column.

    ``saved`` is the sample in the file, and ``entries`` the sample of the current data, both
    (rows, columns).
    """
    largest = np.abs(entries).max(axis=0, initial=0.0)
    return bool(np.all(np.abs(saved - entries) <= 1e-8 * largest))


def _read(file: Path, digest: str, entries: Array, kind: str) -> Resumed:
    """Return the saved state in a checkpoint file; raise ValueError if it is another problem's.

    Parameters
    ----------
    file : Path
        The checkpoint.
    digest : str
        The ``fingerprint`` of the current problem.
    entries : array
        The ``sample`` of its X.
    kind : str
        The format in which its solver stores states.
    """
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            # ``_write`` does not compress: a compressed file may inflate to any size.
            if any(item.file_size > item.compress_size for item in archive.zip.infolist()):
                raise ValueError("a part of it is compressed")
            stored = dict(archive)
        if bytes in map(type, stored.values()):  # a member of the archive is not an array
            raise ValueError("a part of it is no array")
        header = json.loads(stored["about"].item())
        if header["format"] != _FORMAT or header["version"] != _VERSION:
            raise ValueError(f"it is version {header['version']!r} of {header['format']!r}")
        # Compare the problem and the sample of X in the file with the current ones.
        same_problem = header["problem"] == digest
        saved = stored["entries"]
        same_data = saved.shape == entries.shape and _are_same_entries(saved, entries)
        # Collect history, state and counts; arrays of the state have the prefix "state_", which is
        # cut off.
        history = [Record(**record) for record in header["history"]]
        arrays = {key[6:]: stored[key] for key in stored if key.startswith("state_")}
        numbers = int(header["iteration"]), float(header["passes"]), float(header["seconds"])
    except Exception as error:  # a damaged file can raise any exception
        message = " ".join(str(error).split())[:200]
        raise ValueError(
            f"the checkpoint {file} cannot be read ({message}); remove it to begin afresh"
        ) from error
    if not (same_problem and same_data):
        difference = "data (X)" if same_problem else "problem (target, weights, loss, norm)"
        raise ValueError(
            f"the checkpoint {file} is of another {difference}; remove it, give another folder, or "
            "solve the problem it was made for"
        )
    if header.get("solver") != kind:
        raise ValueError(
            f"the checkpoint {file} is of the solver {header.get('solver') or 'default'}; resume "
            "with that one, or give another folder"
        )
    return Resumed(arrays, *numbers, history, f"the checkpoint {file}")
