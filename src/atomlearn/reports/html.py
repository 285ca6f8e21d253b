"""report.html: one self-contained page about one selection, for light and dark, wide and narrow.

Needs jinja2 (extra ``report``). Every text is escaped: names of features are input from outside.
"""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from atomlearn.reports import lines, network, pairs, plots
from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.content import Content, SelectedFeature
from atomlearn.reports.evidence import Evidence
from atomlearn.reports.manhattan import manhattan_plot
from atomlearn.reports.style import STYLE


class ReportUnavailable(RuntimeError):
    """The page cannot be made because an optional package is missing."""


def write_report(path: str | Path, content: Content) -> None:
    """Write the page; an existing file is replaced as a whole or not at all."""
    write_text(path, report_html(content))


def report_html(content: Content) -> str:
    """Return the page as text; ReportUnavailable where jinja2 is not installed."""
    try:
        import jinja2
        import markupsafe
    except ImportError as error:
        raise ReportUnavailable(
            'report.html needs jinja2: pip install "atomlearn[report]"'
        ) from error
    style, script = _text("report.css"), _text("report.js")
    drawings = {name: markupsafe.Markup(drawn) for name, drawn in _drawings(content).items()}
    page: str = _template(jinja2).render(
        content=content,
        style=markupsafe.Markup(style),
        script=markupsafe.Markup(script),
        policy=_policy(style, script),
        drawings=drawings,
        rows=[_row(content, feature) for feature in content.selected[: STYLE.most_rows]],
        left_out=max(0, len(content.selected) - STYLE.most_rows),
        verdict=content.verdict,
        verdict_words=verdict_words(content),
        meaning=_meaning(content),
        confusion=_confusion(content),
        classes=_classes(content),
        made_of=_made_of(content),
        badge=_badge(content),
        has_bands=any(curve.low for curve in content.curves) and len(content.outputs) == 1,
        has_stability=any(f.stability is not None for f in content.selected),
        has_twins=any(f.twins for f in content.selected),
        has_groups=any(f.group for f in content.selected),
        most_bars=STYLE.most_bars,
        most_curves=STYLE.most_curves,
        links_left_out=network.left_out(content.selected),
    )
    return page


def _text(name: str) -> str:
    return (resources.files("atomlearn.reports") / name).read_text("utf-8")


@cache
def _template(jinja2: ModuleType) -> Any:
    """Return the page's template, compiled once: that takes as long as a small selection."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("report.html.jinja"))


def _policy(style: str, script: str) -> str:
    """Return the content security policy: this page's own style and script, and no network."""
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
    own = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; script-src {own[1]}; "
        f"style-src-elem {own[0]}; style-src-attr 'unsafe-inline'; img-src data:"
    )


def _drawings(content: Content) -> dict[str, str]:
    names = (
        "certificate",
        "objective",
        "selection",
        "prediction",
        "distribution",
        "network",
        "curves",
        "residuals",
        "roc",
        "precision_recall",
        "calibration",
        "validation",
        "path",
        "boxes",
        "pairs",
        "manhattan",
        "parts",
    )
    drawings = dict.fromkeys(names, "")
    drawings |= _evidence(content.evidence)
    histories = [fit.history for fit in content.fits]
    labels = [fit.label for fit in content.fits]
    if any(histories) and content.relative_gap >= STYLE.useful_gap:
        unit = "columns of curves" if content.curves else "features"
        drawings["objective"] = plots.objective_plot(histories, labels, unit)
    elif any(len(history) > 1 for history in histories):  # one point is no line
        drawings["certificate"] = plots.certificate_plot(histories, labels, content.goal)
    if len({f.found for f in content.selected} - {None}) > 1:  # one pass is no order
        drawings["selection"] = plots.selection_plot(content.selected)
    drawings["network"] = network.network_plot(content.selected)
    if content.held_out is not None and content.held_out.truth:
        drawings["prediction"] = plots.prediction_plot(
            content.held_out.truth, content.held_out.predicted
        )
        drawings["residuals"] = lines.residual_plot(
            content.held_out.truth, content.held_out.predicted
        )
    if content.curves:
        drawings["curves"] = plots.curves_plot(content.curves, content.outputs)
    if content.target_values:
        drawings["distribution"] = plots.distribution_plot(content.target_values)
    return drawings


def _evidence(found: Evidence) -> dict[str, str]:
    drawn = {
        "roc": lines.roc_plot(found.roc),
        "precision_recall": lines.precision_recall_plot(found.precision_recall),
        "calibration": lines.calibration_plot(found.calibration),
        "boxes": lines.boxes_plot(found.boxes),
        "pairs": pairs.pairs_plot(found.surfaces),
        "parts": found.parts,
    }
    if found.validation is not None:
        drawn["validation"] = lines.validation_plot(found.validation)
    if found.manhattan is not None:
        drawn["manhattan"] = manhattan_plot(found.manhattan)
    if found.path is not None:
        drawn["path"] = lines.path_plot(found.path)
    return drawn


def verdict_words(content: Content) -> list[str]:
    """Return sentences that say the verdict, what it rests on, and what it does not say."""
    verdict = content.verdict
    if not verdict.n_rows:
        return [f"Nothing is known of how well this model predicts: {verdict.how['verdict']}."]
    held_out, n_of = content.held_out, len(content.selected)
    first = {
        "better": f"A model of selected features predicts {content.target} better than "
        f"{verdict.guess}, if rows are independent: no patient, family or stretch of time in "
        "several of them that was not said to be.",
        "no better": f"On rows that it has not seen, such a model predicts {content.target} no "
        f"better than {verdict.guess}: what is listed below is no finding.",
        "too few rows to tell": f"The rows are too few to tell whether such a model predicts "
        f"{content.target} better than {verdict.guess}.",
    }[verdict.verdict]
    low, high = verdict.interval
    words = [
        first,
        f"The {verdict.measured} is {verdict.score:.3f} on {verdict.n_rows:,} rows "
        f"({100 * verdict.interval_level:.0f}% interval {low:.3f} to {high:.3f}); {verdict.guess} "
        f"has {verdict.baseline:g}. {p_words(verdict.p_value)}"
        # Where all predictions are the same no score is better than another.
        + (
            f" {'An' if verdict.score_name == 'AUC' else 'A'} {verdict.score_name} above "
            f"{verdict.critical:.3f} would count as better than chance."
            if verdict.critical > verdict.baseline
            else ""
        ),
    ]
    if verdict.power is not None:
        words.append(
            f"A signal of a useful size, put into these data, was told in "
            f"{100 * verdict.power:.0f}% of the trials."
        )
    if content.again and held_out is not None:
        share = 100 * held_out.n_test / (held_out.n_test + held_out.n_train)
        words.append(
            f"The features below are not the ones that were scored: {held_out.overlap:,} of these "
            f"{n_of:,} were selected again when {share:.0f}% of the rows were left out."
        )
    return words


def p_words(p_value: float) -> str:
    """Return a p-value as people read it."""
    if p_value >= 0.5:
        return f"p = {p_value:.2g}: random labels mostly do as well."
    times = 10 ** max(1, math.ceil(-math.log10(p_value))) if p_value > 1e-12 else 10**12
    often = max(1, round(p_value * times))
    said = f"once in {times:,} times" if often == 1 else f"{often} times in {times:,}"
    shown = f"{p_value:.2g}" if p_value >= 1e-4 else f"{p_value:.0e}"
    return f"p = {shown}: random labels do this well {said}."


def _meaning(content: Content) -> list[str]:
    """Return sentences on what the proved gap means."""
    several = " of each fit" if len(content.fits) > 1 else ""
    over = f"all {content.n_features:,} features" if content.n_features > 1 else "the feature"
    over = content.over if content.chosen_first else over
    others = f"any coefficients over {over} reach, those never touched included"
    if content.task == "matrix":
        others = "any other matrix reaches"
    on_selected = content.gap_on_selected
    sentences = []
    if on_selected is not None:
        sentences.append(
            f"With the features as selected, the objective{several} is proved to be at most "
            f"{_above(on_selected)} above the lowest that any coefficients reach."
        )
    if content.relative_gap < STYLE.useful_gap:
        sentences.append(
            f"At the returned coefficients, the objective{several} is proved to be at most "
            f"{_above(content.relative_gap)} above what {others}."
        )
    elif on_selected is not None:
        sentences.append(
            "The search ended at the number of features asked for: how much lower the objective "
            f"gets with more of the {content.n_features:,} is not bounded."
        )
    else:
        sentences.append("No useful bound on the distance from the optimum is proved yet.")
    return sentences


def _badge(content: Content) -> str:
    if content.headline_gap <= content.goal:
        return "fitted exactly"
    return (
        "fitted, not to the gap asked for"
        if content.gap_on_selected is None
        else ("ended at the number of features asked for")
    )


def _made_of(content: Content) -> str:
    """Return what features are made of, where they are not the columns."""
    p = content.n_inputs
    if content.n_features == p:
        return ""
    pairs = p * (p - 1) // 2
    words = {
        p + pairs: "columns and all their pairs",
        p + pairs + p: "columns, their squares and all their pairs",
    }
    known = words.get(content.n_features)
    if known is None:
        squares = content.n_features - p - pairs
        known = "columns, all their pairs" if 0 < squares < p else "columns"
        known += f" and {squares:,} squares" if 0 < squares < p else ""
    return f"{p:,} {known}"


def _above(gap: float) -> str:
    # gap is relative to the objective reached, and people compare with the optimum.
    share = gap / (1.0 - gap) if gap < 1 else math.inf
    if share < STYLE.least_share:
        return f"{_decimal(100 * STYLE.least_share)}%"
    return f"{_decimal(100 * share)}%" if math.isfinite(share) else "any amount"


def _decimal(value: float) -> str:
    """Return two digits without an exponent: 0.000031 rather than 3.1e-05."""
    if value >= 1:
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    places = 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{min(places, 20)}f}".rstrip("0").rstrip(".") if places else "0"


def _row(content: Content, feature: SelectedFeature) -> dict[str, Any]:
    """Return what one line of the table shows; bars are in percent of half the column."""
    largest = content.selected[0].size or 1.0
    value, position = feature.strongest, feature.output
    cells = []
    if len(feature.standardized) > 1:
        cells = [
            {
                "title": f"{output}: {weight:.4g}",
                "opacity": f"{abs(weight) / largest:.2f}",
                "sign": "plus" if weight > 0 else "minus",
            }
            for output, weight in zip(content.outputs, feature.standardized, strict=True)
        ]
    return {
        "feature": feature,
        "output": content.outputs[position],
        "coefficient": f"{feature.coefficients[position]:.4g}",
        "standardized": f"{value:+.4g}",
        "number": repr(value),
        "plain_number": repr(feature.coefficients[position]),
        "width": f"{50 * abs(value) / largest:.2f}",
        "sign": "plus" if value > 0 else "minus",
        "cells": cells,
    }


def _confusion(content: Content) -> list[list[dict[str, Any]]]:
    """Return the cells of the confusion matrix with the share of their row."""
    if content.held_out is None:
        return []
    rows = []
    for i, row in enumerate(content.held_out.confusion):
        total = sum(row) or 1
        rows.append(
            [
                {"count": count, "share": f"{count / total:.2f}", "right": i == j}
                for j, count in enumerate(row)
            ]
        )
    return rows


def _classes(content: Content) -> list[dict[str, Any]]:
    largest = max((count for _, count in content.class_counts), default=1) or 1
    total = sum(count for _, count in content.class_counts) or 1
    return [
        {
            "label": label,
            "count": count,
            "width": f"{100 * count / largest:.1f}",
            "share": f"{100 * count / total:.1f}%",
        }
        for label, count in content.class_counts
    ]
