"""The page about an estimator of a matrix alone: what it consists of, how exactly it is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.data.compressed import is_sparse
from atomlearn.designs import feature_names
from atomlearn.reports.content import Content, FitSummary
from atomlearn.reports.structure_displays import MatrixDisplay

#: What estimators make of a matrix: parts as large as it, and components, one a line.
_PARTS = {"affinity_": "affinity of rows", "low_rank_": "low rank", "sparse_": "sparse"}


def content_of_matrix(estimator: Any, X: Any, names: Any) -> Content | None:
    """Return what the page tells: no target, so no verdict; None for any other estimator."""
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    parts = {words: fitted[name] for name, words in _PARTS.items() if name in fitted}
    components = fitted.get("components_", fitted.get("right_", np.zeros((0, 0))).T)
    if not parts and not components.size:
        return None
    names = feature_names(X) if names is None else names
    told = [
        f"{words}: {part.nnz if is_sparse(part) else np.count_nonzero(part):,} entries"
        for words, part in parts.items()
    ]
    pictures = [MatrixDisplay(part, names, words) for words, part in parts.items()]
    used = np.flatnonzero(components.any(axis=0))
    if used.size:
        told.insert(0, f"{len(components)} components, in {used.size:,} columns")
        shown = [str(column if names is None else names[column]) for column in used]
        pictures.append(MatrixDisplay(components[:, used], shown, "components, one a line"))
    facts = {
        name.replace("_", " ").strip().capitalize(): f"{value:.4g}"
        for name, value in fitted.items()
        if isinstance(value, (int, float))
    }
    result, (n_samples, n_features) = fitted.get("result_"), np.shape(X)
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
        title=f"{type(estimator).__name__} of {n_samples:,} rows: {', '.join(told)}",
        evidence=pictures,
        notes=("A matrix alone has no target: nothing here says how well it predicts.",),
        details=tuple(facts.items()),
    )
