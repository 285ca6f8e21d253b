"""Paths over rows that are on Dask workers: bytes, rounds, one worker against two, and a model.

traffic: bytes and rounds of a path of 20 levels over sums, and as vectors of n numbers and columns
travel where sums do not tell all. workers: the same path on one worker and on two. latency: seconds
of a round that asks next to nothing. model: own work of the process that solves, rounds, and what
workers do by their number, for one and two, where it was measured, and for 64 of 64 times the rows.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from distributed import Client

from atomlearn import norms, paths
from atomlearn.core.interfaces.design import Design
from atomlearn.core.problem.problem import over_sums
from atomlearn.designs import Dask
from atomlearn.losses import Squared
from atomlearn.problem import Problem, Regularizer
from atomlearn.storage.spread import distributed
from benchmarks.distributed import cluster, made
from benchmarks.harness import Options, Table

LEVELS = 20


def target(design: Design, loss: str) -> np.ndarray:
    """Return targets of 30 columns with noise."""
    rng = np.random.default_rng(1)
    columns = np.sort(rng.permutation(design.shape[1])[:30])
    signal = design.product(rng.uniform(0.3, 1.0, (30, 1)), columns)[:, 0]
    y = signal + 2.0 * signal.std() * rng.standard_normal(design.shape[0])
    return np.sign(y) if loss == "logistic" else y


def solved(design: Dask, y: np.ndarray, loss: str) -> tuple[Any, float, float]:
    """Return the path, its seconds, and those of this process's own work."""
    began, own = time.perf_counter(), time.process_time()
    found = paths.path(design, y, loss=loss, fit_intercept=True, n_alphas=LEVELS, alpha_ratio=0.1)
    return found, time.perf_counter() - began, time.process_time() - own


def traffic(table: Table, options: Options) -> None:
    """A path over sums, and as it was before: vectors to the chunks, and columns of a pool here."""
    n, p = (10_000, 100) if options.smoke else (120_000, 200)
    with cluster(2) as client:
        for loss in ("squared", "logistic"):
            design = Dask(made(n, p, (n // 8, p)), client=client)
            y = target(design, loss)
            found, seconds, _ = solved(design, y, loss)
            # Levels share rounds: each counts those up to it.
            rounds, n_bytes = np.max([result.sent for result in found.results], axis=0)
            suffice, distributed.sums_suffice = distributed.sums_suffice, lambda problem: False
            before, alone = design.sent, time.perf_counter()
            try:
                vectors, alone, _ = solved(design, y, loss)
            finally:
                distributed.sums_suffice = suffice
            sent = np.subtract(design.sent, before)
            apart = np.abs(found.objectives / vectors.objectives - 1.0).max()
            for what, path, s, r, b in (
                ("sums", found, seconds, rounds, n_bytes),
                ("vectors", vectors, alone, *sent),
            ):
                table.add(
                    part="traffic", what=f"{loss}, {n} x {p}, {what}", passes=path.passes,
                    rounds=int(r), mb=b / 1e6, mb_a_pass=b / 1e6 / path.passes, path_s=s,
                    columns=int(path.n_selected[-1]), objectives_apart=apart,
                )  # fmt: skip


def round_seconds(client: Client, design: Dask, y: np.ndarray) -> float:
    """Return the seconds of a round that asks for the loss at zero: the latency."""
    penalty = Regularizer(norms.L1(), "penalized", 1.0)
    summed: Any = over_sums(Problem.build(design, y, Squared(), penalty))
    none = np.zeros(0, dtype=np.int64), np.zeros((1, 0))
    summed.loss.ask("look", *none, np.zeros(1))
    times = []
    for shift in range(30):
        began = time.perf_counter()
        summed.loss.ask("look", *none, np.full(1, float(shift)))
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def workers(table: Table, options: Options) -> None:
    """One worker against two, and the model of 64 with what was measured here."""
    n, p = (20_000, 100) if options.smoke else (600_000, 420)
    seconds, terms = {}, {}
    for count in (1, 2):
        with cluster(count) as client:
            design = Dask(made(n, p, (n // 16, p)), client=client)
            y = target(design, "squared")
            latency = round_seconds(client, design, y)
            v, reads = np.random.default_rng(2).standard_normal(n), []
            for _ in range(options.times(3)):
                began = time.perf_counter()
                design.scores(v)
                reads.append(time.perf_counter() - began)
            found, seconds[count], own = solved(design, y, "squared")
            rounds, n_bytes = np.max([result.sent for result in found.results], axis=0)
            terms[count] = {"latency_s": latency, "read_s": min(reads) - latency, "own_s": own}
            table.add(
                part="workers", what=f"{4e-9 * n * p:.2f} GB, {count} workers",
                path_s=seconds[count],
                speedup=seconds[1] / seconds[count], passes=found.passes, rounds=int(rounds),
                mb=n_bytes / 1e6, mb_a_pass=n_bytes / 1e6 / found.passes, **terms[count],
                load=os.getloadavg()[0],
            )  # fmt: skip
    latency, own = terms[2]["latency_s"], terms[1]["own_s"]
    # What the workers do: reading, scores of many levels, products of columns.
    work = max(seconds[1] - rounds * terms[1]["latency_s"] - own, 0.0)
    for count in (1, 2, 64):
        size = 1 if count < 64 else 64  # 64 times as many rows: as many for each worker
        # A task a worker, of 0.3 ms for the scheduler; beyond 8 sums are added up there first.
        trips = rounds * (latency * (1 + (count > distributed.FAN_IN)) + 3e-4 * count)
        modelled = own + trips + work * size / count
        table.add(
            part="model", what=f"{4e-9 * n * p * size:.1f} GB, {count} workers", path_s=modelled,
            speedup=(own + work * size + rounds * latency) / modelled,
            passes=found.passes, rounds=int(rounds), latency_s=latency, own_s=own, work_s=work,
        )  # fmt: skip


def main() -> None:
    """All parts; workers hold 1 GB."""
    options = Options.parse(__doc__)
    with Table("rows_elsewhere", options) as table:
        traffic(table, options)
        workers(table, options)


if __name__ == "__main__":
    main()
