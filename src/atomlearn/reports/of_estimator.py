"""report: the page about any fitted linear or additive estimator, ours or scikit-learn's."""

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
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.problem.result import Result
from atomlearn.designs import is_opened
from atomlearn.estimators.exports import numpy_code
from atomlearn.reports.atomic_write import check_place
from atomlearn.reports.content import Content, FitSummary, without_covariates
from atomlearn.reports.evidence import validation_of
from atomlearn.reports.gathered import (
    along_chromosomes,
    curves,
    forbidden,
    half_fits,
    is_mapped,
    path_around,
    seen_in,
    selected_of,
    with_stability,
    with_twins,
)
from atomlearn.reports.held_out import covariate_terms, held_out_of
from atomlearn.reports.html import write_report
from atomlearn.reports.of_matrix import content_of_matrix, drawn_of
from atomlearn.reports.structure_displays import groups_drawn
from atomlearn.reports.style import STYLE
from atomlearn.reports.summary import write_summary
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
    drawn = drawn_of(estimator, X, feature_names)
    content = (
        content_of_matrix(
            estimator,
            X,
            drawn,
            details=(("Estimator", _shown(estimator)),),
            python=_python(estimator, rng).replace("(X, y)", "(X)").replace("X, y,", "X, None,"),
            versions=versions(),
        )
        if drawn is not None
        else content_of_estimator(
            estimator,
            X,
            y,
            test,
            test_fraction,
            n_resamples,
            feature_names,
            target,
            rng,
            positions,
            {"groups": groups, "order": order},
        )
    )
    write_report(path, content)
    write_summary(Path(path).with_name("summary.json"), content)
    return content


def content_of_estimator(
    estimator: Any, X: Any, y: Any, test: Any, test_fraction: float, n_resamples: int | None,
    names: Sequence[str] | None, target: str | None, rng: int, positions: Any,
    dependence: dict[str, Any],
) -> Content:  # fmt: skip
    """Return everything that the page tells."""
    view = view_of(estimator, X, names)
    values, of_targets = np.asarray(y), target_names(y)
    target = target or (of_targets[0] if len(of_targets) == 1 else "the target")
    codes = _codes(view, values)
    own = (view, X, values, test, test_fraction, rng)
    held_out, evidence = held_out_of(estimator, *own, **dependence)
    found = half_fits(estimator, X, values, view, n_resamples, rng, dependence)
    terms = covariate_terms(estimator, X, view)
    selected, covariates = without_covariates(selected_of(view), terms)
    selected = with_twins(view, selected, partial(forbidden, view, X, values))
    selected = with_stability(
        estimator, X, values, selected, view, n_resamples, rng, found, dependence
    )
    labels = None if view.classes is None else [str(label) for label in view.classes]
    evidence = replace(
        seen_in(view, codes, labels, selected, evidence, target),
        validation=validation_of(view.model),
        path=path_around(view, values),
        manhattan=along_chromosomes(view, codes, selected, positions),
        parts=groups_drawn(view.model),
    )
    outputs = outputs_of(view, target, of_targets)
    fits = _fits(view, outputs)
    return Content(
        data=type(X).__name__ if not is_opened(X) else str(X),
        target=target, task=_task(view, values),
        n_samples=view.inputs.shape[0],
        n_inputs=view.offered, chosen_first=view.offered > view.inputs.shape[1],
        n_features=(view.map.n_terms if is_mapped(view) else view.offered) - len(terms),
        outputs=outputs, selected=selected, covariates=covariates,
        fits=fits,
        goal=float(getattr(view.model, "tol", 1e-6)) if fits else 0.0,
        held_out=held_out,
        class_counts=_counts(codes, labels),
        target_values=() if labels is not None or values.ndim > 1 or values.dtype.names else tuple(
            values[:: max(1, values.size // STYLE.most_values)].astype(float).tolist()),
        curves=curves(view, selected, found),
        evidence=evidence,
        details=(("Estimator", _shown(estimator)), ("Rows", f"{view.inputs.shape[0]:,}"),
                 ("Columns", f"{view.inputs.shape[1]:,}"), ("Seed", str(rng))),
        python=_python(estimator, rng), scorer=_scorer(view),
        versions=versions(),
        files=("summary.json",),
    )  # fmt: skip


def _task(view: View, values: Any) -> str:
    plain = "regression" if view.classes is None else "classification"
    return plain if values.dtype.names is None else "survival"


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
    results: Sequence[Result] = getattr(view.model, "results_", ())
    if len(labels) != len(results):
        labels = tuple(f"fit {number + 1}" for number in range(len(results)))
    gap = getattr(view.model, "selected_gap_", None)
    return tuple(
        FitSummary.of(label, result, gap) for label, result in zip(labels, results, strict=True)
    )


def _scorer(view: View) -> str:
    """Return the model as a function of NumPy; nothing for models that it cannot say, or long."""
    try:
        return numpy_code(view.model) if view.columns.size <= STYLE.most_rows else ""
    except (TypeError, ValueError):
        return ""


def _shown(estimator: Any) -> str:
    return " ".join(repr(clone(estimator)).split())


def _python(estimator: Any, rng: int) -> str:
    return (
        f"model = {_shown(estimator)}.fit(X, y)\n"
        f'atomlearn.report(model, X, y, "report.html", rng={rng})'
    )
