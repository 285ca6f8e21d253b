"""Two source trees of this package on the same problems, in turns: is the second one slower?

python benchmarks/base_against_head.py BASE HEAD [--smoke] [--repeats N] [--only NAME ...] [--out F]

BASE and HEAD are checkouts, each with its own built kernels inside its ``src``: a tree without
them loads those of the environment, and both are timed with the same ones. Each problem lives in
two processes, one a tree, which take turns; a ratio is the median time of HEAD over that of BASE,
and passes over the data stand beside it. With --at-most R it ends with exit code 1 where both the
median and the best time of HEAD are more than R times those of BASE. Only public names are used, so
that any two versions can be compared. All data is made from its seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: A problem: set up with the size factor, then a function that is timed and tells its passes.
Timed = Callable[[], float]
ROOT = Path(__file__).parents[1]
PROBLEMS: dict[str, Callable[[float], Timed]] = {}


def problem(make: Callable[[float], Timed]) -> Callable[[float], Timed]:
    """Add a problem under the name of its function."""
    PROBLEMS[make.__name__] = make
    return make


def _solving(X: Any, y: Any, fraction: float, **settings: Any) -> Timed:
    """Return the solve at this fraction of the largest useful level."""
    from atomlearn import solve
    from atomlearn.designs import as_design
    from atomlearn.losses import as_loss
    from atomlearn.norms import as_norm
    from atomlearn.paths import largest_useful_level
    from atomlearn.problem import Problem, Regularizer

    form = settings.get("form", "penalized")
    norm = as_norm(settings.get("norm", "l1"))
    loss = as_loss(settings.get("loss", "squared"))
    built = Problem.build(as_design(X), y, loss, Regularizer(norm, form, 1.0))
    level = fraction * largest_useful_level(built)
    return lambda: solve(X, y, level=level, **settings).passes


@problem
def prox(size: float) -> Timed:
    """Squared and penalized k-support proximal maps."""
    from atomlearn.norms import KSupport

    w = np.random.default_rng(0).standard_normal(int(1e6 * size))
    norm = KSupport(max(1, int(1e4 * size)))

    def run() -> float:
        for step in (0.1, 10.0):
            norm.prox_squared(w, step)
            norm.prox(w, step)
        return 0.0

    return run


@problem
def certificate(size: float) -> Timed:
    """Many small problems of all kinds: what every solve costs beside its products."""
    from atomlearn import norms, solve

    rng = np.random.default_rng(0)
    groups = [range(i, i + 3) for i in range(0, 30, 3)]
    kinds: list[Any] = ["l1", "l2", norms.KSupport(3), norms.Groups(groups)]
    kinds += [norms.Chains(3), norms.OWL(np.linspace(2, 1, 30)), norms.ElasticNetNorm(3)]
    data = [(rng.standard_normal((40, 30)), rng.standard_normal(40)) for _ in range(4)]

    def run() -> float:
        passes = 0.0
        for X, y in data:
            for norm in kinds:
                for loss, target in (("squared", y), ("logistic", np.sign(y))):
                    for form in ("penalized", "squared"):
                        passes += solve(
                            X, target, loss=loss, norm=norm, level=2.0, form=form
                        ).passes
        return passes

    return run


@problem
def paper_l(size: float) -> Timed:
    """[L]: squared k-support logistic regression, strong and weak."""
    from atomlearn.datasets import make_k_support_logistic
    from atomlearn.norms import KSupport

    data = make_k_support_logistic(500, int(200_000 * size), int(2000 * size), seed=0)
    norm = KSupport(int(1000 * size))
    both = [
        _solving(data.X, data.y, fraction, loss="logistic", norm=norm, form="squared")
        for fraction in (0.3, 0.003)
    ]
    return lambda: sum(solve() for solve in both)


@problem
def selection(size: float) -> Timed:
    """[T]: 300 of 4096 features by generation."""
    from atomlearn import FeatureGenerator
    from atomlearn.datasets import make_feature_generation

    n = int(4096 * size)
    data = make_feature_generation(n, n, max(5, int(300 * size)), seed=0)
    model = FeatureGenerator(
        max(5, int(300 * size)), C=10.0, fit_intercept=False, selected_tol=None
    )
    return lambda: float(model.fit(data.X, data.y).n_passes_)


@problem
def lasso_dense(size: float) -> Timed:
    """Lasso, 1000 x 100,000, AR(0.5)."""
    from atomlearn.datasets import make_correlated

    made = make_correlated(1000, int(100_000 * size), rho=0.5, n_true=100, seed=0)
    return _solving(made.X, made.y, 0.1)


@problem
def lasso_sparse(size: float) -> Timed:
    """Lasso and l1-logistic, 20,000 x 500,000, like text."""
    from atomlearn.datasets import make_text_like_sparse

    made = make_text_like_sparse(20_000, int(500_000 * size), seed=0)
    labels = np.where(made.y > np.median(made.y), 1.0, -1.0)
    both = [_solving(made.X, made.y, 0.01), _solving(made.X, labels, 0.02, loss="logistic")]
    return lambda: sum(solve() for solve in both)


@problem
def lasso_path(size: float) -> Timed:
    """A lasso path of 20 levels, 500 x 20,000."""
    from atomlearn.datasets import make_correlated
    from atomlearn.paths import path

    made = make_correlated(500, int(20_000 * size), rho=0.5, n_true=50, seed=0)
    return lambda: path(made.X, made.y, norm="l1", n_levels=20, ratio=0.02).passes


@problem
def search_20(size: float) -> Timed:
    """Cross-validation of a lasso, 1000 x 4000: five folds, 20 levels."""
    return _search(size, 20, "l1")


@problem
def search_50(size: float) -> Timed:
    """The same at 50 levels."""
    return _search(size, 50, "l1")


@problem
def search_ksupport(size: float) -> Timed:
    """Cross-validation of a squared k-support norm, 300 x 2000."""
    from atomlearn.norms import KSupport

    return _search(0.3 * size, 20, KSupport(10), form="squared", p=2000)


def _search(size: float, n_alphas: int, norm: Any, p: int = 4000, **settings: Any) -> Timed:
    """Return a cross-validated fit of 1000 size rows."""
    from atomlearn import AtomicRegressorCV
    from atomlearn.datasets import make_correlated

    made = make_correlated(
        int(1000 * size), int(p * min(1.0, 4 * size)), rho=0.5, n_true=30, seed=0
    )
    model = AtomicRegressorCV(norm, cv=5, n_alphas=n_alphas, **settings)
    return lambda: float(model.fit(made.X, made.y).n_passes_)


@problem
def pairs(size: float) -> Timed:
    """100 of 10^13 pairs: products of 4.5 million sparse columns, 20 of them planted."""
    from scipy import sparse

    from atomlearn import FeatureGenerator

    rng = np.random.default_rng(0)
    n, p = int(20_000 * size), int(4_500_000 * size)
    held = rng.integers(0, p, size=20 * n) ** 2 // p  # a few columns are common, as words are
    X = sparse.csr_matrix((np.ones(20 * n), held, np.arange(0, 20 * n + 1, 20)), shape=(n, p))
    X.sum_duplicates()
    common = np.argsort(-np.bincount(X.indices, minlength=p), kind="stable")[:40]
    both = X[:, common[:20]].multiply(X[:, common[20:]]).toarray()
    y = np.sign(both @ rng.standard_normal(20) + 0.1 * rng.standard_normal(n))
    model = FeatureGenerator(100, features="polynomial", fit_intercept=False)
    return lambda: float(model.fit(X, y).n_passes_)


@problem
def groups(size: float) -> Timed:
    """Group lasso, 1000 x 50,000 in tens."""
    from atomlearn.norms import Groups

    rng = np.random.default_rng(0)
    p = int(50_000 * size) // 10 * 10
    X = np.asfortranarray(rng.standard_normal((1000, p)))
    w = np.zeros(p)
    w[:200] = rng.standard_normal(200)
    y = X @ w + rng.standard_normal(1000)
    return _solving(X, y, 0.1, norm=Groups(np.arange(p) // 10))


@problem
def latent(size: float) -> Timed:
    """Latent chains of eight, 300 x 1000 columns."""
    from atomlearn.norms import Chains

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, int(1000 * size)))
    y = X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(300)
    return _solving(X, y, 0.05, norm=Chains(8))


@problem
def structured(size: float) -> Timed:
    """A weak hierarchy over all interactions of 600 columns."""
    from atomlearn.designs import Polynomial
    from atomlearn.norms import Hierarchy
    from atomlearn.paths import path

    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((500, int(600 * size))))
    y = X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1] + rng.standard_normal(500)
    design = Polynomial.interactions(X)
    return lambda: path(design, y, norm=Hierarchy("weak"), n_levels=5, ratio=0.3, gap=1e-4).passes


@problem
def implicit(size: float) -> Timed:
    """Products of 3000 sparse columns, never formed: l1 at 0.5 of the largest level."""
    from scipy import sparse

    from atomlearn.designs import Polynomial

    rng = np.random.default_rng(0)
    X = sparse.random(2000, int(3000 * size), density=0.02, random_state=0, format="csc")
    y = rng.standard_normal(2000)
    return _solving(Polynomial(X), y, 0.5)


@problem
def completion(size: float) -> Timed:
    """A 3000 x 3000 matrix of rank 10, 3 % seen, under the trace norm."""
    from atomlearn.designs import Entries
    from atomlearn.norms import TraceNorm

    rng = np.random.default_rng(0)
    side = int(3000 * size)
    left, right = rng.standard_normal((2, side, 10))
    flat = np.unique(rng.integers(0, side * side, int(0.03 * side * side)))
    rows, cols = flat // side, flat % side
    y = np.einsum("ij,ij->i", left[rows], right[cols]) + rng.standard_normal(rows.size)
    return _solving(Entries(rows, cols, (side, side)), y, 0.2, norm=TraceNorm(), gap=1e-4)


@problem
def on_disk(size: float) -> Timed:
    """A store of 500 x 100,000 on disk."""
    from atomlearn.datasets import convert
    from atomlearn.designs import OnDisk

    folder = tempfile.TemporaryDirectory()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, int(100_000 * size))).astype(np.float32)
    source = Path(folder.name) / "X.npy"
    np.save(source, X)
    convert(source, Path(folder.name) / "store")
    y = X[:, :10].sum(axis=1) + rng.standard_normal(500)
    solve = _solving(OnDisk(Path(folder.name) / "store"), y, 0.2)

    def run(kept: Any = folder) -> float:
        return solve()

    return run


def serve(name: str, size: float) -> None:
    """Set a problem up, then answer each line of input with the seconds and passes of one run."""
    run = PROBLEMS[name](size)
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        passes = run()
        print(json.dumps([time.perf_counter() - began, passes]), flush=True)


def compare(trees: list[Path], name: str, size: float, repeats: int) -> dict[str, Any]:
    """Return the row of one problem."""
    servers = []
    for tree in trees:
        # Else the finder of an editable install would answer for both trees.
        places = [str(tree.resolve() / "src"), str(ROOT / "tests/path_first")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
        command = [sys.executable, __file__, "--serve", name, "--size", str(size)]
        servers.append(
            subprocess.Popen(
                command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
    for server in servers:
        assert server.stdout is not None
        if server.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name}: a tree could not set the problem up")
    times: list[list[float]] = [[], []]
    passes = [0.0, 0.0]
    for turn in range(repeats):
        for which in ((0, 1), (1, 0))[turn % 2]:
            server = servers[which]
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("\n")
            server.stdin.flush()
            seconds, passes[which] = json.loads(server.stdout.readline())
            times[which].append(seconds)
    for server in servers:
        server.communicate()
    base, head = (float(np.median(some)) for some in times)
    return {
        "problem": name,
        "base_s": round(base, 4),
        "head_s": round(head, 4),
        "ratio": round(head / base, 3),
        "best_ratio": round(min(times[1]) / min(times[0]), 3),
        "base_passes": round(passes[0], 2),
        "head_passes": round(passes[1], 2),
    }


def main() -> None:
    """Compare two trees, or serve one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--smoke", action="store_true", help="a twentieth of the sizes, one run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--at-most", type=float, help="the largest ratio that passes")
    parser.add_argument("--serve")
    parser.add_argument("--size", type=float, default=1.0)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.size)
        return
    if len(given.trees) != 2:
        parser.error("name two trees: BASE HEAD")
    size, repeats = (0.05, 1) if given.smoke else (given.size, given.repeats)
    rows = []
    for name in given.only:
        row = compare(given.trees, name, size, repeats)
        rows.append(row)
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
        if given.out:
            with given.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
                writer.writerows(rows)
    # Both, as a noisy machine spoils one or the other.
    slower = [
        row["problem"]
        for row in rows
        if given.at_most and min(row["ratio"], row["best_ratio"]) > given.at_most
    ]
    if slower:
        sys.exit(f"slower than {given.at_most:g} times the base: {', '.join(slower)}")


if __name__ == "__main__":
    main()
