"""Tables of a selection: selected.csv for machines, a few aligned lines for the terminal."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.cells import inert
from atomlearn.reports.content import Content, SelectedFeature
from atomlearn.reports.drawing import shortened


def write_selected_csv(path: str | Path, content: Content) -> None:
    """Write one line a selected feature, by rank; floats read back to the same bits.

    Names that a spreadsheet would run stand behind an apostrophe (``cells.inert``).
    """
    write_text(path, selected_csv(content))


def selected_csv(content: Content) -> str:
    """Return the CSV text: rank, feature, index, coefficients, scaling d, pass found."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    single = len(content.outputs) == 1
    suffixes = [""] if single else [f"[{output}]" for output in content.outputs]
    header = ["rank", "feature", "index"]
    header += [f"coefficient{suffix}" for suffix in suffixes]
    header += [f"standardized_coefficient{suffix}" for suffix in suffixes]
    more = list(dict.fromkeys(key for feature in content.selected for key, _ in feature.about))
    writer.writerow(map(inert, [*header, "scaling", "found_in_pass", *more]))
    for feature in content.selected:
        numbers = [repr(value) for value in (*feature.coefficients, *feature.standardized)]
        scaling = "" if feature.scaling is None else repr(feature.scaling)
        found = "" if feature.found is None else feature.found
        about = dict(feature.about)
        told = [about.get(key, "") for key in more]
        place = [feature.rank, inert(feature.name), feature.index]
        writer.writerow([*place, *numbers, scaling, found, *told])
    return stream.getvalue()


def summary_lines(content: Content, most: int = 10) -> list[str]:
    """Return the short table that a terminal shows: scores, gap and the first features."""
    lines = _verdict_lines(content)
    if content.held_out is not None:
        for score in content.held_out.scores:
            if score.name == content.verdict.score_name:
                continue
            lines.append(f"  {'held-out ' + score.name:<28} {score.shown:>9}   ({score.against})")
    lines.append(
        f"  {'features selected':<28} {len(content.selected):>9}   (of {content.n_features:,})"
    )
    if content.covariates:
        names = ", ".join(item.name for item in content.covariates[:5])
        names += ", ..." if len(content.covariates) > 5 else ""
        lines.append(f"  {'covariates, in any case':<28} {len(content.covariates):>9}   ({names})")
    lines.append(
        f"  {'fitted to a relative gap of':<28} {content.headline_gap:>9.1e}   "
        f"(on {content.over}; asked for {content.goal:.0e})"
    )
    if content.selected:
        lines.append("")
        lines.extend(_feature_lines(content.selected[:most]))
        if len(content.selected) > most:
            lines.append(f"  ... and {len(content.selected) - most} more")
    lines += [f"\n  warning: {warning}" for warning in content.warnings]
    return lines


def _verdict_lines(content: Content) -> list[str]:
    verdict = content.verdict
    if not verdict.n_rows:
        return [f"  verdict: {verdict.verdict}: {verdict.how['verdict']}"]
    low, high = verdict.interval
    percent = f"{100 * verdict.interval_level:.0f}%"
    than = "" if verdict.verdict.startswith("too") else f" than {verdict.guess}"
    return [
        f"  verdict: {verdict.verdict}{than} (p = {verdict.p_value:.2g})",
        f"  {verdict.measured:<28} {verdict.score:>9.3f}   "
        f"({percent} interval {low:.3f} to {high:.3f}; {verdict.guess}: {verdict.baseline:g})",
    ]


def _feature_lines(features: tuple[SelectedFeature, ...]) -> list[str]:
    width = min(max(len(feature.name) for feature in features), 48)
    lines = [f"  {'rank':>4}  {'feature':<{width}}  {'coefficient':>12}  {'per st. dev.':>12}"]
    for feature in features:
        name = shortened(feature.name, width)
        lines.append(
            f"  {feature.rank:>4}  {name:<{width}}  {feature.coefficients[feature.output]:>12.4g}  "
            f"{feature.strongest:>12.4g}"
        )
    return lines
