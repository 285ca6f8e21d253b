"""Data larger than the memory allowed, genotypes at two bits, and kills at random moments.

passes: a store of float32 and of int8, its page-cached bytes read by one thread's `read` (the same
bytes, chunk by chunk, as many threads), against passes of scores. limited: a store three times the
address space allowed beyond what an idle process has (RLIMIT_AS): a lasso fit to 1e-6, with peak
memory. genotypes: a pass over 10,000 x 500,000 genotypes (1.25 GB), against reading as many
float32 from memory. killed: conversions and solves ended by SIGKILL at random moments, started
again until they are done, and compared with those left alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import _kernels
from atomlearn.datasets import convert
from atomlearn.designs import OnDisk, PlinkBed
from atomlearn.storage.store.store_file import ByteFile
from benchmarks.harness import Options, Table

#: A table of kills has one row of each kind.
KILLS = 25


def best(call: Callable[[], Any], times: int) -> float:
    """Return the least wall time of some calls."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def read_all(path: Path, threads: int, size: int = 2**20) -> None:
    """Read a file chunk by chunk, as a pass does, and do nothing with it."""
    file = ByteFile(path)

    def part(thread: int) -> None:
        buffer = np.empty(size, dtype=np.uint8)
        for start in range(thread * size, file.size, threads * size):
            file.read_into(start, buffer[: min(size, file.size - start)])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, range(threads)))


def passes(table: Table, folder: Path, options: Options) -> None:
    """Raw reading against scores and predictions."""
    n, p = (2_000, 2_000) if options.smoke else (10_000, 50_000)
    rng = np.random.default_rng(0)
    for kind in ("float32", "int8", "float16"):
        source, out = folder / "x.npy", folder / f"{kind}.store"
        X = np.lib.format.open_memmap(source, "w+", dtype=kind, shape=(n, p), fortran_order=True)
        for start in range(0, p, 1000):
            part = rng.integers(-9, 9, size=(n, min(1000, p - start)))
            X[:, start : start + 1000] = part
        X.flush()
        del X
        began = time.perf_counter()
        convert(source, out, memory=2**28)
        converting = time.perf_counter() - began
        source.unlink()
        design, v, w = OnDisk(out), rng.standard_normal(n), rng.standard_normal(p)
        first = best(lambda: design.scores(v), 1)  # noqa: B023 - called at once
        threads, times = _kernels.max_threads(), options.times(5)
        reading = best(lambda: read_all(out / "values.bin", threads), times)  # noqa: B023
        scoring = best(lambda: design.scores(v), times)  # noqa: B023
        predicting = best(lambda: design.predict(w), times)  # noqa: B023
        size = design.n_bytes / 1e9
        table.add(
            part="passes", what=kind, gb=size, converting_gb_s=size / converting,
            reading_gb_s=size / reading, first_pass_gb_s=size / first,
            scores_gb_s=size / scoring, predict_gb_s=size / predicting, share=reading / scoring,
        )  # fmt: skip


_LIMITED = """
import resource, sys, time
import numpy as np
from atomlearn import solve
from atomlearn.designs import OnDisk
path, extra = sys.argv[1], int(sys.argv[2])
design = OnDisk(path)
y = np.random.default_rng(0).standard_normal(design.shape[0])
solve(np.ones((10, 3)), np.arange(10.0), alpha=0.1)  # whatever is loaded late
def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(l for l in lines if l.startswith(key)).split()[1]) * 1024
idle, space = status("VmRSS"), status("VmSize")
resource.setrlimit(resource.RLIMIT_AS, (space + extra, -1))
largest = float(np.abs(design.scores(y).full()).max())
began = time.perf_counter()
result = solve(design, y, alpha=0.8 * largest / y.size, fit_intercept=False)
seconds = time.perf_counter() - began
assert result.converged, result.status
print(seconds, result.passes, idle, status("VmHWM"), result.columns.size)
"""


def random_store(folder: Path, n: int, p: int) -> Path:
    """Write a store of normal numbers in single precision, a block at a time; return its path."""
    source, out = folder / "x.npy", folder / "limited.store"
    X = np.lib.format.open_memmap(source, "w+", dtype=np.float32, shape=(n, p), fortran_order=True)
    rng = np.random.default_rng(1)
    for start in range(0, p, 1000):
        X[:, start : start + 1000] = rng.standard_normal((n, 1000), dtype=np.float32)
    X.flush()
    del X
    convert(source, out, memory=2**26)
    source.unlink()
    return out


def limited(table: Table, folder: Path, options: Options) -> None:
    """A fit in a third of the memory that the store takes."""
    n, p = (2_000, 20_000) if options.smoke else (10_000, 50_000)
    out = random_store(folder, n, p)
    size = OnDisk(out).n_bytes
    run = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(out), str(size // 3)],
        capture_output=True, text=True, check=True,
        env=os.environ | {"MALLOC_ARENA_MAX": "2"},
    )  # fmt: skip
    seconds, count, idle, peak, selected = (float(word) for word in run.stdout.split())
    reading = best(lambda: read_all(out / "values.bin", _kernels.max_threads()), options.times(3))
    table.add(
        part="limited", what="lasso to 1e-6", gb=size / 1e9, allowed_gb=size / 3e9,
        peak_gb=(peak - idle) / 1e9, passes=count, seconds=seconds,
        share=count * reading / seconds, selected=selected,
    )  # fmt: skip


def bits(table: Table, folder: Path, options: Options) -> None:
    """A pass over genotypes against reading float32 from memory."""
    n, p = (1_003, 5_000) if options.smoke else (10_000, 500_000)
    rng = np.random.default_rng(2)
    bed = folder / "g.bed"
    column = (n + 3) // 4
    with bed.open("wb") as stream:
        stream.write(b"\x6c\x1b\x01")
        for start in range(0, p, 5000):
            count = min(5000, p - start)
            # Two bits in 32 are missing ones, the others copies as they come.
            packed = rng.integers(0, 256, size=count * column, dtype=np.uint8)
            packed |= (packed & 0x55) << 1
            stream.write(packed.tobytes())
    bed.with_suffix(".bim").write_text("".join(f"1 r{j} 0 {j} A G\n" for j in range(p)))
    bed.with_suffix(".fam").write_text("".join(f"f s{i} 0 0 0 -9\n" for i in range(n)))
    began = time.perf_counter()
    design = PlinkBed(bed)
    opening = time.perf_counter() - began
    v, w = rng.standard_normal(n), rng.standard_normal(p)
    times = options.times(5)
    scoring = best(lambda: design.scores(v), times)
    predicting = best(lambda: design.predict(w), times)
    # As much float32 as is reasonable, read by our dense kernel, carried to n p entries.
    part = np.ones((n, max(1, min(p, 2**28 // n))), dtype=np.float32, order="F")
    from_memory = best(lambda: _kernels.scores_dense(part, v), times) * p / part.shape[1]
    table.add(
        part="genotypes", what=f"{n} x {p}", gb=design.n_bytes / 1e9, opening_s=opening,
        seconds=scoring, predict_s=predicting, float32_from_memory_s=from_memory,
        times_faster=from_memory / scoring,
    )  # fmt: skip
    for suffix in (".bed", ".bim", ".fam"):
        bed.with_suffix(suffix).unlink()


_CONVERT = """
import sys
from atomlearn.datasets import convert
print("ready", flush=True)
convert(sys.argv[1], sys.argv[2], memory=2**22)
"""
_SOLVE = """
import sys
import numpy as np
from atomlearn import norms, solve, solvers
rng = np.random.default_rng(0)
X = rng.standard_normal((300, 2000))
y = X[:, :60].sum(axis=1) + 0.3 * rng.standard_normal(300)
print("ready", flush=True)
keep = solvers.Checkpoint(sys.argv[2], every_s=0.05)
solver = solvers.ColumnGeneration(batch=1)
r = solve(X, y, norm=norms.KSupport(5), alpha=5 / 300, fit_intercept=False, tol=1e-8,
          max_iter=10_000, solver=solver, observers=[keep])
assert r.converged
np.save(sys.argv[2] + "/answer.npy", np.append(r.coef, r.objective))
"""


def killed(table: Table, folder: Path, options: Options) -> None:
    """SIGKILL at random moments, conversions and solves."""
    rng = np.random.default_rng(3)
    n_kills = 2 if options.smoke else KILLS
    X = rng.standard_normal((4_000, 500)) * (rng.random((4_000, 500)) < 0.3)
    source = folder / "x.libsvm"
    with source.open("w") as stream:
        for row in X.tolist():
            entries = " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
            stream.write(f"1 {entries}\n")
    for what, script, answer in (
        ("convert", _CONVERT, "manifest.json"),
        ("solve", _SOLVE, "answer.npy"),
    ):
        known = folder / what
        began = time.perf_counter()
        _until_done(script, source, known / answer, known, rng, 0.0, 0)
        span, kills, wrong = time.perf_counter() - began, 0, 0
        while kills < n_kills:
            out = folder / f"{what}-killed-{kills}"
            most = min(n_kills - kills, 12)
            kills += _until_done(script, source, out / answer, out, rng, 0.5 * span, most)
            wrong += not _same(what, known, out)
        table.add(part="killed", what=what, kills=kills, wrong_answers=wrong)


def _until_done(
    script: str, source: Path, done: Path, out: Path, rng: Any, longest: float, most: int
) -> int:
    """Start a script until its answer is there, killed up to ``most`` times; return how often."""
    kills = 0
    while not done.exists():
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(source), str(out)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        if kills < most:
            time.sleep(rng.uniform(0.0, longest))
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        if process.returncode not in (0, -signal.SIGKILL):
            raise RuntimeError(f"{out.name} failed with {process.returncode}")
    return kills


def _same(what: str, first: Path, second: Path) -> bool:
    if what == "convert":
        names = ("values.bin", "rows.bin", "starts.bin")
        return all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    left, right = np.load(first / "answer.npy"), np.load(second / "answer.npy")
    return bool(abs(left[-1] - right[-1]) <= 1e-8 * abs(left[-1]))


def main() -> None:
    """All parts, in a temporary folder of about 5 GB."""
    options = Options.parse(__doc__)
    with tempfile.TemporaryDirectory() as temporary, Table("on_disk", options) as table:
        for part in (bits, passes, limited, killed):
            folder = Path(temporary) / part.__name__
            folder.mkdir()
            part(table, folder, options)


if __name__ == "__main__":
    main()
