"""Settings in turns: each field of a structure a factor of four down and up, and as it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from benchmarks.harness.options import Options
from benchmarks.harness.table import Table

FACTOR = 4
#: What is timed; returns its answer, and a count of what it took.
Case = Callable[[], tuple[float, float]]


def variants(settings: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield field, direction and the settings; shares stay below one, as do their sums."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        for direction, factor in (("less", 1 / FACTOR), ("more", float(FACTOR))):
            other = scaled(value, factor)
            if other != value:
                yield field.name, direction, replace(settings, **{field.name: other})


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or each of several, times a factor."""
    if isinstance(value, tuple):
        return tuple(scaled(each, factor) for each in value)
    if isinstance(value, int):
        return max(1, int(value * factor))
    return min(value * factor, 0.999) if value < 1 else value * factor


@contextmanager
def varied(usual: Any, other: Any) -> Iterator[None]:
    """Let every module that works with the one structure work with the other."""
    users = [
        (module, name)
        for path, module in list(sys.modules.items())
        if path.startswith("atomlearn.")
        for name, value in list(vars(module).items())
        if value is usual
    ]
    for module, name in users:
        setattr(module, name, other)
    try:
        yield
    finally:
        for module, name in users:
            setattr(module, name, usual)


def measured(case: Case) -> tuple[float, float, float]:
    """Return processor time, the answer, and its count."""
    began = time.process_time()
    answer, count = case()
    return time.process_time() - began, answer, count


def in_turns(case: Case, usual: Any, other: Any, repeats: int) -> tuple[float, float, str]:
    """Return the ratios of the least times and of the counts, and what is not the same."""
    pairs = []
    for _ in range(repeats):
        before = measured(case)
        with varied(usual, other):
            try:
                pairs.append((before, measured(case)))
            except (ValueError, ArithmeticError, AssertionError) as error:
                return 1.0, 1.0, f"refused: {error}"
    (_, answer, count), (_, other_answer, other_count) = pairs[0]
    times = [min(pair[side][0] for pair in pairs) for side in (0, 1)]
    told = "" if count == other_count else "count"
    if not abs(other_answer - answer) <= 1e-6 * abs(answer):
        told = "another answer"
    return times[1] / max(times[0], 1e-9), other_count / max(count, 1), told


def table_of(
    name: str, settings: Any, cases: Mapping[str, Case], options: Options, counted: str
) -> None:
    """Vary one field after the other; write geometric means over the cases as ``name``.csv."""
    for case in cases.values():
        case()
    with Table(name, options) as table:
        for field, direction, other in variants(settings):
            found = {
                label: in_turns(case, settings, other, options.times(3))
                for label, case in cases.items()
            }
            times, counts, told = zip(*found.values(), strict=True)
            table.add(
                field=field,
                value=direction,
                time=float(np.exp(np.mean(np.log(times)))),
                **{counted: float(np.exp(np.mean(np.log(np.maximum(counts, 1e-9)))))},
                changed="; ".join(
                    label if what == "count" else f"{label} ({what})"
                    for label, what in zip(found, told, strict=True)
                    if what
                ),
            )
        table.show()
