"""Summary: the coefficients of a fitted model, in the units of the table, with intervals."""

from __future__ import annotations

import html
import importlib.util
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from atomlearn._support import check_share
from atomlearn.core import Columns, as_loss, has_probabilities
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import input_names, table_encoding, unpenalized_inputs
from atomlearn.estimators.coefficients import nonzero_coefficients
from atomlearn.findings.effects import estimates as estimates_of
from atomlearn.findings.intervals import Estimates

#: Maximum number of rows that are printed; ``Summary.to_frame`` has all of them.
MOST_PRINTED = 60
#: Characters of a printed line of text.
WIDTH = 100
#: Notes on terms whose columns have no unit of the table.
TERMS = {
    "inputs": "a curve: curve() returns it",
    "terms": "a curve or a surface: curve() and surface() return it",
    "kernels": "a kernel: kernel_norms_ has its size",
}


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A coefficient of a model.

    Attributes
    ----------
    name : str
        A column, a label of a category such as "stage=4", a product, or "intercept".
    output : str
        Class or target of the coefficient, "" if there is only one.
    role : {"penalized", "covariate", "reference", "intercept", "term"}
        A covariate has no penalty; a reference level has no coefficient.
    coefficient : float
        Of the model, per unit of the table; NaN for terms such as curves.
    ratio : float
        exp(coefficient): the odds, hazard or mean ratio; NaN if the loss has none.
    estimate, low, high : float
        Estimate that no penalty pulls towards zero, and the ends of its interval, or NaN.
    p_value : float
        Of no effect, or NaN.
    note : str
        Unit, reference level, or why there is no interval.
    """

    name: str
    output: str = ""
    role: str = "penalized"
    coefficient: float = np.nan
    ratio: float = np.nan
    estimate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p_value: float = np.nan
    note: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The coefficients of a fitted model, as text, as HTML in notebooks, or as a data frame.

    Attributes
    ----------
    title : str
        The model, and the quantity that its coefficients add up to.
    proved, estimated : str
        Sentences on the proved gap of the fit, and on the condition of the intervals (or the reason
        why there are none).
    rows : tuple of SummaryRow
        Intercepts, covariates and selected columns with their reference levels.
    ratio_name : str
        Such as "odds ratio"; "" if coefficients have no ratio.
    confidence : float
        Coverage of the intervals.
    notes : tuple of str
        Remarks, such as shares of imputed values.
    """

    title: str
    proved: str
    estimated: str
    rows: tuple[SummaryRow, ...]
    ratio_name: str
    confidence: float
    notes: tuple[str, ...]

    def to_frame(self, library: str | None = None) -> Any:
        """Return the rows as a data frame.

        library : "pandas", "polars" or "pyarrow"; None for the first of these that is installed.
        """
        import narwhals.stable.v2 as nw

        installed = [
            name for name in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(name)
        ]
        if not (library or installed):
            raise ImportError("to_frame needs a library of data frames; pip install pandas")
        names = [field.name for field in fields(SummaryRow)]
        columns = {name: [asdict(row)[name] for row in self.rows] for name in names}
        if self.ratio_name:
            for name in ("estimate", "low", "high"):
                columns[f"ratio_{name}"] = np.exp(columns[name]).tolist()
        backend: Any = library or installed[0]
        return nw.from_dict(columns, backend=backend).to_native()

    def __str__(self) -> str:
        """Return the summary as text: title, proof, table of coefficients, and notes."""
        header, *lines = self._cells()
        printed = lines[:MOST_PRINTED]
        widths = [max(map(len, column)) for column in zip(header, *printed, strict=True)]
        table = []
        for cells in (header, *printed):
            padded = [cells[0].ljust(widths[0])]
            padded += [
                cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1], strict=True)
            ]
            table.append("  ".join([*padded, cells[-1]]).rstrip())
        n_hidden = len(lines) - len(printed)
        table += [f"... and {n_hidden} more rows: to_frame() has all of them"] * (n_hidden > 0)
        heading = [textwrap.fill(text, WIDTH) for text in (self.title, self.proved)]
        footing = [textwrap.fill(text, WIDTH) for text in (self.estimated, *self.notes)]
        return "\n".join([*heading, "", *table, "", *footing])

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        header, *lines = self._cells()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in lines[:MOST_PRINTED]
        )
        # Long tables are cut; a last line says how many rows are missing.
        n_hidden = len(lines) - MOST_PRINTED
        remainder = (
            [f"and {n_hidden} more rows: to_frame() has all of them"] if n_hidden > 0 else []
        )
        footing = "".join(
            f"<p>{html.escape(text)}</p>" for text in (self.estimated, *self.notes, *remainder)
        )
        return (
            f"<div><p><b>{html.escape(self.title)}</b><br>{html.escape(self.proved)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{footing}</div>"
        )

    def _cells(self) -> Iterator[list[str]]:
        """Yield the cells of the header, then those of each row, as lists of text.

        Columns that would be empty (output, ratio, interval) are left out.
        """
        has_outputs = any(row.output for row in self.rows)
        has_intervals = any(np.isfinite(row.estimate) for row in self.rows)
        # A list times False is empty, so that its cells are left out.
        scale = f"estimated {self.ratio_name or 'coefficient'}"
        yield [
            "",
            *["output"] * has_outputs,
            "coefficient",
            *[self.ratio_name] * bool(self.ratio_name),
            *[scale, f"{self.confidence:.0%} interval", "p"] * has_intervals,
            "note",
        ]
        for row in self.rows:
            numbers = [row.estimate, row.low, row.high]
            value, low, high = np.exp(numbers) if self.ratio_name else numbers
            interval = "" if np.isnan(value) else f"{low:.4g} to {high:.4g}"
            role = "" if row.role in ("penalized", "intercept", "term") else row.role
            yield [
                row.name,
                *[row.output] * has_outputs,
                _number(row.coefficient),
                *[_number(row.ratio)] * bool(self.ratio_name),
                *[_number(value), interval, _number(row.p_value, ".2g")] * has_intervals,
                "; ".join(filter(None, (role, row.note))),
            ]


def _number(value: float, form: str = ".4g") -> str:
    """Return a number as text in the format ``form``, "" for NaN."""
    return "" if np.isnan(value) else format(value, form)


def summary_of(
    estimator: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    estimates: Estimates | None = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
) -> Summary:
    """Return the summary of a fitted model; see ``AtomicRegressor.summary``.

    X, y, sample_weight, groups : the data of the fit, from which intervals are estimated. estimates
    : the estimates to use instead, or None. confidence : the coverage of the intervals.
    ``estimator`` is the fitted estimator.
    """
    check_is_fitted(estimator)
    check_share("confidence", confidence, 0.95)
    if (X is None) is not (y is None):
        raise ValueError("summary needs both X and y of the fit for intervals, or neither of them")
    # Intervals: none for curves, the given ones, or those estimated from X and y.
    reason = (
        "no intervals: pass the data of the fit, summary(X, y), or estimates=findings.estimates"
    )
    if estimator.feature_map_.unit is not None:
        estimates = None
        reason = "no intervals: curves, surfaces and kernels have no coefficient"
    elif X is not None and estimates is None:
        estimates, reason = _intervals(estimator, X, y, confidence, sample_weight, groups)
    confidence = confidence if estimates is None else estimates.confidence
    estimated = reason
    if estimates is not None:
        estimated = (
            f"Estimated, not proved: {confidence:.0%} intervals of coefficients that no penalty "
            f"pulls towards zero, {estimates.condition}."
        )
    ratio_name = _ratio_name(estimator)
    rows = tuple(_rows(estimator, bool(ratio_name), estimates))
    notes = tuple(_notes(estimator, estimates))
    values = _title(estimator), _proved(estimator), estimated, rows, ratio_name, confidence, notes
    return Summary(*values)


def _intervals(
    estimator: AtomicModel, X: Any, y: Any, confidence: float, sample_weight: Any, groups: Any
) -> tuple[Estimates | None, str]:
    """Return estimates with intervals and "", or None and the reason why there are none.

    X, y, sample_weight, groups : the data of the fit. If no column is penalized, all columns are
    estimated; otherwise the selected ones. ``estimator`` is the fitted estimator and ``confidence``
    the coverage of the intervals.
    """
    n_columns = np.shape(estimator.coef_)[-1]
    is_free = _covariates(estimator).size == n_columns
    columns = [*range(n_columns)] if is_free else None
    options = {"confidence": confidence, "sample_weight": sample_weight, "groups": groups}
    try:
        return estimates_of(estimator, X, y, columns, **options), ""
    except (ValueError, TypeError, np.linalg.LinAlgError) as error:
        return None, f"no intervals: {error}"


def _covariates(estimator: AtomicModel) -> Columns:
    """Return the columns without a penalty.

    ``estimator`` is the fitted estimator.
    """
    map = estimator.feature_map_
    inputs = unpenalized_inputs(estimator, map.n_inputs)
    return np.zeros(0, dtype=np.int64) if inputs is None else map.main_columns(inputs)


def _ratio_name(estimator: Any) -> str:
    """Return the name of exp(coefficient), "" if it has no meaning.

    ``estimator`` is the fitted estimator.
    """
    loss = as_loss(estimator.loss)
    if loss.task == "survival":
        return "hazard ratio"
    if loss.task == "classification":
        is_joint = estimator.multi_class == "multinomial" and len(estimator.classes_) > 2
        return "odds ratio" if has_probabilities(loss) and not is_joint else ""
    low, high = loss.mean(np.array([0.0, 1.0]))
    return "ratio of means" if low and np.isclose(high / low, np.e) else ""


def _outputs(estimator: Any, n_outputs: int) -> list[str]:
    """Return the names of the ``n_outputs`` outputs: classes or indices; [""] if there is one.

    ``estimator`` is the fitted estimator.
    """
    if n_outputs == 1:
        return [""]
    names = estimator.classes_ if is_classifier(estimator) else range(n_outputs)
    return [str(name) for name in names]


def _rows(estimator: Any, has_ratio: bool, estimates: Estimates | None) -> Iterator[SummaryRow]:
    """Yield the rows of the summary: intercepts, then terms of a map (such as curves) or columns.

    has_ratio : whether exp(coefficient) has a meaning. estimates : the intervals, or None.
    ``estimator`` is the fitted estimator.
    """
    map = estimator.feature_map_
    columns, weights = nonzero_coefficients(estimator.coef_)
    outputs = _outputs(estimator, len(weights))
    intercepts = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), (len(outputs),))
    if estimator.fit_intercept:
        for output, value in zip(outputs, intercepts.tolist(), strict=True):
            yield SummaryRow("intercept", output, "intercept", value)
    if map.unit is not None:
        for name in map.term_names(np.unique(map.term_of(columns)), input_names(estimator)):
            yield SummaryRow(name, role="term", note=TERMS.get(map.unit, ""))
        return
    # A row for each covariate or selected column and each output, below its reference level.
    covariates = _covariates(estimator)
    listed = np.union1d(columns, covariates)
    table = np.zeros((len(outputs), listed.size))
    table[:, np.searchsorted(listed, columns)] = weights
    names = map.names(listed, input_names(estimator))
    for index, (column, name) in enumerate(zip(listed.tolist(), names, strict=True)):
        yield from _reference(estimator, column, listed, has_ratio)
        role = "covariate" if column in covariates else "penalized"
        note = "" if map.implicit else _unit(estimator, column)
        for output, value in zip(outputs, table[:, index].tolist(), strict=True):
            ratio = float(np.exp(value)) if has_ratio else np.nan
            yield SummaryRow(name, output, role, value, ratio, **_interval(estimates, column, note))


def _interval(estimates: Estimates | None, column: int, note: str) -> dict[str, Any]:
    """Return the fields of a row that come from the estimates: interval, p-value and note.

    column : the column of the row. note : the note of the row so far.
    """
    if estimates is None:
        return {"note": note}
    positions = np.flatnonzero(estimates.columns == column)
    if not positions.size:
        reason = "no interval: the rows that select leave it out"
        return {"note": "; ".join(filter(None, (note, reason)))}
    low, high = estimates.intervals[positions[0]].tolist()
    p_value = float(estimates.p_values[positions[0]])
    value = float(estimates.values[positions[0]])
    return {"estimate": value, "low": low, "high": high, "p_value": p_value, "note": note}


def _unit(estimator: Any, column: int) -> str:
    """Return the unit of a column of the table, "" for the unit of the data.

    ``estimator`` is the fitted estimator.
    """
    encoding = table_encoding(estimator)
    if encoding is None:
        return ""
    plan = encoding.columns[int(encoding.sources[column])]
    return "" if plan.use == "category" else str(encoding.described(column))


def _reference(
    estimator: Any, column: int, listed: Columns, has_ratio: bool
) -> Iterator[SummaryRow]:
    """Yield the row of the reference level of a category, ahead of its first other level.

    column : a column of the encoded table. listed : all columns of the summary. has_ratio : whether
    exp(coefficient) has a meaning. Yields nothing for other columns. ``estimator`` is the fitted
    estimator.
    """
    encoding = table_encoding(estimator)
    if encoding is None or estimator.feature_map_.implicit:
        return
    sources = encoding.sources
    plan = encoding.columns[int(sources[column])]
    columns_of_plan = np.flatnonzero(sources == sources[column])
    if plan.use != "category" or np.intersect1d(listed, columns_of_plan)[0] != column:
        return
    # Levels that are not listed have the coefficient 0, as the reference level has.
    names = encoding.names
    names_at_zero = [
        names[sibling] for sibling in columns_of_plan.tolist() if sibling not in listed
    ]
    note = f"also {', '.join(names_at_zero)} (coefficient 0)" if names_at_zero else ""
    ratio = 1.0 if has_ratio else np.nan
    yield SummaryRow(f"{plan.name}={plan.reference_level}", "", "reference", 0.0, ratio, note=note)


def _title(estimator: Any) -> str:
    """Return the first line: the estimator, the unit of its coefficients, and their number."""
    loss = as_loss(estimator.loss)
    n_columns = np.shape(estimator.coef_)[-1]
    n_used = nonzero_coefficients(estimator.coef_)[0].size
    added = f"{loss.name} loss"
    if loss.task == "classification" and len(estimator.classes_) == 2:
        first, second = estimator.classes_.tolist()
        kind = "log odds" if has_probabilities(loss) else "decision"
        added = f"{kind} of {second!r} against {first!r}"
    elif loss.task == "survival":
        added = "log hazard"
    elif _ratio_name(estimator) == "ratio of means":
        added = f"log mean, {loss.name} loss"
    return (
        f"{type(estimator).__name__}, {added}: {n_used} of {n_columns} columns have a coefficient"
    )


def _proved(estimator: Any) -> str:
    """Return the sentence about the objective and its proved gap.

    ``estimator`` is the fitted estimator.
    """
    objective = estimator.objective_
    relative = estimator.gap_ / objective if objective > 0 else 0.0
    relaxed = vars(estimator).get("relax_", estimator.relax)
    condition = "" if not np.any(relaxed) else " of the penalized fit, before the refit of relax"
    early = "" if relative <= estimator.tol else f" The fit ended early: {estimator.status_}."
    return (
        f"Proved, for these rows: the objective{condition} is {objective:.6g}, and the best "
        f"possible one is less by at most {relative:.1e} of it.{early}"
    )


def _notes(estimator: Any, estimates: Estimates | None) -> Iterator[str]:
    """Yield notes on columns that only a part of the rows selects, and on imputed values.

    ``estimator`` is the fitted estimator and ``estimates`` are the estimates with intervals, or
    None.
    """
    columns = nonzero_coefficients(estimator.coef_)[0]
    if estimates is not None:
        left_out = np.setdiff1d(estimates.columns, np.union1d(columns, _covariates(estimator)))
        if left_out.size:
            names = estimator.feature_map_.names(left_out, input_names(estimator))
            yield f"Part of the rows would also select, unlike the model: {', '.join(names)}."
    encoding = table_encoding(estimator)
    if encoding is not None and encoding.imputed:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in encoding.imputed.items())
        yield f"Imputed by the median or the most frequent label: {shares} of the rows."
