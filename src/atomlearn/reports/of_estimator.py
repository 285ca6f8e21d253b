"""report: the page about any fitted linear or additive estimator, ours or scikit-learn's."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.data.standardized import moments_of
from atomlearn.core.problem.result import Result, Status
from atomlearn.designs import is_opened
from atomlearn.findings.stability import StabilitySelector
from atomlearn.findings.twins import correlated_columns, twins
from atomlearn.reports.content import Content, Curve, FitSummary, SelectedFeature
from atomlearn.reports.evidence import (
    MOST_LINES,
    PathOf,
    boxes_of,
    validation_of,
)
from atomlearn.reports.held_out import held_out_of
from atomlearn.reports.html import write_report
from atomlearn.reports.pairs import surfaces_of
from atomlearn.reports.style import STYLE
from atomlearn.reports.summary import write_summary
from atomlearn.reports.suspects import suspects
from atomlearn.reports.view import View, outputs_of, view_of

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Features that are looked at one by one: for twins, for distributions.
MOST_TWINS, MOST_BOXES = 30, 12
#: Entries of X below which halves are fitted without being asked for.
SMALL = 2_000_000


def report(
    estimator: Any,
    X: Any,
    y: Any,
    path: str | Path = "report.html",
    *,
    test: tuple[Any, Any] | None = None,
    test_fraction: float = 0.25,
    n_resamples: int | None = None,
    feature_names: Sequence[str] | None = None,
    target: str = "the target",
    rng: int = 0,
) -> Content:
    """Write the page about a fitted estimator, and ``summary.json`` beside it.

    Parameters
    ----------
    estimator : fitted estimator, or a pipeline that ends with one
        With ``coef_`` over columns: every estimator of ours and scikit-learn's linear ones.
    X, y : the data it was fitted to
    path : str or Path
        The page; nothing else is needed to read it.
    test : (X, y), optional
        Rows that the estimator was not fitted to, for the verdict. Default: a clone is fitted to
        1 - ``test_fraction`` of the rows and judged by the rest; 0 leaves the verdict out.
    n_resamples : int, optional
        Halves of the rows to fit for how stable the selection is; default 20 where X is small.
    feature_names, target : names, where X and y have none.
    rng : int
        Seed of the split, the permutations and the halves.

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
    content = content_of_estimator(
        estimator, X, y, test, test_fraction, n_resamples, feature_names, target, rng
    )
    write_report(path, content)
    write_summary(Path(path).with_name("summary.json"), content)
    return content


def content_of_estimator(
    estimator: Any, X: Any, y: Any, test: Any, test_fraction: float, n_resamples: int | None,
    names: Sequence[str] | None, target: str, rng: int,
) -> Content:  # fmt: skip
    """Return everything that the page tells."""
    view = view_of(estimator, X, names)
    values = np.asarray(y)
    codes = values if view.classes is None else np.searchsorted(np.array(view.classes), values)
    held_out, evidence, split = held_out_of(estimator, view, X, values, test, test_fraction, rng)
    selected = _selected(view)
    selected = _with_twins(view, X, values, selected)
    selected = _with_stability(estimator, X, values, selected, view, n_resamples, rng)
    labels = None if view.classes is None else [str(label) for label in view.classes]
    indices = [feature.index for feature in selected if not _is_mapped(view)]
    evidence = replace(
        evidence,
        validation=validation_of(view.model),
        path=_path(view, values),
        boxes=_boxes(view, codes, labels, selected),
        surfaces=surfaces_of(view, selected),
        warnings=suspects(view.inputs, codes, labels, indices, [f.name for f in selected], *split),
    )
    counts = () if labels is None else tuple(zip(labels, np.bincount(
        codes, minlength=len(labels)).tolist(), strict=True))  # fmt: skip
    fits = _fits(view)
    return Content(
        data=type(X).__name__ if not is_opened(X) else str(X),
        target=target,
        task="regression" if labels is None else "classification",
        n_samples=view.inputs.shape[0],
        n_inputs=view.inputs.shape[1],
        n_features=view.map.n_terms if _is_mapped(view) else view.design.shape[1],
        outputs=outputs_of(view, target),
        selected=selected,
        fits=fits,
        goal=float(getattr(view.model, "tol", 1e-6)) if fits else 0.0,
        held_out=held_out,
        class_counts=counts,
        target_values=() if labels is not None or values.ndim > 1 or values.dtype.names else tuple(
            values[:: max(1, values.size // STYLE.most_values)].astype(float).tolist()),
        curves=_curves(view, selected),
        evidence=evidence,
        details=(("Estimator", _shown(estimator)), ("Rows", f"{view.inputs.shape[0]:,}"),
                 ("Columns", f"{view.inputs.shape[1]:,}"), ("Seed", str(rng))),
        python=_python(estimator, rng),
        versions=f"atomlearn {_version()} · Python {platform.python_version()} · NumPy "
        f"{np.__version__} · SciPy {scipy.__version__} · scikit-learn {sklearn.__version__}",
        files=("summary.json",),
    )  # fmt: skip


def _version() -> str:
    from atomlearn import __version__

    return __version__


def _is_mapped(view: View) -> bool:
    return view.map.unit is not None or view.map.implicit


def _selected(view: View) -> tuple[SelectedFeature, ...]:
    """Return what is in use by the size of what it adds: columns, or terms of several columns."""
    if not view.columns.size:
        return ()
    deviations = moments_of(view.design, view.columns)[1]
    terms = view.map.term_of(view.columns)
    numbers, place = np.unique(terms, return_inverse=True)
    if numbers.size == view.columns.size:
        plain, standard = view.weights, view.weights * deviations
    else:  # what a term adds varies by so much over the rows
        block = np.asarray(view.design.gather(view.columns).dense(), dtype=np.float64)
        standard = np.array(
            [
                [(block[:, place == at] @ row[place == at]).std() for at in range(numbers.size)]
                for row in view.weights
            ]
        )
        plain = standard
    names = view.map.term_names(numbers, view.names)
    factors = view.map.inputs_of(numbers)
    size = np.abs(standard).max(axis=0)
    mapped = _is_mapped(view)
    groups = _groups_of(view)
    return tuple(
        SelectedFeature(
            rank=rank,
            name=str(names[at]),
            index=int(numbers[at]),
            coefficients=tuple(plain[:, at].tolist()),
            standardized=tuple(standard[:, at].tolist()),
            scaling=None,
            found=None,
            factors=tuple(view.names[j] for j in factors[at] if j >= 0) if mapped else (),
            group=groups.get(int(numbers[at]), ""),
        )
        for rank, at in enumerate(np.argsort(-size, kind="stable"), start=1)
    )


def _groups_of(view: View) -> dict[int, str]:
    """Return the group of each column in use, where the norm of the model has groups."""
    parts = getattr(view.model, "parts_", None)
    if not parts or isinstance(parts[0], (list, type(None))):
        return {}
    found: dict[int, str] = {}
    for part in parts:
        for column in part.columns.tolist():
            name = part.name or f"group {part.group}"
            found[column] = f"{found[column]}, {name}" if column in found else name
    return found


def _with_twins(
    view: View, X: Any, y: Any, selected: tuple[SelectedFeature, ...]
) -> tuple[SelectedFeature, ...]:
    """Add to the largest features what could have stood for them."""
    if _is_mapped(view) or not view.inputs.listable or not selected:
        return selected
    first = selected[:MOST_TWINS]
    near = correlated_columns(view.inputs, [feature.index for feature in first])
    words = {
        feature.index: [f"{view.names[j]} (r = {r:.2f})" for j, r in others]
        for feature, others in zip(first, near, strict=True)
    }
    if hasattr(view.model, "results_") and hasattr(view.model, "_problems") and X is not None:
        try:
            asked = twins(view.model, X, y, most=10, correlated=0)
        except (TypeError, ValueError, AttributeError):
            asked = []
        for twin in asked:
            if twin.rise is not None:
                instead = f", instead: {twin.replaced_by[0]}" if twin.replaced_by else ""
                words.setdefault(twin.feature, []).append(
                    f"without it: objective +{100 * twin.rise:.2g}%{instead}"
                )
    return tuple(
        replace(feature, twins=tuple(words.get(feature.index, ()))) for feature in selected
    )


def _with_stability(
    estimator: Any, X: Any, y: Any, selected: tuple[SelectedFeature, ...], view: View,
    n_resamples: int | None, rng: int,
) -> tuple[SelectedFeature, ...]:  # fmt: skip
    """Add the share of halves of the rows that select each feature."""
    known = getattr(estimator, "selection_probabilities_", None)
    if known is None:
        if n_resamples is None:
            n_resamples = 20 if view.inputs.shape[0] * view.inputs.shape[1] <= SMALL else 0
        if n_resamples == 0 or _is_mapped(view) or hasattr(estimator, "steps") or is_opened(X):
            return selected
        selector = StabilitySelector(clone(estimator), n_resamples, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = selector.fit(X, y).selection_probabilities_
    if len(known) != view.inputs.shape[1]:
        return selected
    return tuple(replace(item, stability=float(known[item.index])) for item in selected)


def _path(view: View, y: NDArray[Any]) -> PathOf | None:
    """Return the coefficients along levels around the fitted one, of linear models of ours."""
    model = view.model
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    if not hasattr(model, "results_") or view.outputs > 1 or _is_mapped(view) or not alpha:
        return None
    if not hasattr(model, "loss") or getattr(model, "form", "") == "constrained":
        return None
    from atomlearn.paths import path

    norm = getattr(model, "norm_", getattr(model, "norm", "l1"))
    target = y if view.classes is None else np.where(y == view.classes[-1], 1.0, -1.0)
    levels = float(alpha) * len(y) * np.geomspace(8.0, 0.5, 16)
    try:
        found = path(
            view.inputs, target, loss=model.loss, norm=norm, form=model.form, levels=levels,
            intercept=model.fit_intercept, gap=1e-4, max_iter=200,
        )  # fmt: skip
    except (TypeError, ValueError):
        return None
    columns, coefs = found.columns, found.coefs
    if not columns.size:
        return None
    coefs = coefs * moments_of(view.inputs, columns)[1]
    order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:MOST_LINES]
    return PathOf(
        tuple((found.levels / len(y)).tolist()),
        tuple(view.names[int(columns[at])] for at in order),
        tuple(tuple(coefs[:, at].tolist()) for at in order),
        float(alpha),
    )


def _boxes(
    view: View, codes: NDArray[Any], labels: list[str] | None,
    selected: Sequence[SelectedFeature],
) -> tuple[Any, ...]:  # fmt: skip
    if labels is None or _is_mapped(view) or not selected or len(labels) > 12:
        return ()
    first = selected[:MOST_BOXES]
    columns = np.array([feature.index for feature in first])
    order = np.argsort(columns)
    block = np.asarray(view.inputs.gather(columns[order]).dense(), dtype=float)
    values = block[:, np.argsort(order)]
    return boxes_of(values, [feature.name for feature in first], codes, labels)


def _curves(view: View, selected: Sequence[SelectedFeature]) -> tuple[Curve, ...]:
    if view.map.unit != "inputs" or not hasattr(view.model, "curve"):
        return ()
    found = []
    for feature in selected[: STYLE.most_curves]:
        pairs = [view.model.curve(feature.index, output) for output in range(view.outputs)]
        levels = np.asarray(pairs[0][0], dtype=float)
        column = np.asarray(view.inputs.gather(np.array([feature.index])).dense(), dtype=float)
        deciles = np.quantile(column, np.linspace(0.1, 0.9, 9))
        found.append(
            Curve(
                feature.name,
                tuple(levels.tolist()),
                tuple(tuple(np.asarray(values, dtype=float).tolist()) for _, values in pairs),
                tuple(deciles.tolist()),
                steps=levels.size <= 2 or getattr(view.model, "features", "") == "intersection",
            )
        )
    return tuple(found)


def _fits(view: View) -> tuple[FitSummary, ...]:
    results: Sequence[Result] = getattr(view.model, "results_", ())
    labels = outputs_of(view, "the target")
    if len(labels) != len(results):
        labels = tuple(f"fit {number + 1}" for number in range(len(results)))
    gap = getattr(view.model, "selected_gap_", None)
    return tuple(
        FitSummary(
            label,
            str(result.status),
            result.converged,
            result.objective,
            result.gap,
            result.relative_gap,
            result.passes,
            result.seconds,
            tuple(result.history),
            complete=result.converged or result.status is Status.COLUMN_LIMIT,
            gap_on_selected=gap,
        )
        for label, result in zip(labels, results, strict=True)
    )


def _shown(estimator: Any) -> str:
    return " ".join(repr(clone(estimator)).split())


def _python(estimator: Any, rng: int) -> str:
    return (
        f"model = {_shown(estimator)}.fit(X, y)\n"
        f'atomlearn.report(model, X, y, "report.html", rng={rng})'
    )
