"""Inputs that are no quiet files: that change, pipes and devices, names with newlines."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from atomlearn.designs import OnDisk
from tests.fuzz.kills import ended
from tests.nightly.ledger import Row, command, quiet, refused
from tests.nightly.selections import FILES, THEIRS, select, table

#: Seconds of processor time that a command may take before it counts as waiting without end.
PATIENCE = 20.0


def changing(count: int, seed: int) -> Row:
    """Rewrite, lengthen or cut a table while it is converted: the old one, the new one, or no."""
    rng, row = random.Random(seed), Row("file that changes while it is read")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "t.csv"
        head = ",".join(f"c{j}" for j in range(20))
        old, new = ((np.arange(30_000)[:, None] + np.arange(20)) % 90 + low for low in (10, 100))
        texts = ["\n".join([head, *(",".join(map(str, row)) for row in one.tolist()), ""])
                 for one in (old, new)]  # fmt: skip
        source.write_text(texts[0])
        began = time.perf_counter()
        command(folder, "convert", source, folder / "first.store")
        enough = time.perf_counter() - began
        for number in range(count):
            source.write_text(texts[0])
            how, out = rng.choice(("rewritten", "longer", "cut")), folder / f"{number}.store"
            timer = threading.Timer(rng.uniform(0.0, enough), _change, (source, how, texts[1]))
            timer.start()
            answer = command(folder, "convert", source, out)
            timer.join()
            if answer[0]:
                row.count(refused(answer) or (f"{out} is there" if out.exists() else None),
                          answer[1])  # fmt: skip
                continue
            found = OnDisk(out).gather(np.arange(20)).dense()
            known = [old, new, np.vstack([old, new]), old[:10_000]]
            same = any(np.array_equal(found, one) for one in known)
            row.count(None if same else f"{how}: half of one and half of the other is accepted")
    return row


def _change(source: Path, how: str, text: str) -> None:
    if how == "rewritten":
        source.write_text(text)
    elif how == "longer":
        with source.open("a") as out:
            out.write(text[text.index("\n") + 1 :])
    else:
        os.truncate(source, text.index("\n") + 1 + 60 * 10_000)


def odd_data(count: int, seed: int) -> Row:
    """Call every entry point with data that nobody should give: an answer, or one line."""
    from tests.fuzz.odd_data import cases, judged, where
    from tests.fuzz.rule import Impolite

    row = Row("odd data given to estimators and functions")
    for name, case, entry, odd_x, odd_y in cases():
        try:
            judged(entry, odd_x, odd_y)
            row.count(None)
        except Impolite as fault:
            row.count(f"{name}, {case}: {fault} ({where(fault)})")
    row.says = "(an answer, or one line that says what is expected)"
    return row


def no_files(count: int, seed: int) -> list[Row]:
    """Give pipes and devices where files are read: one line, without waiting."""
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = table(folder)
        command(folder, *select(source, folder / "first"))
        model = folder / "first" / "model.json"
        os.mkfifo(folder / "pipe.csv")
        os.mkfifo(folder / "pipe")
        (folder / "null.csv").symlink_to(os.devnull)
        (folder / "zero.npz").symlink_to("/dev/zero")
        for place in ("pipe.csv", "pipe", "null.csv", "zero.npz"):
            row = Row(f"pipe or device as data: {place}")
            for words in (
                select(folder / place, folder / "out"),
                ["convert", folder / place, folder / "out.store"],
                ["inspect", folder / place],
                ["predict", model, folder / place],
                ["predict", folder / place, source],
            ):
                row.count(*_without_waiting(folder, words))
            left = [entry.name for entry in folder.glob("out*")]
            row.count(f"{left} is left" if left else None)
            rows.append(row)
    return rows


def _without_waiting(folder: Path, words: list[object]) -> tuple[str | None, str]:
    """Return what is wrong with the refusal of a command, and what it says."""
    told = folder / "told"

    def work() -> None:
        # A command that waits for a pipe takes no processor time: the clock on the wall ends it.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(PATIENCE))
        quiet()
        code, said = command(folder, *words)
        told.write_text(f"{code} {said}")

    told.write_text("")
    code = ended(work, PATIENCE)
    answer, _, said = told.read_text().partition(" ")
    if code or not answer:
        return f"{words[0]} waits, or fails with {code}", ""
    return refused((int(answer), said)), said


def lines_in_names(count: int, seed: int) -> list[Row]:
    """Give names with newlines to files, folders, columns and options."""
    odd = "a\nb"
    rows = [Row("newline in names that are there"), Row("newline in names that are not there")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, odd)
        folder.mkdir()
        source = table(folder).rename(folder / f"{odd}.npz")
        out, store = folder / f"{odd}.out", folder / f"{odd}.store"
        for words, made in (
            (select(source, out), [out / file for file in FILES]),
            (["convert", source, store], [store / "manifest.json"]),
            (["predict", out, source, "--out", out / f"{odd}.csv"], [out / f"{odd}.csv"]),
            (["inspect", source], []),
        ):
            code, said = command(folder, *words)
            missing = [file.name for file in made if not file.is_file()]
            rows[0].count(f"{words[0]}: {said}" if code else str(missing) if missing else None)
        table(folder)
        plain = folder / "t.npz"
        for words in (
            select(folder / f"{odd}.csv", folder / "o"),
            ["convert", folder / f"{odd}.csv", folder / "o"],
            ["convert", plain, store],
            ["convert", plain, folder / f"{odd}.no" / "o"],
            ["predict", folder / f"{odd}.json", plain],
            ["predict", out, plain, "--out", folder / f"{odd}.no" / "p.csv"],
            ["inspect", folder / f"{odd}.csv"],
            select(plain, folder / "o", "--target", odd),
            select(plain, folder / "o", "--groups", folder / odd),
            select(plain, folder / "o", "--names", folder / odd),
            select(plain, source),
        ):
            answer = command(folder, *words)
            wrong = refused(answer) or (None if answer[1].count("\n") == 0 else "several lines")
            rows[1].count(wrong and f"{words}: {wrong}: {answer[1]!r}", answer[1])
    return rows


def occupied(count: int, seed: int) -> list[Row]:
    """Write where something of the user's is: it stays, or it is a result that is replaced."""
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, theirs = table(folder), folder / "theirs"
        command(folder, *select(source, folder / "first"))
        for what, place, words in (
            ("file at the place of a store", theirs, ["convert", source, theirs]),
            ("folder at the place of a store", theirs / "n", ["convert", source, theirs]),
            ("folder at the place of the work", folder / "s.partial" / "n",
             ["convert", source, folder / "s"]),
            ("file at the place of --out", theirs, select(source, theirs)),
            ("file at the place of a checkpoint", theirs,
             select(source, folder / "out", "--checkpoint", theirs)),
            ("folder at the place of predictions", theirs / "n",
             ["predict", folder / "first", source, "--out", theirs]),
        ):  # fmt: skip
            rows.append(Row(f"occupied: {what}"))
            place.parent.mkdir(exist_ok=True)
            place.write_text(THEIRS)
            answer = command(folder, *words)
            kept = place.is_file() and place.read_text() == THEIRS
            rows[-1].count(refused(answer) if kept else "the user's file is gone", answer[1])
            place.unlink()
            if place.parent != folder:
                place.parent.rmdir()
    return rows
