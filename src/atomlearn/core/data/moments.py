"""from_moments: a quadratic 1/2 w'Qw - b'w as a design and a target, for every norm and form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from atomlearn.core.data.dense import DenseDesign
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import EPS, Array

#: Asymmetry and negative eigenvalues up to this share of the largest entry are taken as rounding
#: errors.
ROUNDING = 1e-10
#: Relative tolerance for rounded input. It bounds the part of b outside of the range of Q. And if
#: two diagonal entries of a Cholesky factor have a smaller ratio, Q counts as singular and is
#: factored by its eigenvectors.
SINGLE = 1e-6


def from_moments(gram: Any, correlation: ArrayLike) -> tuple[DenseDesign | SparseDesign, Array]:
    """Return a design R and a target t whose mean squared loss is 1/2 w'Qw - b'w + c for every w.

    With the m rows of R, Q = R'R / m and b = R't / m. The constant c = 1/2 b'Q^+ b is a part of the
    objective. With Q = X'X / n and b = X'y / n, R and t give the same least squares problem as X
    and y, for the same alpha. This serves summary statistics, and X with many rows.

    Parameters
    ----------
    gram : array (n_features, n_features), sparse array, or list of square arrays
        Q, symmetric and positive semidefinite. A list holds the diagonal blocks of a
        block-diagonal Q, in the order of the columns, such as the correlations of genotypes within
        LD blocks. The blocks of a sparse Q are found from its pattern. Blocks are factored one by
        one, and only their entries are kept.
    correlation : array (n_features,)
        b, in the range of Q.

    Returns
    -------
    design : Design of R, (rank of Q, n_features)
    target : (rank of Q,) float64, t

    Raises
    ------
    ValueError
        If Q is not symmetric or has a negative eigenvalue, or if b has a part outside of the range
        of Q. Then the quadratic has no lower bound, and no design is equivalent to it.

    Notes
    -----
    R has no intercept: pass ``fit_intercept=False`` and compute Q and b from centered columns and
    targets. If Q comes from other samples than b (an LD reference panel), shrink Q first: every b
    is in the range of (1 - s) Q + s I.

    The optimal value of the quadratic without c is ``result.objective - 0.5 * np.mean(target**2)``.
    Duality gaps hold for R and t. R'R / m is Q up to rounding, a few eps ||Q||, and up to negative
    eigenvalues of at most 1e-10 of the largest, which are set to zero. A relative gap is relative
    to the objective with c.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, solve
    >>> X, y = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]), np.array([1.0, 0.0, 2.0])
    >>> R, t = designs.from_moments(X.T @ X / 3, X.T @ y / 3)
    >>> whole = solve(X, y, alpha=0.2, fit_intercept=False)
    >>> moments = solve(R, t, alpha=0.2, fit_intercept=False)
    >>> bool(np.allclose(whole.coef, moments.coef))
    True
    """
    # The diagonal blocks of Q, and the columns of X that they belong to.
    blocks, order = _blocks(gram)
    n_features = sum(block.shape[0] for block in blocks)
    b = np.asarray(correlation, dtype=np.float64)
    if b.shape != (n_features,):
        raise ValueError(
            f"from_moments: correlation must have shape ({n_features},), one number a column of "
            f"gram; got {b.shape}"
        )
    _finite("correlation", b)
    largest = float(np.abs(b).max(initial=0.0))
    # R and t of each block, with R'R = Q and R't = b.
    factors = []
    targets = []
    start = 0
    for number, block in enumerate(blocks):
        columns = order[start : start + block.shape[0]]
        factor, target = _factored(block, b[columns], largest, _name(number, len(blocks)))
        factors.append(factor)
        targets.append(target)
        start += block.shape[0]
    # The mean of a loss divides by m: both are multiplied by sqrt(m).
    t = np.concatenate(targets)
    scale = math.sqrt(t.size)
    t *= scale
    if len(blocks) == 1:
        return DenseDesign(np.asfortranarray(scale * factors[0][:, np.argsort(order)])), t
    matrix = sp.block_diag([sp.coo_array(factor) for factor in factors], format="csc")
    return SparseDesign(sp.csc_array(scale * matrix[:, np.argsort(order)])), t


def _name(number: int, count: int) -> str:
    """Return the name of block ``number`` of ``count`` blocks of Q, for errors."""
    return "gram" if count == 1 else f"block {number} of gram"


def _blocks(gram: Any) -> tuple[list[Array], NDArray[np.int64]]:
    """Return the diagonal blocks of ``gram``, and the columns of all blocks, concatenated.

    gram : as in ``from_moments``. Raises ValueError for a block that is not square.
    """
    if sp.issparse(gram):
        return _components(gram)
    # A list of matrices is a list of blocks; any other list is the rows of one matrix.
    listed = isinstance(gram, list | tuple) and any(np.ndim(block) == 2 for block in gram)
    arrays = [np.asarray(block, dtype=np.float64) for block in (gram if listed else [gram])]
    for number, block in enumerate(arrays):
        name = _name(number, len(arrays))
        if block.ndim != 2 or block.shape[0] != block.shape[1] or not block.size:
            raise ValueError(
                f"from_moments: {name} must be a square array, got shape {block.shape}; pass "
                "X.T @ X, or a list of square diagonal blocks"
            )
    return arrays, np.arange(sum(block.shape[0] for block in arrays))


def _components(gram: Any) -> tuple[list[Array], NDArray[np.int64]]:
    """Return the diagonal blocks of a sparse Q, and the columns of all blocks, concatenated.

    The blocks are the connected components of the pattern of Q = ``gram``.
    """
    matrix = sp.csr_array(gram)
    if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ValueError(f"from_moments: gram must be square, got shape {matrix.shape}")
    _finite("gram", matrix.data)
    count, labels = sp.csgraph.connected_components(matrix, directed=False)
    order = np.argsort(labels, kind="stable").astype(np.int64)
    cuts = np.cumsum(np.bincount(labels, minlength=count))[:-1]
    blocks = [matrix[part][:, part].toarray() for part in np.split(order, cuts)]
    return [np.asarray(block, dtype=np.float64) for block in blocks], order


def _factored(Q: Array, b: Array, largest: float, name: str) -> tuple[Array, Array]:
    """Return R, t with R'R = Q and R't = b; R is triangular if Q is positive definite.

    Q : one block; b : its entries. ``largest`` : the largest |b_j| over all blocks, by which
    rounding in b is judged. ``name`` : the name of the block, for errors.
    """
    _finite(name, Q)
    largest_entry = float(np.abs(Q).max())
    if float(np.abs(Q - Q.T).max()) > ROUNDING * largest_entry:
        raise ValueError(f"from_moments: {name} is not symmetric; pass (Q + Q.T) / 2")
    symmetric = 0.5 * (Q + Q.T)
    # Cholesky's factor, if Q is safely positive definite; else the eigenvectors of Q.
    try:
        R = scipy.linalg.cholesky(symmetric, lower=False, check_finite=False)
        diagonal = np.diag(R)
        if float(diagonal.min()) > SINGLE * float(diagonal.max()):
            return R, scipy.linalg.solve_triangular(R, b, trans="T", check_finite=False)
    except scipy.linalg.LinAlgError:
        pass
    # A negative eigenvalue beyond rounding is refused, and smaller ones are dropped.
    values, vectors = scipy.linalg.eigh(symmetric, check_finite=False)
    if float(values[0]) < -ROUNDING * max(largest_entry, float(values[-1])) * Q.shape[0]:
        raise ValueError(
            f"from_moments: {name} has the eigenvalue {values[0]:.3g}, but must be positive "
            "semidefinite; shrink it, (1 - s) * Q + s * np.eye(len(Q))"
        )
    # Eigenvalues of 0 are computed with errors of this size.
    is_positive = values > 4.0 * b.size * EPS * float(values[-1])
    # R = diag(roots) V' for the eigenvectors V; if Q = 0, the design is one row of zeros.
    roots = np.sqrt(values[is_positive])
    R = roots[:, None] * vectors[:, is_positive].T if is_positive.any() else np.zeros((1, b.size))
    t = (vectors[:, is_positive].T @ b) / roots if is_positive.any() else np.zeros(1)
    # The part of b outside of the range of Q.
    outside = float(np.abs(R.T @ t - b).max())
    if outside > SINGLE * largest:
        raise ValueError(
            f"from_moments: correlation has a part of {outside:.3g} outside of the range of "
            f"{name}, where the quadratic has no lower bound; shrink it, "
            "(1 - s) * Q + s * np.eye(len(Q)), or take both of the same samples"
        )
    return R, t


def _finite(name: str, values: Array) -> None:
    """Raise ValueError if one of the values is not finite; ``name`` is for the message."""
    if not np.isfinite(values).all():
        raise ValueError(f"from_moments: {name} has entries that are not finite; fill or drop them")
