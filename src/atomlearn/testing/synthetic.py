"""Synthetic problems with known solutions: the designs of the four papers, and two more.

All of them are reproducible from ``rng`` (an int or a ``numpy.random.Generator``), fill X in
place, and never hold a second array of the size of X.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.special import expit
from sklearn.preprocessing import normalize

from atomlearn.core import Array

Seed = int | np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class Synthetic:
    """A simulated problem with its true coefficients.

    Attributes
    ----------
    X : (n_samples, n_features)
        Array in Fortran order, or CSC matrix.
    y : (n_samples,) float64
        Targets; labels -1 and +1 for classification.
    coef : (n_features,) float64
        The true coefficients w.
    intercept : float
        The true intercept b.
    X_validation, y_validation, X_test, y_test : optional
        Further samples, if the experiment has them.
    groups : (n_features,) int64, optional
        The group of each feature.
    covariance : (n_features, n_features), optional
        The covariance of a row of X.
    noise : float
        Standard deviation of y - X w - b.
    """

    X: Any
    y: Array
    coef: Array
    intercept: float = 0.0
    X_validation: Any = None
    y_validation: Array | None = None
    X_test: Any = None
    y_test: Array | None = None
    groups: NDArray[np.int64] | None = None
    covariance: Array | None = None
    noise: float = 0.0


def make_k_support_logistic(
    n: int = 500,
    p: int = 1_000_000,
    n_true: int = 10_000,
    n_groups: int = 20,
    *,
    dtype: DTypeLike = np.float32,
    rng: Seed = 0,
) -> Synthetic:
    """P(y = 1) = sigmoid(w'x), w = (1, ..., 1, 0, ..., 0), rows of X of unit norm.

    The first ``n_true`` features form ``n_groups`` equal groups. Each feature of a group is N(m,
    1), where the mean m belongs to the group and the sample, and is itself N(0, 1); all other
    features are N(0, 1). The paper does not say whether a mean belongs to the sample; if it
    belonged only to the group, w'x would hardly vary.

    Parameters
    ----------
    n, p : int
        Number of samples and features.
    n_true : int
        Number of features with a coefficient.
    n_groups : int
        Number of groups; it divides ``n_true``.
    dtype : dtype
        Type of X.
    rng : int or Generator
        Seed.

    Returns
    -------
    Synthetic

    References
    ----------
    Liu, Yuan, Zhang, Liu, Metaxas (IJCAI 2016), section 4.1, Figure 1.
    """
    if n_true > p or n_true % n_groups:
        raise ValueError(
            f"n_true must be a multiple of n_groups and at most p; received n_true={n_true}, "
            f"n_groups={n_groups}, p={p}"
        )
    rng = np.random.default_rng(rng)
    rng.standard_normal(n_groups)  # unused: it keeps the data of each seed as they were measured
    means = rng.standard_normal((n_groups, n))
    X = _normal_matrix(rng, n, p, dtype)
    true_columns = X[:, :n_true]
    true_columns += np.repeat(means, n_true // n_groups, axis=0).T.astype(X.dtype)
    # Scale the rows to unit norm; the probabilities are those of the scaled rows.
    scale = 1.0 / np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    probability = expit(true_columns.sum(axis=1, dtype=np.float64) * scale)
    X *= scale[:, None].astype(X.dtype)
    sizes = [n_true // n_groups] * n_groups
    groups = np.repeat(np.arange(n_groups + 1), [*sizes, p - n_true])
    y = np.where(rng.random(n) < probability, 1.0, -1.0)
    return Synthetic(X, y, np.repeat([1.0, 0.0], [n_true, p - n_true]), groups=groups)


def make_correlated(
    n: int = 1000,
    p: int = 100_000,
    rho: float = 0.5,
    n_true: int = 100,
    snr: float = 3.0,
    *,
    labels: bool = False,
    dtype: DTypeLike = np.float64,
    rng: Seed = 0,
) -> Synthetic:
    """y = X w + e; x_j = rho x_(j-1) + sqrt(1 - rho^2) e_j, so corr(x_i, x_j) = rho^|i-j|.

    Parameters
    ----------
    n, p : int
        Number of samples and features.
    rho : float
        Correlation of neighbors, in [0, 1).
    n_true : int
        Number of coefficients, +1 or -1, of random features.
    snr : float
        Ratio of ||X w|| to the norm of the noise.
    labels : bool
        Whether y is instead the sign of X w minus its median, without noise. The intercept is then
        minus the median.
    dtype : dtype
        Type of X.
    rng : int or Generator
        Seed.

    Returns
    -------
    Synthetic
    """
    if not 0.0 <= rho < 1.0:
        raise ValueError(f"rho must be in [0, 1); received {rho}")
    rng = np.random.default_rng(rng)
    X = _normal_matrix(rng, n, p, dtype)
    # In place, column by column: each adds a share of its predecessor.
    innovation = X.dtype.type(np.sqrt(1.0 - rho * rho))
    share = X.dtype.type(rho)
    for j in range(1, p):
        X[:, j] *= innovation
        X[:, j] += share * X[:, j - 1]
    coef = np.zeros(p)
    support = _random_numbers(rng, p, n_true)
    coef[support] = rng.choice([-1.0, 1.0], size=n_true)
    return _with_targets(rng, X, coef, support, snr, labels)


def make_zou_hastie(rng: Seed = 0, *, n: int = 50) -> Synthetic:
    """y = 3 sum_(j<=15) x_j + N(0, 1), 40 features, three groups of five about random means.

    Features 1-5, 6-10 and 11-15 form groups. In each sample, the five features of a group are N(m,
    0.01) about a common mean m, which is itself N(0, 1). The variance 0.01 is that of Zou and
    Hastie; the second paper does not repeat it. The other 25 features are N(0, 1). 50 rows are for
    validation and 350 for the test. ``covariance`` is the covariance V of the population, for the
    error (w - w*)' V (w - w*).

    Parameters
    ----------
    rng : int or Generator
        Seed.
    n : int
        Number of training samples.

    Returns
    -------
    Synthetic

    References
    ----------
    Zou, Hastie (2005), section 5, example 4, doi:10.1111/j.1467-9868.2005.00503.x;
    Argyriou, Foygel, Srebro (NIPS 2012), section 5, Table 1.
    """
    rng = np.random.default_rng(rng)
    variance = 0.01
    coef = np.repeat([3.0, 0.0], [15, 25])
    groups = np.repeat(np.arange(28), [5] * 3 + [1] * 25)
    # Each of the first 15 features is its own small deviation plus the mean of its group.
    X = rng.standard_normal((n + 400, coef.size))
    X[:, :15] *= np.sqrt(variance)
    X[:, :15] += np.repeat(rng.standard_normal((len(X), 3)), 5, axis=1)
    y = X @ coef + rng.standard_normal(len(X))
    covariance = (groups[:, None] == groups) + np.diag(np.where(coef > 0, variance, 0.0))
    (X, X_validation, X_test), (y, y_validation, y_test) = (
        np.split(rows, [n, n + 50]) for rows in (X, y)
    )
    return Synthetic(
        X, y, coef, 0.0, X_validation, y_validation, X_test, y_test, groups, covariance, 1.0
    )


def make_feature_generation(
    n: int = 4096,
    p: int = 4096,
    n_true: int = 300,
    n_test: int = 4096,
    *,
    density: float = 1.0,
    shift: float = 0.0,
    group_size: int = 1,
    dtype: DTypeLike = np.float32,
    rng: Seed = 0,
) -> Synthetic:
    """y = sign(X w - shift), X of independent N(0, 1), ``n_true`` random features with w_j != 0.

    Their coefficients are U(0, 1). With ``group_size`` > 1 whole groups of neighbors are chosen,
    and their coefficients are N(0, 1).

    Parameters
    ----------
    n, p : int
        Number of samples and features.
    n_true : int
        Number of features with a coefficient.
    n_test : int
        Number of test samples; 0: none.
    density : float
        Share of the entries of X that are not zero; below 1, X is a CSC matrix.
    shift : float
        Minus the intercept.
    group_size : int
        Number of neighbors that form a group; it divides ``p`` and ``n_true``.
    dtype : dtype
        Type of X.
    rng : int or Generator
        Seed.

    Returns
    -------
    Synthetic

    References
    ----------
    Tan, Tsang, Wang (JMLR 2014), sections 8.2 (Figures 1-4: 4096 x 4096 and 8192 x 65536),
    8.3 (shift 4) and 8.6.1 (4096 x 400000, 1000 true features in groups of 10).
    """
    if p % group_size or n_true % group_size:
        raise ValueError(
            f"p and n_true must be multiples of group_size={group_size}; received p={p}, "
            f"n_true={n_true}"
        )
    if not 0.0 < density <= 1.0:
        raise ValueError(f"density must be in (0, 1]; received {density}")
    rng = np.random.default_rng(rng)
    # Choose groups, then list the features of each.
    chosen = _random_numbers(rng, p // group_size, n_true // group_size)
    support = (chosen[:, None] * group_size + np.arange(group_size)).ravel()
    coef = np.zeros(p)
    coef[support] = rng.random(n_true) if group_size == 1 else rng.standard_normal(n_true)

    def draw(rows: int) -> tuple[Any, Array]:
        """Return X and y of ``rows`` new samples."""
        # The labels are the signs of X w - shift, without noise.
        if density < 1.0:
            normal = partial(rng.standard_normal, dtype=dtype)
            settings: Any = {
                "format": "csc",
                "dtype": dtype,
                "random_state": rng,
                "data_rvs": normal,
            }
            X: Any = sp.random(rows, p, density, **settings)
        else:
            X = _normal_matrix(rng, rows, p, dtype)
        return X, _signs(X[:, support].astype(np.float64) @ coef[support] - shift)

    X, y = draw(n)
    X_test, y_test = draw(n_test) if n_test else (None, None)
    groups = np.arange(p) // group_size if group_size > 1 else None
    return Synthetic(X, y, coef, intercept=-shift, X_test=X_test, y_test=y_test, groups=groups)


def make_text_like_sparse(
    n: int = 20_000,
    p: int = 500_000,
    *,
    words_per_row: int = 100,
    n_true: int = 100,
    n_frequent: int = 5000,
    snr: float = 3.0,
    labels: bool = False,
    dtype: DTypeLike = np.float64,
    rng: Seed = 0,
) -> Synthetic:
    """y = X w + e, X sparse like word counts: popularity of a column ~ (rank + 50)^-0.9.

    X holds the counts of words drawn with replacement, with rows scaled to unit norm, as a CSC
    matrix with 32-bit indices, most popular column first. The coefficients are N(0, 1).

    Parameters
    ----------
    n, p : int
        Number of samples and features.
    words_per_row : int
        Number of words of each sample.
    n_true : int
        Number of features with a coefficient.
    n_frequent : int
        Number of the most popular columns among which these are.
    snr : float
        Ratio of ||X w|| to the norm of the noise.
    labels : bool
        Whether y is instead the sign of X w minus its median, without noise.
    dtype : dtype
        Type of X.
    rng : int or Generator
        Seed.

    Returns
    -------
    Synthetic
    """
    rng = np.random.default_rng(rng)
    popularity = (np.arange(p) + 50.0) ** -0.9
    # Draw all words of all rows at once; equal words of a row are added up in the matrix.
    words = rng.choice(p, n * words_per_row, p=popularity / popularity.sum())
    rows = np.repeat(np.arange(n), words_per_row)
    counts = sp.csc_matrix((np.ones(words.size), (rows, words)), shape=(n, p))
    X: Any = sp.csc_matrix(normalize(counts).astype(dtype))
    coef = np.zeros(p)
    support = _random_numbers(rng, min(n_frequent, p), n_true)
    coef[support] = rng.standard_normal(n_true)
    return _with_targets(rng, X, coef, support, snr, labels)


def _normal_matrix(rng: np.random.Generator, rows: int, p: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a matrix (rows, p) of N(0, 1) in Fortran order, drawn from ``rng`` by columns."""
    return rng.standard_normal((p, rows), dtype=dtype).T  # type: ignore[arg-type]


def _with_targets(
    rng: np.random.Generator,
    X: Any,
    coef: Array,
    support: NDArray[np.int64],
    snr: float,
    labels: bool,
) -> Synthetic:
    """Return the problem of y = X w + e, with random noise e and ||X w|| = snr ||e||.

    ``support`` are the columns with a nonzero coefficient in ``coef``, which is w. With ``labels``,
    y is instead the sign of X w minus its median.
    """
    signal = X[:, support].astype(np.float64) @ coef[support]
    if labels:
        median = float(np.median(signal))
        return Synthetic(X, _signs(signal - median), coef, intercept=-median)
    if not snr > 0.0:
        raise ValueError(f"snr must be positive; received {snr}")
    noise = rng.standard_normal(signal.size)
    scale = float(np.linalg.norm(signal) / (snr * np.linalg.norm(noise)))
    return Synthetic(X, signal + scale * noise, coef, noise=scale)


def _signs(signal: Array) -> Array:
    """Return -1 for each negative entry of ``signal``, else +1."""
    return np.where(signal >= 0.0, 1.0, -1.0)


def _random_numbers(rng: np.random.Generator, total: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` distinct random numbers below ``total`` from ``rng``, increasing."""
    return np.sort(rng.choice(total, size=count, replace=False)).astype(np.int64)
