"""report.html: a self-contained page about one selection, for light, dark, wide and narrow views.

It needs jinja2 and matplotlib (the extra ``report``), which are imported only when a page is made.
All text is escaped, because names of features are untrusted input.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from itertools import groupby
from types import ModuleType
from typing import Any

from atomlearn.findings.verdict import Verdict
from atomlearn.reports.content import Content
from atomlearn.reports.drawing import MOST_POINTS, percent, svg_of
from atomlearn.reports.markers import MOST_ON_PAGE
from atomlearn.reports.tables import considered_words


class ReportUnavailable(RuntimeError):
    """Raised if the page cannot be made because an optional package is missing."""


def report_html(content: Content) -> str:
    """Return the page about ``content`` as HTML, in which displays of one kind share a card.

    Raises ReportUnavailable without jinja2 or matplotlib.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401
        from markupsafe import Markup
    except ImportError as error:
        raise ReportUnavailable(
            "report.html needs jinja2 and matplotlib: pip install jinja2 matplotlib"
        ) from error
    style = _text("report.css")
    script = _text("report.js")
    cards = [
        (first_display, [Markup(svg_of(display)) for display in (first_display, *other_displays)])
        for _, (first_display, *other_displays) in groupby(content.displays, key=type)
    ]
    page: str = _template(jinja2).render(
        content=content,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        cards=cards,
        rows=content.selected[:MOST_POINTS],
        considered=considered_words(content),
        most_markers=MOST_ON_PAGE,
        verdict=content.verdict,
        verdict_words=verdict_words(content),
        meaning=_meaning(content),
        badge=_badge(content),
    )
    return page


def _text(name: str) -> str:
    """Return the text of a file in this folder of the package, such as ``report.css``."""
    return (resources.files("atomlearn.reports") / name).read_text("utf-8")


@cache
def _template(jinja2: ModuleType) -> Any:
    """Return the compiled template; it is cached, because compiling takes long.

    jinja2 : the module, which is an optional package.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("report.html.jinja"))


def _policy(style: str, script: str) -> str:
    """Return the content security policy of the page, from the texts of its style and script.

    It allows the style and the script of this page only, by their SHA-256 hashes, and no network
    access.
    """
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; script-src {hashes[1]}; "
        f"style-src-elem {hashes[0]}; style-src-attr 'unsafe-inline'; img-src data:"
    )


def verdict_words(content: Content) -> list[str]:
    """Return sentences on the verdict, its evidence and its limits.

    ``content`` is the content of the report.
    """
    verdict = content.verdict
    target = content.target
    if not verdict.n_rows:
        return [f"Nothing is known of how well this model predicts: {verdict.how['verdict']}."]
    answer = {
        "better": f"A model of selected features predicts {target} better than {verdict.guess}, if "
        "the rows are independent: where one patient or family has several, or rows follow in "
        "time, say so (--rows-of, --order; in Python groups=, order=).",
        "no better": f"On rows that it has not seen, such a model predicts {target} no better than "
        f"{verdict.guess}: what is listed below is no finding.",
        "too few rows to tell": "The rows are too few to tell whether such a model predicts "
        f"{target} better than {verdict.guess}.",
    }[verdict.verdict]
    rows = f"{verdict.n_rows:,} rows"
    evidence = f"On {rows}: {verdict.evidence}, that is, {p_words(verdict)}"
    # If a score is better, no bound is needed; and sometimes there is none.
    if not verdict.better and verdict.critical > verdict.baseline:
        article = "An" if verdict.score_name == "AUC" else "A"
        name = verdict.score_name
        critical = verdict.critical
        evidence += f" {article} {name} above {critical:.3f} would count as better than chance."
    sentences = [answer, evidence]
    if "compared_with" in verdict.how:
        sentences.append(f"It is compared with {verdict.how['compared_with']}.")
    # What the test could have detected: measured by simulation, or known from the null
    # distribution.
    signal = "a correlation of 0.3" if verdict.baseline == 0.0 else f"{_useful(verdict)} of 0.65"
    if verdict.power is not None:
        share = f"{verdict.power:.0%} of the trials"
        sentences.append(f"A signal with {signal}, put into these data, was found in {share}.")
    elif verdict.verdict == "no better":
        sentences.append(
            f"A model that predicts with {signal} would have been distinguished from a guess with "
            "a probability of 80% or more."
        )
    if content.again:
        # The listed features are those of the refit on all rows, but the scores belong to the model
        # of the training rows, so the text states how far the two selections agree.
        sentences.append(
            f"{content.count:,} {content.unit}s were selected from all rows{content.again}."
        )
    return sentences


def _useful(verdict: Verdict) -> str:
    """Return the name of the score of the verdict with its article, such as "an AUC"."""
    return f"{'an' if 'AUC' in verdict.score_name[:3] else 'a'} {verdict.score_name}"


def p_words(verdict: Verdict) -> str:
    """Return a sentence on how often a target unrelated to the features reaches the score.

    ``verdict`` is the verdict with its p-value.
    """
    times = 1.0 / max(verdict.p_value, 1e-12)
    often = f"once in {times:,.0f} times" if verdict.p_value < 0.5 else "about as often as not"
    often = f"at most {often}" if verdict.at_most else often
    return f"targets that have nothing to do with the features do this well {often}."


def _meaning(content: Content) -> list[str]:
    """Return sentences that explain the duality gap as a distance from the optimum.

    ``content`` is the content of the report.
    """
    ending = " of each fit" if len(content.fits) > 1 else ""
    proved = f"The objective{ending} is proved to be at most {{}} above its optimum over {{}}."
    on_selected = content.gap_on_selected
    sentences = []
    # If the number of features was given, there are two gaps: over these features, and over all.
    if on_selected is not None:
        sentences.append(proved.format(_gap_in_percent(on_selected), content.over))
    if content.is_bounded:
        over = f"all {content.n_features:,} features, those never touched included"
        if content.chosen_first or content.task == "matrix" or content.proof:
            over = content.over
        sentences.append(proved.format(_gap_in_percent(content.relative_gap), over))
    elif on_selected is not None:
        sentences.append(
            "The search ended at the number of features asked for: how much lower the objective "
            f"gets with more of the {content.n_features:,} is not bounded."
        )
    return sentences or ["No useful bound on the distance from the optimum is proved yet."]


def _badge(content: Content) -> str:
    """Return whether the fit reached its tolerance, as a short label.

    ``content`` is the content of the report.
    """
    if content.headline_gap <= content.goal:
        return "fitted exactly"
    if content.gap_on_selected is None:
        return "fitted, not to the gap asked for"
    return "ended at the number of features asked for"


def _gap_in_percent(gap: float) -> str:
    """Return the gap relative to the optimum, in percent.

    ``gap`` is (objective - bound) / objective, relative to the objective that was reached; gap / (1
    - gap) is relative to the bound.
    """
    if gap >= 1:
        return "any amount"
    return percent(gap / (1.0 - gap))
