"""The page about an estimator of a matrix alone: what it consists of, how exactly it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atomlearn.designs import feature_names
from atomlearn.reports.content import Content, FitSummary
from atomlearn.reports.evidence import Evidence
from atomlearn.reports.pictures import affinity_plot, components_plot, decomposition_plot
from atomlearn.reports.structure import on_page

#: Headline, picture, and what the picture shows.
Drawn = tuple[str, str, str]

LINES = "A line each for the first components, at most 12: red is positive, blue negative."


def _affinity(model: Any, X: Any, names: Any) -> Drawn:
    links = model.affinity_.nnz // 2
    about = "Rows and columns are the rows of the data: the darker, the more alike two of them are."
    return f"{links:,} links between {len(X):,} rows", affinity_plot(model.affinity_), about


def _parts(model: Any, X: Any, names: Any) -> Drawn:
    rank, entries = len(model.singular_values_), int(np.count_nonzero(model.sparse_))
    words = f"Rank {rank}, and {entries:,} entries apart from it, of {model.sparse_.size:,}"
    about = "The data, and the two parts it is the sum of but for noise; red: entries apart."
    return words, decomposition_plot(X, model.low_rank_, model.sparse_), about


def _completed(model: Any, X: Any, names: Any) -> Drawn:
    known = np.isfinite(np.asarray(X, dtype=np.float64))
    words = f"Rank {model.rank_}, from {int(known.sum()):,} known entries of {known.size:,}"
    return words, components_plot(model.right_.T, names) if model.rank_ else "", LINES


def _components(model: Any, X: Any, names: Any) -> Drawn:
    components = np.asarray(model.components_)
    used = int(components.any(axis=0).sum())
    words = f"{len(components)} components, in {used:,} of {components.shape[1]:,} columns"
    return words, components_plot(components, names), LINES


#: By the attribute that a fitted estimator of the kind has, the most telling first.
KINDS: dict[str, Callable[[Any, Any, Any], Drawn]] = {
    "affinity_": _affinity, "sparse_": _parts, "right_": _completed, "components_": _components,
}  # fmt: skip
#: What else is told, where it is known.
FACTS = {
    "alpha_": "alpha", "level_": "Level", "ratio_": "Ratio", "search_gap_": "Gap of the search",
    "n_passes_": "Passes over the data",
}  # fmt: skip


def drawn_of(estimator: Any, X: Any, names: Any) -> Drawn | None:
    """Return headline and picture of an estimator of a matrix; None for any other."""
    kind = next((kind for kind in KINDS if hasattr(estimator, kind)), None)
    if kind is None:
        return None
    return KINDS[kind](estimator, X, feature_names(X) if names is None else names)


def content_of_matrix(estimator: Any, X: Any, drawn: Drawn, **about: Any) -> Content:
    """Return what the page tells: no target, so no verdict."""
    title, picture, shown = drawn
    result = getattr(estimator, "result_", None)
    fits = () if result is None else (
        FitSummary("the matrix", str(result.status), result.converged, result.objective,
                   result.gap, result.relative_gap, result.passes, result.seconds,
                   tuple(result.history), complete=result.converged),
    )  # fmt: skip
    facts = [(words, f"{getattr(estimator, name):.4g}") for name, words in FACTS.items()
             if getattr(estimator, name, None) is not None]  # fmt: skip
    n_samples, n_features = np.shape(X)
    return Content(
        data=type(X).__name__, target="the matrix", task="matrix", n_samples=n_samples,
        n_inputs=n_features, n_features=n_features, outputs=("the matrix",), selected=(), fits=fits,
        goal=float(getattr(estimator, "tol", 0.0)), title=title,
        evidence=Evidence(parts=on_page(picture), of_parts=shown),
        notes=("A matrix alone has no target: nothing here says how well it predicts.",),
        details=(*about.pop("details"), *facts), files=("summary.json",), **about,
    )  # fmt: skip
