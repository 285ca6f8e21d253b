"""TableRows: a table larger than memory, understood in one reading, encoded in a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import fits
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.formats.sources import About, RowPiece, RowSource
from atomlearn.storage.formats.table import DataTable, Schema
from atomlearn.storage.intake.columns import OPTIONAL, ColumnPlan
from atomlearn.storage.intake.encode import completed, encode
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import strays_among
from atomlearn.storage.intake.limits import INTAKE
from atomlearn.storage.intake.plans import (
    left_out,
    made_of,
    plans_of,
    refuse,
    require,
    spread_out,
    with_rows_of,
)
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.table_file import TableFile
from atomlearn.storage.intake.targets import absent, known_rows, tidy


class TableRows(RowSource):
    """A table as columns of numbers; positions are those of its file.

    What columns are is told by the first piece; what all rows have a say in (labels of
    categories, missing values) by all of them.

    plans, groups : of the columns, as ``Encoded`` has them; roles : cells of columns that are no
    features, by role; kept : the rows that have a target and all roles; notes : what one should
    know.
    """

    def __init__(self, file: TableFile, reading: Reading) -> None:
        self._file = file
        asked = {
            "--transpose": reading.transpose,
            "--text": reading.text,
            "--pheno": reading.pheno,
            "--covar": reading.covar,
            "--missing drop": reading.missing == "drop",
        }
        for option, given in asked.items():
            if given:
                raise ValueError(
                    f"{option} takes {file.path} as a whole, and it is read a piece at a time; "
                    "leave that out, or give it more memory"
                )
        sample = self._survey(reading)
        name = self._columns.get("target")
        self.kept, notes = known_rows(self.roles.get("target"), name, self._extras, self._n_rows)
        plans = [self._amended(plan) for plan in plans_of(sample, self.reading)]
        plans, _ = completed(sample, plans, reading.missing)
        missing = self._missing if reading.missing == "refuse" else {}
        refuse(file.path, plans, missing, lambda name: file.line(self._first_gap[name]))
        made = encode(sample, plans)
        self.notes = [*file.notes, *notes, *left_out(plans)]
        self.plans, self.groups = made.plans, made.groups if made.has_groups else None
        used = [plan for plan in made.plans if plan.is_used]
        whole = all(plan.use == "number" and plan.fill is None for plan in used)
        # As narrow as the file has its numbers.
        kinds = [file.dtypes.get(plan.name, np.float64) if whole else np.float64 for plan in used]
        self.about = About(made.names, False, np.result_type(*kinds), plans=made.plans)

    @property
    def _extras(self) -> dict[str, NDArray[Any]]:
        return {k: v for k, v in self.roles.items() if k not in ("target", "id")}

    def table(self, X: Any) -> DataTable:
        """Return the table of the rows, which X holds."""
        names, path, kept = tuple(self.about.names or ()), self._file.path, self.kept
        ids = self.roles.get("id")
        return DataTable(
            X,
            self.target(),
            Schema(len(names), names, columns=tuple(self.plans)),
            self._columns.get("target"),
            str(path),
            groups=self.groups,
            ids=None if ids is None else tuple(str(cell) for cell in ids[kept].tolist()),
            covariates=made_of(self.plans, self.reading.covariates),
            rows=kept,
            extras={role: values[kept] for role, values in self._extras.items()},
            notes=tuple(self.notes),
        )

    def target(self) -> NDArray[Any] | None:
        y = self.roles.get("target")
        return None if y is None else tidy(y[self.kept], f"the target of {self._file.path}")

    def _survey(self, reading: Reading) -> Frame:
        """Read all rows for what every one has a say in; again where text shows late."""
        sample: Frame | None = None
        late = True
        while late:
            self._n_rows, self._missing = 0, Counter[str]()
            self._first_gap: dict[str, int] = {}
            self._labels: dict[str, set[str]] = {}
            sample, late = None, False
            for columns, _ in self._file.pieces(0, LIMITS.piece_bytes):
                late = self._file.learned(columns) or late
                if not late:
                    frame = self._file.frame_of([columns])
                    if sample is None:
                        sample = self._first(frame, reading)
                    self._note(frame)
                elif sample is None:
                    break
        if sample is None:
            raise ValueError(
                f"{self._file.path} has a header but no data; expected one line a sample"
            )
        self.roles = {role: np.concatenate(cells) for role, cells in self._parts.items()}
        del self._parts
        return sample

    def _first(self, frame: Frame, reading: Reading) -> Frame:
        """Return the first rows, with which the names that were asked for are found."""
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
        fits(self._file.path, "vectors over its rows", 8 * LIMITS.copies * self._n_rows)

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
        strays = strays_among(labels)
        if plan.kind == "mixed" or len(strays) < (1 - INTAKE.numbers_share) * len(labels):
            return ColumnPlan(plan.name, "mixed", "leave out", strays)
        could_be = plan.use in ("category", "ordered") or plan.kind == "constant"
        if not could_be or set(labels) <= set(plan.values) or len(labels) < 2:
            return plan
        if len(labels) > INTAKE.many_values:
            why = "more values than are made columns of: group them"
            return ColumnPlan(plan.name, "text", "leave out", why=why)
        return ColumnPlan(plan.name, "category", "category", tuple(labels))

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        # A number takes about as many bytes in text as in memory.
        for columns, end in self._file.pieces(position, min(piece_bytes, LIMITS.piece_bytes)):
            frame = self._file.frame_of([columns])
            kept = np.ones(frame.n_rows, dtype=bool)
            for role, name in self._columns.items():
                if role not in OPTIONAL:
                    kept &= ~absent(frame.held(name))
            frame = frame.rows(np.flatnonzero(kept))
            if frame.n_rows:
                yield RowPiece(encode(frame, self.plans).X, None, end)
