"""The places where we were not clearly first, before and after: one row a place and a tree.

    python -m benchmarks.other_places [NAMES] [--label after] [--again]
    PYTHONPATH=/other/tree/src:tests/path_first python -m benchmarks.other_places --label before

Each place is measured in a process of its own, to the gap its row tells; ``rival_seconds`` is what
it is compared with (l1 for k-support, scikit-learn or adelie at equal accuracy, a pass over the
data). Rows are written as they come to ``benchmarks/results/other_places.csv``; what stands there
under the same label is not run again without ``--again``. Fits below a second are the least of
many, others are run once. All data but the words is made from its seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "benchmarks" / "results" / "other_places.csv"
COLUMNS = ["place", "label", "seconds", "gap", "passes", "rival", "rival_seconds", "note"]
Row = dict[str, Any]
PLACES: dict[str, Callable[[], Row]] = {}


def place(name: str) -> Callable[[Callable[[], Row]], Callable[[], Row]]:
    """Add a place under this name."""

    def add(measure: Callable[[], Row]) -> Callable[[], Row]:
        PLACES[name] = measure
        return measure

    return add


def least(fit: Callable[[], Any], seconds: float = 0.5) -> tuple[float, Any]:
    """Return the least time of at least three fits (one where it takes over a second)."""
    began = time.perf_counter()
    result = fit()
    first = time.perf_counter() - began
    if first > 1.0:
        return first, result
    times, until = [first], time.perf_counter() + seconds
    while len(times) < 4 or time.perf_counter() < until:
        began = time.perf_counter()
        result = fit()
        times.append(time.perf_counter() - began)
    return min(times[1:]), result


def small(n: int, p: int, names: tuple[str, str]) -> Row:
    """Return one fit of ``benchmarks.small`` beside another."""
    from benchmarks.small import data, fits

    warnings.simplefilter("ignore")
    choices = fits(*data(n, p))
    seconds, fitted = least(choices[names[0]])
    against, _ = least(choices[names[1]])
    return {
        "seconds": seconds, "gap": fitted.gap_ / max(abs(fitted.objective_), 1e-300),
        "passes": fitted.n_passes_, "rival": names[1], "rival_seconds": against,
    }  # fmt: skip


for shape in ((200, 10), (500, 50), (2000, 500), (20_000, 200), (100, 5000), (500_000, 100)):
    PLACES[f"k-support {shape[0]} x {shape[1]}"] = lambda shape=shape: small(
        *shape, ("k-support", "lasso")
    )
PLACES["lasso 500 x 50"] = lambda: small(500, 50, ("lasso", "lasso, scikit-learn"))


def solved(fit: Callable[[], Any], **more: Any) -> Row:
    """Return the row of a solve."""
    seconds, result = least(fit)
    used = int(np.count_nonzero(result.coef))
    note = f"{result.status.name}, {used} in use"
    row = {"seconds": seconds, "gap": result.relative_gap, "passes": result.passes, "note": note}
    return row | more


@place("k-chains 300 x 1000 at 0.05")
def chains() -> Row:
    """[V]'s chains of 8 beside adelie's path of ten, each at the loosest setting for 1e-6."""
    from benchmarks.groups.problems import GroupProblem
    from benchmarks.groups.solvers import AdeliePath, Atomlearn, Certified

    problem = GroupProblem("chains", 300, 1000, 0.05)
    X, y, level = problem.data()
    best = problem.objective(X, y, level, Atomlearn(problem, X, y, level, 2).fit(1e-12))
    row: Row = {}
    certified = Certified(problem, X, y, level, 2)
    for solver in (Atomlearn, AdeliePath):
        if not solver.is_installed():
            continue
        entrant = solver(problem, X, y, level, 2)
        for tolerance in solver.tolerances:
            u = entrant.fit(tolerance)
            if problem.objective(X, y, level, np.asarray(u)) / best - 1 <= 1e-6:
                break
        seconds, _ = least(lambda e=entrant, t=tolerance: e.fit(t), 2.0)
        if solver is Atomlearn:
            proved, _ = least(lambda: certified.fit(1e-6), 2.0)
            note = f"1e-6 proved in {1e3 * proved:.3g} ms"
            row = {"seconds": seconds, "gap": tolerance, "note": note}
        else:
            row |= {"rival": "adelie, path of ten", "rival_seconds": seconds}
    return row


def noisy_data(n: int, p: int) -> tuple[Any, Any]:
    """Return groups of 10 with noise of 10% of the signal's size."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, p)))
    w = np.zeros(p)
    for group in rng.choice(p // 10, 20, replace=False):
        w[10 * group : 10 * group + 10] = rng.standard_normal(10)
    signal = X @ w
    return X, signal + 0.1 * np.sqrt(np.mean(signal**2)) * rng.standard_normal(n)


@place("noisy groups 600 x 30,000 at 0.01")
def noisy() -> Row:
    """More columns in use than samples."""
    from atomlearn import norms
    from tests.oracles.sums import solve_sum

    X, y = noisy_data(600, 30_000)
    norm = norms.Groups(np.arange(30_000) // 10)
    level = 0.01 * norm.polar(X.T @ y)
    return solved(lambda: solve_sum(X, y, norm=norm, level=level, tol=1e-6))


@place("AR(0.9) 1000 x 100,000 at 0.003")
def correlated() -> Row:
    """Columns not standardized, a target that is mostly noise, k = 100."""
    from atomlearn import norms
    from atomlearn.datasets import make_correlated
    from tests.oracles.sums import solve_sum

    data = make_correlated(1000, 100_000, rho=0.9, n_true=100, rng=0)
    rng = np.random.default_rng(1)
    scale = np.exp(0.5 * rng.standard_normal(100_000))
    X = np.asfortranarray(data.X * scale)
    y = data.y + 3.0 * float(np.std(data.y)) * rng.standard_normal(1000)
    norm = norms.KSupport(100)
    level = 0.003 * norm.polar(X.T @ y) ** 2 / float(y @ y)
    began = time.perf_counter()
    X.T @ y
    once = time.perf_counter() - began
    return solved(
        lambda: solve_sum(X, y, norm=norm, form="squared", level=level),
        rival="X'v", rival_seconds=once,
    )  # fmt: skip


def weak(k: int) -> Row:
    """[L]: a million columns, the weak level."""
    from atomlearn.solvers import ColumnGeneration
    from benchmarks.ours import Ours
    from benchmarks.paper_l import Bench, Size

    bench = Bench(Size())
    problem = bench.problem(k, 0.003)
    once, _ = bench.pass_seconds(5)
    runs = [Ours("ours", problem, ColumnGeneration()).run() for _ in range(3)]
    best = min(runs, key=lambda run: run.seconds)
    return {
        "seconds": best.seconds, "gap": best.relative_gap, "passes": best.passes,
        "rival": "X'v", "rival_seconds": once,
        "note": f"{best.seconds / once:.1f} pass-times",
    }  # fmt: skip


for k in (2000, 6000, 10_000):
    PLACES[f"[L] weak, k = {k}"] = lambda k=k: weak(k)


@place("select 500 words")
def words() -> Row:
    """``atomlearn select`` on 20 newsgroups, the whole process, seed 0."""
    from benchmarks.real.benchmark import TASKS, _find, _l1, _ours

    task = TASKS[2]
    path = _find(task.file)
    if path is None:
        return {"note": "no data"}
    ours, theirs = _ours(task, path, 0), _l1(task, path, "svc", 0)
    note = f"accuracy {ours['accuracy']:.3f}, theirs {theirs['accuracy']:.3f}"
    return {
        "seconds": ours["seconds"], "rival": "l1-SVM, C known",
        "rival_seconds": theirs["seconds"], "note": note,
    }  # fmt: skip


@place("10^13 pairs")
def pairs() -> Row:
    """[T]'s largest case in shape: 100 of 10^13 products."""
    from benchmarks.implicit import Largest

    return _selected(Largest(1_000_000, 4_590_000, 29, 100).selection(100, 10))


@place("10^13 pairs, five planted")
def few_pairs() -> Row:
    """The same rows with labels that are mostly chance: products of common columns, C = 10."""
    from benchmarks.implicit import Largest

    return _selected(Largest(1_000_000, 4_590_000, 29, 5, True).selection(100, 10, 10.0))


def _selected(made: Row) -> Row:
    note = f"{made['planted_found']} of {made['planted']} found, {made['peak_gb']:.2f} GB"
    return {"seconds": made["seconds"], "passes": made["passes"], "note": note}


@place("a factor on l1, 32 million products")
def factor() -> Row:
    """Scaled(L1()) over products that could be listed, beside plain l1."""
    from scipy import sparse

    from atomlearn import norms
    from atomlearn.designs import Polynomial
    from tests.oracles.sums import solve_sum

    X = sparse.random(2000, 8000, density=0.002, random_state=0, format="csc")
    y, design = np.random.default_rng(0).standard_normal(2000), Polynomial(X)
    level = 0.5 * float(abs(design.scores(y).top(1)[1][0]))
    plain, _ = least(lambda: solve_sum(Polynomial(X), y, level=level))
    norm = norms.Scaled(norms.L1(), 2.0)
    return solved(
        lambda: solve_sum(Polynomial(X), y, norm=norm, level=0.5 * level),
        rival="l1", rival_seconds=plain,
    )  # fmt: skip


@place("three covariates, 360 x 2000, 50 levels to 0.001")
def covariates() -> Row:
    """A lasso path with free columns, beside the same path with all columns penalized."""
    from atomlearn.paths import path

    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((360, 2003)))
    y = X[:, :20].sum(axis=1) + 3.0 * rng.standard_normal(360)
    settings: dict[str, Any] = {"n_alphas": 50, "alpha_ratio": 0.001}
    plain, _ = least(lambda: path(X, y, **settings))
    seconds, found = least(lambda: path(X, y, unpenalized=[0, 1, 2], **settings))
    gap = max(result.relative_gap for result in found.results)
    return {
        "seconds": seconds, "gap": gap, "passes": found.passes,
        "rival": "all penalized", "rival_seconds": plain,
    }  # fmt: skip


@place("stability of a lasso, 100 halves of 500 x 1000")
def stability() -> Row:
    """Which columns the halves select at one level."""
    from atomlearn import AtomicRegressor, StabilitySelector

    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 1000))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(500)
    alpha = 0.2 * float(np.abs(X.T @ (y - y.mean())).max()) / 500
    model = AtomicRegressor(alpha=alpha)
    seconds, _ = least(
        lambda: StabilitySelector(model, n_resamples=100, random_state=0).fit(X, y), 2.0
    )
    return {"seconds": seconds}


@place("Frank-Wolfe with an intercept, 2000 x 300")
def frank_wolfe() -> Row:
    """Pairwise steps for l1-logistic regression, beside the same without an intercept."""
    from atomlearn.solvers import FrankWolfe
    from tests.oracles.sums import solve_sum

    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((2000, 300)))
    y = np.sign(X[:, :5].sum(axis=1) + rng.standard_normal(2000))
    solver, level = FrankWolfe(direction="pairwise"), 0.15 * float(np.abs(X.T @ y).max())

    def fit(intercept: bool) -> Any:
        return solve_sum(X, y, loss="logistic", level=level, solver=solver, fit_intercept=intercept)

    without, _ = least(lambda: fit(False))
    return solved(lambda: fit(True), rival="without", rival_seconds=without)


@place("squared groups, logistic, 100,000 x 50")
def tall() -> Row:
    """Groups of five columns, many samples."""
    from atomlearn import norms
    from tests.oracles.sums import solve_sum

    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((100_000, 50)))
    y = np.sign(X[:, :5].sum(axis=1) + rng.logistic(size=100_000))
    norm = norms.Groups(np.arange(50) // 5)
    return solved(
        lambda: solve_sum(
            X, y, loss="logistic", norm=norm, form="squared", level=1.0, fit_intercept=True
        )
    )


@place("prox, d = 100")
def prox() -> Row:
    """The k-support prox of 100 numbers over several k, with its call, beside the best other."""
    from atomlearn import _kernels

    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(100) for _ in range(1000)]
    others = "two_step", "binary_search", "exhaustive", "box_norm"

    def spent(method: str) -> float:
        def all_inputs() -> None:
            for place, v in enumerate(inputs):
                _kernels.ksupport_prox(v, (1, 10, 50, 90)[place % 4], 1.0, method)

        return least(all_inputs)[0] / len(inputs)

    times = {method: spent(method) for method in others}
    best = min(times, key=lambda name: times[name])
    seconds = spent("scaling")
    return {"seconds": seconds, "rival": best, "rival_seconds": times[best]}


@place("completion, logistic, rank 145")
def completion() -> Row:
    """10,000 x 10,000, 1% observed, at 0.35 of the largest level."""
    from benchmarks.matrices.completion import Bench, Size

    made = Bench(Size(level=0.35), "logistic").ours()
    return {
        "seconds": made["seconds"], "gap": made["relative_gap"], "passes": made["passes"],
        "note": f"{made['ended']}, rank {made['rank']}",
    }  # fmt: skip


def multinomial(n: int, p: int, q: int) -> Row:
    """Several classes with a trace norm over p x q coefficients."""
    from atomlearn import AtomicClassifier, norms

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    W = rng.standard_normal((p, 3)) @ rng.standard_normal((3, q)) / np.sqrt(p)
    y = np.argmax(2.0 * X @ W + rng.gumbel(size=(n, q)), axis=1)
    share = np.eye(q)[y] - np.bincount(y, minlength=q) / n
    alpha = 0.1 * float(np.linalg.norm(X.T @ share, 2)) / n
    seconds, model = least(
        lambda: AtomicClassifier(
            norms.TraceNorm(), multi_class="multinomial", alpha=alpha, time_limit=60
        ).fit(X, y)
    )
    rank = int(np.linalg.matrix_rank(model.coef_, tol=1e-8 * np.abs(model.coef_).max()))
    return {
        "seconds": seconds, "gap": model.gap_ / model.objective_, "passes": model.n_passes_,
        "note": f"{model.status_}, rank {rank}",
    }  # fmt: skip


for sizes in ((300, 50, 10), (1000, 200, 20), (2000, 500, 20)):
    PLACES["multinomial, trace norm {} x {} x {}".format(*sizes)] = lambda s=sizes: multinomial(*s)


def main() -> None:
    """Run what is asked for and not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="beginnings of the names of places")
    parser.add_argument("--label", default="after")
    parser.add_argument("--again", action="store_true", help="measure what stands there anew")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(PLACES[given.one](), default=str))
        return
    rows = list(csv.DictReader(OUT.open())) if OUT.exists() else []
    for name in PLACES:
        if given.names and not any(name.startswith(begin) for begin in given.names):
            continue
        there = [row for row in rows if (row["place"], row["label"]) == (name, given.label)]
        if there and not given.again:
            continue
        command = [sys.executable, "-m", "benchmarks.other_places", "--one", name]
        with tempfile.TemporaryFile("w+") as file:
            code = subprocess.run(command, cwd=ROOT, stdout=file, check=False).returncode
            file.seek(0)
            text = file.read().strip().splitlines()
        if code:
            print(f"{name}: exit code {code}", flush=True)
            continue
        row = {"place": name, "label": given.label} | json.loads(text[-1])
        figures = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
        rows = [row for row in rows if row not in there] + [figures]
        print(figures, flush=True)
        order = list(PLACES)
        rows.sort(key=lambda r: (order.index(r["place"]), r["label"] != "before"))
        with OUT.open("w", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
