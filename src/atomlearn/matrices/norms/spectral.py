"""Proximal maps of functions of singular values, with their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, ProxJacobian, ProxPoint


def quotients(values: Array, images: Array, slopes: Array) -> Array:
    """Return (g_i - g_j) / (s_i - s_j), the mean slope of i and j where s_i = s_j."""
    difference = values[:, None] - values[None, :]
    rise = images[:, None] - images[None, :]
    tie = np.abs(difference) <= 1e-12 * float(np.abs(values).max(initial=0.0))
    mean = 0.5 * (slopes[:, None] + slopes[None, :])
    return np.where(tie, mean, rise / np.where(tie, 1.0, difference))


def singular_jacobian(W: Array, inner: ProxPoint) -> ProxJacobian:
    """Return the derivative of U diag(s) V' -> U diag(g(s)) V' at W, g = ``inner``.

    In the basis u_i v_j' it is block diagonal: the Jacobian of g on the diagonal, the quotients
    (g_i - g_j)/(s_i - s_j) and (g_i + g_j)/(s_i + s_j) on the symmetric and skew parts of each
    pair, g_i / s_i on what goes beyond the square. [Lewis, Sendov 2001; Ding et al. 2018]
    One factor (p q,) for each coefficient that is not zero: for small matrices.
    """
    p, q = W.shape
    m = min(p, q)
    U, s, Vt = np.linalg.svd(W, full_matrices=True)
    jacobian = inner.jacobian()
    g, top = inner.point, float(s.max(initial=0.0))
    factors: list[Array] = []
    coefficients: list[float] = []

    def add(coefficient: float, factor: Array) -> None:
        if coefficient > 0.0:
            coefficients.append(min(coefficient, 1.0))
            factors.append(factor.reshape(-1))

    eigenvalues, vectors = np.linalg.eigh(jacobian.dense())
    for value, vector in zip(eigenvalues, vectors.T, strict=True):
        if value > 1e-15:
            add(float(value), (U[:, :m] * vector) @ Vt[:m])
    apart = quotients(s, g, jacobian.diagonal)
    total = s[:, None] + s[None, :]
    together = (g[:, None] + g[None, :]) / np.where(total > 0, total, 1.0)
    together = np.where(total > 1e-12 * top, together, apart)
    for i in range(m):
        for j in range(i + 1, m):
            first, second = np.outer(U[:, i], Vt[j]), np.outer(U[:, j], Vt[i])
            add(float(apart[i, j]), (first + second) / np.sqrt(2.0))
            add(float(together[i, j]), (first - second) / np.sqrt(2.0))
    for i in range(m):
        ratio = float(g[i] / s[i]) if s[i] > 0 else float(jacobian.diagonal[i])
        for j in range(m, max(p, q)):
            add(ratio, np.outer(U[:, i], Vt[j]) if q > p else np.outer(U[:, j], Vt[i]))
    return _from_factors(p * q, factors, coefficients)


def eigen_jacobian(values: Array, vectors: Array, inner: ProxPoint) -> ProxJacobian:
    """Return the derivative of U diag(l) U' -> U diag(g(l)) U' over symmetric matrices.

    Zero on skew matrices: the map takes the symmetric part first.
    """
    n = values.size
    jacobian = inner.jacobian()
    factors: list[Array] = []
    coefficients: list[float] = []
    positive = values > 0
    dense = jacobian.dense() * positive[:, None] * positive[None, :]
    for value, vector in zip(*_eigen(dense), strict=True):
        if value > 1e-15:
            coefficients.append(min(float(value), 1.0))
            factors.append(((vectors * vector) @ vectors.T).reshape(-1))
    slopes = jacobian.diagonal * positive
    apart = quotients(values, inner.point, slopes)
    for i in range(n):
        for j in range(i + 1, n):
            if apart[i, j] > 0.0:
                pair = np.outer(vectors[:, i], vectors[:, j])
                coefficients.append(min(float(apart[i, j]), 1.0))
                factors.append(((pair + pair.T) / np.sqrt(2.0)).reshape(-1))
    return _from_factors(n * n, factors, coefficients)


def _eigen(dense: Array) -> tuple[Any, Any]:
    values, vectors = np.linalg.eigh(dense)
    return values, vectors.T


def _from_factors(size: int, factors: list[Array], coefficients: list[float]) -> ProxJacobian:
    if not factors:
        return ProxJacobian(np.zeros(size))
    return ProxJacobian(np.zeros(size), np.column_stack(factors), np.array(coefficients))
