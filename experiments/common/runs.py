"""Results of the experiments, kept piece by piece, so that a run can be cut and taken up again."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Piece = dict[str, Any]


class Kept:
    """What was kept of a part: its pieces by key, in the order in which they were made.

    pieces : what each returned, with "processor_seconds"; command : what makes them again.
    """

    def __init__(self, path: Path) -> None:
        whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.command: str = whole.get("command", "")
        self.pieces: dict[str, Piece] = whole.get("pieces", {})

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces.values())

    def __len__(self) -> int:
        return len(self.pieces)

    def of(self, **wanted: Any) -> list[Piece]:
        """Return the pieces with these values."""
        return [one for one in self if all(one.get(k) == v for k, v in wanted.items())]

    @property
    def seconds(self) -> float:
        """Processor seconds of all pieces, the making of their data included."""
        return float(sum(one["processor_seconds"] for one in self))


class Runs:
    """Makes the pieces of one paper's experiments and keeps each as soon as it is made.

    smoke : small sizes, kept below build/; resume : pieces that are kept already are left as they
    are; otherwise a part begins afresh.
    """

    def __init__(self, directory: Path, smoke: bool, resume: bool) -> None:
        self.directory, self.smoke, self.resume = directory, smoke, resume
        self.results = results_of(directory, smoke)
        self._begun: set[str] = set()

    def piece(self, part: str, key: str, make: Callable[[], Mapping[str, Any]]) -> None:
        """Make one piece, unless it is kept, and keep it with the processor seconds it took."""
        path = self.results / f"{part}.json"
        if part not in self._begun and not self.resume:
            path.unlink(missing_ok=True)
        self._begun.add(part)
        kept = Kept(path)
        if key in kept.pieces:
            return
        gc.collect()  # a solver and its observer keep each other, and the data of the last piece
        began = time.process_time()
        made = make()
        seconds = time.process_time() - began
        # Another process may have kept pieces of this part in the meantime.
        pieces = Kept(path).pieces | {key: {**made, "processor_seconds": seconds}}
        command = f"python -m experiments.{self.directory.name}.run {part}"
        whole = {"command": command, "pieces": pieces}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(whole, default=_plain, indent=0) + "\n", encoding="utf-8")
        print(f"{part}, {key}: {seconds:.1f} s", flush=True)


def results_of(directory: Path, smoke: bool = False) -> Path:
    """Return where the results of a paper are kept."""
    home = Path("build/experiments") / directory.name if smoke else directory
    return home / "results"


def _plain(value: Any) -> Any:
    """Return a NumPy value as plain Python."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
