"""How often whole paths and cross-validations read the data, where it is large or far away.

wide: group lasso at 2000 x 200,000, latent groups (chains of 4), k-support at 10^6 sparse columns,
ten levels each. ksupport: 5-fold cross-validation of five k and 50 levels. disk: 5-fold
cross-validation of 50 levels over a store three times the address space allowed beyond what an idle
process has, from the cache and from the disk, and the share that `read` of the same bytes would
take. dask: the same over chunks, with
one worker and with two. genotypes: the same over 10,000 x 500,000 genotypes at two bits,
to where the held-out loss rises. shapes:
100 levels to 0.001, 5 folds, of AtomicRegressorCV and of LassoCV at ordinary sizes.

    python -m benchmarks.readings wide ksupport disk dask genotypes shapes --out benchmarks/results
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import AtomicRegressorCV, _kernels, norms, paths
from atomlearn.datasets import make_correlated
from atomlearn.designs import OnDisk, PlinkBed, Standardized
from benchmarks.harness import Options, Table
from benchmarks.harness.options import add_options
from benchmarks.on_disk import best, random_store, read_all
from benchmarks.paths import dense, words


def noisy(signal: Any) -> Any:
    """Return the signal with noise of half its size."""
    rng = np.random.default_rng(1)
    return signal + 0.5 * signal.std() * rng.standard_normal(signal.size)


def wide(table: Table, folder: Path, options: Options) -> None:
    """Paths of ten levels over many columns."""
    n, p = (200, 4000) if options.smoke else (2000, 200_000)
    rng = np.random.default_rng(0)
    X = np.empty((n, p), order="F")
    for column in X.T:
        column[:] = rng.standard_normal(n)
    used = rng.choice(p // 10, 20, replace=False)
    y = noisy(sum(X[:, 10 * g : 10 * g + 10] @ rng.standard_normal(10) for g in used))
    chains = norms.LatentGroups([list(range(k, k + 4)) for k in range(p // 10 - 3)])
    W, spoken = words(400, 5000, 20_000) if options.smoke else words(20_000, 10**6, 4 * 10**6)
    groups = norms.Groups(np.repeat(np.arange(p // 10), 10))
    cases: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("groups of 10", X, y, {"norm": groups, "alpha_ratio": 0.1}),
        ("latent chains of 4", X[:, : p // 10], y, {"norm": chains, "alpha_ratio": 0.3}),
        ("k-support, k = 50", W, noisy(spoken), {"norm": norms.KSupport(50), "form": "squared"}),
    ]
    for name, data, target, how in cases:
        began = time.perf_counter()
        found = paths.path(data, target, n_alphas=10, fit_intercept=False, **how)
        table.add(
            part="wide", what=name, size=f"{data.shape[0]} x {data.shape[1]}", levels=10,
            readings=found.passes, seconds=time.perf_counter() - began,
            worst_gap=found.relative_gaps.max(), selected=int(found.n_selected.max()),
        )  # fmt: skip


def ksupport(table: Table, folder: Path, options: Options) -> None:
    """Five values of k, 50 levels and 5 folds together."""
    X, signal = dense(80, 1000) if options.smoke else dense(1000, 20_000)
    several = [norms.KSupport(k) for k in (5, 10, 20, 50, 100)]
    model = AtomicRegressorCV(several, n_alphas=10 if options.smoke else 50, cv=5, form="squared")
    searched(table, "ksupport", "5 k, 50 levels", model, X, noisy(signal))


def searched(table: Table, part: str, what: str, model: Any, X: Any, y: Any, **more: Any) -> None:
    """Fit a cross-validated model and keep how often it read the data."""
    began = time.perf_counter()
    model.fit(X, y)
    table.add(
        part=part, what=what, size=f"{X.shape[0]} x {X.shape[1]}", levels=model.alphas_.size,
        readings=model.n_passes_, seconds=time.perf_counter() - began,
        worst_gap=float(np.nanmax(model.cv_results_["max_relative_gap"])),
        selected=int(np.count_nonzero(model.coef_)), **more,
    )  # fmt: skip


_LIMITED = """
import resource, sys, time
import numpy as np
from atomlearn import AtomicRegressorCV
from atomlearn.designs import OnDisk
path, extra, levels, cold = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
design = OnDisk(path)
rng = np.random.default_rng(0)
signal = design.gather(np.arange(0, 4000, 100)).predict(np.ones(40))
y = signal + 0.5 * signal.std() * rng.standard_normal(signal.size)
AtomicRegressorCV(n_alphas=3, cv=2).fit(rng.standard_normal((10, 3)), np.arange(10.0))
def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(l for l in lines if l.startswith(key)).split()[1]) * 1024
idle, space = status("VmRSS"), status("VmSize")
resource.setrlimit(resource.RLIMIT_AS, (space + extra, -1))
if cold == "True":
    from benchmarks.readings import forgotten
    once = OnDisk._pass
    OnDisk._pass = lambda self, work: (forgotten(path), once(self, work))[1]
began = time.perf_counter()
model = AtomicRegressorCV(n_alphas=levels, alpha_ratio=0.05, cv=5).fit(design, y)
seconds = time.perf_counter() - began
gap = model.cv_results_["max_relative_gap"].max()
print(seconds, model.n_passes_, idle, status("VmHWM"), np.count_nonzero(model.coef_), gap)
"""


def forgotten(store: Path | str) -> None:
    """Have the system forget the values of a store, so that the next reading is of the disk."""
    with (Path(store) / "values.bin").open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk(table: Table, folder: Path, options: Options) -> None:
    """A cross-validation in a third of the memory that the store takes, cached or not."""
    n, p, levels = (500, 20_000, 10) if options.smoke else (1000, 500_000, 50)
    out = folder / "limited.store"
    if not out.exists():
        out = random_store(folder, n, p)
    size, threads = OnDisk(out).n_bytes, _kernels.max_threads()
    for cold in (False, True):
        run = subprocess.run(
            [sys.executable, "-c", _LIMITED, str(out), str(max(size // 3, 2**28)), str(levels),
             str(cold)],
            capture_output=True, text=True, check=True, env=os.environ | {"MALLOC_ARENA_MAX": "2"},
        )  # fmt: skip
        seconds, count, idle, peak, selected, gap = (float(word) for word in run.stdout.split())
        times = []
        for _ in range(options.times(3)):
            if cold:
                forgotten(out)
            times.append(best(lambda: read_all(out / "values.bin", threads), 1))
        table.add(
            part="disk", what="5-fold lasso, " + ("disk" if cold else "cache"), size=f"{n} x {p}",
            levels=levels, readings=count, seconds=seconds, worst_gap=gap, selected=int(selected),
            gb=size / 1e9, peak_gb=(peak - idle) / 1e9, reading_gb_s=1e-9 * size / min(times),
            share=count * min(times) / seconds,
        )  # fmt: skip


def cluster_of(table: Table, folder: Path, options: Options) -> None:
    """The same search with one worker and with two."""
    from atomlearn.designs import Dask
    from benchmarks.distributed import cluster, made, target

    n, p = (200, 4000) if options.smoke else (2000, 100_000)
    for workers in (1, 2):
        with cluster(workers) as client:
            design = Dask(made(n, p, (n, p // 8)), client=client)
            model = AtomicRegressorCV(n_alphas=50, alpha_ratio=0.05, cv=5)
            searched(table, "dask", f"workers: {workers}", model, design, target(design))


def genotypes(table: Table, folder: Path, options: Options) -> None:
    """A cross-validated lasso over two-bit genotypes."""
    from benchmarks.genotypes import make

    n, p = (300, 3000) if options.smoke else (10_000, 500_000)
    if not (folder / "study.fam").exists():
        make(folder, n, p)
    design = Standardized(PlinkBed(folder / "study.bed"))
    lines = (folder / "study.pheno").read_text().splitlines()[1:]
    y = np.array([float(line.split()[2]) for line in lines])
    until = paths.NoImprovement()
    model = AtomicRegressorCV(n_alphas=50, alpha_ratio=0.2, cv=5, until=until)
    searched(table, "genotypes", "5-fold lasso, two bits, until no improvement", model, design, y)


def shapes(table: Table, folder: Path, options: Options) -> None:
    """Ordinary sizes, against LassoCV."""
    from sklearn.linear_model import LassoCV

    sizes = [(100, 20)] if options.smoke else [(200, 10), (500, 50), (2000, 500), (100, 5000)]
    for n, p in sizes:
        data = make_correlated(n, p, rho=0.5, n_true=5, rng=0)
        models: list[tuple[str, Any]] = [
            ("atomlearn", AtomicRegressorCV(n_alphas=100, alpha_ratio=1e-3, cv=5, tol=1e-4)),
            ("scikit-learn", LassoCV(n_jobs=2)),
            ("scikit-learn, one thread", LassoCV()),
        ]
        for name, model in models:
            fit = partial(model.fit, data.X, data.y)
            fit()
            table.add(
                part="shapes", what=name, size=f"{n} x {p}", levels=100,
                seconds=best(fit, options.times(5)),
            )  # fmt: skip


Part = Callable[[Table, Path, Options], None]
PARTS: dict[str, Part] = {
    "wide": wide, "ksupport": ksupport, "disk": disk, "dask": cluster_of,
    "genotypes": genotypes, "shapes": shapes,
}  # fmt: skip


def main() -> None:
    """Run the parts asked for; each has a file of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--folder", type=Path, help="where data is made, and found again")
    add_options(parser)
    given = parser.parse_args()
    options = Options(given.smoke, given.repeats, given.out)
    for name in given.parts:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made,
            Table(f"readings_{name}", options) as table,
        ):
            PARTS[name](table, given.folder or Path(made), options)


if __name__ == "__main__":
    main()
