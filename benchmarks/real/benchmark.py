"""``atomlearn select`` on real files against l1 models with as many features.

20 newsgroups (18,846 x 130,107 word counts; comp, sci and misc.forsale against the rest, as in
[A]) and golub (72 x 7129 gene expressions). Whole processes, from the file to the result: time,
peak memory, and accuracy on the same held-out rows. Ours is at C = 10, and once more with the C
that it chooses, its search included; a time limit leaves out what l1 models do not do: fits to
halves of the rows, and the permutations that judge few of them. An l1 model has as many features
at one C only: its ``seconds`` include the search for that C, its ``given_C_s`` do not. Medians
over the seeds of the split; accuracies are means.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from benchmarks.harness.real_data import data_file

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Task:
    """A data file with how many features to select, over so many splits."""

    name: str
    file: str
    n_features: int
    seeds: int
    positive: str | None = None

    @property
    def flags(self) -> list[str]:
        """What both command lines take."""
        chosen = ["--positive", self.positive] if self.positive else []
        return ["--n-features", str(self.n_features), *chosen]


POSITIVE = "1,2,3,4,5,6,11,12,13,14"
TASKS = (
    Task("golub", "microarray/golub.npz", 20, 5),
    Task("20 newsgroups", "20news/20news_counts.npz", 100, 3, POSITIVE),
    Task("20 newsgroups", "20news/20news_counts.npz", 500, 3, POSITIVE),
)


def main() -> None:
    """Run all on every split."""
    options = Options.parse(__doc__)
    tasks = TASKS[:1] if options.smoke else TASKS
    with Table("real", options) as table:
        for task in tasks:
            path = data_file(task.file)
            if not path.is_file():
                raise FileNotFoundError(f"there is no {path}; set ATOMLEARN_DATA to its folder")
            seeds = range(options.times(task.seeds))
            rows = [_ours(task, path, seed, "10") for seed in seeds]
            ours = _summary("atomlearn select", rows)
            table.add(data=task.name, **ours)
            chosen = [_ours(task, path, seed, "auto") for seed in seeds]
            table.add(data=task.name, **_summary("atomlearn select, C chosen", chosen))
            for name in ("svc", "logistic"):
                summary = _summary(f"l1 {name}", [_l1(task, path, name, seed) for seed in seeds])
                ratio = summary["seconds"] / ours["seconds"]
                table.add(data=task.name, **summary, ratio=ratio)


def _summary(name: str, rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return medians, but the mean of the accuracies."""
    middle = {
        key: float((np.mean if key == "accuracy" else np.median)([row[key] for row in rows]))
        for key in rows[0]
    }
    return {"solver": name, "splits": len(rows), **middle}


def _ours(task: Task, path: Path, seed: int, C: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["atomlearn.cli", "select", str(path), "--target", "y", *task.flags]
        command += ["--C", C, "--seed", str(seed), "--out", folder, "--quiet"]
        command += ["--time-limit", "600"]
        code = "import sys; from atomlearn.cli import main; sys.exit(main())"
        text, seconds, peak = _measured([sys.executable, "-c", code, *command[1:]])
        summary = json.loads((Path(folder) / "summary.json").read_text(encoding="utf-8"))
    accuracy = re.search(r"held-out accuracy\s+([\d.]+)%", text)
    assert accuracy is not None
    return {
        "seconds": seconds,
        "peak_gb": peak,
        "selected": float(summary["n_selected_columns"]),
        "accuracy": float(accuracy[1]) / 100,
    }


def _l1(task: Task, path: Path, name: str, seed: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.real.baseline", str(path), "--model", name]
    text, seconds, peak = _measured([*command, *task.flags, "--seed", str(seed)])
    answer = json.loads(text.splitlines()[-1])
    return {
        "seconds": seconds,
        "given_C_s": seconds - answer["search_s"],
        "peak_gb": peak,
        "selected": answer["selected"],
        "accuracy": answer["accuracy"],
        "fit_s": answer["fit_s"],
        "search_s": answer["search_s"],
        "search_fits": answer["search_fits"],
    }


def _measured(command: Sequence[str]) -> tuple[str, float, float]:
    """Run a command; return what it printed, its seconds and its peak memory in GB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{command[2]} ended with exit code {process.returncode}:\n{text}")
    return text, seconds, usage.ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
