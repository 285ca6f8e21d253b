"""Displays of structure: groups that a model selects, and products of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.data.coefficients import nonzero_coefficients
from atomlearn.core.interfaces import Array
from atomlearn.reports.displays import Display
from atomlearn.reports.structure import bars_on_page


@dataclass
class GroupsDisplay(Display):
    """Size of what each selected group adds: the l2 norm of its coefficients.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, norms, reports
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AtomicRegressor(norms.Groups([[0, 1], [2, 3], [4, 5, 6, 7, 8, 9]]), 0.1).fit(X, y)
    >>> reports.GroupsDisplay.from_estimator(model).names[0]
    'group 1'
    """

    sizes: Array
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        n_groups: int = 30,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the groups of a fitted model: latent parts, terms of a map, or of its norm."""
        check_is_fitted(estimator)
        names, sizes = _group_sizes(estimator)
        order = np.argsort(-sizes, kind="stable")[:n_groups]
        return cls(sizes[order], [names[at] for at in order]).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        places = np.arange(len(self.names))
        self.bars_ = ax.barh(places, self.sizes, **options)
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlabel("size of the coefficients of the group")


def _group_sizes(estimator: Any) -> tuple[list[str], Array]:
    parts = getattr(estimator, "parts_", None)
    if parts and hasattr(parts[0], "columns"):
        names = [part.name or f"group {part.group}" for part in parts]
        return names, np.array([np.linalg.norm(part.weights) for part in parts])
    columns, weights = nonzero_coefficients(estimator.coef_)
    size = np.sqrt(np.sum(weights**2, axis=0))
    map = estimator.feature_map_
    labelled, place = groups_in_use(estimator, columns)
    if labelled:
        names = labelled
    else:
        numbers, place = np.unique(map.term_of(columns), return_inverse=True)
        given = getattr(estimator, "feature_names_in_", None)
        names = map.term_names(numbers, None if given is None else list(given))
    return names, np.sqrt(np.bincount(place, size**2, len(names)))


def groups_in_use(
    estimator: Any, columns: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the groups of some columns and which one each is in, or nothing."""
    map = getattr(estimator, "feature_map_", None)
    norm = getattr(estimator, "norm_", getattr(estimator, "norm", None))
    groups = getattr(norm, "groups", None)
    if map is None or map.unit is not None or groups is None or isinstance(groups, str):
        return [], np.zeros(0, dtype=np.int64)
    labels = norm.parts(int(map.n_columns))[0].labels[columns]  # type: ignore[union-attr]
    numbers, place = np.unique(labels, return_inverse=True)
    return [f"group {number}" for number in numbers], place


def groups_drawn(estimator: Any) -> str:
    """Return a drawing of the size of each selected group, "" where the norm has none."""
    columns, _ = nonzero_coefficients(estimator.coef_)
    parts = getattr(estimator, "parts_", None)
    latent = bool(parts) and hasattr(parts[0], "columns")  # type: ignore[index]
    if not columns.size or not (latent or groups_in_use(estimator, columns)[0]):
        return ""
    labels, sizes = _group_sizes(estimator)
    return bars_on_page(labels, sizes.tolist())


@dataclass
class InteractionsDisplay(Display):
    """Coefficients of products of two columns as a matrix; the diagonal holds squares.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from atomlearn import AtomicRegressor, reports
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AtomicRegressor(alpha=2.0, features="interactions").fit(scale(X), y)
    >>> display = reports.InteractionsDisplay.from_estimator(model)
    >>> display.matrix.shape[0] == len(display.names)
    True
    """

    matrix: Array
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        n_columns: int = 30,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the products that a model with ``features="interactions"`` and its likes selects."""
        check_is_fitted(estimator)
        map = estimator.feature_map_
        if not map.has_pairs:
            raise ValueError(
                'the model has no products of columns; fit one with features="interactions"'
            )
        columns, weights = nonzero_coefficients(estimator.coef_)
        pairs = map.inputs_of(map.term_of(columns))
        two = pairs[:, 1] >= 0
        if not two.any():
            raise ValueError("the model selected no product; lower alpha (the level)")
        # Of several classes the strongest: their sum may be nothing.
        strongest = np.abs(weights[:, two]).argmax(axis=0)
        pairs, size = pairs[two], weights[:, two][strongest, np.arange(strongest.size)]
        total = np.bincount(pairs.ravel(), np.repeat(np.abs(size), 2), map.n_inputs)
        used = np.flatnonzero(total)
        used = np.sort(used[np.argsort(-total[used], kind="stable")[:n_columns]])
        matrix = np.zeros((used.size, used.size))
        for (i, j), value in zip(pairs, size, strict=True):
            if i in used and j in used:
                a, b = np.searchsorted(used, [i, j])
                matrix[a, b] += value
                matrix[b, a] = matrix[a, b]
        given = getattr(estimator, "feature_names_in_", None)
        names = map.named_inputs(None if given is None else list(given))
        return cls(matrix, [names[j] for j in used]).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        largest = float(np.abs(self.matrix).max(initial=0.0)) or 1.0
        scale = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest, **options}
        self.image_ = ax.imshow(self.matrix, **scale)
        ax.figure.colorbar(self.image_, ax=ax, label="coefficient of the product")
        places = np.arange(len(self.names))
        ax.set_xticks(places, self.names, rotation=90)
        ax.set_yticks(places, self.names)
