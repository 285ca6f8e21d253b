"""A biobank's whole path: cross-validated lasso over two-bit genotypes that stay in their file.

    python -m benchmarks.biobank --people 60000 --variants 500000 --folder /tmp/biobank [--cold]

makes study.bed (blocks of 50 variants in linkage, see ``genotypes.py``), in small pieces, and
test.bed of other people; age, sex and ten columns that stand for principal components; and a trait:
one variant in 100 has an effect (--causal), half of the variance is genetic, a tenth is of the
covariates.
Then it measures, each in a process of its own:

speed    plain reading of the file, a pass for one vector, and one for 80 (5 folds x 16 levels);
fit      ``AtomicRegressorCV``: 5 folds, 30 levels until the held-out loss rises, covariates free.
         Each reading of the file is one line of readings.csv in the folder; columns read one by
         one are counted in bytes. It is ended by kill -9 half-way and goes on from its checkpoint;
         with --twice it runs again, unharmed, and the coefficients are compared;
ridge    on the same people, by conjugate gradients, told the heritability;

and what is known of the test people: R^2 with the genetic value that the simulation knows, and with
the trait less its covariates. With --cold the system forgets the file before each reading of the
first two.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import AtomicRegressorCV, _kernels, paths
from atomlearn.core.interfaces.forwarding import Forwarding
from atomlearn.designs import Concatenated, PlinkBed, Standardized, as_design
from atomlearn.interfaces import Block, Design, Scores
from atomlearn.solvers import Checkpoint
from benchmarks.genotypes import APART, columns, copies
from benchmarks.harness import Options, Table
from benchmarks.harness.memory import peak_bytes
from benchmarks.harness.options import add_options
from benchmarks.on_disk import read_all

Array = NDArray[np.float64]
HERITABILITY, OF_COVARIATES, FOLDS, LEVELS = 0.5, 0.1, 5, 30


def make(folder: Path, n_people: int, n_test: int, n_variants: int, share: float) -> None:
    """Write both .bed with .bim and .fam, and truth.npz: the trait, its parts, the covariates."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    n_all, cut = n_people + n_test, n_people // 4
    causal = np.sort(rng.choice(n_variants, max(int(n_variants * share), 10), replace=False))
    genetic, sizes = np.zeros(n_all), rng.standard_normal(causal.size).tolist()
    effects = dict(zip(causal.tolist(), sizes, strict=True))
    with (folder / "study.bed").open("wb") as study, (folder / "test.bed").open("wb") as test:
        for stream in (study, test):
            stream.write(b"\x6c\x1b\x01")
        for column, codes in enumerate(columns(n_all, n_variants, rng)):
            content = codes.view(np.uint8)
            study.write(content[:cut].data)
            test.write(content[cut : n_all // 4].data)
            if column in effects:
                x = copies(codes, n_all)
                genetic += effects[column] * (x - x.mean()) / x.std()
    for name, count in (("study", n_people), ("test", n_test)):
        with (folder / f"{name}.bim").open("w") as stream:
            for column in range(n_variants):
                place = APART * (column + 1)
                stream.write(f"{1 + column // 25000}\trs{column}\t0\t{place}\tA\tC\n")
        with (folder / f"{name}.fam").open("w") as stream:
            stream.writelines(f"{row} {row} 0 0 0 -9\n" for row in range(count))
    known = np.column_stack(
        [rng.integers(40, 70, n_all), rng.integers(0, 2, n_all), rng.standard_normal((n_all, 10))]
    )
    shared = scaled(scaled(known) @ rng.standard_normal(known.shape[1]))
    noise = rng.standard_normal(n_all)
    genetic = np.sqrt(HERITABILITY) * scaled(genetic)
    own = genetic + np.sqrt(1.0 - HERITABILITY - OF_COVARIATES) * noise
    y = own + np.sqrt(OF_COVARIATES) * shared
    np.savez(folder / "truth.npz", y=y, own=own, genetic=genetic, covariates=known, people=n_people)


def scaled(values: Array) -> Array:
    """Return columns of mean 0 and variance 1."""
    return (values - values.mean(axis=0)) / values.std(axis=0)


class Watched(Forwarding):
    """A design that writes a line a reading: what was asked, vectors, seconds, GB."""

    def __init__(self, inner: Any, ledger: Path, cold: bool) -> None:
        super().__init__(inner)
        self._ledger, self._cold = ledger, cold
        if cold:
            forgotten(inner.path)

    def note(self, what: str, vectors: int, gb: float, work: Callable[[], Any]) -> Any:
        """Do a reading and keep a line of it."""
        if self._cold and what != "gather":
            forgotten(self.inner.path)
        began, used = time.perf_counter(), time.process_time()
        answer = work()
        line = time.perf_counter() - began, time.process_time() - used
        with self._ledger.open("a") as stream:
            stream.write(f"{what},{vectors},{gb:.3f},{line[0]:.2f},{line[1]:.2f}\n")
        return answer

    @property
    def _gb(self) -> float:
        return float(self.inner.n_bytes) / 1e9

    def scores(self, v: Array) -> Scores:
        return self.note("scores", 1, self._gb, lambda: self.inner.scores(v))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        return self.note("many", V.shape[1], self._gb, lambda: self.inner.scores_many(V))

    def scores_above(self, V: Array, bounds: Array, affine: Any = None) -> Sequence[Scores]:
        def work() -> Sequence[Scores]:
            return self.inner.scores_above(V, bounds, affine)

        return self.note("large", V.shape[1], self._gb, work)

    def predict(self, weights: Array) -> Array:
        return self.note("predict", 1, self._gb, lambda: self.inner.predict(weights))

    def squared_norms(self, curvature: Array | None = None) -> Array:
        return self.note("squares", 1, self._gb, lambda: self.inner.squared_norms(curvature))

    def gather(self, columns: NDArray[np.int64]) -> Block:
        size = columns.size * ((self.shape[0] + 3) // 4) / 1e9
        return self.note("gather", columns.size, size, lambda: self.inner.gather(columns))

    def product(self, W: Array, columns: NDArray[np.int64] | None = None) -> Array:
        if columns is None:
            return self.note("product", W.shape[1], self._gb, lambda: self.inner.product(W))
        size = columns.size * ((self.shape[0] + 3) // 4) / 1e9
        return self.note("gather", columns.size, size, lambda: self.inner.product(W, columns))


def forgotten(path: Path) -> None:
    """Have the system forget a file, so that the next reading is of the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def opened(folder: Path, ledger: Path, cold: bool) -> tuple[Any, Design, Any]:
    """Return genotypes, what the fit is given (covariates last), and truth."""
    truth = dict(np.load(folder / "truth.npz"))
    path = folder / "study.bed"
    began, used = time.perf_counter(), time.process_time()
    if cold:
        forgotten(path)
    bed = PlinkBed(path)
    line = bed.n_bytes / 1e9, time.perf_counter() - began, time.process_time() - used
    with ledger.open("a") as stream:
        stream.write("open,1,{:.3f},{:.2f},{:.2f}\n".format(*line))
    genotypes = Standardized(Watched(bed, ledger, cold))
    known = as_design(scaled(truth["covariates"])[: bed.shape[0]])
    return genotypes, Concatenated([genotypes, known]), truth


def judged(folder: Path, genotypes: Any, weights: Array, truth: Any) -> dict[str, float]:
    """Return R^2 on the test people: with the genetic value, and the trait less covariates."""
    weights = weights * genotypes.factors
    predicted = PlinkBed(folder / "test.bed").predict(weights)
    rest = slice(int(truth["people"]), None)
    return {
        f"r2_{name}": float(np.corrcoef(predicted, truth[key][rest])[0, 1] ** 2)
        for name, key in (("genetic", "genetic"), ("trait", "own"))
    }


def fit(folder: Path, state: Path, cold: bool, tol: float) -> dict[str, Any]:
    """Cross-validate; keep the coefficients beside the checkpoint."""
    began = time.perf_counter()
    ledger = state / "readings.csv"
    genotypes, X, truth = opened(folder, ledger, cold)
    n, p = genotypes.shape
    model = AtomicRegressorCV(
        n_alphas=LEVELS, alpha_ratio=0.1, cv=FOLDS, tol=tol, until=paths.NoImprovement(patience=2),
        unpenalized=list(range(p, X.shape[1])), observers=[Checkpoint(state / "kept", many=True)],
    )  # fmt: skip
    model.fit(X, truth["y"][:n])
    coef = np.asarray(model.coef_).ravel()
    np.savez(state / "model.npz", coef=coef, alpha=model.alpha_)
    known = np.isfinite(model.cv_results_["mean_test_score"])
    return {
        "levels": int(known.sum()),
        "chosen": int(np.searchsorted(-model.alphas_, -model.alpha_)) + 1,
        "passes_fit": model.n_passes_,
        "seconds": time.perf_counter() - began,
        "selected": int(np.count_nonzero(coef[:p])),
        "worst_gap": float(np.nanmax(model.cv_results_["max_relative_gap"])),
        "status": model.status_.name,
        "peak_gb": peak_bytes() / 1e9,
        "objective": float(model.objective_),
        **judged(folder, genotypes, coef[:p], truth),
    }


def ridge(folder: Path, state: Path) -> dict[str, Any]:
    """Ridge on all people and variants, level by the true heritability: conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg

    genotypes, _, truth = opened(folder, state / "readings.csv", False)
    n, p = genotypes.shape
    own = np.column_stack([np.ones(n), scaled(truth["covariates"])[:n]])
    Q = np.linalg.qr(own)[0]

    def apart(v: Array) -> Array:
        return v - Q @ (Q.T @ v)

    level = p * (1.0 - HERITABILITY - OF_COVARIATES) / HERITABILITY

    def product(v: Array) -> Array:
        z = genotypes.scores(apart(v)).full()
        return apart(genotypes.predict(z)) + level * v

    steps: list[int] = []
    target = apart(truth["y"][:n])
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    dual, code = cg(operator, target, rtol=1e-3, maxiter=50, callback=lambda _: steps.append(1))
    weights = genotypes.scores(apart(dual)).full()
    found = judged(folder, genotypes, weights, truth)
    return {"steps": len(steps), "code": code, "peak_gb": peak_bytes() / 1e9, **found}


def speed(folder: Path, cold: bool) -> dict[str, Any]:
    """Seconds of reading alone, of a pass for one vector and for 80, on as many threads each."""
    path, rng = folder / "study.bed", np.random.default_rng(0)
    design = Standardized(PlinkBed(path))
    n = design.shape[0]
    V = rng.standard_normal((n, 16 * FOLDS))
    V -= V.mean(axis=0)
    bounds = np.full(V.shape[1], 4.0 * np.sqrt(n))
    ways = {
        "read": lambda: read_all(path, _kernels.max_threads()),
        "one": lambda: design.scores(V[:, 0].copy()),
        "eighty": lambda: design.scores_above(V, bounds),
    }
    found: dict[str, Any] = {"gb": design.design.n_bytes / 1e9, "threads": _kernels.max_threads()}
    for name, way in ways.items():
        for word in ("cold", "warm") if cold else ("warm",):
            if word == "cold":
                forgotten(path)
            began, used = time.perf_counter(), time.process_time()
            way()
            found[f"{name}_{word}"] = time.perf_counter() - began
            found[f"{name}_{word}_cpu"] = time.process_time() - used
    return found


def readings(state: Path) -> dict[str, Any]:
    """Return what the ledger says: readings of the whole file, and columns read one by one."""
    with (state / "readings.csv").open() as stream:
        lines = list(csv.reader(stream))
    whole = [line for line in lines if line[0] != "gather"]
    alone = [line for line in lines if line[0] == "gather"]
    many = [float(line[3]) for line in whole if int(line[1]) > 40]
    one = [float(line[3]) for line in whole if int(line[1]) == 1]
    return {
        "readings": len(whole),
        "seconds_reading": sum(float(line[3]) for line in whole),
        "cpu_reading": sum(float(line[4]) for line in whole),
        "one_s": float(np.median(one)),
        "many_s": float(np.median(many)) if many else float("nan"),
        "vectors": " ".join(line[1] for line in whole),
        "gathered_gb": sum(float(line[2]) for line in alone),
        "gathering_s": sum(float(line[3]) for line in alone),
    }


def child(given: argparse.Namespace, what: str, state: Path, kill_after: int = 0) -> Any:
    """Do a part in a process of its own; None where it was ended after so many readings."""
    state.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.biobank", "--folder", str(given.folder),
               "--part", what, "--state", str(state), "--tol", str(given.tol)]  # fmt: skip
    run = subprocess.Popen(command + ["--cold"] * given.cold, stdout=subprocess.PIPE, text=True)
    ledger = state / "readings.csv"
    while kill_after and run.poll() is None:
        time.sleep(0.02)
        if ledger.exists() and readings(state)["readings"] >= kill_after:
            run.send_signal(signal.SIGKILL)
            run.communicate()
            return None
    told = run.communicate()[0]
    if run.returncode:
        raise RuntimeError(f"{what} ended with code {run.returncode}")
    return json.loads(told.splitlines()[-1])


def study(table: Table, given: argparse.Namespace) -> None:
    """All parts, one row each."""
    folder = given.folder
    for name in ("speed", "killed", "whole", "ridge"):
        shutil.rmtree(folder / name, ignore_errors=True)
    size: dict[str, Any] = {"people": given.people, "variants": given.variants}
    size |= {"causal": given.causal, "cold": given.cold}
    if not (folder / "truth.npz").exists():
        began = time.perf_counter()
        make(folder, given.people, given.test, given.variants, given.causal)
        table.add(part="make", **size, seconds=time.perf_counter() - began)
    table.add(part="speed", **size, **child(given, "speed", folder / "speed"))
    state = folder / "killed"
    if given.kill_after:
        child(given, "fit", state, given.kill_after)
        before = readings(state)["readings"]
        found = child(given, "fit", state)
        table.add(part="fit, killed once", **size, killed_after=before, **found, **readings(state))
    if given.twice or not given.kill_after:
        whole = folder / "whole"
        found = child(given, "fit", whole)
        if given.kill_after:
            first, second = (np.load(f / "model.npz")["coef"] for f in (state, whole))
            found["coef_differs"] = float(np.abs(first - second).max() / np.abs(second).max())
        table.add(part="fit", **size, **found, **readings(whole))
    if not given.no_ridge:
        found = child(given, "ridge", folder / "ridge")
        table.add(part="ridge", **size, **found, **readings(folder / "ridge"))


def main() -> None:
    """Measure, or do one part for the process that does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where data is made, and found again")
    parser.add_argument("--people", type=int)
    parser.add_argument("--test", type=int, default=2_000)
    parser.add_argument("--variants", type=int)
    parser.add_argument("--causal", type=float, default=0.01, help="share with an effect")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--no-ridge", action="store_true")
    parser.add_argument("--kill-after", type=int, default=6)
    parser.add_argument("--part", choices=("speed", "fit", "ridge"), help=argparse.SUPPRESS)
    parser.add_argument("--state", type=Path, help=argparse.SUPPRESS)
    add_options(parser)
    given = parser.parse_args()
    if given.part:
        ways: dict[str, Callable[[], dict[str, Any]]] = {
            "speed": lambda: speed(given.folder, given.cold),
            "fit": lambda: fit(given.folder, given.state, given.cold, given.tol),
            "ridge": lambda: ridge(given.folder, given.state),
        }
        print(json.dumps(ways[given.part]()), flush=True)
        return
    given.people = given.people or (400 if given.smoke else 60_000)
    given.variants = given.variants or (2_000 if given.smoke else 500_000)
    options = Options(given.smoke, given.repeats, given.out)
    with tempfile.TemporaryDirectory() as made, Table("biobank", options) as table:
        given.folder = given.folder or Path(made)
        study(table, given)


if __name__ == "__main__":
    main()
