"""Disks that are full, folders that are read-only or occupied: in a namespace of our own.

    unshare -rm python -m tests.nightly.places full 10

There a small disk of memory (tmpfs) is mounted, which nobody else sees, and which goes with this
process. Without ``unshare`` the driver says so, and files end at a size (RLIMIT_FSIZE) instead.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from atomlearn.designs import OnDisk
from tests.nightly.ledger import Row, command, refused
from tests.nightly.selections import DATA, FILES, THEIRS, select, table

Words = list[object]


def works(source: Path, disk: Path) -> dict[str, Words]:
    """Return the commands that write, each to a place of its own on the disk."""
    out = source.with_name("elsewhere")
    return {
        "conversion": ["convert", source, disk / "t.store"],
        "selection": list(select(source, disk / "out")),
        "checkpoint": list(select(source, out, "--checkpoint", disk / "kept")),
        "prediction": ["predict", source.with_name("first") / "model.json", source,
                       "--out", disk / "p.csv"],
    }  # fmt: skip


def mount(disk: Path, options: str) -> None:
    """Mount a disk of memory, or mount it again otherwise."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(disk)], check=True)


def ends_well(kind: str, disk: Path, words: Words) -> str | None:
    """Run the same command where there is room; return what is wrong in the end."""
    code, said = command(disk, *words)
    if code:
        return f"the same command with room: {said}"
    if kind == "conversion":
        design = OnDisk(disk / "t.store")
        design.verify()
        if not np.array_equal(design.gather(np.arange(40)).dense(), DATA):
            return "the store is not the source"
    if kind == "selection" and not all((disk / "out" / file).is_file() for file in FILES):
        return "files are missing"
    return None


def _tried(
    kind: str,
    row: Row,
    disk: Path,
    words: Words,
    room: Callable[[], object],
    small: AbstractContextManager[None],
) -> None:
    notes = disk / "notes.txt"
    notes.write_text(THEIRS)
    with small:
        answer = command(disk, *words)
    fault = refused(answer) if answer[0] else None
    if answer[0] and ((disk / "t.store").exists() or (disk / "p.csv").exists()):
        fault = "half of a result is accepted"
    room()
    if fault is None and answer[0]:
        fault = ends_well(kind, disk, words)
    if not notes.is_file() or notes.read_text() != THEIRS:
        fault = "the user's notes.txt is gone"
    row.count(fault, answer[1] if answer[0] else "")


def full(count: int, seed: int, mounted: bool = True) -> list[Row]:
    """Give each command a disk of a random size, then the same disk with room."""
    rng, rows = random.Random(seed), dict[str, Row]()
    how = "tmpfs" if mounted else "RLIMIT_FSIZE"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = table(folder)
        command(folder, *select(source, folder / "first"))
        for kind in works(source, folder):
            row = rows[kind] = Row(f"full disk ({how}): {kind}")
            while row.tried < count:
                disk = folder / f"{kind}{row.tried}"
                disk.mkdir()
                words = works(source, disk)[kind]
                # notes.txt takes one page of 4 kB: none is left for a prediction, which is short.
                pages = {"prediction": 2, "checkpoint": 4}.get(kind, 30)
                size = 4 * rng.randrange(1 if pages == 2 else 2, pages)
                if mounted:
                    mount(disk, f"size={size}k")
                    room = lambda: mount(disk, "remount,size=64m")  # noqa: E731, B023
                    _tried(kind, row, disk, words, room, contextlib.nullcontext())
                    subprocess.run(["umount", str(disk)], check=True)
                else:
                    _tried(kind, row, disk, words, lambda: None, _files_end_at(256 * size))
            if not row.says:
                row.count("the disk was never full")
    return list(rows.values())


@contextlib.contextmanager
def _files_end_at(most_bytes: int) -> Iterator[None]:
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def read_only(count: int, seed: int) -> list[Row]:
    """Write to a disk that takes nothing: one line, and all that was there is there."""
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as name:
        folder, disk = Path(name), Path(name, "disk")
        source = table(folder)
        command(folder, *select(source, folder / "first"))
        disk.mkdir()
        mount(disk, "size=1m")
        (disk / "notes.txt").write_text(THEIRS)
        mount(disk, "remount,ro")
        for kind, words in works(source, disk).items():
            rows.append(Row(f"read-only folder: {kind}"))
            answer = command(folder, *words)
            left = [entry.name for entry in disk.iterdir()]
            rows[-1].count(refused(answer) if left == ["notes.txt"] else f"{left}", answer[1])
        subprocess.run(["umount", str(disk)], check=True)
    return rows


def main() -> None:
    """Print the rows of one kind of fault as JSON."""
    kind, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rows = {"full": full, "read_only": read_only}[kind](count, seed)
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
