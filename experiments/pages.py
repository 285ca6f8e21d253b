"""Decide the claims of each paper from kept results, draw its figures, write its page of the docs.

python -m experiments.pages [--smoke] [paper ...]

Nothing is computed here but verdicts: what was run is in experiments/<paper>/results, the papers'
sentences in experiments/<paper>/quotes.toml, the rule in experiments/common/claims.py.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from experiments.common.claims import NOT_RUN, VERDICTS, Claim, gathered
from experiments.common.runs import Kept, results_of

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "papers"
PAPERS = ("argyriou", "liu", "vinyes", "tan")
MEASURED = (
    "Every claim is the paper's own sentence. It is decided only at the paper's size and on its "
    "data, over five draws or more where the data are made, by a margin and two standard errors: "
    "*holds here* beyond the margin, *not so here* below it. A smaller run or other data leave it "
    "*undecided*, whatever was seen. What the paper does not state is our choice: it is named "
    "after the verdict, and another choice may have another verdict. "
    "Times are processor seconds of one thread on a shared machine of two cores (AMD EPYC, 24 GB)."
)


class Results(defaultdict[str, Kept]):
    """The kept results of a paper by part, read as they are asked for."""

    def __init__(self, paper: str, smoke: bool) -> None:
        super().__init__()
        self.paper = paper
        self.where = results_of(ROOT / "experiments" / paper, smoke)

    def __missing__(self, part: str) -> Kept:
        self[part] = Kept(self.where / f"{part}.json")
        return self[part]


def decided(paper: str, results: Results) -> list[Claim]:
    """Return the claims of a paper with their verdicts."""
    found = importlib.import_module(f"experiments.{paper}.found").found(results)
    return gathered(ROOT / "experiments" / paper, found)


def row(claim: Claim, results: Results) -> dict[str, str | int | float | bool]:
    """Return all that is said of a claim."""
    kept = results[claim.part]
    fields = {k: v for k, v in asdict(claim).items() if k != "judged"}
    judged = {k: v for k, v in asdict(claim.judged).items() if k != "verdict"}
    return {
        **fields,
        **judged,
        "verdict": claim.verdict,
        "at the paper's size": not claim.reduced,
        "why": claim.why,
        "command": kept.command or f"python -m experiments.{results.paper}.run {claim.part}",
        "seconds": round(kept.seconds, 1),
    }


def said(claim: Claim, results: Results) -> str:
    """Return a claim as a paragraph of Markdown."""
    kept = results[claim.part]
    ours = f" *Ours, not the paper's: {claim.chosen}.*" if claim.chosen else ""
    lines = [
        f"**{claim.key}: {claim.verdict}.**{ours} “{claim.quote}” ({claim.place})",
        f"Found: {claim.ours}.",
        f"Size: {claim.size}; {claim.judged.draws} draws or cases.",
    ]
    if claim.rival:
        lines.append(f"Compared with: {claim.rival}.")
    if claim.judged.margin:
        words = f" ({claim.judged.words})" if claim.judged.words else ""
        lines.append(f"Margin: {claim.judged.margin}{words}.")
    if claim.rule:
        lines.append(f"Rule: {claim.rule}.")
    if claim.seen:
        lines.append(f"No claim: {claim.seen}.")
    if claim.why:
        lines.append(f"Undecided because: {claim.why}.")
    if claim.why and claim.minutes:
        lines.append(f"It would take {claim.minutes}.")
    if kept.command and claim.ours != NOT_RUN:
        lines.append(f"`{kept.command}`, {kept.seconds:.0f} s.")
    elif not kept.command:
        lines.append(f"`make paper-{results.paper} PAPER_ARGS={claim.part}` runs it.")
    return " ".join(lines)


def counted(claims: Sequence[Claim]) -> str:
    """Return how many hold, and how many were tried at the paper's size."""
    counts = [f"{sum(one.verdict == v for one in claims)} {v}" for v in VERDICTS]
    claims = [one for one in claims if not one.seen]
    whole = sum(not one.reduced and one.judged.draws > 0 for one in claims)
    return f"{len(claims)} claims: {', '.join(counts)}. {whole} were tried at the paper's size."


def figure_of(key: str) -> str:
    """Return the name of the figure that a claim is about: 2 of "Figure 2a, all features"."""
    found = re.match(r"Figure (\d+)", key)
    return f"figure_{found[1]}" if found else "table_1" if key.startswith("Table 1, syn") else ""


def write(paper: str, claims: Sequence[Claim], results: Results) -> None:
    """Write claims.json and the page of the docs, each figure above what is said of it."""
    home = ROOT / "experiments" / paper
    rows = [row(claim, results) for claim in claims]
    text = json.dumps(rows, indent=1, ensure_ascii=False)
    (home / "claims.json").write_text(text + "\n", encoding="utf-8")
    parts = [
        (home / "page.md").read_text(encoding="utf-8"),
        f"## Claims tried\n\n{MEASURED} `make paper-{paper}` runs all of it.\n\n"
        f"{counted(claims)}\n",
    ]
    of_figures: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        of_figures[figure_of(claim.key)].append(claim)
    names = sorted((p.stem for p in (DOCS / "figures" / paper).glob("*.svg")), key=_order)
    rest = [
        one for key in of_figures if key not in {_base(n) for n in names} for one in of_figures[key]
    ]
    shown: set[str] = set()
    for name in names:
        title = name.replace("_", " ").capitalize()
        parts.append(
            f"### {title}\n\n![{title} of the paper, as found here](figures/{paper}/{name}.svg)\n"
        )
        if (base := _base(name)) not in shown:
            parts += [said(one, results) + "\n" for one in of_figures.get(base, ())]
        shown.add(base)
    if rest:
        parts.append("### Without a figure\n")
        parts += [said(one, results) + "\n" for one in rest]
    (DOCS / f"{paper}.md").write_text("\n".join(parts), encoding="utf-8")


def seconds(smoke: bool) -> str:
    """Return the processor seconds of all commands that were kept, and the twenty slowest."""
    kept = [
        Kept(path)
        for paper in PAPERS
        for path in results_of(ROOT / "experiments" / paper, smoke).glob("*.json")
    ]
    total = sum(one.seconds for one in kept)
    lines = [
        "# Processor seconds of the experiments",
        "",
        f"{len(kept)} commands take {total / 60:.0f} minutes of one core; the twenty slowest:",
        "",
        "| seconds | pieces | command |",
        "|---|---|---|",
    ]
    for one in sorted(kept, key=lambda one: -one.seconds)[:20]:
        lines.append(f"| {one.seconds:.0f} | {len(one)} | `{one.command}` |")
    return "\n".join(lines) + "\n"


def _base(name: str) -> str:
    """figure_1 of figure_1a_levels."""
    found = re.match(r"figure_\d+", name)
    return found[0] if found else name


def _order(name: str) -> tuple[str, int, str]:
    found = re.match(r"([a-z]+)_(\d+)(.*)", name)
    return (found[1], int(found[2]), found[3]) if found else (name, 0, "")


def main() -> None:
    """Print, and at full size write, what was found of each paper."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="of small sizes: print, write nothing")
    parser.add_argument("papers", nargs="*", default=PAPERS)
    arguments = parser.parse_args()
    for paper in arguments.papers:
        results = Results(paper, arguments.smoke)
        claims = decided(paper, results)
        out = results.where.parent / "figures" if arguments.smoke else DOCS / "figures" / paper
        importlib.import_module(f"experiments.{paper}.figures").draw(results, out)
        if not arguments.smoke:
            write(paper, claims, results)
        for claim in claims:
            print(f"[{paper}] {said(claim, results)}\n")
        print(f"[{paper}] {counted(claims)}\n")
    print(told := seconds(arguments.smoke))
    if not arguments.smoke:
        (ROOT / "experiments" / "seconds.md").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
