"""TextRows: a table larger than memory, understood in one reading, encoded in a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import fits
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.formats.sources import About, RowPiece, RowSource
from atomlearn.storage.intake.cells import TextForm, number_of
from atomlearn.storage.intake.columns import OPTIONAL, ColumnPlan
from atomlearn.storage.intake.encode import completed, encode
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.limits import INTAKE
from atomlearn.storage.intake.plans import (
    left_out,
    plans_of,
    refuse,
    require,
    spread_out,
    with_rows_of,
)
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.targets import absent, known_rows
from atomlearn.storage.intake.text import TextFile, decimals


class TextRows(RowSource):
    """A delimited text file as columns of numbers; positions are bytes of the text in UTF-8.

    What columns are is told by the first ``block_bytes`` of text; what all rows have a say in
    (labels of categories, missing values) by all of them.

    plans, groups : of the columns, as ``Encoded`` has them; roles : cells of the columns apart, by
    role; kept : the rows that have a target and all roles; notes : what one should know.
    """

    def __init__(
        self, path: Path, reading: Reading, opened: Callable[[Path, TextForm], TextFile] = TextFile
    ) -> None:
        asked = [
            f"--{name}"
            for name in ("transpose", "text", "pheno", "covar")
            if getattr(reading, name)
        ]
        asked += ["--missing drop"] if reading.missing == "drop" else []
        if asked:
            raise ValueError(
                f"{asked[0]} takes {path} as a whole, and it is read a piece at a time; leave that "
                "out, or give it more memory"
            )
        named = reading.role("id")
        form = replace(reading.form, labels=frozenset({named} if named else ()))
        self.path, self._file = path, opened(path, form)
        sample = self._survey(reading)
        name = self._columns.get("target")
        others = {k: v for k, v in self.roles.items() if k not in ("target", "id")}
        self.kept, notes = known_rows(self.roles.get("target"), name, others, self._n_rows)
        plans = [self._amended(plan) for plan in plans_of(sample, self.reading)]
        plans, _ = completed(sample, plans, reading.missing)
        refuse(path, plans, self._missing if reading.missing == "refuse" else {}, self._where)
        made = encode(sample, plans)
        self.notes = [*self._file.notes, *notes, *left_out(plans)]
        self.plans, self.groups = made.plans, made.groups if made.has_groups else None
        self.about = About(made.names, False, np.dtype(np.float64), plans=made.plans)

    def _survey(self, reading: Reading) -> Frame:
        """Read all rows for what every one has a say in; again where text shows late."""
        sample: Frame | None = None
        late = True
        while late:
            self._clear()
            sample, late = None, False
            for columns, _ in self._file.pieces(0, INTAKE.block_bytes):
                late = self._file.learned(columns) or late
                if late and sample is None:
                    break
                if not late:
                    frame = self._file.frame_of([columns])
                    if sample is None:
                        sample = self._first(frame, reading)
                    self._note(frame)
        if sample is None:
            raise ValueError(f"{self.path} has a header but no data; expected one line a sample")
        self.roles = {role: np.concatenate(cells) for role, cells in self._parts.items()}
        del self._parts
        return sample

    def _clear(self) -> None:
        self._n_rows = 0
        self._missing = Counter[str]()
        self._first_gap: dict[str, int] = {}
        self._labels: dict[str, set[str]] = {}

    def _first(self, frame: Frame, reading: Reading) -> Frame:
        """Return the first rows, with which the names that were asked for are found."""
        if decimals(frame, self._file.form) is not frame:
            raise ValueError(
                f"{self.path} has decimal commas, which are not read a piece at a time; write it "
                "with points, or give it more memory"
            )
        self.reading = spread_out(frame, reading)
        require(frame, self.reading)
        self.reading = with_rows_of(frame, self.reading, plans_of(frame, self.reading))
        self._columns = self.reading.named_roles()
        self._parts: dict[str, list[NDArray[Any]]] = {role: [] for role in self._columns}
        return frame

    def _note(self, frame: Frame) -> None:
        """Take note of some rows."""
        for role, name in self._columns.items():
            self._parts[role].append(frame.held(name))
        for name in frame.header:
            gaps = frame.missing(name)
            if gaps.any():
                self._missing[name] += int(gaps.sum())
                self._first_gap.setdefault(name, self._n_rows + int(np.argmax(gaps)))
            if frame.is_text(name):
                held = self._labels.setdefault(name, set())
                if len(held) <= INTAKE.many_values:
                    held.update(frame.texts[name][~gaps].tolist())
        self._n_rows += frame.n_rows
        fits(self.path, "vectors over its rows", 8 * LIMITS.vectors * self._n_rows)

    def _where(self, name: str) -> str:
        return self._file.line(self._first_gap[name])

    def _amended(self, plan: ColumnPlan) -> ColumnPlan:
        """Return a plan that the first rows gave, as all rows have it."""
        if plan.kind == "as asked" or plan.use == "rows_of" or plan in self.reading.schema:
            return plan
        found = self._by_labels(plan) if plan.name in self._labels else self._of_numbers(plan)
        return replace(found, missing=self._missing[plan.name])

    def _of_numbers(self, plan: ColumnPlan) -> ColumnPlan:
        # Whether it is constant, or another column again, all rows would have to say.
        some = self._missing[plan.name] < self._n_rows
        return ColumnPlan(plan.name) if some and plan.kind in ("constant", "duplicate") else plan

    def _by_labels(self, plan: ColumnPlan) -> ColumnPlan:
        labels = sorted(self._labels[plan.name])
        strays = [label for label in labels if number_of(label, TextForm()) is None]
        if plan.kind == "mixed" or len(strays) < (1 - INTAKE.numbers_share) * len(labels):
            return ColumnPlan(plan.name, "mixed", "leave out", tuple(strays))
        could_be = plan.use in ("category", "ordered") or plan.kind == "constant"
        if not could_be or set(labels) <= set(plan.values) or len(labels) < 2:
            return plan
        if len(labels) > INTAKE.many_values:
            why = "more values than are made columns of: group them"
            return ColumnPlan(plan.name, "text", "leave out", why=why)
        return ColumnPlan(plan.name, "category", "category", tuple(labels))

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        target = self._columns.get("target")
        # A number takes about as many bytes in text as in memory.
        for columns, end in self._file.pieces(position, min(piece_bytes, INTAKE.block_bytes)):
            frame = self._file.frame_of([columns])
            kept = np.ones(frame.n_rows, dtype=bool)
            for role, name in self._columns.items():
                if role not in OPTIONAL:
                    kept &= ~absent(frame.held(name))
            frame = frame.rows(np.flatnonzero(kept))
            if frame.n_rows:
                y = None if target is None else frame.held(target)
                y = y.astype(np.str_) if y is not None and y.dtype == object else y
                yield RowPiece(encode(frame, self.plans).X, y, end)
