"""One table of all contests, made of the kept results, with what we lose marked.

python benchmarks/scoreboard.py           prints it
python benchmarks/scoreboard.py --write   writes docs/scoreboard.md and the table of README.md

A contest is what the rows of a CSV share in its key columns; ours is the row of ours whose gap is
proved, the other the fastest row of another method that reached the accuracy of the contest.
Rows that were ended by their time limit count as "not within". Seconds are medians of one run on
one machine, which the JSON beside each CSV names.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
UNFINISHED = ("TIME_LIMIT", "LIMIT", "ITERATION_LIMIT", "STALLED")


@dataclass(frozen=True, slots=True)
class Source:
    """Where contests are read from: a CSV, what tells them apart, who is who, what is timed.

    accuracy, at_most : a column and the largest value of it at which a row takes part.
    """

    file: str
    keys: tuple[str, ...]
    ours: tuple[str, ...]
    solver: str = "solver"
    seconds: str = "seconds"
    accuracy: str = ""
    at_most: float = 0.0


SOURCES = (
    Source("lasso", ("problem",), ("atomlearn, gap 1e-6 proved",), accuracy="suboptimality",
           at_most=1e-6),
    Source("groups", ("problem",), ("atomlearn, gap 1e-6 proved",), accuracy="suboptimality",
           at_most=1e-6),
    Source("paper_l", ("k", "level"), ("column generation",)),
    Source("correlated", ("k", "level"), ("column generation",)),
    Source("paper_v", ("problem",), ("ours, groups",), "method", "s_to_1e-08"),
    Source("paper_v_table", ("problem",), ("ours, groups",), "method", "s_to_1e-08"),
    Source("matrix_pursuit", ("data", "k"), ("column generation",)),
    Source("sparse_pca", ("part",), ("ours",), seconds="seconds_to_1e-3"),
    Source("robust_pca", ("data",), ("ours",)),
    Source("completion", ("loss",), ("ours",)),
    Source("selection", ("size",), ("feature generation, B = 10",)),
    Source("structured", ("problem",), ("atomlearn, strong",)),
    Source("real", ("data",), ("atomlearn select",)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contest:
    """A line of the scoreboard; other is None where nobody else finished.

    passes, peak : passes over the data, and the largest memory in GB, of ours, where they are kept.
    """

    benchmark: str
    problem: str
    ours: float
    other: float | None
    name: str
    passes: float | None = None
    peak: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times longer the other takes."""
        return None if self.other is None else self.other / self.ours


def number(text: str | None) -> float | None:
    """Return the number in a cell, if there is one."""
    return float(text) if text else None


def contests(source: Source, folder: Path = RESULTS) -> Iterator[Contest]:
    """Yield the contests of one file that ours took part in."""

    def key(row: dict[str, str]) -> tuple[str, ...]:
        return tuple(row[name] for name in source.keys)

    with (folder / f"{source.file}.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    for values, found in groupby(rows, key):
        ours: float | None = None
        cost: tuple[float | None, float | None] = None, None
        best: tuple[float, str] | None = None
        for row in found:
            seconds, name = number(row[source.seconds]), row[source.solver]
            if not seconds or row.get("ended", "") in UNFINISHED:
                continue
            measured = number(row.get(source.accuracy)) if source.accuracy else None
            if measured is not None and measured > source.at_most:
                continue
            if name in source.ours:
                ours = seconds
                cost = number(row.get("passes")), number(row.get("peak_gb"))
            elif not name.startswith(("atomlearn", "ours", "feature generation")):
                best = min(best, (seconds, name)) if best else (seconds, name)
        if ours is not None:
            problem = ", ".join(
                value if len(source.keys) == 1 or not value.isdigit() else f"{name} = {value}"
                for name, value in zip(source.keys, values, strict=True)
            )
            yield Contest(source.file, problem, ours, *(best or (None, "")), *cost)


@dataclass(frozen=True, slots=True)
class Reached:
    """When an accuracy was reached in a contest: by us with a proof, by the soonest of the others.

    limit : the least seconds that our passes could have taken, had each been one product X'v;
    peaks : the largest memory of ours and of theirs, GB.
    """

    contest: str
    accuracy: str
    ours: float | None
    other: float | None
    name: str
    passes: float | None
    limit: float | None
    peaks: tuple[float | None, float | None]

    @property
    def ratio(self) -> float | None:
        """How many times longer the other takes."""
        return None if self.other is None or self.ours is None else self.other / self.ours


def accuracies(folder: Path = RESULTS, file: str = "accuracies") -> list[Reached]:
    """Return who reached which accuracy when, contest by contest."""
    with (folder / f"{file}.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    columns = [name for name in rows[0] if name.startswith("s_to_")]
    made = []
    for contest, found in groupby(rows, lambda row: row["contest"]):
        mine, *others = found
        for column in columns:
            ours, passes = (
                number(mine[column]),
                number(mine.get(column.replace("s_", "passes_", 1))),
            )
            there = [(number(row[column]) or math.inf, row) for row in others]
            other, row = min(there, key=lambda pair: pair[0])
            reached = other < math.inf
            reading = number(mine.get("reading_s"))
            made.append(
                Reached(
                    contest,
                    column.removeprefix("s_to_").replace("e-0", "e-"),
                    ours,
                    other if reached else None,
                    row["solver"] if reached else "",
                    passes,
                    reading * passes if reading and passes else None,
                    (number(mine.get("peak_gb")), number(row.get("peak_gb")) if reached else None),
                )
            )
    return made


def accuracy_table(lines: list[Reached]) -> str:
    """Return times to each accuracy as Markdown; the faster of two is bold."""
    out = [
        "| contest | to | atomlearn | soonest other | ratio | passes | x limit | GB: ours, theirs |"
    ]
    out.append("|---|---|---|---|---|---|---|---|")
    for line in lines:
        lost = lost_by(line)
        ours, other = shown(line.ours), shown(line.other)
        ours, other = (ours, f"**{other}**") if lost else (f"**{ours}**", other)
        who = f"{line.name}: {other}" if line.name else other
        mark = " (lost)" if lost else ""
        above = line.ours / line.limit if line.ours and line.limit else None
        peaks = ", ".join(digits(peak) or "?" for peak in line.peaks)
        out.append(
            f"| {line.contest} | {line.accuracy} | {ours} | {who} | {digits(line.ratio)}{mark} | "
            f"{digits(line.passes)} | {digits(above)} | {peaks} |"
        )
    return "\n".join(out) + "\n"


def accuracy_section() -> str:
    """Return the part of the page on time to an accuracy, with machine and versions."""
    lines = accuracies()
    about = json.loads((RESULTS / "accuracies.json").read_text())
    known = {name: v for name, v in about["libraries"].items() if v != "not installed"}
    versions = ", ".join(f"{name} {version}" for name, version in known.items())
    with (RESULTS / "accuracies.csv").open(newline="") as text:
        peers = sorted({row["solver"] for row in csv.DictReader(text)} - {"atomlearn"})
    raced = [line for line in lines if line.ratio is not None]
    lost = sum(line.ratio is not None and line.ratio < 1.0 for line in lines)
    machine = about["machine"]
    return (
        "\n## Time to an accuracy\n\n"
        "Seconds until the objective is within 1e-3, 1e-6 or 1e-9 of the optimum, relative. Ours "
        "is asked to prove that gap. The others run at the tolerance that gets there soonest, and "
        "are compiled before. *x limit* is our time divided by the least that our passes could "
        "take: one product of the data with a vector each.\n\n"
        f"Of {len(raced)} races we lost {lost}. There are {len({line.contest for line in lines})} "
        f"contests, and the others are: {'; '.join(peers)}.\n\n"
        "`python -m benchmarks.accuracies.benchmark` runs it; its header says how. Measured on "
        f"{machine['cores']} cores, {machine['processor']}; each solver was cut "
        f"{about['notes']['limit_s']:g} to 6 s after its first call. Versions: {versions}.\n\n"
        f"{accuracy_table(lines)}{parts_section([line for line in lines if lost_by(line)])}"
    )


def path_table(lines: list[Reached]) -> str:
    """Return times of whole paths to each accuracy as Markdown; the faster of two is bold."""
    out = ["| path | to | atomlearn | soonest other | ratio |", "|---|---|---|---|---|"]
    for line in lines:
        lost = lost_by(line)
        ours, other = shown(line.ours), shown(line.other)
        ours, other = (ours, f"**{other}**") if lost else (f"**{ours}**", other)
        who = f"{line.name}: {other}" if line.name else other
        mark = " (lost)" if lost else ""
        out.append(
            f"| {line.contest} | {line.accuracy} | {ours} | {who} | {digits(line.ratio)}{mark} |"
        )
    return "\n".join(out) + "\n"


def path_section() -> str:
    """Return the part of the page on whole paths of smooth losses, with machine and versions."""
    lines = accuracies(file="glm_paths")
    about = json.loads((RESULTS / "glm_paths.json").read_text())
    known = {name: v for name, v in about["libraries"].items() if v != "not installed"}
    versions = ", ".join(f"{name} {version}" for name, version in known.items())
    raced = [line for line in lines if line.ratio is not None or line.ours is None]
    machine = about["machine"]
    return (
        "\n## Whole paths of smooth losses\n\n"
        "Processor seconds of one thread for a whole path, until the objective at every alpha is "
        "within 1e-3, 1e-6 or 1e-9 of the best that any package reached there, relative. All get "
        "the alphas, are compiled before, and run at the tolerance that gets there soonest.\n\n"
        f"Of {len(raced)} races we lost {sum(map(lost_by, raced))}.\n\n"
        "`python -m benchmarks.glm_paths.benchmark` runs it. Measured on "
        f"{machine['cores']} cores, {machine['processor']}; each solver was cut "
        f"{about['notes']['limit_s']:g} s after its first call. Versions: {versions}.\n\n"
        f"{path_table(lines)}"
    )


def lost_by(line: Reached) -> bool:
    """Return whether another was sooner."""
    return line.ours is None or (line.ratio is not None and line.ratio < 1.0)


def parts_section(lines: list[Reached]) -> str:
    """Return where the time of ours goes, contest by contest, those lost somewhere marked."""
    with (RESULTS / "parts.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    lost = {line.contest for line in lines}
    best = [(line.contest, line.other) for line in lines]
    refits = {row["contest"]: float(row["refits"]) for row in rows}
    sooner = sum(other is not None and other < refits[name] for name, other in best)
    shares = [float(r["refits"]) / float(r["seconds"]) for r in rows if r["contest"] in lost]
    out = [
        "\n### Where our time goes\n",
        "The time of one solve to 1e-6 has four parts: reading the data (with certificates and "
        "the choice of columns), gathering columns, re-fits over the columns in use, and the "
        "rest. `python -m benchmarks.accuracies.parts` measures them.\n\n"
        f"In the contests that we lost, re-fits take {min(shares):.0%} to {max(shares):.0%} of our "
        f"time, {statistics.median(shares):.0%} in the median. So at these sizes the re-fits of "
        f"some hundreds of columns decide. {sooner} of the {len(best)} races are lost to a solver "
        "that needs less time for everything than ours for its re-fits alone. If there are many "
        "columns, as in the first table, readings decide.\n",
        "| contest | s | reading | gathering | re-fits | rest | columns used |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = row["contest"] + (" (lost)" if row["contest"] in lost else "")
        total = float(row["seconds"])
        of = [f"{float(row[c]) / total:.0%}" for c in ("reading", "gathering", "refits", "rest")]
        out.append(f"| {name} | {shown(total)} | {' | '.join(of)} | {row['selected']} |")
    return "\n".join(out) + "\n"


def shown(seconds: float | None) -> str:
    """Return seconds with two digits."""
    return "not within its limit" if seconds is None else f"{float(f'{seconds:.2g}'):g} s"


def digits(value: float | None) -> str:
    """Return a number with two digits, nothing where there is none."""
    return "" if value is None else f"{float(f'{value:.2g}'):g}"


def table(lines: list[Contest]) -> str:
    """Return the contests as Markdown; the faster of two is bold."""
    out = ["| contest | atomlearn | fastest of the others | ratio | passes | peak GB |"]
    out.append("|---|---|---|---|---|---|")
    for line in lines:
        ours, other = shown(line.ours), shown(line.other)
        lost = line.ratio is not None and line.ratio < 1.0
        ours, other = (ours, f"**{other}**") if lost else (f"**{ours}**", other)
        who = f"{line.name}: {other}" if line.name else other
        ratio = digits(line.ratio)
        mark = " (lost)" if lost else ""
        out.append(
            f"| {line.benchmark}: {line.problem} | {ours} | {who} | {ratio}{mark} | "
            f"{digits(line.passes)} | {digits(line.peak)} |"
        )
    return "\n".join(out) + "\n"


def page(lines: list[Contest]) -> str:
    """Return the page of the documentation."""
    machines = set()
    for source in SOURCES:
        machine = json.loads((RESULTS / f"{source.file}.json").read_text())["machine"]
        machines.add(f"{machine['cores']} cores, {machine['processor']}")
    raced = [line for line in lines if line.ratio is not None]
    lost = [line for line in raced if line.ratio is not None and line.ratio < 1.0]
    return (
        "# Scoreboard\n\nEach line is a contest: one problem, our time, and the time of the "
        "fastest other solver that reaches the same accuracy. Ours also proves it.\n\n"
        f"We are ahead in {len(raced) - len(lost)} of {len(lines)} contests and behind in "
        f"{len(lost)}. In {len(lines) - len(raced)} nobody else ended within the time limit.\n\n"
        "- *Ratio* is the time of the fastest other divided by ours. Below 1 we lost.\n"
        "- *Passes* over the data and *peak GB* of memory are ours, where they were kept.\n"
        "- The others run at their best settings that reach the accuracy of the contest.\n"
        f"- Measured on {'; '.join(sorted(machines))}.\n\n"
        "`python benchmarks/scoreboard.py --write` makes this page from `benchmarks/results`; "
        "nothing here is typed by hand. `make bench` runs the contests again.\n\n"
        f"{table(lines)}{accuracy_section()}{path_section()}"
    )


def summary(lines: list[Contest]) -> str:
    """Return the README's table: our worst result of each benchmark."""
    chosen = []
    for _, group in groupby(lines, lambda line: line.benchmark):
        raced = [line for line in group if line.ratio is not None]
        if raced:
            chosen.append(min(raced, key=lambda line: line.ratio or 0.0))
    return table(chosen)


def with_table(text: str, made: str) -> str:
    """Return the README with the table between its marks."""
    pattern = r"(<!-- scoreboard -->\n).*?(<!-- end of scoreboard -->)"
    return re.sub(pattern, lambda marks: f"{marks[1]}\n{made}\n{marks[2]}", text, flags=re.DOTALL)


def main() -> None:
    """Print the scoreboard, or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    lines = [line for source in SOURCES for line in contests(source)]
    if not parser.parse_args().write:
        print(page(lines))
        return
    (ROOT / "docs" / "scoreboard.md").write_text(page(lines), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(), summary(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
