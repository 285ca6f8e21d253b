"""What the micro benchmarks share: timing, and a CSV that says where it was measured."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

RESULTS = Path(__file__).resolve().parents[1] / "results"


def arguments(description: str) -> argparse.Namespace:
    """Options of every micro benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--repeats", type=int, default=0, help="runs of each (default: chosen)")
    return parser.parse_args()


def seconds(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """Least and median wall time over ``repeats`` runs after one warm-up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {"least_ms": 1e3 * min(times), "median_ms": 1e3 * float(np.median(times))}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def environment() -> dict[str, Any]:
    """Processor, cores, OpenMP threads, and how busy the machine was."""
    openmp = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "openmp"]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": max(openmp, default=1),
        "load": round(os.getloadavg()[0], 1),
        "numpy": np.__version__,
    }


def write(name: str, rows: Iterable[dict[str, Any]]) -> Path:
    """Print the rows as they come and keep them as results/NAME.csv."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    machine = environment()
    with path.open("w", newline="") as file:
        writer = None
        for row in rows:
            whole = {**row, **machine, "load": round(os.getloadavg()[0], 1)}
            if writer is None:
                writer = csv.DictWriter(file, fieldnames=list(whole), lineterminator="\n")
                writer.writeheader()
            writer.writerow(
                {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in whole.items()}
            )
            file.flush()
            print(
                "  ".join(
                    f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()
                ),
                flush=True,
            )
    return path
