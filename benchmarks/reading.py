"""Reading a large CSV and libsvm file: seconds and peak memory beside polars and scikit-learn.

python benchmarks/reading.py [MB] writes benchmarks/results/reading.csv; each reader in a process of
its own, the file in the page cache. ``times_data``: peak memory added, in units of X in float64
(CSV) or of its stored entries (libsvm, 12 bytes each).
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
if kind == "atomlearn": from atomlearn.datasets import read
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


def main(megabytes: int) -> None:
    """Read both files by each reader."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        table, sparse = write(Path(folder), megabytes)
        for path, readers in ((table, ("atomlearn", "polars")), (sparse, ("atomlearn", "sklearn"))):
            for kind in readers:
                command = [sys.executable, "-c", ONE, str(path), kind]
                out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                row = {"file": path.suffix[1:], "megabytes": megabytes, "reader": kind}
                found.append(row | json.loads(out))
                print(found[-1], flush=True)
    with RESULTS.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
