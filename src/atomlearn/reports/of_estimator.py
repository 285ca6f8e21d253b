"""report: the page about any fitted linear or additive estimator, ours or scikit-learn's."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from atomlearn.designs import is_opened
from atomlearn.estimators.exports import numpy_code
from atomlearn.estimators.feature_generator import FeatureGenerator
from atomlearn.reports.atomic_write import check_place
from atomlearn.reports.content import (
    Content,
    FitSummary,
    HeldOut,
    SelectedFeature,
    without_covariates,
)
from atomlearn.reports.displays import PathDisplay, ValidationDisplay
from atomlearn.reports.drawing import MOST_POINTS, Display
from atomlearn.reports.gathered import (
    Fits,
    along_chromosomes,
    curves_of,
    forbidden,
    half_fits,
    pictures_of,
    selected_of,
    warnings_of,
    with_stability,
    with_twins,
)
from atomlearn.reports.held_out import covariate_terms, held_out_of
from atomlearn.reports.html import write_report
from atomlearn.reports.of_matrix import content_of_matrix
from atomlearn.reports.structure_displays import GroupsDisplay, selected_groups
from atomlearn.reports.tables import write_summary
from atomlearn.reports.view import View, outputs_of, target_names, view_of


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
) -> Content:
    """Write the page about a fitted estimator, and ``summary.json`` beside it.

    Parameters
    ----------
    estimator : fitted estimator, or a pipeline that ends with one
        With ``coef_`` over columns: every estimator of ours and scikit-learn's linear ones; or of
        a matrix alone, such as ``SparsePCA``.
    X, y : the data it was fitted to; no y for a matrix alone
    path : str or Path
        The page; nothing else is needed to read it.
    test : (X, y), optional
        Rows that the estimator was not fitted to, for the verdict. Default: a clone is fitted to
        1 - ``test_fraction`` of the rows and judged by the rest; 0 leaves the verdict out.
    n_resamples : int, optional
        Halves of the rows to fit for how stable the selection is; default 20 where X is small.
    feature_names, target : names; default: those that X and y have, else x0, ... and "the target".
    rng : int
        Seed of the split, the permutations and the halves.
    positions : (chromosomes, base pairs), optional
        Where the columns lie; by default as their names tell, such as 1:752566 or chr1:752566_A.

    groups, order : (n_samples,) arrays, optional
        Rows that belong together, or a series: held out and halved as ``held_out_verdict`` does.

    Returns
    -------
    Content
        ``content.verdict``, ``content.selected``, ...

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
    check_is_fitted(estimator)
    check_place(path)
    content = content_of_matrix(estimator, X, feature_names)
    if content is None:
        dependence = {"groups": groups, "order": order}
        fits = Fits(estimator, X, np.asarray(y), rng, dependence, n_resamples)
        held_out = partial(held_out_of, fits, test=test, fraction=test_fraction)
        content = _content_of(fits, held_out, feature_names, target_names(y), target, positions)
    shown, seed = " ".join(repr(clone(estimator)).split()), "" if y is None else f", rng={rng}"
    given = "X" if y is None else "X, y"
    content = replace(
        content,
        data=type(X).__name__ if not is_opened(X) else str(X),
        details=(("Estimator", shown), *content.details),
        python=f"model = {shown}.fit({given})\n"
        f'atomlearn.report(model, {given}, path="report.html"{seed})',
        versions=versions(),
        files=("summary.json",),
    )
    write_report(path, content)
    write_summary(Path(path).with_name("summary.json"), content)
    return content


def _content_of(
    fits: Fits,
    held_out_of_view: Callable[[View], HeldOut | None],
    names: Sequence[str] | None,
    of_targets: Sequence[str],
    target: str | None,
    positions: Any,
) -> Content:
    """Return everything that the page tells of an estimator and its data."""
    X, values = fits.X, fits.y
    view = view_of(fits.estimator, X, names)
    target = target or (of_targets[0] if len(of_targets) == 1 else "the target")
    codes, labels = _codes(view, values), [str(label) for label in view.classes or ()] or None
    held_out = held_out_of_view(view)
    halves = half_fits(fits, view)
    free = covariate_terms(fits.estimator, X, view)
    selected, covariates = without_covariates(selected_of(view), free)
    selected = with_twins(view, selected, partial(forbidden, view, X, values))
    selected = with_stability(selected, fits.estimator, halves)
    outputs = outputs_of(view, target, of_targets)
    n_rows, n_columns = view.inputs.shape
    seen = () if held_out is None else held_out.warnings
    is_times = values.dtype.names is not None
    return Content(
        data="",
        target=target,
        task="survival" if is_times else "classification" if labels else "regression",
        n_samples=n_rows,
        n_inputs=view.offered,
        chosen_first=view.offered > n_columns,
        n_features=(view.map.n_terms if view.is_mapped else view.offered) - len(free),
        outputs=outputs,
        selected=selected,
        covariates=covariates,
        fits=_fits(view, outputs),
        goal=float(view.model.tol) if view.results else 0.0,
        held_out=held_out,
        class_counts=_counts(codes, labels),
        target_values=values if labels is None and values.ndim == 1 and not is_times else (),
        curves=curves_of(view, selected, halves, outputs),
        evidence=_evidence(view, values, codes, labels, selected, positions),
        warnings=(*seen, *warnings_of(view, codes, labels, selected, target)),
        details=(
            ("Rows", f"{n_rows:,}"),
            ("Columns", f"{n_columns:,}"),
            ("Seed", str(fits.rng)),
        ),
        scorer=_scorer(view),
    )


def _evidence(
    view: View,
    values: Any,
    codes: Any,
    labels: list[str] | None,
    selected: Sequence[SelectedFeature],
    positions: Any,
) -> list[Display]:
    parts = selected_groups(view.model)
    found: list[Display | None] = [
        along_chromosomes(view, codes, selected, positions),
        GroupsDisplay.of(parts) if parts else None,
        *pictures_of(view, codes, labels, selected),
        ValidationDisplay.of(view.model),
        None if view.is_mapped else PathDisplay.of_view(view, values),
    ]
    return [display for display in found if display is not None]


def _codes(view: View, values: Any) -> Any:
    if view.classes is None:
        return values
    if strange := values[~np.isin(values, view.classes)].tolist():
        raise ValueError(f"y has the class {strange[0]!r}, and the model knows {view.classes}")
    return np.searchsorted(np.array(view.classes), values)


def _counts(codes: Any, labels: list[str] | None) -> tuple[tuple[str, int], ...]:
    if labels is None:
        return ()
    return tuple(zip(labels, np.bincount(codes, minlength=len(labels)).tolist(), strict=True))


def versions() -> str:
    """Return the versions of what made a report."""
    from atomlearn import __version__

    return (
        f"atomlearn {__version__} · Python {platform.python_version()} · NumPy {np.__version__} · "
        f"SciPy {scipy.__version__} · scikit-learn {sklearn.__version__}"
    )


def _fits(view: View, labels: tuple[str, ...]) -> tuple[FitSummary, ...]:
    results = view.results
    if len(labels) != len(results):
        labels = tuple(f"fit {number + 1}" for number in range(len(results)))
    gap = view.model.selected_gap_ if isinstance(view.model, FeatureGenerator) else None
    return tuple(
        FitSummary.of(label, result, gap) for label, result in zip(labels, results, strict=True)
    )


def _scorer(view: View) -> str:
    """Return the model as a function of NumPy; nothing for models that it cannot say, or long."""
    try:
        return numpy_code(view.model) if view.columns.size <= MOST_POINTS else ""
    except (TypeError, ValueError):
        return ""
