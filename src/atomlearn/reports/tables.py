"""What a selection tells as text: selected.csv, summary.json, and lines for the terminal."""

from __future__ import annotations

import csv
import io
import json
import math

from atomlearn.reports.cells import inert
from atomlearn.reports.content import Content, SelectedFeature
from atomlearn.reports.drawing import printable


def selected_csv(content: Content) -> str:
    """Return one line a selected feature, by rank; floats read back to the same bits.

    Names that a spreadsheet would run stand behind an apostrophe (``cells.inert``).
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")  # which writes floats by all their digits
    outputs = content.outputs
    suffixes = [""] if len(outputs) == 1 else [f"[{output}]" for output in outputs]
    kinds = ("coefficient", "standardized_coefficient")
    numbers = [f"{kind}{suffix}" for kind in kinds for suffix in suffixes]
    more = list(dict.fromkeys(key for feature in content.selected for key, _ in feature.about))
    header = ["rank", "feature", "index", *numbers, *more]
    writer.writerow(map(inert, header))
    for item in content.selected:
        told = [dict(item.about).get(key, "") for key in more]
        values = (*item.coefficients, *item.standardized)
        writer.writerow([item.rank, inert(item.name), item.index, *values, *told])
    return stream.getvalue()


def summary_lines(content: Content, most: int = 10) -> list[str]:
    """Return the short table that a terminal shows: verdict, figures and the first features."""
    verdict = content.verdict
    lines = [f"  verdict: {str(verdict).partition(': ')[0]}", f"  {verdict.evidence}"]
    for name, shown, against in content.figures:
        lines.append(f"  {name:<28} {shown:>9}   ({printable(against, 56)})")
    if content.selected:
        lines += ["", *_feature_lines(content.selected[:most])]
        if len(content.selected) > most:
            lines.append(f"  ... and {len(content.selected) - most} more")
    return [*lines, *(f"\n  warning: {warning}" for warning in content.warnings)]


def _feature_lines(features: tuple[SelectedFeature, ...]) -> list[str]:
    width = min(max(len(feature.name) for feature in features), 48)
    lines = [f"  {'rank':>4}  {'feature':<{width}}  {'coefficient':>12}  {'per st. dev.':>12}"]
    for feature in features:
        name = printable(feature.name, width)
        lines.append(
            f"  {feature.rank:>4}  {name:<{width}}  {feature.coefficients[feature.output]:>12.4g}  "
            f"{feature.strongest:>12.4g}"
        )
    return lines


def summary_text(content: Content) -> str:
    """Return JSON: the verdict, its score, what was selected and how exactly it was fitted.

    ``how`` says of each number how it was computed; what is not known is null.
    """
    found = content.verdict.as_dict()
    found["how"] |= {
        "proved_gap": f"(objective - lower bound) / objective, a duality gap over {content.over} "
        "of the model that is written, fitted to all rows; it says how exactly the problem was "
        "solved, and nothing of how well the model predicts",
        "n_selected": "features with a coefficient in the model that is written, covariates apart",
    }
    found |= {
        "headline": content.headline,
        "proved_gap": content.headline_gap if math.isfinite(content.headline_gap) else None,
        "asked_gap": content.goal,
        "fitted_exactly": content.headline_gap <= content.goal,
        "n_selected": len(content.selected),
        "n_selected_again": None if content.held_out is None else content.held_out.overlap,
        "n_features": content.n_features,
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
        "status": [fit.status for fit in content.fits],
        "warnings": list(content.warnings),
        "notes": list(content.notes),
        "command": content.command,
        "versions": content.versions,
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"
