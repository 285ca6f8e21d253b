"""Selections on the command line that are killed, and two of them at once into one folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from atomlearn.cli import main
from atomlearn.designs import OnDisk
from tests.fuzz.kills import checked, ended
from tests.nightly.ledger import Row, command, quiet

#: What a person has in the folder of results, and keeps whatever happens.
THEIRS = "three years of work\n"
FILES = ("selected.csv", "model.json", "summary.json")
DATA = np.random.default_rng(0).standard_normal((100, 40))


def table(folder: Path) -> Path:
    """Write a table of 100 rows and 40 columns with its target; return its path."""
    target = DATA[:, :3].sum(axis=1) + np.random.default_rng(1).standard_normal(100)
    np.savez(folder / "t.npz", X=DATA, y=target)
    return folder / "t.npz"


def select(source: Path, out: Path, *more: object) -> list[str]:
    """Return the words of a selection."""
    words = ("select", source, "--norm", "l1", "--alpha", "0.1", "--gap", "1e-8", "--quiet",
             "--test-fraction", "0", "--out", out, *more)  # fmt: skip
    return [str(word) for word in words]


def process(words: list[str]) -> int:
    """Begin a command in a process of its own; return its number."""
    number = os.fork()
    if not number:
        code = 70
        try:
            quiet()
            code = main(words)
        finally:
            os._exit(code)
    return number


def half(out: Path, source: Path, whole: dict[str, str]) -> str | None:
    """Return which file of a folder of results is not whole, or whose file is gone; or None."""
    notes = out / "notes.txt"
    if not notes.is_file() or notes.read_text() != THEIRS:
        return "the user's notes.txt is gone"
    table = out / "selected.csv"
    if table.exists() and not same(table.read_text(), whole["table"]):
        return f"selected.csv is another one: {table.read_text()}"
    if (out / "summary.json").exists():
        json.loads((out / "summary.json").read_text())
    if (out / "model.json").exists():
        code, said = command(out, "predict", out / "model.json", source, "--out", out / "p.csv")
        if code or not same((out / "p.csv").read_text(), whole["predictions"]):
            return f"model.json does not predict the same: {said}"
    return None


def same(text: str, other: str) -> bool:
    """Whether two tables are the same, numbers up to the gap: solves that go on round otherwise."""
    cells, others = (one.replace("\n", ",\n,").split(",") for one in (text, other))
    return len(cells) == len(others) and all(
        one == two or abs(float(one) - float(two)) < 1e-3
        for one, two in zip(cells, others, strict=True)
    )


def undisturbed(folder: Path, source: Path) -> tuple[dict[str, str], float]:
    """Return the files of a selection that nothing happens to, and its processor seconds."""
    out = folder / "undisturbed"
    command(folder, *select(source, out))  # what is imported late is there from now on
    began = time.process_time()
    code, said = command(folder, *select(source, out))
    enough = time.process_time() - began
    assert code == 0, said
    command(folder, "predict", out / "model.json", source, "--out", out / "p.csv")
    files = {"table": "selected.csv", "predictions": "p.csv"}
    return {name: (out / file).read_text() for name, file in files.items()}, enough


def killed(count: int, seed: int) -> Row:
    """Kill selections at random moments; every second one keeps a checkpoint."""
    rng, row = random.Random(seed), Row("selection killed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = table(folder)
        whole, enough = undisturbed(folder, source)
        while row.tried < count:
            out = folder / f"out{row.tried}"
            out.mkdir()
            (out / "notes.txt").write_text(THEIRS)
            more = ("--checkpoint", folder / "kept") if row.tried % 2 else ()

            def work() -> None:
                quiet()
                if main(select(source, out, *more)):  # noqa: B023
                    os._exit(1)

            if checked(ended(work, rng.uniform(0.0, enough)), "select"):
                shutil.rmtree(out)  # it was done before
                continue
            fault = half(out, source, whole)
            code, said = command(folder, *select(source, out, *more))
            fault = fault or half(out, source, whole)
            if code or not all((out / file).is_file() for file in FILES):
                fault = f"the same command again: {said}"
            left = [entry.name for entry in (*out.iterdir(), *folder.glob("kept/*"))]
            if any(name.endswith(".new") for name in left):
                fault = fault or f"the killed process left something: {left}"
            row.count(fault)
    row.says = "(nothing: the process is gone; the same command gives the whole folder)"
    return row


def two_selections(count: int, seed: int) -> Row:
    """Run two selections into one folder, with one folder of checkpoints, at once."""
    row = Row("two selections into one folder")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = table(folder)
        whole, _ = undisturbed(folder, source)
        for number in range(count):
            out = folder / f"out{number}"
            out.mkdir()
            (out / "notes.txt").write_text(THEIRS)
            words = select(source, out, "--checkpoint", folder / f"kept{number}")
            running = [process(words), process(words)]
            codes = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in running]
            fault = half(out, source, whole)
            row.count(fault or (None if codes == [0, 0] else f"exit codes {codes}"))
    row.says = "(both end; each file is whole, of the one that came last)"
    return row


def two_conversions(count: int, seed: int) -> Row:
    """Run two conversions to one store at once: one is told of the other, or both are done."""
    row = Row("two conversions to one store")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = table(folder)
        for number in range(count):
            out = folder / f"{number}.store"
            other = process(["convert", str(source), str(out), "--quiet"])
            code, said = command(folder, "convert", source, out)
            codes = code, os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
            design = OnDisk(out)
            design.verify()
            same = np.array_equal(design.gather(np.arange(40)).dense(), DATA)
            fine = same and sorted(codes) == [0, 2]
            row.count(None if fine else f"exit codes {codes}, equal: {same}", said if code else "")
    return row


def two_checkpoints(count: int, seed: int) -> Row:
    """Let two solves keep one checkpoint at once: it can be gone on from."""
    from atomlearn import solvers
    from tests.fuzz.kills import PROBLEMS, X, Y
    from tests.oracles.sums import solve_sum

    row, problem = Row("two solves with one checkpoint"), PROBLEMS[1]
    best = solve_sum(X, Y, tol=1e-8, **problem)

    def work(folder: Path) -> None:
        keeper = solvers.Checkpoint(folder, every_s=0)
        found = solve_sum(X, Y, tol=1e-8, observers=[keeper], **problem)
        assert abs(found.objective - best.objective) <= 1e-7 * best.objective

    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            number = os.fork()
            if not number:
                code = 1
                try:
                    quiet()
                    work(folder)
                    code = 0
                finally:
                    os._exit(code)
            fault = None
            try:
                work(folder)
            except (ValueError, OSError, AssertionError) as error:
                fault = f"{type(error).__name__}: {error}"
            code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
            row.count(fault or (f"the other one: {code}" if code else None))
            work(folder)
    row.says = "(both end with the same answer)"
    return row
