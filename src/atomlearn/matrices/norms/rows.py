"""RowGroups: norms of the rows of a matrix, which select features for all tasks together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import L1, Columns, Groups, KSupport, Norm, Parameters, Partition, Scores
from atomlearn.matrices.scores import Shape, agreed_shape, check_tensor_shape


class RowGroups(Parameters, Norm):
    """Group norm of the rows (the l2,1 norm): gauge(W) = sum_j ||W_j||_2, W_j row j of W (p, q).

    The polar (dual norm) of scores Z is max_j ||Z_j||_2. A row contains the coefficients of one
    feature for all tasks (or classes), so that features are selected jointly for all tasks. With
    ``k``, it is the k-support norm of the row norms, whose polar is the l2 norm of the k largest
    ||Z_j||_2. ``on`` returns the equivalent ``Groups`` or ``KSupport``. [Obozinski, Taskar, Jordan
    2010, doi:10.1007/s11222-008-9111-x]

    Parameters
    ----------
    k : int, optional
        Number of rows in an atom (k-support norm). None: the group lasso, as for k = 1.
    shape : (p, q), optional
        Shape of W; None: that of the design.

    References
    ----------
    Obozinski, Taskar, Jordan 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.RowGroups(shape=(2, 2)).value(np.array([3.0, 4.0, 0.0, 2.0]))
    7.0
    """

    def __init__(self, k: int | None = None, shape: Any = None) -> None:
        self.k = k
        self.shape = shape

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """(p, q), or () if it is not known yet."""
        return () if self.shape is None else tuple(self.shape)

    def on(self, n_features: int, shape: Shape | None = None) -> Norm:
        """Return the equivalent norm with the rows as groups, for a matrix of this shape.

        ``n_features`` is the number p q of entries. Raise ValueError if no shape is known.
        """
        own_shape = None if self.shape is None else check_tensor_shape("RowGroups", self.shape)
        own_shape = agreed_shape(self, own_shape, shape)
        if own_shape is None or len(own_shape) != 2:
            raise ValueError(
                f"{self!r} groups the rows of a matrix, and the columns of this design are none: "
                "pass targets y of shape (n_samples, n_tasks), a design such as designs.Tasks, or "
                "shape=(p, q)"
            )
        # Rows of one entry need no groups.
        if own_shape[1] == 1:
            norm: Norm = L1() if self.k is None else KSupport(self.k)
        else:
            rows = np.repeat(np.arange(own_shape[0], dtype=np.int64), own_shape[1])
            norm = Groups(rows) if self.k is None else KSupport(self.k, rows)
        return norm.on(n_features)

    def value(self, w: NDArray[Any]) -> float:
        """Return the norm of ``w``: a 2-d array, or p q numbers if ``shape`` is known."""
        shape = (np.shape(w)[0], np.shape(w)[1]) if np.ndim(w) == 2 else None
        return self.on(np.size(w), shape).value(np.ravel(w))

    def polar(self, scores: Scores) -> float:
        """Return max_j ||Z_j||_2 for ``scores`` Z, Z_j row j.

        With ``k`` it is the l2 norm of the k largest ||Z_j||_2.
        """
        return self.on(scores.n_columns).polar(scores)

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the entries of the rows j with the largest ||Z_j||_2, for ``scores`` Z.

        The best row is first, and rows are added until there are ``count`` entries.
        """
        return self.on(scores.n_columns).best_columns(scores, count)


def over_tasks(norm: Norm, n_features: int, n_tasks: int) -> Norm:
    """Return a group norm over features as a norm of W (n_features, n_tasks).

    Each group then contains the coefficients of its features for all tasks (whole rows of W). Other
    norms, and norms without groups, are returned unchanged.
    """
    if not isinstance(norm, Groups | KSupport) or norm.groups is None:
        return norm
    # All groups are listed, because there is one weight for each group.
    norm = norm.on(n_features)
    of_features = norm.partition(n_features).all_listed()
    labels = np.repeat(of_features.labels, n_tasks)
    n_groups = of_features.n_groups
    return norm.replaced(groups=Partition(labels, n_groups, n_groups))
