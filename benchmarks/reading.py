"""Reading a large CSV and libsvm file: seconds and peak memory beside polars and scikit-learn.

python benchmarks/reading.py [MB] [csv|svm] [RUNS] adds to benchmarks/results/reading.csv; each
reader in a process of its own, RUNS times (3), the quickest counts; the file in the page cache (it
stays in the temporary folder, to be deleted by hand). ``times_data``: peak memory added, in units
of X in float64 (CSV) or of its stored entries (libsvm, 12 bytes each).
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "reading.csv"
COLUMNS = 20
ONE = """
import json, resource, sys, time
path, kind = sys.argv[1:3]
import numpy, scipy.sparse
if kind == "atomlearn":
    import polars
    from atomlearn.datasets import read
elif kind == "polars": import polars
else: from sklearn.datasets import load_svmlight_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
if kind == "atomlearn": X = read(path, "y" if path.endswith("csv") else None).X
elif kind == "polars": X = polars.read_csv(path).drop("y").to_numpy()
else: X = load_svmlight_file(path)[0]
seconds = time.perf_counter() - began
added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
size = X.nnz * 12 if hasattr(X, "nnz") else X.size * 8
print(json.dumps({"seconds": round(seconds, 2), "times_data": round(added / size, 2)}))
"""


def write(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """Write both files, of about so many megabytes."""
    rng = np.random.default_rng(0)
    table, sparse = folder / "table.csv", folder / "table.svm"
    chunk = rng.standard_normal((2000, COLUMNS))
    lines = "".join(",".join(f"{value:.7f}" for value in row) + ",1.5\n" for row in chunk)
    with table.open("w") as stream:
        stream.write(",".join([*(f"x{j}" for j in range(COLUMNS)), "y"]) + "\n")
        for _ in range(max(1, megabytes * 2**20 // len(lines))):
            stream.write(lines)
    rows = []
    for row in chunk:
        places = np.sort(rng.choice(50_000, COLUMNS, replace=False)) + 1
        rows.append("1 " + " ".join(f"{j}:{v:.6f}" for j, v in zip(places, row, strict=True)))
    lines = "\n".join(rows) + "\n"
    with sparse.open("w") as stream:
        for _ in range(max(1, megabytes * 2**20 // len(lines))):
            stream.write(lines)
    return table, sparse


def main(megabytes: int, kinds: tuple[str, ...], folder: Path, count: int = 3) -> None:
    """Read the files by each reader; keep what is there of others."""
    found = []
    readers = {"csv": ("atomlearn", "polars"), "svm": ("atomlearn", "sklearn")}
    for ending in kinds:
        path = folder / f"table.{ending}"
        for kind in readers[ending]:
            command = [sys.executable, "-c", ONE, str(path), kind]
            runs = [
                json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
                for _ in range(count)
            ]
            row = {"file": ending, "megabytes": megabytes, "reader": kind}
            found.append(row | min(runs, key=lambda run: run["seconds"]))
            print(found[-1], flush=True)
    known = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    mine = {(row["file"], str(row["megabytes"])) for row in found}
    known = [row for row in known if (row["file"], row["megabytes"]) not in mine]
    with RESULTS.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*known, *found])


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    endings = tuple(sys.argv[2:3]) or ("csv", "svm")
    kept = Path(tempfile.gettempdir()) / f"atomlearn-reading-{size}"
    if not kept.exists():
        kept.mkdir()
        write(kept, size)
    main(size, endings, kept, int(sys.argv[3]) if len(sys.argv) > 3 else 3)
