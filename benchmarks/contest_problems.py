"""The problems that contests are run on: each headline of the scoreboard, small or as it is.

A problem is set up with a factor on its size, and becomes a function that is timed and tells its
passes over the data. Where it has a target, the target is planted, and as ``NAME_noise`` it is
noise that no column explains: there the way to the first columns is another one, and slower ways
are not seen on planted targets. Only public names are used, so that other versions can be compared,
and all data is made from its seed.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

#: A problem: set up with the size factor, then a function that is timed and tells its passes.
Timed = Callable[[], float]
PROBLEMS: dict[str, Callable[[float], Timed]] = {}


def problem(make: Callable[..., Timed]) -> Callable[..., Timed]:
    """Add a problem under the name of its function, and with noise where it can have it."""
    PROBLEMS[make.__name__] = make
    if "noise" in inspect.signature(make).parameters:
        PROBLEMS[f"{make.__name__}_noise"] = partial(make, noise=True)
    return make


def _target(y: Any, noise: bool) -> Any:
    """Return the planted target, or its values in another order: noise of the same kind."""
    return np.random.default_rng(1).permutation(y) if noise else y


def _solving(X: Any, y: Any, fraction: float, **settings: Any) -> Timed:
    """Return the solve at this fraction of the largest useful level."""
    from atomlearn.core import as_norm
    from atomlearn.designs import as_design
    from atomlearn.losses import as_loss
    from atomlearn.paths import largest_useful_alpha
    from atomlearn.problem import Problem, Regularizer
    from tests.oracles.sums import solve_sum

    form = settings.get("form", "penalized")
    norm = as_norm(settings.get("norm", "l1"))
    loss = as_loss(settings.get("loss", "squared"))
    built = Problem.build(as_design(X), y, loss, Regularizer(norm, form, 1.0))
    level = fraction * largest_useful_alpha(built)
    return lambda: solve_sum(X, y, level=level, **settings).passes


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
    from atomlearn import norms
    from tests.oracles.sums import solve_sum

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
                        passes += solve_sum(
                            X, target, loss=loss, norm=norm, level=2.0, form=form
                        ).passes
        return passes

    return run


@problem
def paper_l(size: float, noise: bool = False) -> Timed:
    """[L]: squared k-support logistic regression, strong and weak."""
    from atomlearn.norms import KSupport
    from atomlearn.testing.synthetic import make_k_support_logistic

    data = make_k_support_logistic(500, int(200_000 * size), int(2000 * size), rng=0)
    norm, y = KSupport(int(1000 * size)), _target(data.y, noise)
    both = [
        _solving(data.X, y, fraction, loss="logistic", norm=norm, form="squared")
        for fraction in (0.3, 0.003)
    ]
    return lambda: sum(solve_sum() for solve_sum in both)


@problem
def selection(size: float, noise: bool = False) -> Timed:
    """[T]: 300 of 4096 features by generation."""
    from atomlearn import FeatureGenerator
    from atomlearn.datasets import make_feature_generation

    n = int(4096 * size)
    data = make_feature_generation(n, n, max(5, int(300 * size)), rng=0)
    model = FeatureGenerator(
        max(5, int(300 * size)), C=10.0, fit_intercept=False, selected_tol=None, standardize=True
    )
    y = _target(data.y, noise)
    return lambda: float(model.fit(data.X, y).n_passes_)


@problem
def lasso_dense(size: float, noise: bool = False) -> Timed:
    """Lasso, 1000 x 100,000, AR(0.5)."""
    from atomlearn.datasets import make_correlated

    made = make_correlated(1000, int(100_000 * size), rho=0.5, n_true=100, rng=0)
    return _solving(made.X, _target(made.y, noise), 0.1)


@problem
def lasso_sparse(size: float, noise: bool = False) -> Timed:
    """Lasso and l1-logistic, 20,000 x 500,000, like text."""
    from atomlearn.datasets import make_text_like_sparse

    made = make_text_like_sparse(20_000, int(500_000 * size), rng=0)
    y = _target(made.y, noise)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    near = 20.0 if noise else 1.0  # nearer to zero noise is interpolated, which takes minutes
    both = [
        _solving(made.X, y, 0.01 * near),
        _solving(made.X, labels, 0.02 * near, loss="logistic"),
    ]
    return lambda: sum(solve_sum() for solve_sum in both)


@problem
def lasso_path(size: float, noise: bool = False) -> Timed:
    """A lasso path of 20 levels, 500 x 20,000."""
    from atomlearn.datasets import make_correlated
    from atomlearn.paths import path

    made = make_correlated(500, int(20_000 * size), rho=0.5, n_true=50, rng=0)
    y = _target(made.y, noise)
    return lambda: (
        path(made.X, y, norm="l1", n_alphas=20, alpha_ratio=0.02, fit_intercept=False).passes
    )


@problem
def search_20(size: float, noise: bool = False) -> Timed:
    """Cross-validation of a lasso, 1000 x 4000: five folds, 20 levels."""
    return _search(size, 20, "l1", noise)


@problem
def search_50(size: float, noise: bool = False) -> Timed:
    """The same at 50 levels."""
    return _search(size, 50, "l1", noise)


@problem
def search_ksupport(size: float, noise: bool = False) -> Timed:
    """Cross-validation of a squared k-support norm, 300 x 2000."""
    from atomlearn.norms import KSupport

    return _search(0.3 * size, 20, KSupport(10), noise, p=2000, form="squared")


def _search(
    size: float, n_alphas: int, norm: Any, noise: bool, p: int = 4000, **settings: Any
) -> Timed:
    """Return a cross-validated fit of 1000 size rows."""
    from atomlearn import AtomicRegressorCV
    from atomlearn.datasets import make_correlated

    made = make_correlated(int(1000 * size), int(p * min(1.0, 4 * size)), rho=0.5, n_true=30, rng=0)
    model = AtomicRegressorCV(norm, cv=5, n_alphas=n_alphas, **settings)
    y = _target(made.y, noise)
    return lambda: float(model.fit(made.X, y).n_passes_)


@problem
def pairs(size: float, noise: bool = False) -> Timed:
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
    planted = np.sign(both @ rng.standard_normal(20) + 0.1 * rng.standard_normal(n))
    y = _target(planted, noise)
    model = FeatureGenerator(
        100, C=10.0, features="polynomial", fit_intercept=False, standardize=True
    )
    return lambda: float(model.fit(X, y).n_passes_)


@problem
def groups(size: float, noise: bool = False) -> Timed:
    """Group lasso, 1000 x 50,000 in tens."""
    from atomlearn.norms import Groups

    rng = np.random.default_rng(0)
    p = int(50_000 * size) // 10 * 10
    X = np.asfortranarray(rng.standard_normal((1000, p)))
    w = np.zeros(p)
    w[:200] = rng.standard_normal(200)
    y = _target(X @ w + rng.standard_normal(1000), noise)
    return _solving(X, y, 0.5 if noise else 0.1, norm=Groups(np.arange(p) // 10))


@problem
def latent(size: float, noise: bool = False) -> Timed:
    """Latent chains of eight, 300 x 1000 columns."""
    from atomlearn.norms import Chains

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, int(1000 * size)))
    y = X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(300)
    return _solving(X, _target(y, noise), 0.05, norm=Chains(8))


@problem
def structured(size: float, noise: bool = False) -> Timed:
    """A weak hierarchy over all interactions of 600 columns."""
    from atomlearn.designs import Polynomial
    from atomlearn.norms import Hierarchy
    from atomlearn.paths import path

    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((500, int(600 * size))))
    y = X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1] + rng.standard_normal(500)
    design, y = Polynomial.interactions(X), _target(y, noise)
    return lambda: (
        path(
            design,
            y,
            norm=Hierarchy("weak"),
            n_alphas=5,
            alpha_ratio=0.3,
            tol=1e-4,
            fit_intercept=False,
        ).passes
    )


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
def completion(size: float, noise: bool = False) -> Timed:
    """A 3000 x 3000 matrix of rank 10, 3 % seen, under the trace norm."""
    from atomlearn.designs import Entries
    from atomlearn.norms import TraceNorm

    rng = np.random.default_rng(0)
    side = int(3000 * size)
    left, right = rng.standard_normal((2, side, 10))
    flat = np.unique(rng.integers(0, side * side, int(0.03 * side * side)))
    rows, cols = flat // side, flat % side
    y = np.einsum("ij,ij->i", left[rows], right[cols]) + rng.standard_normal(rows.size)
    seen = Entries(rows, cols, (side, side))
    return _solving(seen, _target(y, noise), 0.2, norm=TraceNorm(), tol=1e-4)


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
    solve_sum = _solving(OnDisk(Path(folder.name) / "store"), y, 0.2)

    def run(kept: Any = folder) -> float:
        return solve_sum()

    return run


@problem
def correlated(size: float, noise: bool = False) -> Timed:
    """Squared k-support regression over columns that correlate by 0.9."""
    from atomlearn.datasets import make_correlated
    from atomlearn.norms import KSupport

    made = make_correlated(500, int(20_000 * size), rho=0.9, n_true=100, rng=0)
    norm, y = KSupport(int(500 * size)), _target(made.y, noise)
    return _solving(made.X, y, 0.3, norm=norm, form="squared")


@problem
def paper_v(size: float, noise: bool = False) -> Timed:
    """[V], figure 3: latent chains under a bound on their norm."""
    from atomlearn.norms import Chains
    from tests.oracles.sums import solve_sum

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, int(1000 * size)))
    y = _target(X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(300), noise)
    return lambda: solve_sum(X, y, norm=Chains(8), form="constrained", radius=3.0, tol=1e-8).passes


@problem
def matrix_pursuit(size: float, noise: bool = False) -> Timed:
    """[L] 4.2: a matrix of low rank under the squared (k, q)-trace norm, approximated."""
    from atomlearn import MatrixPursuit

    X = _low_rank(int(1000 * size), noise)
    model = MatrixPursuit(alpha=5.0 / X.size)
    return lambda: float(model.fit(X).n_passes_)


@problem
def sparse_pca(size: float, noise: bool = False) -> Timed:
    """[V], figure 7: sparse components of a 150 x 150 covariance, five blocks of ten."""
    from atomlearn.designs import Identity
    from atomlearn.norms import SparsePSD
    from tests.oracles.sums import solve_sum

    rng, p, k = np.random.default_rng(0), int(150 * size), max(2, int(10 * size))
    C = np.triu(0.3 * rng.standard_normal((p, p)))
    C += np.triu(C, 1).T
    for first in () if noise else range(0, 5 * (k - k // 3), k - k // 3):
        C[first : first + k, first : first + k] += 1.0
    norm = SparsePSD(k, (p, p))
    return lambda: solve_sum(Identity((p, p)), C.ravel(), norm=norm, level=0.4 * k, tol=1e-4).passes


@problem
def robust_pca(size: float, noise: bool = False) -> Timed:
    """A matrix as one of low rank and a sparse one."""
    from atomlearn import SparseLowRank

    X = _low_rank(int(300 * size), noise)
    model = SparseLowRank()
    return lambda: float(model.fit(X).n_passes_)


def _low_rank(side: int, noise: bool) -> Any:
    """Return a matrix of rank 5 with noise and 5 % of outliers, its entries in another order."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, side, 5))
    M = left @ right.T + 0.1 * rng.standard_normal((side, side))
    M[rng.random(M.shape) < 0.05] += 10.0
    return _target(M.ravel(), noise).reshape(M.shape)
