"""Write the text of a selection: selected.csv, summary.json, and lines for the terminal.

A spreadsheet executes a cell that begins with one of ``= @ + -`` as a formula, which can read other
cells or open a URL (CSV injection). Names of columns and labels come from untrusted files, so such
cells are prefixed with an apostrophe. ``plain(inert(text)) == text`` holds for every text, and
numbers are written unchanged.

OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.reports.content import Content, SelectedFeature
from atomlearn.reports.drawing import printable
from atomlearn.reports.markers import marker_lines, marker_rows


def selected_csv(content: Content) -> str:
    """Return a CSV with one row per selected feature, in rank order, and the covariates after them.

    Covariates have no rank. Losses of hazards, odds or means have a column of ratios, exp(w). Cells
    that a spreadsheet would execute as formulas are prefixed with an apostrophe. Floats are written
    with all digits, so that they are read back exactly. ``content`` is the content of the report.
    """
    outputs = content.outputs
    suffixes = [""] if len(outputs) == 1 else [f"[{output}]" for output in outputs]
    kinds = ["coefficient", "standardized_coefficient"]
    kinds += [f"{content.scale}_ratio"] if content.scale else []
    numbers = [f"{kind}{suffix}" for kind in kinds for suffix in suffixes]
    # If there are covariates, a further column says which rows are.
    roles = {feature.index: "covariate" for feature in content.covariates}
    features_with_roles = [
        replace(feature, about=(("role", roles.get(feature.index, "selected")), *feature.about))
        if roles
        else feature
        for feature in (*content.selected, *content.covariates)
    ]
    headers = list(
        dict.fromkeys(key for feature in features_with_roles for key, _ in feature.about)
    )
    header = ["rank", "feature", "index", *numbers, *headers]
    lines: list[list[Any]] = [[*map(inert, header)]]
    for feature in features_with_roles:
        further_values = [dict(feature.about).get(key, "") for key in headers]
        values = [*feature.coefficients, *feature.standardized]
        values += np.exp(np.minimum(feature.coefficients, 700.0)).tolist() if content.scale else []
        rank = "" if feature.index in roles else feature.rank
        lines.append([rank, inert(feature.name), feature.index, *values, *further_values])
    return csv_text(lines)


def groups_csv(content: Content) -> str:
    """Return a CSV with one row per selected group, the largest weight first.

    ``content`` is the content of the report.
    """
    lines: list[list[Any]] = [["group", "members", "selected", "share", "weight"]]
    for group in content.groups:
        counts = group.n_members, group.n_selected, group.n_selected / group.n_members
        lines.append([inert(group.name), *counts, group.weight])
    return csv_text(lines)


def enrichment_csv(content: Content) -> str:
    """Return a CSV with one row per set with selected members, "" without sets.

    ``content`` is the content of the report.
    """
    if not content.universe:
        return ""
    head = ["set", "size", "selected", "expected", "p_value", "p_adjusted", "members"]
    lines: list[list[Any]] = [head]
    for group in content.enriched:
        numbers = (group.size, len(group.members), group.expected, group.p_value, group.p_adjusted)
        lines.append([inert(group.name), *numbers, inert(" ".join(map(str, group.members)))])
    return csv_text(lines)


def markers_csv(content: Content) -> str:
    """Return a CSV with one row per class and selected feature, "" without several classes.

    ``content`` is the content of the report.
    """
    if not content.markers:
        return ""
    return csv_text([*map(inert, line)] for line in marker_rows(content.markers))


def csv_text(lines: Iterable[Iterable[Any]]) -> str:
    """Return lines of cells as CSV text; floats are written with all digits."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)  # floats with all digits
    return stream.getvalue()


#: Maximum number of features, groups or names in each list of the terminal.
MOST_SHOWN = 10


def summary_lines(content: Content) -> list[str]:
    """Return the lines that the terminal shows: verdict, scores and the first features.

    ``content`` is the content of the report.
    """
    verdict = content.verdict
    lines = [f"  verdict: {str(verdict).partition(': ')[0]}", f"  {verdict.evidence}"]
    for name, value, against in content.figures:
        lines.append(f"  {name:<28} {value:>9}   ({printable(against, 56)})")
    if content.again:
        lines.append(f"  {content.count:,} {content.unit}s were selected{content.again}")
    if len(content.recalls) > 2:
        lines.append("  found of the held-out rows of each class:")
        for label, count, share in content.recalls:
            correct = f"{share:.0%} of {count}" if count else "none was held out"
            lines.append(f"    {printable(label, 48)}: {correct}")
    if content.fits and content.headline_gap > content.goal:
        lines.append(f"  not solved to the gap asked for: {content.headline_gap:.1e} is proved")
    if content.proof:
        lines += ["", *(f"  {sentence}" for sentence in content.proof.sentences)]
    # Sections on groups, features, covariates, markers and enrichment, as far as there are any.
    if content.groups:
        lines += ["", "  groups, the heaviest first"]
        for group in content.groups[:MOST_SHOWN]:
            name = printable(group.name, 48)
            lines.append(f"    {name}: {group.n_selected} of {group.n_members} members")
    if content.selected:
        lines += ["", *_feature_lines(content, content.selected[:MOST_SHOWN])]
        if len(content.selected) > MOST_SHOWN:
            lines.append(f"  ... and {len(content.selected) - MOST_SHOWN} more")
    if content.covariates:
        lines += ["", "  covariates, in every model:"]
        lines += _feature_lines(content, content.covariates[:MOST_SHOWN])
        if len(content.covariates) > MOST_SHOWN:
            lines.append(f"  ... and {len(content.covariates) - MOST_SHOWN} more")
    lines += marker_lines(content.markers)
    if content.universe:
        lines += ["", f"  enrichment: {content.universe}"]
        for found in content.enriched[:MOST_SHOWN]:
            lines.append(
                f"    {printable(found.name, 48)}: {len(found.members)} of {found.size:,} "
                f"selected, {found.expected:.2g} expected; p = {found.p_value:.2g}, "
                f"adjusted {found.p_adjusted:.2g}"
            )
        if not content.enriched:
            lines.append("    no set has a selected member")
    if content.considered:
        lines.append(f"  considered, with the coefficient 0: {considered_words(content)}")
    lines += [f"\n  warning: {warning}" for warning in content.warnings]
    return [*lines, *(f"\n  question: {question}" for question in content.questions)]


def considered_words(content: Content) -> str:
    """Return the first names of features with a zero coefficient, and a count of the others.

    ``content`` is the content of the report.
    """
    names = [printable(name, 48) for name in content.considered[:MOST_SHOWN]]
    ending = ""
    if len(content.considered) > MOST_SHOWN:
        ending = f" and {len(content.considered) - MOST_SHOWN:,} more"
    return ", ".join(names) + ending


def _feature_lines(content: Content, features: tuple[SelectedFeature, ...]) -> list[str]:
    """Return the lines of a table of features.

    Its columns are rank, name, output (if there are several), effect per standard deviation, and
    coefficient. ``content`` is the content of the report.
    """
    has_outputs = len(content.outputs) > 1
    has_intervals = any(feature.interval for feature in features)
    header: tuple[str, ...] = ("rank", "feature", "for", "per st. dev.", "coefficient")
    if has_intervals:
        header += (f"{content.scale} ratio (95%)" if content.scale else "estimate (95%)",)
    rows = [header] + [
        (
            "" if feature in content.covariates else str(feature.rank),
            printable(feature.shown, 48),
            printable(" and ".join(content.outputs[output] for output in feature.outputs), 48),
            feature.effect(content.scale),
            f"{feature.coefficients[feature.output]:.4g}",
            *([feature.interval] if has_intervals else []),
        )
        for feature in features
    ]
    # Columns of text are aligned by their widest cells.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for rank, name, label, *numbers in rows:
        cells = [rank.rjust(widths[0]), name.ljust(widths[1])]
        cells += [label.ljust(widths[2])] if has_outputs else []
        cells += [text.rjust(width) for text, width in zip(numbers, widths[3:], strict=True)]
        lines.append("  " + "  ".join(cells))
    return lines


def summary_text(content: Content) -> str:
    """Return the summary as JSON: the verdict, its score, the selection, and the duality gap.

    ``how`` explains how each number was computed; an unknown number is null. ``content`` is the
    content of the report.
    """
    summary: dict[str, Any] = {"format": "atomlearn-summary", "version": 1}
    summary |= content.verdict.as_dict()
    # Further explanations join those of the verdict.
    summary["how"] |= {
        "proved_gap": f"(objective - lower bound) / objective, a duality gap over {content.over} "
        "of the model that is written, fitted to all rows; it says how exactly the problem was "
        "solved, and nothing of how well the model predicts",
        "n_selected": "features (a category is one, a group of --groups too) with a coefficient "
        "other than zero in the model that is written, without covariates; n_selected_columns: "
        "their columns; considered: features that the search took up and gave the coefficient zero",
    }
    summary |= {
        "headline": content.headline,
        "proved_gap": content.headline_gap if math.isfinite(content.headline_gap) else None,
        "proved_gap_over": content.over,
        "asked_gap": content.goal,
        "fitted_exactly": content.headline_gap <= content.goal,
        "n_selected": content.count,
        "n_selected_columns": len(content.selected),
        "considered": list(content.considered),
        "n_selected_again": None if content.held_out is None else content.held_out.overlap,
        "n_features": (content.terms or (0, content.n_features))[1],
        "n_covariates": len(content.covariates),
        "covariates": [
            {"name": item.name, "coefficients": list(item.coefficients)}
            for item in content.covariates
        ],
        "n_rows": content.n_samples,
        "n_fitted_for_the_score": None if content.held_out is None else content.held_out.n_train,
        "task": content.task,
        "target": content.target,
        "data": content.data,
        "status": list(dict.fromkeys(fit.status for fit in content.fits)),
        "proved": [] if content.proof is None else list(content.proof.sentences),
        "warnings": list(content.warnings),
        "questions": list(content.questions),
        "notes": list(content.notes),
        "command": content.command,
        "files": list(content.files),
        "versions": content.versions,
    }
    return json.dumps(summary, indent=1, allow_nan=False) + "\n"


#: Names of the files that a selection may write. The summary lists those that were written.
TABLES = ("summary.json", "selected.csv", "markers.csv", "groups.csv", "enrichment.csv")
RUN_FILES = (*TABLES, "score.tsv", "components.tsv", "model.json", "report.html")


def files_of_run(folder: Path, names: Iterable[str] = RUN_FILES) -> list[str]:
    """Return the files in a folder that its summary.json lists as written by atomlearn.

    The list is empty if there is no summary. ``names`` are the names of the files to be written.

    Raises
    ------
    ValueError
        If a file to be written exists and is not listed, because atomlearn did not write it.
    """
    listed = list[str]()
    existing = [name for name in RUN_FILES if (folder / name).exists()]
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads((folder / "summary.json").read_text("utf-8", errors="replace"))
        if content["format"] == "atomlearn-summary":
            listed = [name for name in existing if name in content.get("files", existing)]
    foreign = [name for name in names if name in existing and name not in listed]
    if foreign:
        raise ValueError(
            f"{folder} has {', '.join(foreign)}, not written by atomlearn; give another folder, so "
            "that nothing of yours is lost"
        )
    return listed


_RUN = ("=", "@", "+", "-", "\t", "\r")
_MARK = "'"


def inert(cell: Any) -> Any:
    """Return the cell, prefixed with an apostrophe if a spreadsheet would execute it as a formula.

    Examples
    --------
    >>> from atomlearn.reports.tables import inert, plain
    >>> inert("=1+1"), inert("-0.5"), inert("dose"), plain(inert("=1+1"))
    ("'=1+1", '-0.5', 'dose', '=1+1')
    """
    if not isinstance(cell, str) or not _would_run(cell):
        return cell
    return _MARK + cell


def plain(cell: str) -> str:
    """Return the original text of a cell that ``inert`` has escaped."""
    return cell[1:] if cell.startswith(_MARK) and _would_run(cell[1:]) else cell


def _would_run(text: str) -> bool:
    """Return whether a spreadsheet would execute the text; plain numbers are not executed."""
    # Leading apostrophes are skipped, so that a text such as '=1 is escaped too and is read back
    # unchanged.
    if not text.lstrip(_MARK).startswith(_RUN):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return "_" in text or not text.isprintable()
