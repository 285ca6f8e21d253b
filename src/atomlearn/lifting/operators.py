"""Operators: the gauge whose polar is max_M ||M z||_2 over a list of matrices M."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core import Expansion, Groups, Lift, Partition
from atomlearn.lifting.latent import LiftedNorm


class Operators(LiftedNorm):
    """gauge(w) = inf { sum_M ||u_M||_2 : sum_M M'u_M = w } over a list of matrices M.

    The polar is max_M ||M z||_2 (the structured norms of Maurer and Pontil). The atoms of M are the
    vectors M'u with ||u||_2 <= 1, an ellipsoid around 0. Diagonal 0/1 matrices give latent groups;
    averages over regions, wavelets at one scale or eigenvectors of a graph Laplacian give smooth or
    structured components. Each feature must have a nonzero column in some M.

    Parameters
    ----------
    operators : list of arrays or sparse matrices, each of shape (r_M, n_features)
        The matrices M.

    References
    ----------
    Maurer, Pontil (2012), Structured sparsity and generalization, JMLR 13. [V] section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.Operators([np.eye(3)[:2], np.eye(3)[1:]])  # latent groups {0, 1}, {1, 2}
    >>> round(norm.value(np.array([3.0, 4.0, 0.0])), 6)
    5.0
    """

    def __init__(self, operators: Sequence[Any]) -> None:
        """Store the parameters, which the class documents."""
        self.operators = operators

    def lift(self, n_features: int) -> Lift:
        """Return L = [M_1', M_2', ...] and the group norm with one group for each matrix M.

        Raise ValueError unless each M has ``n_features`` columns and each feature is in some M.
        """
        rows = []
        for number, operator in enumerate(self.operators):
            matrix = sparse.csr_array(operator, dtype=np.float64)
            if matrix.shape[1] != n_features or matrix.shape[0] == 0:
                raise ValueError(
                    f"Operators: operators[{number}] has shape {matrix.shape}, but must have "
                    f"{n_features} columns, one a feature, and at least one row"
                )
            if not np.isfinite(matrix.data).all():
                raise ValueError(f"Operators: operators[{number}] holds a value that is not finite")
            rows.append(matrix)
        if not rows:
            raise ValueError("Operators needs at least one matrix, got none")
        # The gauge of a feature that no matrix sees would be infinite.
        stacked = sparse.vstack(rows, format="csr")
        unseen = np.setdiff1d(np.arange(n_features), stacked.indices[stacked.data != 0])
        if unseen.size:
            raise ValueError(
                f"Operators: no operator sees feature {int(unseen[0])}, so that its gauge would be "
                "infinite; add one, for example a row of the identity"
            )
        labels = np.repeat(np.arange(len(rows)), [matrix.shape[0] for matrix in rows])
        groups = Groups(Partition(labels, len(rows), len(rows)))
        return Lift(Expansion(stacked.T), groups, labels)
