"""Dask on one and two workers of this machine, workers killed at random, and the cost model.

speed: passes of scores and whole fits on data that the workers made, one worker against two
(processes of one thread each). traffic: bytes on the loopback interface in a pass, against the
formulas of scaling_model.py. killed: fits during which a worker is ended by SIGKILL at a random
moment, compared with a fit left alone. model: passes over arrays, sparse arrays and a store,
against the seconds that bytes over bandwidth predict.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
import scipy.sparse as sp
from distributed import Client, LocalCluster

from atomlearn import _kernels, norms, solvers
from atomlearn.datasets import convert
from atomlearn.designs import Dask, OnDisk, as_design
from benchmarks.harness import Options, Table
from benchmarks.on_disk import best, read_all
from benchmarks.scaling_model import Data, Layout, Machine, fit_seconds, pass_cost
from tests.oracles.sums import solve_sum

SETTINGS = {
    "distributed.comm.timeouts.connect": "60s",
    # A machine that is busy, or was asleep, has lost no worker.
    "distributed.scheduler.worker-ttl": None,
    # Without any worker left Dask waits; here that is a failure.
    "distributed.scheduler.no-workers-timeout": "300s",
    # By default what three lost workers were at, in all fits together, is given up.
    "distributed.scheduler.allowed-failures": 100,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
}


@contextmanager
def cluster(workers: int) -> Iterator[Client]:
    """A cluster of processes with one thread each."""
    # Dask's own setting yields to what this process was started with, which workers inherit.
    os.environ["OMP_NUM_THREADS"] = "1"
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
        ) as local,
        Client(local) as client,
    ):
        # Replaces workers whose nannies gave up, as the managers of real clusters do.
        local.adapt(minimum=workers, maximum=workers)
        yield client


def old_workers(client: Client, count: int) -> list[int]:
    """Return the processes of the workers once ``count`` of them are seconds old.

    The nanny of a worker that dies while it starts gives up: that is no loss of a worker in use.
    """
    while True:
        pids = sorted(client.run(os.getpid, on_error="ignore").values())
        with suppress(psutil.NoSuchProcess):
            old = [pid for pid in pids if time.time() - psutil.Process(pid).create_time() > 4.0]
            if len(old) >= count:
                return old
        time.sleep(0.1)


def made(n: int, p: int, chunks: tuple[int, int]) -> Any:
    """Return float32 data that the workers make, the same for every cluster."""
    return da.random.default_rng(0).standard_normal((n, p), dtype=np.float32, chunks=chunks)


def made_sparse(n: int, p: int, chunks: tuple[int, int]) -> Any:
    """Return sparse data of 400 entries a column that the workers make."""

    def chunk(block_info: Any = None) -> Any:
        rows, columns = block_info[None]["chunk-shape"]
        rng = np.random.default_rng(list(block_info[None]["chunk-location"]))
        count = min(400, rows // 2)
        indices = rng.integers(0, rows, (columns, count), dtype=np.int32).reshape(-1)
        values = rng.standard_normal(indices.size, dtype=np.float32)
        starts = np.arange(columns + 1, dtype=np.int32) * count
        made = sp.csc_array((values, indices, starts), shape=(rows, columns))
        made.sum_duplicates()
        return made

    shape = tuple((size,) * (whole // size) for size, whole in zip(chunks, (n, p), strict=True))
    return da.map_blocks(chunk, chunks=shape, dtype=np.float32, meta=np.zeros((0, 0)))


def target(design: Dask) -> np.ndarray:
    """Return a sum of 40 columns with noise of 0.45 times its standard deviation."""
    rng = np.random.default_rng(1)
    columns = np.sort(rng.permutation(design.shape[1])[:40])
    block = design.gather(columns)
    signal = block.predict(rng.uniform(0.5, 1.5, 40))
    return signal + 0.45 * signal.std() * rng.standard_normal(design.shape[0])


def loopback() -> int:
    """Return the bytes that the loopback interface has carried."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])
    raise RuntimeError("there is no loopback interface")


def speed(table: Table, folder: Path, options: Options) -> None:
    """The same passes and fits on one worker and on two: dense data, and sparse data.

    Dense passes are bound by the memory that the workers share, sparse ones by the processors.
    """
    dense, sparse = (20_000, 40_000), (200_000, 400_000)
    if options.smoke:
        dense, sparse = (2_000, 4_000), (2_000, 8_000)
    for kind, make, (n, p) in (("dense", made, dense), ("sparse", made_sparse, sparse)):
        first: tuple[float, float, Any] | None = None
        for workers in (1, 2):
            with cluster(workers) as client:
                design = Dask(make(n, p, (n, p // 8)), client=client)
                scoring, fitting, result = timed(design, options)
            first = first or (scoring, fitting, result)
            table.add(
                part="speed", what=f"{kind}, {workers} workers", pass_s=scoring, fit_s=fitting,
                passes=result.passes, active=result.columns.size,
                pass_speedup=first[0] / scoring, fit_speedup=first[1] / fitting,
                objective_difference=abs(result.objective / first[2].objective - 1.0),
            )  # fmt: skip


def timed(design: Dask, options: Options) -> tuple[float, float, Any]:
    """Return the seconds of a pass, those of a fit of many passes, and the fit."""
    y = target(design)
    v = np.random.default_rng(2).standard_normal(design.shape[0])
    design.scores(v)
    scoring = best(lambda: design.scores(v), options.times(5))
    level = 0.25 * float(np.abs(design.scores(y).full()).max())
    results: list[Any] = []

    def fit() -> None:
        # Two columns a pass: many passes, which are what the workers do.
        solver = solvers.ColumnGeneration(batch=2)
        results.append(solve_sum(design, y, level=level, solver=solver))

    fitting = best(fit, options.times(2))
    assert results[-1].converged
    return scoring, fitting, results[-1]


def traffic(table: Table, folder: Path, options: Options) -> None:
    """Bytes of a pass on the wires, against the formula."""
    n, p = (20_000, 20_000) if options.smoke else (100_000, 100_000)
    density = 1e-3
    with cluster(2) as client:
        for rows, columns in ((1, 4), (4, 1), (2, 2)):
            chunks = (n // rows, p // columns)

            def sparse(block_info: Any = None) -> Any:
                shape = block_info[None]["chunk-shape"]
                place = block_info[None]["chunk-location"]
                return sp.random_array(shape, density=density, format="csr", rng=list(place))

            array = da.map_blocks(
                sparse, chunks=((chunks[0],) * rows, (chunks[1],) * columns), dtype=float,
                meta=np.zeros((0, 0)),
            )  # fmt: skip
            design = Dask(array, client=client)
            v, bytes_seen, seconds = np.random.default_rng(0).standard_normal(n), [], []
            for _ in range(2 + options.times(5)):
                before, began = loopback(), time.perf_counter()
                design.scores(v).top(100)
                seconds.append(time.perf_counter() - began)
                bytes_seen.append(loopback() - before)
            cost = pass_cost(Data(n, p, 12.0, p * density), Machine(), Layout(2, rows, columns))
            table.add(
                part="traffic", what=f"{rows} x {columns}",
                pass_s=min(seconds), mb=min(bytes_seen) / 1e6, formula_mb=cost.bytes / 1e6,
                share=min(bytes_seen) / cost.bytes,
            )  # fmt: skip


def killed(table: Table, folder: Path, options: Options) -> None:
    """A worker ended at a random moment of each fit."""
    rng = np.random.default_rng(3)
    n, p, runs = (500, 2_000, 2) if options.smoke else (4_000, 20_000, 20)
    wrong, kills, slow = 0, 0, []
    with cluster(2) as client:
        array = made(n, p, (n // 2, p // 4))
        design = Dask(array, client=client)
        y = target(design)
        level = 0.3 * float(np.abs(design.scores(y).full()).max())

        def fit(fresh: Dask) -> Any:
            return solve_sum(fresh, y, norm=norms.KSupport(4), level=level, tol=1e-9)

        expected = fit(design)
        alone = best(lambda: fit(Dask(array, client=client)), 1)
        for _ in range(runs):
            moment, pids = rng.uniform(0.0, alone), old_workers(client, 2)

            def kill() -> None:
                nonlocal kills
                time.sleep(moment)  # noqa: B023
                os.kill(int(rng.choice(pids)), signal.SIGKILL)  # noqa: B023
                kills += 1

            thread = threading.Thread(target=kill)
            began = time.perf_counter()
            thread.start()
            # The chunks are made anew in each run, so a kill may hit that, too.
            found = fit(Dask(array, client=client))
            thread.join()
            slow.append(time.perf_counter() - began)
            apart = abs(found.objective - expected.objective)
            close = apart <= found.gap + expected.gap + 1e-12 * abs(expected.objective)
            wrong += not (found.converged and close)
    table.add(
        part="killed", what=f"{n} x {p}", kills=kills, wrong_answers=wrong, fit_s=alone,
        slowest_s=max(slow),
    )  # fmt: skip


def model(table: Table, folder: Path, options: Options) -> None:
    """Measured passes against predictions from one measured bandwidth each."""
    n, p = (2_000, 4_000) if options.smoke else (10_000, 20_000)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, p), dtype=np.float32)
    y = X[:, :30].sum(axis=1) + 5.0 * rng.standard_normal(n)
    np.save(folder / "x.npy", X)
    convert(folder / "x.npy", folder / "x.store")
    sparse = sp.random_array((n, p), density=0.05, format="csc", rng=5, dtype=np.float32)
    small = as_design(X[: n // 4])
    # The bandwidth of a quarter of X predicts the whole.
    rate = 4e-9 * (n // 4) * p / best(lambda: small.scores(y[: n // 4]), options.times(7))
    few = as_design(sparse[:, : p // 4])
    sparse_rate = 8e-9 * few.nonzeros / best(lambda: few.scores(y), options.times(7))
    store = OnDisk(folder / "x.store")
    store.scores(y)  # the first pass compares checksums
    values, threads = folder / "x.store" / "values.bin", _kernels.max_threads()
    read = 4e-9 * n * p / best(lambda: read_all(values, threads), options.times(3))
    flops = 2e-9 * 1000**3 / best(lambda: np.ones((1000, 1000)) @ np.ones((1000, 1000)), 3)
    for what, design, rate_gb_s, entry, per_row in (
        ("dense", as_design(X), rate, 4.0, None),
        ("csc", as_design(sparse), sparse_rate, 8.0, sparse.nnz / n),
        ("store", store, read, 4.0, None),
    ):
        data, machine = Data(n, p, entry, per_row), Machine(read_gb_s=rate_gb_s, gflop_s=flops)
        measured = best(lambda: design.scores(y), options.times(5))  # noqa: B023
        level = 0.3 * float(np.abs(design.scores(y).full()).max())
        began = time.perf_counter()
        result = solve_sum(design, y, level=level)
        seconds = time.perf_counter() - began
        passes = round(result.passes)
        predicted = sum(fit_seconds(data, machine, Layout(), passes, result.columns.size))
        table.add(
            part="model", what=what, gb=data.n_bytes / 1e9, pass_s=measured,
            predicted_pass_s=pass_cost(data, machine, Layout()).seconds, passes=passes,
            active=result.columns.size, fit_s=seconds, predicted_fit_s=predicted,
        )  # fmt: skip


def main() -> None:
    """All parts, in a temporary folder of about 1 GB; the workers hold up to 3 GB."""
    options = Options.parse(__doc__)
    with tempfile.TemporaryDirectory() as temporary, Table("distributed", options) as table:
        for part in (speed, traffic, killed, model):
            folder = Path(temporary) / part.__name__
            folder.mkdir()
            part(table, folder, options)


if __name__ == "__main__":
    main()
