"""What each fault led to: how often it was tried, how often all ended well, what the user reads."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from atomlearn.cli import main


@dataclass(slots=True)
class Row:
    """One kind of fault; ``says``: the last message of the fault, verbatim but for the folder."""

    fault: str
    tried: int = 0
    ended_well: int = 0
    says: str = ""

    def count(self, fault: str | None, says: str = "") -> None:
        """Note one try: ``fault`` says what was lost, None where all ended well."""
        self.tried += 1
        self.ended_well += fault is None
        if fault is not None:
            print(f"{self.fault}: {fault}", file=sys.stderr, flush=True)
        self.says = says or self.says


def written(rows: Iterable[Row], file: Path) -> None:
    """Write the ledger."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        out = csv.DictWriter(stream, [field.name for field in fields(Row)], lineterminator="\n")
        out.writeheader()
        out.writerows(map(asdict, rows))


def command(folder: Path, *arguments: object) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it said of a fault."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(argument) for argument in arguments])
    lines = told.getvalue().splitlines(keepends=True)
    kept = "".join(line for line in lines if code == 0 or not line.startswith("note:"))
    told_of = kept.strip()
    # Messages have blanks in place of newlines in names, and those of the system show them.
    for shown in (f"{folder}/", f"{folder}/".replace("\n", " "), f"{folder}/".replace("\n", "\\n")):
        told_of = told_of.replace(shown, "")
    return code, told_of


def refused(answer: tuple[int, str]) -> str | None:
    """Return what is wrong with the refusal of a command; None where it is one line."""
    code, said = answer
    if code != 2:
        return f"exit code {code}: {said}"
    last = said.splitlines()[-1:] or [""]
    if not last[0].startswith("atomlearn: error: ") or "Traceback" in said:
        return f"not one line: {said!r}"
    return None


def quiet() -> None:
    """Send what this process prints to nobody."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, 1)
    os.dup2(nobody, 2)
