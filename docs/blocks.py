"""The Python of a page, run as it stands: what it prints, and whether the page shows the same.

A block of Python that prints something is followed by a block marked ``text`` with what it prints.

python docs/blocks.py docs/tutorial.md    writes what is printed into the page, and its pictures
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).resolve().parent / "_static"
#: A block of Python, and what the page says it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
#: Solvers end a little off the optimum, elsewhere on another processor: numbers may differ by this.
SHARE = 0.02


def runs(text: str, page: str, names: dict[str, Any]) -> Iterator[tuple[re.Match[str], str]]:
    """Run the blocks of a page, one after the other, and yield each with what it printed."""
    for block in BLOCK.finditer(text):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block[1], page, "exec"), names)
        yield block, "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def same(printed: str, shown: str) -> bool:
    """Return whether words are equal, and numbers nearly so; blanks do not count."""
    if NUMBER.sub("0", printed).split() != NUMBER.sub("0", shown).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=SHARE) for a, b in pairs)


def write(page: Path) -> None:
    """Run the page, put what it prints into it, and its pictures into ``_static``."""
    text, new, end = page.read_text(encoding="utf-8"), [], 0
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block, printed in runs(text, page.name, {}):
                new += [text[end : block.start()], f"```python\n{block[1]}```\n"]
                new += [f"\n```text\n{printed}\n```\n"] if printed else []
                end = block.end()
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, PICTURES / picture.name)
        finally:
            os.chdir(home)
    page.write_text("".join(new) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        write(Path(path).resolve())
