"""A folder holds the files of one run: after full disks, after kills, after another run."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atomlearn import AtomicRegressor, report, solvers
from atomlearn._support import whole_files, write_text, write_together
from atomlearn.cli import main
from tests.oracles.sums import solve_sum

#: What each run writes: the first names the run.
OLD = {"summary.json": "old", "model.json": "old", "groups.csv": "old"}
NEW = {"summary.json": "new", "model.json": "new", "report.html": "new"}


class Stopped(BaseException):
    """A kill: nothing that runs after it tidies up."""


def texts(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}


def occupied(folder: Path) -> Path:
    folder.mkdir()
    for name, text in (OLD | {"notes.txt": "mine"}).items():
        (folder / name).write_text(text)
    return folder


def failing(calls: int, error: BaseException, of: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises at the call of this number, and does as ``of`` before."""
    left = calls

    def call(*given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise error
        return of(*given, **named)

    return call


def test_another_run_takes_the_place_of_the_first_one(tmp_path: Path) -> None:
    folder = occupied(tmp_path / "out")
    write_together(folder, NEW, OLD)
    assert texts(folder) == NEW | {"notes.txt": "mine"}
    assert len(list(folder.iterdir())) == 4


@pytest.mark.parametrize("at", range(3))
def test_a_full_disk_changes_nothing(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = occupied(tmp_path / "out")
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(whole_files, "write_whole", failing(at, full, whole_files.write_whole))
    with pytest.raises(OSError, match="No space"):
        write_together(folder, NEW, OLD)
    assert texts(folder) == OLD | {"notes.txt": "mine"}
    assert not [entry.name for entry in folder.iterdir() if entry.is_dir()]


@pytest.mark.parametrize("step", ["write_whole", "unlink", "replace", "rmtree"])
def test_a_kill_between_steps_leaves_files_of_one_run(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(9):
        folder = occupied(tmp_path / f"out{at}")
        with monkeypatch.context() as patch:
            if step == "unlink":
                patch.setattr(Path, step, failing(at, Stopped(), Path.unlink))
            else:
                owner: Any = {"write_whole": whole_files, "replace": os}.get(
                    step, whole_files.shutil
                )
                patch.setattr(owner, step, failing(at, Stopped(), getattr(owner, step)))
            if step != "rmtree":  # a process that is killed does not tidy up
                patch.setattr(whole_files.shutil, "rmtree", lambda *given, **named: None)
            patch.setattr(whole_files, "_temporary", lambda path: path.with_name(f"{path.name}.x"))
            try:
                write_together(folder, NEW, OLD)
            except Stopped:
                pass
            else:
                assert at > 0
                break
        found = texts(folder)
        assert found.pop("notes.txt") == "mine"
        assert len(set(found.values())) == 1
        assert "summary.json" in found
        # The same again: nothing of the killed one keeps it from being done.
        write_together(folder, NEW, found)
        assert texts(folder) == NEW | {"notes.txt": "mine"}


def test_what_killed_processes_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    dead, number = [], os.fork()
    if not number:
        os._exit(0)
    os.waitpid(number, 0)
    for name in (f"a.txt.{number}.new", f".atomlearn.{number}.new"):
        dead.append(tmp_path / name)
    dead[0].write_text("half")
    dead[1].mkdir()
    (dead[1] / "model.json").write_text("half")
    alive = [f"a.txt.{os.getpid()}.new", "a.txt.new", f"b.txt.{number}.new", "a.txt.mine.new"]
    for name in alive[1:]:
        (tmp_path / name).write_text("mine")
    (tmp_path / alive[0]).write_text("of this process")
    whole_files.clear_left(tmp_path / "a.txt")
    assert not dead[0].exists()
    assert all((tmp_path / name).exists() for name in alive)
    write_text(tmp_path / "a.txt", "whole")
    write_together(tmp_path, NEW)
    assert not dead[1].exists()
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_a_checkpoint_clears_what_a_kill_left_of_it(tmp_path: Path) -> None:
    number = os.fork()
    if not number:
        os._exit(0)
    os.waitpid(number, 0)
    (tmp_path / f"checkpoint.npz.{number}.new").write_bytes(b"half")
    X = np.random.default_rng(0).standard_normal((20, 5))
    solve_sum(X, X[:, 0], level=1.0, observers=[solvers.Checkpoint(tmp_path)])
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint.npz"]


def table(folder: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6))
    rows = np.column_stack([X, X[:, 0] + 0.1 * rng.standard_normal(40)]).round(6)
    lines = [",".join(map(str, row)) for row in rows.tolist()]
    path = folder / f"{seed}.csv"
    path.write_text("\n".join(["c0,c1,c2,c3,c4,c5,y", *lines]) + "\n")
    return path


def select(data: Path, out: Path, *more: str) -> int:
    words = ["select", str(data), "--target", "y", "--out", str(out), "--quiet", *more]
    return main([*words, "--test-fraction", "0"])


def test_a_second_selection_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    groups, out = tmp_path / "groups.txt", tmp_path / "out"
    groups.write_text("g0 c0 c1\ng1 c2 c3\n")
    assert select(table(tmp_path, 0), out, "--groups", str(groups)) == 0
    (out / "notes.txt").write_text("mine")
    assert (out / "groups.csv").exists()
    assert select(table(tmp_path, 1), out, "--n-features", "2") == 0
    assert not (out / "groups.csv").exists()
    summary = json.loads((out / "summary.json").read_text())
    assert sorted([*summary["files"], "notes.txt"]) == sorted(e.name for e in out.iterdir())
    assert summary["data"] == "1.csv"


@pytest.mark.parametrize("at", range(4))
def test_a_selection_on_a_full_disk_leaves_the_first_one(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert select(table(tmp_path, 0), out, "--n-features", "2") == 0
    before = texts(out)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(whole_files, "write_whole", failing(at, full, whole_files.write_whole))
    assert select(table(tmp_path, 1), out, "--n-features", "2") == 2
    assert texts(out) == before
    assert len(list(out.iterdir())) == len(before)


def test_files_of_names_that_the_summary_does_not_list_are_of_somebody(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((40, 6))
    model = AtomicRegressor(alpha=0.1).fit(X, X[:, 0])
    (tmp_path / "model.json").write_text("mine")
    report(model, X, X[:, 0], tmp_path / "report.html", test_fraction=0)
    listed = json.loads((tmp_path / "summary.json").read_text())["files"]
    assert sorted(listed) == ["report.html", "summary.json"]
    assert select(table(tmp_path, 1), tmp_path) == 2
    assert (tmp_path / "model.json").read_text() == "mine"
    (tmp_path / "model.json").unlink()
    assert select(table(tmp_path, 1), tmp_path) == 0
    # A page beside a selection: the next selection knows all of these files.
    report(model, X, X[:, 0], tmp_path / "report.html", test_fraction=0)
    assert select(table(tmp_path, 1), tmp_path) == 0


def test_a_report_does_not_take_the_place_of_a_summary_of_somebody(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((40, 6))
    (tmp_path / "summary.json").write_text('{"mine": 1}')
    with pytest.raises(ValueError, match=r"has summary\.json, not written by"):
        report(AtomicRegressor(alpha=0.1).fit(X, X[:, 0]), X, X[:, 0], tmp_path / "report.html")
    assert texts(tmp_path) == {"summary.json": '{"mine": 1}'}
