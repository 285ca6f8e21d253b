"""LinearMKL: SimpleMKL over blocks of features, its SVMs by LIBLINEAR, as MKL-FGM has them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.simple_mkl import Machine, SimpleMKL

Array = np.ndarray[Any, np.dtype[Any]]


class LinearMKL(SimpleMKL):
    """Fit to blocks of features, (n_blocks, n, block size), and y of -1 and +1.

    The kernel of a block is X_k X_k', so that the SVM at d is that of the columns sqrt(d_k) X_k:
    LIBLINEAR's CD-SVM with the squared hinge, without an intercept ([T] 8.1, footnote 4).
    """

    def _forms(self, signed: Array) -> Array:
        pulled = np.einsum("n,knb->kb", signed, self._blocks())
        return np.asarray((pulled**2).sum(axis=1))

    def _blocks(self) -> Array:
        return np.asarray(self.flat.reshape(len(self.flat), self.y.size, -1))

    def _machine(self, d: Array) -> Machine:
        used = np.flatnonzero(d)
        columns = np.hstack([np.sqrt(d[k]) * self._blocks()[k] for k in used])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own limit of iterations is part of it
            svm = LinearSVC(C=self.C / 2, tol=1e-3, fit_intercept=False).fit(columns, self.y)
        self.machines += 1
        w = svm.coef_.ravel()
        slack = np.maximum(0.0, 1.0 - self.y * (columns @ w))
        value = float(0.5 * w @ w + 0.5 * self.C * slack @ slack)
        return Machine(value, self.C * slack * self.y, 0.0)
