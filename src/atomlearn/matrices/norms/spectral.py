"""Derivatives of functions of eigenvalues and of singular values, for small matrices."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, ProxJacobian, ProxPoint


def singular_jacobian(W: Array, inner: ProxPoint) -> ProxJacobian:
    """Return the derivative of U diag(s) V' -> U diag(g(s)) V' at W, g = ``inner``.

    That of the eigenvalues s, -s and 0 of [0 W; W' 0], whose images are g, -g and 0.
    [Lewis, Sendov 2001; Ding et al. 2018]
    """
    (p, q), m = W.shape, min(W.shape)
    U, s, Vt = np.linalg.svd(W, full_matrices=True)
    rest, signs = np.zeros(abs(p - q)), np.array([1.0, -1.0])
    left = np.hstack([U[:, :m], U[:, :m], np.sqrt(2.0) * U[:, m:], np.zeros((p, q - m))])
    right = np.hstack([np.kron(signs, Vt[:m].T), np.zeros((q, p - m)), np.sqrt(2.0) * Vt[m:].T])
    jacobian = inner.jacobian()
    g, slopes = inner.point, jacobian.diagonal
    mixed = np.pad(0.5 * np.kron(np.outer(signs, signs), jacobian.dense()), (0, rest.size))
    values, images = np.concatenate([s, -s, rest]), np.concatenate([g, -g, rest])
    slopes = np.concatenate([slopes, slopes, rest])
    # Unit vectors are these over sqrt(2); the other half of each factor is the same once more.
    return _derivative(values, images, slopes, mixed, 2.0**-0.25 * left, 2.0**-0.25 * right)


def eigen_jacobian(values: Array, vectors: Array, inner: ProxPoint) -> ProxJacobian:
    """Return the derivative of U diag(l) U' -> U diag(g(l)) U' over symmetric matrices.

    Zero on skew matrices: the map takes the symmetric part first.
    """
    jacobian, positive = inner.jacobian(), values > 0
    mixed = jacobian.dense() * np.outer(positive, positive)
    slopes = jacobian.diagonal * positive
    return _derivative(values, inner.point, slopes, mixed, vectors, vectors)


def _derivative(
    values: Array, images: Array, slopes: Array, mixed: Array, left: Array, right: Array
) -> ProxJacobian:
    """Return the derivative at these eigenvalues as factors over left right' (p, q).

    ``mixed`` : derivatives of all images by all eigenvalues; ``slopes`` : of each by itself. The
    pair u_i u_j' + u_j u_i' moves by (g_i - g_j) / (l_i - l_j), the mean slope where l_i = l_j.
    """
    own, turns = np.linalg.eigh(mixed)
    i, j = np.triu_indices(values.size, 1)
    difference = values[i] - values[j]
    tie = np.abs(difference) <= 1e-12 * np.abs(values).max(initial=0.0)
    mean = 0.5 * (slopes[i] + slopes[j])
    quotients = np.where(tie, mean, (images[i] - images[j]) / np.where(tie, 1.0, difference))
    turning, moving = own > 1e-15, quotients > 1e-15
    i, j = i[moving], j[moving]
    pairs = np.einsum("am,bm->abm", left[:, i], right[:, j])
    pairs += np.einsum("am,bm->abm", left[:, j], right[:, i])
    alone = np.einsum("ai,im,bi->abm", left, turns[:, turning], right)
    factors = np.concatenate([alone, np.sqrt(0.5) * pairs], axis=2)
    coefficients = np.minimum(np.append(own[turning], quotients[moving]), 1.0)
    size = left.shape[0] * right.shape[0]
    return ProxJacobian(np.zeros(size), factors.reshape(size, -1), coefficients)
