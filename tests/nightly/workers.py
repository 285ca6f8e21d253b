"""Workers of a Dask cluster that are killed at random moments, and clusters that lose all of them.

Each solve ends in time: with the answer, or with an error that says what is lost and how to go on.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from atomlearn import norms, solvers
from atomlearn.designs import Dask, LostDataError
from tests.nightly.ledger import Row
from tests.oracles.sums import solve_sum

#: Seconds on the wall that a solve may take when a worker dies, whose successor begins meanwhile.
PATIENCE = 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 300))
Y = X[:, :6].sum(axis=1) + RNG.standard_normal(400)
#: By chunks: rows alone, columns alone, both; where rows are cut, they answer with sums.
CHUNKS = [(100, 300), (400, 75), (200, 150)]
PROBLEMS: list[tuple[Any, dict[str, Any]]] = [
    (Y, {"level": 9.0}),
    (np.sign(Y), {"loss": "logistic", "level": 3.0, "fit_intercept": True}),
    (Y, {"loss": "huber", "level": 6.0, "norm": norms.KSupport(5)}),
    (Y, {"loss": "quantile", "level": 4.0}),
]


class Waits(BaseException):
    """A solve did not end in time; nothing that waits may take it for a timeout of its own."""


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """Raise Waits where the block takes longer."""

    def too_long(*_: object) -> None:
        raise Waits(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def cluster(workers: int, replaced: bool = True) -> Iterator[Client]:
    """A cluster of processes with one thread each, which are replaced when they die, or not."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        Client(local) as client,
    ):
        if replaced:
            # Replaces workers whose nannies gave up, as the managers of real clusters do.
            local.adapt(minimum=workers, maximum=workers)
        yield client


def running(client: Client, count: int) -> list[int]:
    """Return the processes of the workers, once so many answer and are some seconds old.

    Nannies give up workers that die while they start: those were of no use to any solve yet.
    """
    while True:
        client.wait_for_workers(count)
        pids = list(client.run(os.getpid, on_error="ignore").values())
        if len(pids) >= count and all(time.time() - _began(pid) > 3.0 for pid in pids):
            return pids
        time.sleep(0.1)


def _began(pid: int) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).create_time()
    return time.time()


def scattered(client: Client) -> Any:
    """Return X in two halves of rows, each on a worker, that only these have."""
    places = sorted(client.nthreads())  # as they are now, not some seconds ago
    halves = [
        client.scatter(X[i : i + 200], workers=[place])
        for i, place in ((0, places[0]), (200, places[-1]))
    ]
    return da.concatenate([da.from_delayed(half, (200, 300), dtype=float) for half in halves])


def killed(count: int, seed: int) -> list[Row]:
    """Kill one of two workers at a random moment of a solve; every fifth has data of no other.

    An answer is that of X in memory to 1e-9 of the objective. An error names the lost chunks and
    the checkpoint, from which the solve then goes on without the cluster.
    """
    rng = random.Random(seed)
    answers, errors = (
        Row("Dask worker killed: made again"),
        Row("Dask worker killed: data scattered"),
    )
    with cluster(2) as client, tempfile.TemporaryDirectory() as name:
        took = 1.0
        for number in range(count):
            y, arguments = rng.choice(PROBLEMS)
            lost, kept = number % 5 == 4, Path(name, f"{number}")
            arguments = arguments | {"tol": 1e-10}
            pids = running(client, 2)
            array = scattered(client) if lost else da.from_array(X, chunks=rng.choice(CHUNKS))
            moment = rng.uniform(0.0, took)
            killer = threading.Timer(moment, os.kill, (rng.choice(pids), signal.SIGKILL))
            row = errors if lost else answers
            began = time.monotonic()
            killer.start()
            try:
                with in_time(PATIENCE):
                    found, said = _solved(array, y, arguments, client, kept, killer)
            except (Waits, Exception) as error:
                row.count(f"{arguments}: {type(error).__name__}: {error}")
                continue
            finally:
                killer.join()
            if not lost:
                took = 0.5 * (took + min(time.monotonic() - began, 5.0))
            if said and not lost:
                row.count(f"{arguments}: {said}")
                continue
            row.count(_wrong(found, y, arguments) or _unsaid(said, "rows "), said)
    answers.says = "(nothing: the solve ends with the answer)"
    return [row for row in (answers, errors) if row.tried]


def _solved(
    array: Any, y: Any, arguments: dict, client: Any, kept: Path, killer: threading.Timer
) -> tuple[Any, str]:
    """Return the answer, and the error after which it went on from the checkpoint, if any."""

    def once(where: Any, more: dict) -> Any:
        return solve_sum(where, y, observers=[solvers.Checkpoint(kept, every_s=0)], **more)

    try:
        design = Dask(array, client=client)
        found = once(design, arguments)
        while killer.is_alive():  # the moment was after the end: solve on until it comes
            found = solve_sum(design, y, **arguments)
        return found, ""
    except LostDataError as error:
        said = str(error)
    return once(Dask(da.from_array(X, chunks=(100, 300))), arguments), said


def _wrong(found: Any, y: Any, arguments: dict) -> str | None:
    expected = solve_sum(X, y, **arguments)
    apart = abs(found.objective - expected.objective) / expected.objective
    if not found.converged or apart > 1e-9:
        return f"{arguments}: {found.status.name}, objective {apart:.1e} apart"
    return None


def _unsaid(said: str, *words: str) -> str | None:
    missing = [word for word in ("Checkpoint", *words) if said and word not in said]
    return f"{missing} are not said: {said}" if missing else None


def all_gone(count: int, seed: int) -> Row:
    """Kill all workers of a cluster that starts no others: an error; another one goes on."""
    rng, row = random.Random(seed), Row("Dask cluster that loses all workers")
    y, arguments = PROBLEMS[1]
    arguments = arguments | {"tol": 1e-10, "solver": solvers.ColumnGeneration(batch=1)}
    timeout = {"distributed.scheduler.no-workers-timeout": "2s"}
    for number in range(count):
        first, before, pids = rng.randrange(1, 5), list[float](), list[int]()

        def end_them(progress: Any) -> None:
            if len(progress.history) == first:  # noqa: B023
                before[:] = [record.objective for record in progress.history]  # noqa: B023
                for nanny in client.cluster.workers.values():  # which would start another one
                    nanny.close_gracefully()
                for pid in pids:  # noqa: B023
                    os.kill(pid, signal.SIGKILL)

        with tempfile.TemporaryDirectory() as name, dask.config.set(timeout):
            keeper, said = solvers.Checkpoint(name, every_s=0), ""
            try:
                with cluster(1 + number % 2, replaced=False) as client:
                    pids[:] = running(client, 1 + number % 2)
                    design = Dask(da.from_array(X, chunks=rng.choice(CHUNKS)), client=client)
                    with in_time(PATIENCE):
                        solve_sum(design, y, observers=[keeper, end_them], **arguments)
            except LostDataError as error:
                said = str(error)
            except (Waits, Exception) as error:
                where = traceback.extract_tb(error.__traceback__)[-3:]
                row.count(f"{type(error).__name__}: {error}: {where}")
                continue
            # Another cluster, or none: threads of this process.
            design = Dask(da.from_array(X, chunks=rng.choice(CHUNKS)))
            found = solve_sum(design, y, observers=[solvers.Checkpoint(name)], **arguments)
            fault = _wrong(found, y, arguments) or _unsaid(said, "no-workers-timeout")
            goes_on = [record.objective for record in found.history[: first - 1]] == before[:-1]
            row.count(fault or (None if said and goes_on else f"begun anew: {said}"), said)
    return row
