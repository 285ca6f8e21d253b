"""The page about an estimator of a matrix alone: what it consists of, how exactly it is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.designs import feature_names
from atomlearn.estimators.matrices.completion import MatrixCompletion
from atomlearn.estimators.matrices.matrix_models import MatrixModel
from atomlearn.estimators.matrices.matrix_pursuit import MatrixPursuit
from atomlearn.estimators.matrices.sparse_low_rank import SparseLowRank
from atomlearn.reports.content import Content, FitSummary
from atomlearn.reports.structure_displays import MatrixDisplay


def content_of_matrix(estimator: Any, X: Any, names: Any) -> Content | None:
    """Return what the page tells: no target, so no verdict; None for any other estimator."""
    known = feature_names(X) if names is None else names
    if isinstance(estimator, MatrixPursuit):
        # Square roots, so that weak links can be seen beside strong ones.
        pictures = [MatrixDisplay(np.sqrt(abs(estimator.affinity_)), caption="affinity of rows")]
        words = f"{estimator.affinity_.nnz // 2:,} links between {len(X):,} rows"
    elif isinstance(estimator, SparseLowRank):
        pictures = [
            MatrixDisplay(X, known, "data"),
            MatrixDisplay(estimator.low_rank_, known, "low rank"),
            MatrixDisplay(estimator.sparse_, known, "sparse"),
        ]
        rank, entries = len(estimator.singular_values_), int(np.count_nonzero(estimator.sparse_))
        words = f"Rank {rank}, and {entries:,} entries apart from it, of {estimator.sparse_.size:,}"
    elif isinstance(estimator, MatrixCompletion):
        pictures = [_components(estimator.right_.T, known)] if estimator.rank_ else []
        entries = int(np.isfinite(np.asarray(X, dtype=np.float64)).sum())
        words = f"Rank {estimator.rank_}, from {entries:,} known entries of {np.size(X):,}"
    elif hasattr(estimator, "components_"):
        components = np.asarray(estimator.components_)
        pictures, used = [_components(components, known)], int(components.any(axis=0).sum())
        words = f"{len(components)} components, in {used:,} of {components.shape[1]:,} columns"
    else:
        return None
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    facts = [
        (name.replace("_", " ").strip().capitalize(), f"{value:.4g}")
        for name, value in fitted.items()
        if isinstance(value, (int, float))
    ]
    n_samples, n_features = np.shape(X)
    ours = isinstance(estimator, MatrixModel)
    return Content(
        data=type(X).__name__,
        target="the matrix",
        task="matrix",
        n_samples=n_samples,
        n_inputs=n_features,
        n_features=n_features,
        outputs=("the matrix",),
        selected=(),
        fits=(FitSummary.of("the matrix", estimator.result_),) if ours else (),
        goal=float(estimator.tol) if ours else 0.0,
        title=words,
        evidence=pictures,
        notes=("A matrix alone has no target: nothing here says how well it predicts.",),
        details=tuple(facts),
    )


def _components(components: Any, names: Any) -> MatrixDisplay:
    """Return the first components, in the columns that they use."""
    table = np.asarray(components)[:12]
    used = np.flatnonzero(table.any(axis=0))
    shown = [str(column) if names is None else str(names[column]) for column in used]
    return MatrixDisplay(table[:, used], shown, "components, one a line")
