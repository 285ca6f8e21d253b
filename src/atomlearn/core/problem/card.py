"""Cards: what a notebook shows of a result, a path, an estimator. Plain HTML, nothing to load."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def card(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a small table of facts under a title."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        f'<div class="atomlearn-card"><strong>{escape(title)}</strong><table>{rows}</table></div>'
    )
