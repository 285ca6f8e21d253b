"""Displays of structure: groups and latent parts, interactions, and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from atomlearn.core import Array, Groups, Part, is_sparse
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.reports.drawing import (
    MOST_NAMED,
    MOST_POINTS,
    Display,
    label_of,
    names_on,
    signed_colors,
    span_of,
)
from atomlearn.reports.view import objective_of, results_of


@dataclass
class GroupsDisplay(Display):
    """The size of each selected group, which is the l2 norm of its coefficients.

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
    title = "Selected groups"
    about = "How much each group adds: the length of its coefficients."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing on a page; the height grows with the groups."""
        return (5.2, 0.8 + 0.2 * len(self.names))

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Self:
        """Return the display of the largest of these parts, by the l2 norm of their weights."""
        sizes = np.array([np.linalg.norm(part.weights) for part in parts])
        order = np.argsort(-sizes, kind="stable")[:MOST_NAMED]
        return cls(sizes[order], [name_of_part(parts[index]) for index in order])

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw one bar per group.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        self.bars_ = ax.barh(names_on(ax, self.names), self.sizes, **options)
        ax.set_xlabel("size of the coefficients of the group")


def name_of_part(part: Part) -> str:
    """Return the name of the group of a part, or "group" and its number."""
    return part.name or f"group {part.group}"


def has_parts(parts: Any) -> bool:
    """Return whether ``parts`` are latent parts (of an overlapping group norm) of one output."""
    return bool(parts) and isinstance(parts[0], Part)


def selected_groups(model: Any) -> list[Part]:
    """Return the selected groups of a model, [] without groups.

    They are the latent parts of a latent group norm, or the groups of a non-overlapping norm with
    nonzero coefficients. For several outputs the weight of a column is the l2 norm over the
    outputs.
    """
    if not results_of(model):
        return []
    if has_parts(model.parts_):
        return list(model.parts_)
    norm = objective_of(model).get("norm")
    map = model.feature_map_
    if not isinstance(norm, Groups) or isinstance(norm.groups, str) or map.unit is not None:
        return []
    columns, weights = nonzero_coefficients(model.coef_)
    # For several outputs, the size of a column is the l2 norm of its coefficients over them.
    sizes = np.linalg.norm(weights, axis=0)
    # ``parts`` returns the partition of all columns into groups, and the weights of the groups.
    group_labels = norm.parts(map.n_columns)[0].labels[columns]
    return [
        Part(int(label), None, columns[group_labels == label], sizes[group_labels == label])
        for label in np.unique(group_labels)
    ]


@dataclass
class InteractionsDisplay(Display):
    """Coefficients of interactions as a symmetric matrix; the diagonal holds squares.

    ``matrix`` has shape (n, n), and ``names`` are the names of its columns.

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
    title = "Interactions"
    about = (
        "Columns whose products were selected, the strongest ones: blue where the standardized "
        "coefficient of the product is positive, red where it is negative. The diagonal holds "
        "squares."
    )
    size = (5.2, 5.2)

    @classmethod
    def of(cls, factors: Sequence[Sequence[str]], values: ArrayLike) -> Self:
        """Return the display of these products of two columns.

        ``factors`` holds the pair of names of each product, and ``values`` their coefficients.
        """
        sizes = np.asarray(values, dtype=np.float64)
        names, positions = np.unique(np.asarray(factors, dtype=object), return_inverse=True)
        pairs = positions.reshape(-1, 2)
        # The columns with the largest sum of absolute coefficients are shown.
        total = np.bincount(pairs.ravel(), np.repeat(np.abs(sizes), 2))
        strongest = np.sort(np.argsort(-total, kind="stable")[:MOST_NAMED])
        matrix = np.zeros((names.size, names.size))
        # Fill the upper triangle, then copy it to the lower one.
        np.add.at(matrix, tuple(np.sort(pairs).T), sizes)
        matrix += np.triu(matrix, 1).T
        return cls(matrix[np.ix_(strongest, strongest)], names[strongest].tolist())

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the matrix with the names of columns on both axes.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        self.image_ = ax.imshow(self.matrix, **{**signed_colors(self.matrix), **options})
        positions = np.arange(len(self.names))
        names = [label_of(name) for name in self.names]
        ax.set_xticks(positions, names, rotation=90)
        ax.set_yticks(positions, names)
        ax.grid(linewidth=0.3)
        ax.set_title(span_of(self.matrix), fontsize="small")


@dataclass
class MatrixDisplay(Display):
    """A matrix as an image: blue is positive, red is negative.

    ``matrix`` has shape (n, m), ``names`` are the names of its columns or None, and ``caption`` is
    the title of the drawing.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from atomlearn import SparsePCA, reports
    >>> model = SparsePCA(n_features=2).fit(np.random.default_rng(0).standard_normal((20, 5)))
    >>> display = reports.MatrixDisplay(model.components_).plot()
    >>> display.image_.get_array().shape == model.components_.shape
    True
    """

    matrix: Any
    names: Sequence[str] | None = None
    caption: str = ""
    title = "What it consists of"
    about = "Blue is positive, red negative: the stronger the color, the larger the number."
    wide = True
    size = (3.4, 2.8)

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the image, with the names of columns if there are few.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        matrix = self.matrix
        labels = self.names
        dense = matrix.toarray() if is_sparse(matrix) else matrix
        matrix = np.asarray(dense, dtype=np.float64)
        colors = signed_colors(matrix[np.isfinite(matrix)])
        ax.grid(visible=False)
        # The cells of a small matrix are drawn with sharp edges. A large matrix has more cells than
        # pixels, so antialiasing averages adjacent cells.
        style = {"aspect": "auto", "interpolation": "nearest", **colors}
        if max(matrix.shape) > MOST_POINTS:
            style["interpolation"] = "antialiased"
        self.image_ = ax.imshow(matrix, **{**style, **options})
        if labels is not None and len(labels) <= MOST_NAMED:
            ax.set_xticks(range(len(labels)), [label_of(name) for name in labels], rotation=90)
        ax.set_title(self.caption)
