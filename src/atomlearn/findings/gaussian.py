"""Gaussian knockoffs: X~ = X - (X - mu) Theta S + noise of covariance 2 S - S Theta S.

mu is the mean and Theta the precision matrix of the columns. Any pair (x_j, x~_j) may then be
swapped without changing the joint covariance. S = s D with a diagonal D and a number s. The joint
covariance is positive semidefinite for s up to some largest number. At that number it is singular,
so that columns could be reconstructed from the others and the knockoffs. So s is a share of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike
from scipy.sparse.linalg import eigsh
from sklearn.covariance import ledoit_wolf_shrinkage

from atomlearn._support import is_whole
from atomlearn.core import Array, as_design, dense_part
from atomlearn.findings.precision import (
    inverse_of,
    scaled_by,
    shrunk,
    sparse_precision,
    standardized,
)

#: Names that ``covariance`` accepts.
COVARIANCES = ("auto", "factors", "sparse_precision", "ledoit_wolf")
#: Maximum number of common factors, ...
MOST_FACTORS = 10
#: ... and minimum ratio of the eigenvalue of the last factor to the next one.
FACTOR_GAP = 1.5
#: The absolute correlation that counts as strong, and the share of columns with a strong
#: correlation up to which they are few. (It is 1/6 for genotypes pruned at 0.9, and 0 for neighbors
#: with correlation 0.5.)
STRONG = 0.7
FEW = 0.05
#: s as a share of its largest value. The s that minimizes the trace of the inverse joint covariance
#: (MVR) is 0.61 to 0.68 of the largest value. That was measured for n x p = 500 x 1000 and
#: 300 x 200, with AR coefficients of 0 to 0.8 or five factors. The power is the same within
#: simulation error.
SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class Knockoffs:
    """A sampler of knockoffs of one matrix, and the covariance estimate it uses.

    Attributes
    ----------
    draw : Callable[[np.random.Generator], Array]
        Function from a generator to (n, p) knockoffs of the standardized columns.
    covariance : str
        Name of the estimator.
    words : str
        Its description.
    s : float
        The number s of S = s D.
    residuals : (n, p) float64
        Residual of each column given all others, X Theta up to a factor per column.
    shared : (n, q) float64
        Common factors (principal components), which a column and its knockoff share; q may be 0.
    imprecise : bool
        Whether the covariance may be so inaccurate that the false discovery rate exceeds its
        bound.
    """

    draw: Callable[[np.random.Generator], Array]
    covariance: str
    words: str
    s: float
    residuals: Array
    shared: Array
    imprecise: bool = False


def gaussian_knockoffs(
    X: ArrayLike, covariance: str | ArrayLike = "auto", rng: int | np.random.Generator | None = None
) -> Array:
    """Return Gaussian model-X knockoffs (n, p) of the columns of X, drawn without y.

    Parameters
    ----------
    X : (n, p) array
    covariance : {"auto", "factors", "sparse_precision", "ledoit_wolf"} or (p, p) array
        The covariance of the columns if it is known, or the name of its estimator, see
        ``KnockoffSelector``.
    rng : int or Generator, optional
        Seed of the noise.

    References
    ----------
    E. Candes, Y. Fan, L. Janson, J. Lv. Panning for gold. JRSS B 80 (2018) 551-577. A. Spector,
    L. Janson. Powerful knockoffs via minimizing reconstructability. Annals of Statistics 50 (2022)
    252-276.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.findings import gaussian_knockoffs
    >>> X = np.random.default_rng(0).standard_normal((200, 30))
    >>> X.shape == gaussian_knockoffs(X, rng=1).shape
    True
    """
    design = as_design(X)
    array = dense_part(design, np.arange(design.shape[1]))
    standard, means, scales = standardized(array)
    knockoffs = knockoffs_of(standard, rescaled(covariance, scales))
    return means + scales * knockoffs.draw(generator(rng))


def rescaled(covariance: Any, scales: Array, transform: Array | None = None) -> Any:
    """Return a covariance matrix (p, p) of raw columns in units of the standardized columns.

    covariance : that matrix, or the name of an estimator, which is returned unchanged. scales :
    (p,) standard deviations of the raw columns. transform : a (p, k) matrix by which the
    standardized columns are multiplied, or None.
    """
    if isinstance(covariance, str):
        return covariance
    values = np.asarray(covariance, dtype=np.float64)
    p = scales.size
    if values.shape != (p, p) or not np.isfinite(values).all():
        raise ValueError(
            f"covariance must be {p} x {p} finite numbers, a row and a column for each column of "
            f"X, got shape {values.shape}" + (" with NaN" if values.shape == (p, p) else "")
        )
    values = values / scales / scales[:, None]
    return values if transform is None else transform.T @ values @ transform


def generator(rng: Any) -> np.random.Generator:
    """Return a random generator: ``rng`` itself, or one from a seed that is mixed with a constant.

    Without mixing, data simulated with the same small seed would contain the same noise as its
    knockoffs.
    """
    if is_whole(rng):
        return np.random.default_rng([int(rng), 0x6B6E6F63])
    return np.random.default_rng(rng)


def knockoffs_of(X: Array, covariance: str | Array = "auto") -> Knockoffs:
    """Return the knockoff sampler of standardized columns X (n, p).

    covariance : a covariance matrix (p, p) of these columns, or the name of an estimator from
    ``COVARIANCES``. Constant columns, whose entries are 0, are their own knockoffs.
    """
    varies = np.flatnonzero(X.any(axis=0))
    # Constant columns have no covariance, so the sampler is that of the other columns.
    varying = X[:, varies]
    if not varies.size:
        knockoffs = Knockoffs(
            lambda rng: varying, "none", "all columns are constant", 0.0, varying, varying[:, :0]
        )
    elif isinstance(covariance, str):
        knockoffs = _estimated(varying, covariance)
    else:
        precision = inverse_of(covariance[np.ix_(varies, varies)])
        knockoffs = _from_precision(varying, precision, "known", "covariance as given")

    def draw(rng: np.random.Generator) -> Array:
        """Return knockoffs of all columns; constant columns are their own knockoffs.

        ``rng`` is the generator of the noise.
        """
        copies = X.copy()
        copies[:, varies] = knockoffs.draw(rng)
        return copies

    all_residuals = np.zeros_like(X)
    all_residuals[:, varies] = knockoffs.residuals
    return replace(knockoffs, draw=draw, residuals=all_residuals)


def _estimated(X: Array, covariance: str) -> Knockoffs:
    """Return the knockoff sampler of X (n, p) for an estimated covariance.

    covariance : name of the estimator, see ``COVARIANCES``. For "auto" and "factors", X is split
    into common factors (principal components) and residuals. The factors stay unchanged; only the
    residuals get knockoffs.
    """
    if covariance not in COVARIANCES:
        raise ValueError(
            f"covariance must be one of {COVARIANCES} or a (p, p) array, got {covariance!r}"
        )
    if covariance not in ("auto", "factors"):
        return _from_neighbors(X, covariance)
    factors = _factors(X)
    if not factors.size:
        return _from_neighbors(X, covariance)
    # X = common part + residuals; the residuals are standardized for their sampler.
    common = factors @ (factors.T @ X) / len(X)
    residual, means, scales = standardized(X - common)
    inner = _from_neighbors(residual, covariance)

    def draw(rng: np.random.Generator) -> Array:
        """Return the common factors, unchanged, plus knockoffs of the residuals.

        ``rng`` is the generator of the noise.
        """
        return common + means + scales * inner.draw(rng)

    description = (
        f"common factors: {factors.shape[1]}; the rest by {inner.covariance.replace('_', ' ')}"
    )
    return Knockoffs(
        draw, "factors", description, inner.s, inner.residuals, factors, inner.imprecise
    )


def _from_neighbors(X: Array, covariance: str) -> Knockoffs:
    """Return the sampler of X (n, p) for a sparse precision matrix or a Ledoit-Wolf covariance.

    covariance : name of the estimator. "auto" takes Ledoit-Wolf if a few neighbors per column do
    not explain the correlations, and warns if that is known to be imprecise.
    """
    if covariance == "ledoit_wolf":
        return _ledoit_wolf(X)
    precision, is_adequate = sparse_precision(X)
    if is_adequate or covariance != "auto":
        words = "precision of each column given the few nearest to it"
        return _from_precision(X, precision, "sparse_precision", words)
    # With far fewer columns than rows, and weak correlations, Ledoit-Wolf is precise enough.
    if X.shape[1] < X.shape[0] / 2 and not _strongly_correlated(X):
        return _ledoit_wolf(X)
    warnings.warn(
        "columns are strongly correlated and their covariance is estimated by Ledoit-Wolf, so the "
        "share of false features of one draw of knockoffs may exceed fdr (0.11 to 0.16 was "
        "measured for 0.1); KnockoffSelector combines ten draws then (n_draws=None), which was "
        'below fdr; give covariance= if it is known, and groups="auto" for near-duplicates',
        UserWarning,
        stacklevel=5,
    )
    return replace(_ledoit_wolf(X), imprecise=True)


def _strongly_correlated(X: Array) -> bool:
    """Return whether over 5 % of the columns of X (n, p) correlate above 0.7 with another column.

    The columns are standardized; correlations count by their absolute values.
    """
    correlations = np.abs(X.T @ X) / len(X)
    np.fill_diagonal(correlations, 0.0)
    return bool(np.mean(correlations.max(axis=0) > STRONG) > FEW)


def _from_precision(X: Array, precision: Any, name: str, words: str) -> Knockoffs:
    """Return the knockoff sampler of X (n, p) for a precision matrix Theta (p, p), dense or sparse.

    name, words : name and description of the covariance estimator. D is the diagonal matrix of
    1 / Theta_jj, the variances of each column given all others. With M = D^1/2 Theta D^1/2, the
    conditional mean of the knockoffs is X (I - s Theta D), and the noise has covariance
    s D^1/2 (2 I - s M) D^1/2.
    """
    root = 1.0 / np.sqrt(precision.diagonal())
    n_columns = root.size
    scaled = scaled_by(precision, root)
    smallest, largest = _eigenvalue_range(scaled)
    if smallest < 1e-3:  # a matrix estimated from few rows may not be positive definite
        shift = 1e-2 - min(smallest, 0.0)
        scaled = shrunk(scaled, shift)  # (M + shift I) / (1 + shift)
        largest = (largest + shift) / (1 + shift)
    # The joint covariance is positive semidefinite up to s = 2 / (the largest eigenvalue of M).
    s = SHARE * 2.0 / largest
    # Columns of X are rows here: products with M then read and write contiguous memory.
    root = root[:, None]
    columns = np.ascontiguousarray(X.T)
    # D Theta X' = D^1/2 M D^-1/2 X'.
    precision_times = scaled.dot(columns / root) * root
    conditional_mean = columns - s * precision_times

    def draw(rng: np.random.Generator) -> Array:
        """Return knockoffs of the columns: the conditional mean plus Gaussian noise.

        The noise is a standard normal matrix times a root of 2 - s M: a Cholesky factor if M is
        dense, a polynomial in M if it is sparse. ``rng`` is the generator of the noise.
        """
        noise = rng.standard_normal(columns.shape)
        if isinstance(scaled, np.ndarray):
            factor = la.cholesky(2.0 * np.eye(n_columns) - s * scaled, lower=True)
            noise = la.blas.dtrmm(1.0, factor, noise, lower=1)
        else:
            noise = _root_times(lambda V: 2.0 * V - s * scaled.dot(V), noise)
        return np.asarray(conditional_mean + np.sqrt(s) * root * noise).T

    return Knockoffs(draw, name, words, float(s), precision_times.T, X[:, :0])


def _eigenvalue_range(matrix: Any) -> tuple[float, float]:
    """Return the smallest and the largest eigenvalue of a symmetric matrix, to about 1% of each."""
    size = matrix.shape[0]
    if size < 20:
        values = la.eigvalsh(matrix @ np.eye(size))
    else:
        # The accuracy of ``eigsh`` is relative, and the smallest eigenvalue may be near 0. So it
        # computes those of (M + I) / 2.
        start = np.random.default_rng(0).standard_normal(size)
        shifted = shrunk(matrix, 1.0)
        values = eigsh(shifted, 2, which="BE", v0=start, tol=1e-2, return_eigenvectors=False)
        values = 2.0 * values - 1.0
    return float(values.min()), float(values.max())


def _root_times(times: Callable[[Array], Array], V: Array) -> Array:
    """Return A^(1/2) V for a symmetric A with spectrum in [2 - 2 SHARE, 2], by Chebyshev expansion.

    times : function V -> A V. The polynomial of degree 8 has an error near 1e-6, far below the
    random noise it is applied to.
    """
    middle = 2.0 - SHARE
    half_width = SHARE
    coefficients = Chebyshev.interpolate(
        np.sqrt, 8, [middle - half_width, middle + half_width]
    ).coef
    # Chebyshev polynomials of B = (A - middle I) / half_width, applied to V:
    # T_0 = V, T_1 = B V, T_{k+1} = 2 B T_k - T_{k-1}.
    previous = V
    current = (times(V) - middle * V) / half_width
    total = coefficients[0] * previous + coefficients[1] * current
    for coefficient in coefficients[2:]:
        previous, current = (
            current,
            2.0 * (times(current) - middle * current) / half_width - previous,
        )
        total += coefficient * current
    return np.asarray(total)


def _ledoit_wolf(X: Array) -> Knockoffs:
    """Return the knockoff sampler of X (n, p) for the Ledoit-Wolf covariance Sigma, with S = s I.

    Sigma = (1 - g) X'X / n + g I, with the share g (``share``) by the formula of Ledoit and Wolf.
    Only the eigenvectors of the smaller Gram matrix are used; no p x p matrix is formed if n < p.
    """
    values, _, eigenvectors = _principal(X)
    share = max(float(ledoit_wolf_shrinkage(X, assume_centered=True)), 1e-3)
    # Columns have variance 1, so the target matrix of the shrinkage is the identity.
    spectrum = (1 - share) * values + share
    flat = share
    # In all directions other than these eigenvectors, the covariance has the eigenvalue g.
    all_eigenvalues = spectrum if spectrum.size == X.shape[1] else np.append(spectrum, flat)
    # 2 S - S Theta S is positive semidefinite for s up to twice the smallest eigenvalue of Sigma.
    s = SHARE * 2.0 * float(all_eigenvalues.min())

    def function_times(on_spectrum: Array, elsewhere: float, V: Array) -> Array:
        """Return f(Sigma) applied to the rows of V (n, p), for a function f of the eigenvalues.

        on_spectrum : (m,) f at the eigenvalues that belong to ``eigenvectors``. elsewhere : f at
        the eigenvalue g of all other directions.
        """
        return elsewhere * V + ((V @ eigenvectors) * (on_spectrum - elsewhere)) @ eigenvectors.T

    inverse_times = function_times(1.0 / spectrum, 1.0 / flat, X)
    conditional_mean = X - s * inverse_times

    def draw(rng: np.random.Generator) -> Array:
        """Return the conditional mean plus noise of covariance 2 S - S Theta S.

        ``rng`` is the generator of the noise.
        """
        # A root of the noise covariance: its eigenvalues are 2 s - s^2 / (eigenvalue of Sigma).
        roots = [np.sqrt(np.maximum(2 * s - s**2 / value, 0.0)) for value in (spectrum, flat)]
        noise = function_times(roots[0], float(roots[1]), rng.standard_normal(X.shape))
        return conditional_mean + noise

    words = f"Ledoit-Wolf: {100 * share:.0f}% of the identity, since few neighbors a column do not "
    words += "explain the correlations"
    return Knockoffs(draw, "ledoit_wolf", words, s, inverse_times, X[:, :0])


def _principal(X: Array, count: int | None = None) -> tuple[Array, Array, Array]:
    """Return the nonzero eigenvalues of X'X / n, decreasing, with left and right singular vectors.

    X : (n, p). count : the number of leading eigenvalues to compute, all by default. They are
    computed from the smaller one of the Gram matrices X X' and X'X. Shapes: (m,), (n, m) and (p,
    m).
    """
    n_rows, n_columns = X.shape
    # Both Gram matrices have the same nonzero eigenvalues.
    wide = n_rows <= n_columns
    gram = la.blas.dsyrk(1.0, np.asfortranarray(X if wide else X.T), lower=1)  # the lower half
    size = len(gram)
    index_range = None if count is None else (max(size - count, 0), size - 1)
    values, vectors = la.eigh(gram, subset_by_index=index_range)
    keep = np.flatnonzero(values > 1e-10 * max(values[-1], 1e-300))[::-1]
    values = values[keep]
    vectors = vectors[:, keep]
    other = (X.T if wide else X) @ vectors / np.sqrt(values)
    left, right = (vectors, other) if wide else (other, vectors)
    return np.asarray(values / n_rows), left, right


def _factors(X: Array) -> Array:
    """Return the common factors (n, q) of X (n, p): leading principal components, of variance 1.

    Only eigenvalues above that of pure noise count. q maximizes the ratio of an eigenvalue to the
    next one, if that ratio is at least FACTOR_GAP; else q = 0.
    """
    n_rows, n_columns = X.shape
    limit = min(MOST_FACTORS, n_rows // 10, n_columns // 10)
    values, vectors, _ = _principal(X, limit + 1)
    limit = min(limit, values.size - 1)
    if limit < 1:
        return X[:, :0]
    # The Marchenko-Pastur edge: the largest eigenvalue of pure noise.
    is_above = values[:limit] > (1 + np.sqrt(n_columns / n_rows)) ** 2
    ratios = np.where(is_above, values[:limit] / np.maximum(values[1 : limit + 1], 1e-300), 0.0)
    n_factors = int(np.argmax(ratios)) + 1 if ratios.max(initial=0.0) >= FACTOR_GAP else 0
    return np.asarray(np.sqrt(n_rows) * vectors[:, :n_factors])
