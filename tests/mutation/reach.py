"""Which lines of the package each test runs, so that a change is shown to the tests that run it.

The lines of a function are noted at its first calls in each test; a test's seconds are counted
too, and the quickest come first.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

#: Calls of a function in one test whose lines are noted.
CALLS = 3
#: Seconds of tests that a change is shown to at most.
ENOUGH = 60.0


class Reach:
    """A plugin of pytest that notes lines of files whose path contains ``part``."""

    def __init__(self, part: str, place: Path) -> None:
        self.part, self.place = part, place
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.calls: dict[CodeType, int] = {}
        self.tests: dict[str, tuple[float, dict[str, list[int]]]] = {}
        self.failed: set[str] = set()

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        calls = self.calls.get(code)
        if calls is None:
            calls = 0 if self.part in code.co_filename else CALLS
        if calls >= CALLS:
            self.calls[code] = CALLS
            return None
        self.calls[code] = calls + 1
        lines = self.lines[code.co_filename]
        lines.add(frame.f_lineno)

        def line(frame: FrameType, event: str, argument: object) -> Any:
            lines.add(frame.f_lineno)
            return line

        return line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Note what a test and its fixtures run."""
        self.lines.clear()
        self.calls.clear()
        began = time.process_time()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            seconds = time.process_time() - began
            seen = {self._short(name): sorted(lines) for name, lines in self.lines.items()}
            self.tests[item.nodeid] = (seconds, seen)

    def _short(self, name: str) -> str:
        return name[name.index("src/atomlearn/") :]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the tests that fail or are left out: they notice nothing."""
        if not report.passed:
            self.failed.add(report.nodeid)

    def save(self) -> None:
        """Add the tests to the file."""
        place = self.place
        held = json.loads(place.read_text()) if place.exists() else {}
        held.update({name: what for name, what in self.tests.items() if name not in self.failed})
        place.write_text(json.dumps(held))


class Chosen:
    """A plugin of pytest that runs some tests only, in their order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {name: number for number, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep and order them."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )


def tests_that_run(tests: dict[str, Any], file: str, line: int) -> list[str]:
    """Return the tests that run a line: of each test function the quickest first.

    Of a line that none was seen to run: those of the line before it that some run.
    """
    seen_lines = {at for _, seen in tests.values() for at in seen.get(file, ()) if at <= line}
    line = max(seen_lines, default=line)
    found = sorted(
        (seconds, name) for name, (seconds, seen) in tests.items() if line in seen.get(file, ())
    )
    turns: dict[str, int] = defaultdict(int)
    ranked = []
    for seconds, name in found:
        function = name.partition("[")[0]
        ranked.append((turns[function], seconds, name))
        turns[function] += 1
    chosen, spent = [], 0.0
    for _, seconds, name in sorted(ranked):
        spent += seconds
        if spent > ENOUGH and chosen:
            break
        chosen.append(name)
    return chosen
