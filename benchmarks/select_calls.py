"""How much code one ``atomlearn select`` of 300 rows and 40 columns passes through.

The command runs in this process under ``sys.setprofile``. Printed are the files of ``atomlearn``
that it enters, the different functions, the deepest stack of them, and their calls.

    python benchmarks/select_calls.py           # the four figures
    python benchmarks/select_calls.py --most 30 # and the functions that are called most often
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import atomlearn
from atomlearn.cli.command_line import main as run_command

PACKAGE = str(Path(atomlearn.__file__).parent)


def write_table(path: Path, n_rows: int = 300, n_columns: int = 40) -> None:
    """Write a CSV of random columns and a target that five of them explain."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    y = X[:, :5] @ np.array([3.0, -2.0, 1.5, 1.0, -1.0]) + rng.standard_normal(n_rows)
    header = ",".join(["y", *(f"x{column}" for column in range(n_columns))])
    np.savetxt(path, np.column_stack([y, X]), "%.6f", ",", header=header, comments="")


def count_calls(arguments: list[str]) -> tuple[Counter[CodeType], int]:
    """Run one command; return the calls of each function of atomlearn, and the deepest stack."""
    calls: Counter[CodeType] = Counter()
    depth = 0
    deepest = 0

    def observe(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            calls[frame.f_code] += 1
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(observe)
    try:
        code = run_command(arguments)
    finally:
        sys.setprofile(None)
    if code:
        raise SystemExit(code)
    return calls, deepest


def main() -> None:
    """Print the four figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=0, help="functions to list")
    options, chosen = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "data.csv")
        arguments = ["select", str(folder / "data.csv"), "--target", "y", "--quiet", *chosen]
        with contextlib.redirect_stdout(io.StringIO()):
            run_command([*arguments, "--out", str(folder / "first")])  # imports are not counted
            calls, deepest = count_calls([*arguments, "--out", str(folder / "selected")])
    files = {code.co_filename for code in calls}
    print(f"files {len(files)}")
    print(f"functions {len(calls)}")
    print(f"deepest {deepest}")
    print(f"calls {calls.total():,}")
    for code, count in calls.most_common(options.most):
        place = Path(code.co_filename).relative_to(PACKAGE)
        print(f"{count:>9,}  {place}:{code.co_firstlineno} {code.co_qualname}")


if __name__ == "__main__":
    main()
