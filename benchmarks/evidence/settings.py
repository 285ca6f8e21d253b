"""A setting: data drawn from a known law, what is done with it, and the figures that come out."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

#: Figures of one draw: hits, and out of how many; ``(value, 1)`` for the mean of a value.
Figures = dict[str, tuple[float, float]]
SETTINGS: dict[str, Setting] = {}
COLUMNS = ("setting", "figure", "asked", "value", "error", "draws", "seconds")


@dataclass(frozen=True)
class Setting:
    """``draw`` returns the figures of one data set; ``asked`` has the nominal value of each."""

    name: str
    draw: Callable[[np.random.Generator], Figures]
    asked: dict[str, str]


def setting(name: str, **asked: str) -> Callable[[Callable[..., Figures]], Callable[..., Figures]]:
    """Register a function of a generator; ``asked`` : "<= .1" or ".95", a figure."""

    def register(draw: Callable[..., Figures]) -> Callable[..., Figures]:
        add(name, draw, asked)
        return draw

    return register


def add(name: str, draw: Callable[[np.random.Generator], Figures], asked: dict[str, str]) -> None:
    if name in SETTINGS:
        raise ValueError(f"setting {name!r} exists already; give another name")
    SETTINGS[name] = Setting(name, draw, asked)


def measured(name: str, n_draws: int, first: int = 0) -> Iterator[dict[str, object]]:
    """Yield a row of the table for each figure of a setting.

    A value is the sum of hits over the sum of what they are out of. Its error treats draws, not
    columns or rows of one draw, as independent.
    """
    one, found = SETTINGS[name], dict[str, list[tuple[float, float]]]()
    begin = time.process_time()
    for number in range(first, first + n_draws):
        rng = np.random.default_rng([zlib.crc32(name.encode()), number])
        for figure, pair in one.draw(rng).items():
            found.setdefault(figure, []).append(pair)
    seconds = (time.process_time() - begin) / n_draws
    for figure, pairs in found.items():
        hits, of = np.array(pairs, dtype=float).T
        value = hits.sum() / of.sum() if of.any() else math.nan
        count = len(pairs)
        spread = math.sqrt(np.sum((hits - value * of) ** 2) * count / max(count - 1, 1))
        error = spread / of.sum() if of.any() else math.nan
        told = (name, figure, one.asked.get(figure, ""), f"{value:.4f}", f"{error:.4f}", count)
        yield dict(zip(COLUMNS, (*told, f"{seconds:.2f}"), strict=True))
