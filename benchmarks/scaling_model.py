"""What a fit costs, from bytes, bandwidths and flops: formulas, and a simulation of a cluster.

python benchmarks/scaling_model.py
python benchmarks/scaling_model.py --cores 2 16 32 64 --bandwidth 150
python benchmarks/scaling_model.py --rows 1e9 --columns 1e9 --per-row 100 --workers 1024 \\
    --grid 32x32 --keep-scores

docs/scaling.md explains the formulas. ``--cores`` measures what this machine reads and multiplies,
and tells a reading of 16 vectors on others of so many cores and GB/s. The simulation draws slow
workers and lost ones, pass by pass; everything else is the formulas.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

#: Sums are added up so many at a time (designs.distributed.FAN_IN).
FAN_IN = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """One worker and the wires: read_gb_s : of X, from where it lies (memory, disk), by a worker;
    network_gb_s : into or out of one machine; trip_s : a question and its answer; task_s : the
    scheduler's time for a task; gflop_s : of the re-fit; remake_gb_s : X of a lost worker."""

    read_gb_s: float = 5.0
    network_gb_s: float = 1.25
    trip_s: float = 0.01
    task_s: float = 3e-4
    gflop_s: float = 20.0
    remake_gb_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Data:
    """n rows, p columns; entry_bytes : of a stored entry, its index included; per_row : stored
    entries of a row, None where all are."""

    n: float
    p: float
    entry_bytes: float = 4.0
    per_row: float | None = None

    @property
    def n_bytes(self) -> float:
        """Bytes that a pass reads."""
        return self.n * (self.p if self.per_row is None else self.per_row) * self.entry_bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """workers; X in row_chunks x column_chunks."""

    workers: int = 1
    row_chunks: int = 1
    column_chunks: int = 1


@dataclass(frozen=True, slots=True)
class PassCost:
    """Seconds of the parts of a pass, and bytes on the wires."""

    read_s: float
    send_s: float
    reduce_s: float
    back_s: float
    tasks_s: float
    sent_bytes: float
    reduced_bytes: float
    back_bytes: float

    @property
    def seconds(self) -> float:
        """Of a pass, in which nothing overlaps: an upper estimate."""
        return self.read_s + self.send_s + self.reduce_s + self.back_s + self.tasks_s

    @property
    def bytes(self) -> float:
        """On all wires together."""
        return self.sent_bytes + self.reduced_bytes + self.back_bytes


def pass_cost(data: Data, machine: Machine, layout: Layout) -> PassCost:
    """Return the cost of scores X'v."""
    wire, rows, columns = machine.network_gb_s * 1e9, layout.row_chunks, layout.column_chunks
    chunks = rows * columns
    busiest = math.ceil(chunks / layout.workers) / chunks
    read = data.n_bytes * busiest / (machine.read_gb_s * 1e9)
    if layout.workers == 1 and chunks == 1:
        return PassCost(read, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    # v leaves here once; each worker needs the pieces of the rows that it has chunks of.
    pieces = min(rows, math.ceil(chunks / layout.workers))
    received = 8.0 * data.n / rows * pieces
    sent = 8.0 * data.n + received * layout.workers
    send = (8.0 * data.n + received) / wire
    # A tree: each level adds up FAN_IN partial sums of p / column_chunks entries, all but one of
    # which come from elsewhere; the levels follow each other.
    levels = math.ceil(math.log(rows, FAN_IN)) if rows > 1 else 0
    partial = 8.0 * data.p / columns
    reduced = partial * (rows - 1) * columns * (1.0 - 1.0 / layout.workers)
    busy_roots = math.ceil(columns / layout.workers)
    reduce = levels * busy_roots * partial * min(rows, FAN_IN) / wire
    # Results come back through the scheduler: twice on the wires.
    back_bytes = 16.0 * data.p
    sums = sum(math.ceil(rows / FAN_IN**level) for level in range(1, levels + 1))
    n_tasks = chunks + rows + columns * sums
    trips = machine.trip_s
    return PassCost(
        read, send, reduce, back_bytes / wire, n_tasks * machine.task_s + trips,
        sent, reduced, back_bytes,
    )  # fmt: skip


def refit_flops(data: Data, active: int, passes: int, newton: int = 10) -> float:
    """Return the flops of all re-fits: growing Gram matrices, and Newton steps with each."""
    column = data.n if data.per_row is None else data.n * data.per_row / data.p
    gram = column * active * active
    solves = sum(newton * (active * k / passes) ** 3 / 3 for k in range(1, passes + 1))
    return gram + solves


def fit_seconds(
    data: Data, machine: Machine, layout: Layout, passes: int, active: int
) -> tuple[float, float, float]:
    """Return the seconds of passes, of columns fetched, and of re-fits."""
    one = pass_cost(data, machine, layout)
    column = 8.0 * (data.n if data.per_row is None else data.n * data.per_row / data.p)
    local = layout.workers == 1 and layout.row_chunks * layout.column_chunks == 1
    fetched = column * active / ((machine.read_gb_s if local else machine.network_gb_s) * 1e9)
    refit = refit_flops(data, active, passes) / (machine.gflop_s * 1e9)
    return passes * one.seconds, fetched, refit


def simulate(
    data: Data, machine: Machine, layout: Layout, passes: int, *,
    spread: float = 0.2, hours_to_loss: float = 2000.0, trials: int = 200, seed: int = 0,
) -> np.ndarray:  # fmt: skip
    """Return the seconds of all passes in each trial.

    A pass takes as long as its slowest worker: speeds are lognormal with deviation ``spread``. A
    worker is lost once in ``hours_to_loss``; the others make its chunks again, and go on.
    """
    rng, cost = np.random.default_rng(seed), pass_cost(data, machine, layout)
    share = data.n_bytes / layout.workers
    total = np.zeros(trials)
    for _ in range(passes):
        slowest = np.exp(spread * rng.standard_normal((trials, layout.workers))).max(axis=1)
        seconds = cost.seconds + cost.read_s * (slowest - 1.0)
        lost = rng.poisson(layout.workers * seconds / (3600.0 * hours_to_loss))
        again = share / max(layout.workers - 1, 1) * lost / (machine.remake_gb_s * 1e9)
        total += seconds + again + lost * cost.read_s
    return total


CASES = {
    "laptop, 10^5 x 10^5 float32 in memory": (Data(1e5, 1e5), Machine(read_gb_s=8.0), Layout()),
    "the same on a disk of 2 GB/s": (Data(1e5, 1e5), Machine(read_gb_s=2.0), Layout()),
    "the same, 10 workers": (Data(1e5, 1e5), Machine(), Layout(10, 1, 20)),
    "10^4 people, 10^7 genotypes (two bits), disk": (
        Data(1e4, 1e7, 0.25), Machine(read_gb_s=1.0), Layout(),
    ),
    "10^6 people, 10^7 genotypes (two bits), 100 workers": (
        Data(1e6, 1e7, 0.25), Machine(read_gb_s=1.0), Layout(100, 1, 200),
    ),
    "10^9 x 10^6, 100 entries a row, 1,000 workers by rows": (
        Data(1e9, 1e6, 8.0, 100), Machine(), Layout(1000, 1000, 1),
    ),
    "10^9 x 10^9, 100 entries a row, 1,000 workers by rows": (
        Data(1e9, 1e9, 8.0, 100), Machine(), Layout(1000, 1000, 1),
    ),
    "10^9 x 10^9, 100 entries a row, 1,024 workers, 32 x 32": (
        Data(1e9, 1e9, 8.0, 100), Machine(), Layout(1024, 32, 32),
    ),
}  # fmt: skip


def report(name: str, data: Data, machine: Machine, layout: Layout, passes: int) -> None:
    """Print what a pass and a fit take."""
    cost = pass_cost(data, machine, layout)
    _, fetched, refit = fit_seconds(data, machine, layout, passes, active=100)
    total = simulate(data, machine, layout, passes) + fetched + refit
    low, middle, high = np.quantile(total, [0.05, 0.5, 0.95])
    print(
        f"{name}\n  X {data.n_bytes / 1e9:,.0f} GB; a pass {cost.seconds:.2f} s: read "
        f"{cost.read_s:.2f}, send v {cost.send_s:.2f}, add up {cost.reduce_s:.2f}, scores back "
        f"{cost.back_s:.2f}, tasks {cost.tasks_s:.2f}\n  on the wires {cost.bytes / 1e9:,.2f} GB a "
        f"pass; {passes} passes and 100 columns: {middle:,.0f} s ({low:,.0f} to {high:,.0f}), of "
        f"which columns {fetched:.1f}, re-fits {refit:.1f}"
    )


def cores(counts: list[int], bandwidth: float, n: int = 1000, p: int = 100_000) -> None:
    """Print max(8 n p / B, 32 n p / (c F)) with F measured here, and what was measured."""
    from atomlearn import _kernels

    rng, threads = np.random.default_rng(0), _kernels.max_threads()
    X, V = np.ones((n, p), order="F"), rng.standard_normal((n, 16))

    def least(call: Callable[[], object]) -> tuple[float, float]:
        """Return the least wall time, and the least processor time of all threads together."""
        times = []
        for _ in range(5):
            began, used = time.perf_counter(), time.process_time()
            call()
            times.append((time.perf_counter() - began, time.process_time() - used))
        return min(wall for wall, _ in times), min(processor for _, processor in times)

    one, _ = least(lambda: _kernels.many_dense(X, V[:, :1]))
    many, worked = least(lambda: _kernels.many_dense(X, V))
    # By what processors took: work beside it takes their time, and not their speed.
    flops = 32.0 * n * p / worked
    print(
        f"{n} x {p:,}, {threads} threads: one vector {one:.3f} s ({8e-9 * n * p / one:.1f} GB/s), "
        f"16 vectors {many:.3f} s ({1e-9 * flops:.1f} GFlop/s a core)"
    )
    for count in counts:
        seconds = max(8e-9 * n * p / bandwidth, 32.0 * n * p / (count * flops))
        print(f"{count} cores at {bandwidth:g} GB/s: a reading of 16 vectors {seconds:.4f} s")


def main() -> None:
    """Print the cases, or the one that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float)
    parser.add_argument("--columns", type=float)
    parser.add_argument("--entry-bytes", type=float, help="default: 4, or 8 with --per-row")
    parser.add_argument("--per-row", type=float, help="stored entries of a row of sparse data")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--grid", default="1x1", help="chunks along rows x along columns")
    parser.add_argument("--keep-scores", action="store_true", help="scores stay on the workers")
    parser.add_argument("--read", type=float, default=5.0, help="GB/s of a worker")
    parser.add_argument("--network", type=float, default=1.25, help="GB/s of a machine")
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--cores", type=int, nargs="+", help="tell readings of 16 vectors on them")
    parser.add_argument("--bandwidth", type=float, default=150.0, help="GB/s of their memory")
    given = parser.parse_args()
    if given.cores:
        cores(given.cores, given.bandwidth)
        return
    if given.rows is None or given.columns is None:
        for name, case in CASES.items():
            report(name, *case, given.passes)
        return
    rows, columns = (int(part) for part in given.grid.split("x"))
    size = given.entry_bytes or (4.0 if given.per_row is None else 8.0)
    machine = replace(Machine(), read_gb_s=given.read, network_gb_s=given.network)
    layout = Layout(given.workers, rows, columns, not given.keep_scores)
    data = Data(given.rows, given.columns, size, given.per_row)
    report(f"{given.rows:g} x {given.columns:g}", data, machine, layout, given.passes)


if __name__ == "__main__":
    main()
