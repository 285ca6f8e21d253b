"""The page about an estimator of a matrix alone: what it consists of, how exactly it is known."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from atomlearn.designs import feature_names
from atomlearn.estimators.matrices.completion import MatrixCompletion
from atomlearn.estimators.matrices.components import SparseLowRank
from atomlearn.estimators.matrices.matrix_models import MatrixPursuit
from atomlearn.reports.content import Content, FitSummary
from atomlearn.reports.structure_displays import MatrixDisplay

#: Headline and pictures of a matrix.
Shown = tuple[str, list[MatrixDisplay]]


@singledispatch
def shown_of(estimator: Any, X: Any, names: Any) -> Shown | None:
    """Return what an estimator made of a matrix; of others than ours its ``components_``."""
    if not hasattr(estimator, "components_"):
        return None
    components = np.asarray(estimator.components_)
    used = int(components.any(axis=0).sum())
    words = f"{len(components)} components, in {used:,} of {components.shape[1]:,} columns"
    return words, [_components(components, names)]


@shown_of.register
def _(estimator: MatrixPursuit, X: Any, names: Any) -> Shown:
    # Square roots, so that weak links can be seen beside strong ones.
    picture = MatrixDisplay(np.sqrt(abs(estimator.affinity_)), caption="affinity of rows")
    return f"{estimator.affinity_.nnz // 2:,} links between {len(X):,} rows", [picture]


@shown_of.register
def _(estimator: SparseLowRank, X: Any, names: Any) -> Shown:
    rank, entries = len(estimator.singular_values_), int(np.count_nonzero(estimator.sparse_))
    words = f"Rank {rank}, and {entries:,} entries apart from it, of {estimator.sparse_.size:,}"
    parts = {"data": X, "low rank": estimator.low_rank_, "sparse": estimator.sparse_}
    return words, [MatrixDisplay(part, names, caption) for caption, part in parts.items()]


@shown_of.register
def _(estimator: MatrixCompletion, X: Any, names: Any) -> Shown:
    entries = int(np.isfinite(np.asarray(X, dtype=np.float64)).sum())
    words = f"Rank {estimator.rank_}, from {entries:,} known entries of {np.size(X):,}"
    return words, [_components(estimator.right_.T, names)] if estimator.rank_ else []


def _components(components: Any, names: Any) -> MatrixDisplay:
    """Return the first components, in the columns that they use."""
    table = np.asarray(components)[:12]
    used = np.flatnonzero(table.any(axis=0))
    shown = [str(column) if names is None else str(names[column]) for column in used]
    return MatrixDisplay(table[:, used], shown, "components, one a line")


def content_of_matrix(estimator: Any, X: Any, names: Any) -> Content | None:
    """Return what the page tells: no target, so no verdict; None for any other estimator."""
    shown = shown_of(estimator, X, feature_names(X) if names is None else names)
    if shown is None:
        return None
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    facts = {
        name.replace("_", " ").strip().capitalize(): f"{value:.4g}"
        for name, value in fitted.items()
        if isinstance(value, (int, float))
    }
    result = fitted.get("result_")
    n_samples, n_features = np.shape(X)
    return Content(
        data="",
        target="the matrix",
        task="matrix",
        n_samples=n_samples,
        n_inputs=n_features,
        n_features=n_features,
        outputs=("the matrix",),
        selected=(),
        fits=() if result is None else (FitSummary.of("the matrix", result),),
        goal=0.0 if result is None else float(estimator.tol),
        title=shown[0],
        evidence=shown[1],
        notes=("A matrix alone has no target: nothing here says how well it predicts.",),
        details=tuple(facts.items()),
    )
