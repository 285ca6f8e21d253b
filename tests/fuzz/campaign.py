"""Many mutated files, in processes that may crash: counts, and the cases that broke the rule."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.fuzz.corpus import Target, targets
from tests.fuzz.mutate import mutated
from tests.fuzz.rule import SECONDS, Impolite, judge, memory_limit


def prepared(target: Target, folder: Path) -> tuple[Path, dict[Path, bytes]]:
    """Make the files of a target; return the path to read, and all contents."""
    folder.mkdir(parents=True, exist_ok=True)
    path = target.make(folder)
    return path, {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def break_one(target: Target, path: Path, contents: dict[Path, bytes], seed: int) -> None:
    """Write the files afresh, one of them changed as the seed says."""
    rng = random.Random(f"{target.name} {seed}")
    folder = path.parent
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    chosen = rng.choice(sorted(contents))
    for file, content in contents.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if file == chosen:
            within = target.inside is not None and rng.random() < 0.6
            content = target.inside(content, rng) if within else mutated(content, rng)
        file.write_bytes(content)
    if target.resign is not None and rng.random() < 0.7:
        target.resign(path, rng)


def try_one(target: Target, path: Path, contents: dict[Path, bytes], seed: int) -> str:
    """Return "read" or "refused"; raise Impolite."""
    break_one(target, path, contents, seed)
    with memory_limit():
        return judge(target.read, path)


def _work(name: str, first: int, count: int, folder: str, reports: object) -> None:
    warnings.simplefilter("ignore")
    target, place = targets()[name], Path(folder)
    path, contents = prepared(target, place / "files")
    note = place / "seed"
    # What a first reading imports and allocates for good is none of a file's.
    target.read(path)
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        note.write_text(str(seed))
        try:
            counts[try_one(target, path, contents, seed)] += 1
        except Impolite as error:
            counts["impolite"] += 1
            last = traceback.extract_tb((error.__cause__ or error).__traceback__)
            ours = [f for f in last if "/atomlearn/" in f.filename] or [last[-1]]
            where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            reports.put((seed, where, str(error)))
    reports.put(counts)


def seed_note(folder: str) -> bool:
    """Return whether a worker has begun to say where it is."""
    return (Path(folder) / "seed").is_file()


def campaign(
    name: str, count: int, first: int = 0
) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Return the counts for ``count`` seeds of a target, and (seed, place, fault) of each fault."""
    # A fork has all imports done; where there is none, each worker begins anew.
    ways = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in ways else "spawn")
    counts: Counter[str] = Counter()
    faults: list[tuple[int, str, str]] = []
    seed, end = first, first + count
    # In memory where there is such a place: convert waits for the disk after every step.
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        while seed < end:
            queue = context.Queue()
            worker = context.Process(target=_work, args=(name, seed, end - seed, folder, queue))
            worker.start()
            finished, heard = False, time.time() + 60
            while worker.is_alive() or not queue.empty():
                try:
                    item = queue.get(timeout=0.2)
                except Exception:  # nothing yet
                    now = (Path(folder) / "seed").stat().st_mtime if seed_note(folder) else 0.0
                    if time.time() - max(now, heard) > 30 * SECONDS:
                        worker.kill()  # stuck where no alarm reaches it
                    continue
                if isinstance(item, Counter):
                    counts += item
                    finished = True
                    break
                faults.append(item)
            worker.join()
            if finished:
                break
            if not seed_note(folder):
                raise SystemExit(f"the worker for {name} did not start")
            died = int((Path(folder) / "seed").read_text())
            counts["crashed"] += 1
            counts["lost"] += died - seed
            faults.append((died, "process", f"it ended with exit code {worker.exitcode}"))
            seed = died + 1
    return counts, faults
