"""What all benchmarks share: options, tables of results, fresh processes, side-by-side runs."""

from benchmarks.harness.machine import libraries, machine
from benchmarks.harness.memory import peak_bytes, reset_peak
from benchmarks.harness.options import Options
from benchmarks.harness.race import Entrant, Outcome, race, solve_outcome
from benchmarks.harness.table import Table
from benchmarks.harness.worker import TimeLimit, Worker

__all__ = [
    "Entrant",
    "Options",
    "Outcome",
    "Table",
    "TimeLimit",
    "Worker",
    "libraries",
    "machine",
    "peak_bytes",
    "race",
    "reset_peak",
    "solve_outcome",
]
