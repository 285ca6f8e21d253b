"""Claims of a paper, in its own words, and the one rule that decides them, both ways.

A verdict is given only at the paper's size, on the paper's data, and over five draws or more where
the data is made. What is compared is a difference for each draw, counted so that more is as the
paper says. With m its mean and e its standard error a claim *holds here* if m - 2e exceeds the
margin, is *not so here* if m + 2e lies below the margin, and is *undecided* otherwise.
What the paper does not state is our choice. It is named in the claim and weighs the same for a
verdict for the paper and for one against it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HOLDS, FAILS, UNDECIDED = VERDICTS = ("holds here", "not so here", "undecided")
#: What is told of a plot of which the paper says nothing in words: no claim, and not counted.
SEEN = "seen"
#: What is found of a sentence whose part has not been run.
NOT_RUN = "not run"
#: What is found of times that are too short to be compared.
MILLISECONDS = "milliseconds decide nothing"
#: Fewer draws than this decide nothing.
LEAST_DRAWS = 5
#: Times are compared by their logarithms; a tenth more is what we call longer.
TENTH = math.log(1.1)
#: Times below this many seconds, both of them, decide nothing.
BRIEF = 0.05


@dataclass(frozen=True)
class Judged:
    """A verdict, what was compared in words, the draws, and the margin in words."""

    verdict: str
    words: str
    draws: int
    margin: str


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper beside what was found here; all but two fields are in quotes.toml.

    key : its name here; place : where it stands; quote : the sentence, in the paper's words; part :
    the part of the experiment that tries it; size : what was run, beside the paper's where they
    differ; rival : what it is compared with; rule : what words such as "much" are taken for, and
    what else decides; chosen : what is ours because the paper does not state it; reduced : why no
    verdict can be given here (a smaller size, other data); minutes : processor minutes that would
    decide it, where that is known; seen : why it is no claim, where the paper says nothing in
    words; ours : the numbers; judged : what the rule made of them.
    """

    key: str
    place: str
    quote: str
    part: str
    size: str
    ours: str
    judged: Judged
    rival: str = ""
    rule: str = ""
    chosen: str = ""
    reduced: str = ""
    minutes: str = ""
    seen: str = ""

    @property
    def verdict(self) -> str:
        """The verdict; none from a reduced run or from other data."""
        if self.seen:
            return SEEN
        return UNDECIDED if self.reduced else self.judged.verdict

    @property
    def why(self) -> str:
        """Why it is undecided; empty where it is not."""
        if self.verdict != UNDECIDED:
            return ""
        if self.reduced:
            return self.reduced
        if not self.judged.draws:
            return "not run yet" if self.ours == NOT_RUN else self.judged.words
        if self.judged.draws < LEAST_DRAWS:
            return f"fewer than {LEAST_DRAWS} draws"
        return (
            MILLISECONDS
            if MILLISECONDS in self.judged.words
            else "the draws do not agree beyond the margin"
        )


#: For each claim of quotes.toml the numbers in words, and what the rule makes of them.
Found = dict[str, tuple[str, Judged]]


def gathered(directory: Path, found: Found) -> list[Claim]:
    """Return the claims of a paper: those of its quotes.toml, "not run" where nothing was found."""
    quotes = tomllib.loads((directory / "quotes.toml").read_text(encoding="utf-8"))
    unknown = set(found) - set(quotes)
    assert not unknown, f"no quote for {unknown}"
    nothing = (NOT_RUN, untried(NOT_RUN))
    return [Claim(key, *_told(one, found.get(key, nothing))) for key, one in quotes.items()]


def _told(one: dict[str, str], found: tuple[str, Judged]) -> tuple[Any, ...]:
    first = (one[name] for name in ("place", "quote", "part", "size"))
    rest = ("rival", "rule", "chosen", "reduced", "minutes", "seen")
    return *first, *found, *(one.get(name, "") for name in rest)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    found = np.asarray(values, dtype=float)
    error = float(found.std(ddof=1) / math.sqrt(found.size)) if found.size > 1 else math.inf
    return float(found.mean()), error


def more(differences: Sequence[float], margin: float = 0.0, unit: str = "") -> Judged:
    """Judge that something is more, by the margin: a difference for each draw."""
    count = len(differences)
    if not count:
        return untried(NOT_RUN)
    mean, error = spread(differences)
    verdict = UNDECIDED
    if count >= LEAST_DRAWS and mean - 2 * error > margin:
        verdict = HOLDS
    elif count >= LEAST_DRAWS and mean + 2 * error < margin:
        verdict = FAILS
    words = f"difference {mean:+.3g} ± {2 * error:.2g}{unit}" if count > 1 else f"{mean:+.3g}{unit}"
    return Judged(verdict, words, count, f"{margin:g}{unit} and 2 standard errors")


def faster(
    ours: Sequence[float | None],
    theirs: Sequence[float | None],
    times: float = 1.0,
    *,
    limit: float = math.inf,
    brief: float = 0.0,
) -> Judged:
    """Judge that the first is less than the other, ``times`` times less, over draws.

    None is for a goal that was not reached within ``limit`` seconds, which counts as the limit:
    a bound from below for who was cut. Where both are below ``brief`` on average nothing is
    decided.
    """
    pairs = [(a or limit, b or limit) for a, b in zip(ours, theirs, strict=True) if a or b]
    if not pairs:
        return untried("neither reached the goal")
    logs = [math.log(b / a) - math.log(times) for a, b in pairs]
    judged = more(logs, TENTH)
    cut = " or more" if None in theirs else " at most" if None in ours else ""
    words = f"a factor of {math.exp(float(np.mean(logs))) * times:.2g}{cut}"
    verdict = judged.verdict
    if brief and max(float(np.mean(side)) for side in zip(*pairs, strict=True)) < brief:
        verdict, words = UNDECIDED, f"{words}; {MILLISECONDS}"
    return Judged(verdict, words, len(pairs), f"a factor {1.1 * times:.3g} and 2 standard errors")


def close(differences: Sequence[float], margin: float, unit: str = "") -> Judged:
    """Judge that two things are alike within a margin, over draws."""
    if not differences:
        return untried(NOT_RUN)
    mean, error = spread(differences)
    verdict, count = UNDECIDED, len(differences)
    if count >= LEAST_DRAWS:
        verdict = HOLDS if abs(mean) + 2 * error < margin else verdict
        verdict = FAILS if abs(mean) - 2 * error > margin else verdict
    words = f"difference {mean:+.3g} ± {2 * error:.2g}{unit}"
    return Judged(verdict, words, count, f"within {margin:g}{unit}, 2 standard errors")


def never(violations: int, tried: int, words: str) -> Judged:
    """Judge a statement about all cases by the cases that were tried: a proof is in the paper."""
    if not tried:
        return untried(NOT_RUN)
    verdict = FAILS if violations else HOLDS
    return Judged(verdict, words, tried, "no case against it")


def all_of(parts: Sequence[Judged]) -> Judged:
    """Judge that all hold: one that does not hold is enough against it."""
    verdicts = [one.verdict for one in parts]
    verdict = FAILS if FAILS in verdicts else HOLDS if set(verdicts) == {HOLDS} else UNDECIDED
    if not parts:
        return untried(NOT_RUN)
    words = "; ".join(one.words for one in parts)
    return Judged(verdict, words, min(one.draws for one in parts), parts[0].margin)


def untried(why: str) -> Judged:
    """Return the judgement of what cannot be tried here."""
    return Judged(UNDECIDED, why, 0, "")
