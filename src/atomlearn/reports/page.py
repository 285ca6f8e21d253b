"""report: write a page about a fitted linear or additive estimator of atomlearn or scikit-learn."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from atomlearn._support import check_place, write_together
from atomlearn.core import feature_names as names_in
from atomlearn.core import is_opened, is_sparse
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.findings.conditional import FeatureTests
from atomlearn.findings.copies import joined, repeated_rows
from atomlearn.findings.intervals import Estimates
from atomlearn.findings.stability import StabilitySelector
from atomlearn.reports.content import Content, FitSummary
from atomlearn.reports.gathered import Fits, content_of, forbidden, half_fits
from atomlearn.reports.held_out import covariate_terms, held_out_of
from atomlearn.reports.html import report_html
from atomlearn.reports.registry import near_best_of_view, path_of_view
from atomlearn.reports.structure_displays import MatrixDisplay
from atomlearn.reports.suspects import repeating
from atomlearn.reports.tables import files_of_run, summary_text
from atomlearn.reports.view import View, in_words, outputs_of, target_names, view_of

#: Maps the attributes of matrix estimators that are as large as X to their names on the page.
_PARTS = {"affinity_": "affinity of rows", "low_rank_": "low rank", "sparse_": "sparse"}


def report(
    estimator: Any,
    X: Any,
    y: Any = None,
    path: str | Path = "report.html",
    *,
    test: tuple[Any, Any] | None = None,
    test_fraction: float = 0.25,
    n_resamples: int | None = None,
    feature_names: Sequence[str] | None = None,
    target: str | None = None,
    rng: int = 0,
    positions: tuple[Sequence[str], ArrayLike] | None = None,
    groups: Any = None,
    order: Any = None,
    effects: Estimates | FeatureTests | None = None,
    at: Sequence[float] = (),
) -> Content:
    """Write the page about a fitted estimator, and ``summary.json`` in the same folder.

    Parameters
    ----------
    estimator : fitted estimator, or a pipeline that ends with one
        An estimator with ``coef_`` (any of atomlearn, or a linear one of scikit-learn), or a
        matrix decomposition such as ``SparsePCA``.
    X, y : the data it was fitted to; y is None for a matrix decomposition
    path : str or Path
        The file of the page, which is self-contained.
    test : (X, y), optional
        Rows that the estimator was not fitted to, for the verdict. By default, a clone is fitted
        to a share 1 - ``test_fraction`` of the rows and tested on the others; with
        ``test_fraction`` 0 there is no verdict.
    n_resamples : int, optional
        Number of random halves of the rows on which the estimator is refitted to measure how
        stable the selection is. By default up to 20 if X is small, and fewer for slow fits.
    feature_names, target : names of the columns and of the target
        By default the names that X and y have, else x0, x1, ... and "the target".
    rng : int
        Random seed of the split, the permutations and the halves.
    positions : (chromosomes, base pairs), optional
        Positions of the columns on chromosomes; by default parsed from names such as 1:752566 or
        chr1:752566_A.
    groups, order : (n_samples,) arrays, optional
        Labels of rows that must be held out together, or positions in a time series; rows are
        split as in ``held_out_verdict``.
    effects : Estimates or FeatureTests, optional
        The result of ``findings.estimates`` or ``findings.p_values``. The page and the summary
        state each interval, or the smallest p-values, in one sentence with its assumption.
    at : sequence of float
        Times at which the survival probabilities of held-out rows are checked. By default, the
        median time of their events.

    Returns
    -------
    Content
        The content of the page, such as ``content.verdict`` and ``content.selected``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from atomlearn import AtomicClassifier, report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> found = report(AtomicClassifier(alpha=0.1).fit(scale(X), y), scale(X), y, page)
    >>> found.verdict.verdict, page.exists(), (page.parent / "summary.json").exists()
    ('better', True, True)
    """
    try:
        check_is_fitted(estimator)
    except TypeError as error:
        given = ", ".join(type(value).__name__ for value in (estimator, X, y))
        raise TypeError(f"report(estimator, X, y): the model comes first, got {given}") from error
    if y is not None and np.ndim(y) == 0:
        raise TypeError(f"report(estimator, X, y, path): y must be the target, got {y!r}")
    file = Path(path)
    check_place(file)
    files_after = (*files_of_run(file.parent, ["summary.json"]), "summary.json", file.name)
    # A matrix decomposition has no target; all other estimators are models with coefficients.
    content = content_of_matrix(estimator, X, feature_names)
    if content is None:
        fits = Fits(estimator, X, np.asarray(y), rng, *_rows_of(X, groups, order), n_resamples, at)
        view = view_of(estimator, X, feature_names)
        names = target_names(y)
        target = target or (names[0] if len(names) == 1 else "the target")
        arguments = view, target, outputs_of(view, target, names)
        content = _content_of_model(fits, *arguments, (test, test_fraction), positions)
    description = in_words(estimator)
    seed = "" if y is None else f", rng={rng}"
    given = "X" if y is None else "X, y"
    content = replace(
        content,
        data=type(X).__name__ if not is_opened(X) else str(X),
        details=(("Estimator", description), *content.details),
        python=f"model = {description}.fit({given})\n"
        f'atomlearn.report(model, {given}, path="report.html"{seed})',
        versions=versions(),
    )
    if effects is not None:
        sentences = effects.sentences(names_in(X) if feature_names is None else feature_names)
        content = replace(content, notes=(*content.notes, *sentences))
    summary = summary_text(replace(content, files=tuple(dict.fromkeys(files_after))))
    write_together(file.parent, {"summary.json": summary, file.name: report_html(content)})
    return content


def _rows_of(X: Any, groups: Any, order: Any) -> tuple[dict[str, Any], Any]:
    """Return the fit arguments ``groups`` and ``order``, and the duplicate rows of X.

    Unless there is an order, the groups of duplicate rows are joined, so that duplicates are held
    out together. The second result (n_rows,) has an index that duplicate rows share; it is None
    without duplicates.
    """
    duplicates = None if is_opened(X) else repeated_rows(X)
    if order is None and duplicates is not None:
        groups = joined(duplicates.size, groups, duplicates)
    return {"groups": groups, "order": order}, duplicates


def _content_of_model(
    fits: Fits,
    view: View,
    target: str,
    outputs: tuple[str, ...],
    tested: tuple[Any, float],
    positions: Any,
) -> Content:
    """Return the content of the page about a model with coefficients.

    ``tested`` is the pair of the test data (X, y), or None, and the share of rows to hold out.
    ``outputs`` are the names of the outputs, and ``positions`` the positions on chromosomes, or
    None. ``fits`` is the estimator with its data, ``view`` the fitted model with its inputs, and
    ``target`` the name of the target.
    """
    estimator = fits.estimator
    targets = view.codes_of(fits.y)
    held_out = held_out_of(fits, view, *tested)
    is_unordered = fits.dependence["order"] is None
    is_generated = isinstance(view.model, FeatureGenerator)
    selection_shares = None
    if isinstance(estimator, StabilitySelector):
        selection_shares = dict(enumerate(estimator.selection_probabilities_.tolist()))
    n_rows, n_columns = view.inputs.shape
    is_single = is_generated and view.map.unit is None
    # Feature generation may select columns whose coefficient then is zero: they were considered.
    unused = np.setdiff1d(view.model.selected_, view.terms) if is_single else np.arange(0)
    return content_of(
        view,
        targets,
        held_out,
        target,
        outputs,
        half_fits(fits, view),
        results=view.results,
        gaps=[view.model.selected_gap_ if is_generated else None for _ in view.results],
        free=covariate_terms(estimator, fits.X, view),
        positions=positions,
        path=None if view.is_mapped else path_of_view(view, targets),
        near=near_best_of_view(view, fits.y),
        refits=partial(forbidden, view, fits.X, fits.y),
        stability=selection_shares,
        data="",
        notes=() if fits.repeated is None else (repeating(fits.repeated, is_unordered),),
        chosen_first=view.offered > n_columns,
        considered=tuple(view.map.term_names(unused, view.names)) if unused.size else (),
        details=(("Rows", f"{n_rows:,}"), ("Columns", f"{n_columns:,}"), ("Seed", str(fits.rng))),
    )


def versions() -> str:
    """Return the versions of atomlearn, Python, NumPy, SciPy and scikit-learn as text."""
    from atomlearn import __version__

    return (
        f"atomlearn {__version__} · Python {platform.python_version()} · NumPy {np.__version__} · "
        f"SciPy {scipy.__version__} · scikit-learn {sklearn.__version__}"
    )


def content_of_matrix(estimator: Any, X: Any, names: Any) -> Content | None:
    """Return the content of the page about a matrix decomposition; None for other models.

    A decomposition, such as ``SparsePCA``, has components or matrices as large as X. It has no
    target, so the content includes neither a verdict nor held-out scores. ``names`` are the names
    of the columns of X, or None. ``estimator`` is the fitted decomposition.
    """
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    matrices = {caption: fitted[name] for name, caption in _PARTS.items() if name in fitted}
    # Components are rows of ``components_``, or columns of ``right_``, the right factor.
    components = fitted.get("components_", fitted.get("right_", np.zeros((0, 0))).T)
    if not matrices and not components.size:
        return None
    names = names_in(X) if names is None else names
    # A line per part for the title: its number of nonzero entries.
    sizes = [
        f"{caption}: {matrix.nnz if is_sparse(matrix) else np.count_nonzero(matrix):,} entries"
        for caption, matrix in matrices.items()
    ]
    pictures = [MatrixDisplay(matrix, names, caption) for caption, matrix in matrices.items()]
    support = np.flatnonzero(components.any(axis=0))
    if support.size:
        sizes.insert(0, f"{len(components)} components, in {support.size:,} columns")
        labels = [str(column if names is None else names[column]) for column in support]
        pictures.append(MatrixDisplay(components[:, support], labels, "components, one a line"))
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
        title=f"{type(estimator).__name__} of {n_samples:,} rows: {', '.join(sizes)}",
        evidence=pictures,
        notes=("A matrix alone has no target: nothing here says how well it predicts.",),
        details=tuple(facts.items()),
    )
