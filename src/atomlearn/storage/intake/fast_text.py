"""Large text files through pyarrow: the same cells as the reader of ``text``, sooner."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import open_bytes
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.limits import INTAKE
from atomlearn.storage.intake.text import MISSING, TextForm, decimals, header_in, records

COMPRESSED = (".gz", ".bz2", ".xz")
_FAILED = re.compile(r"CSV column #(\d+)")


def read_fast(path: Path, form: TextForm, sample: str) -> Frame | None:
    """Return the frame of a text file; None where the careful reader should see it.

    That is where pyarrow is not installed, where it cannot read the text, and where lines are not
    plain: the careful reader says what is wrong, and where.
    """
    if importlib.util.find_spec("pyarrow") is None or form.delimiter == " " or "#" in sample[:1]:
        return None
    rows = records(path, form)
    first, second = next(rows, None), next(rows, None)
    rows.close()  # type: ignore[attr-defined]
    if first is None or second is None or first[0] != 1:
        return None
    header, width, notes = header_in(first[1], second[1], form, path)
    if width != len(header):
        return None
    table = _table(path, form, header, '"' in sample)
    if table is None:
        return None
    frame = _frame(path, form, header, table)
    frame.notes.extend(notes)
    return decimals(frame, form)


def _table(path: Path, form: TextForm, header: list[str], quoted: bool) -> Any:
    """Return the arrow table: numbers as float64, else text; None where it cannot be read."""
    from pyarrow import ArrowInvalid, csv, float64, string

    tokens = sorted({case(t) for t in MISSING | form.missing for case in _CASES} | {""})
    kinds = dict.fromkeys(header, float64())
    encoding = "utf-8" if form.encoding == "utf-8-sig" else form.encoding
    for _ in range(INTAKE.most_retries):
        try:
            # By its name where it is not compressed: read in parallel then.
            plain = path.suffix.lower() not in COMPRESSED
            with contextlib.nullcontext(str(path)) if plain else open_bytes(path) as stream:
                return csv.read_csv(
                    stream,
                    read_options=csv.ReadOptions(
                        column_names=header, skip_rows=int(form.header), encoding=encoding
                    ),
                    parse_options=csv.ParseOptions(
                        delimiter=form.delimiter, newlines_in_values=quoted
                    ),
                    convert_options=csv.ConvertOptions(
                        column_types=kinds,
                        null_values=tokens,
                        strings_can_be_null=True,
                        include_columns=header,
                    ),
                )
        except (ArrowInvalid, UnicodeDecodeError) as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            failed = _FAILED.search(str(error))
            if failed is None or "conversion error" not in str(error):
                return None
            kinds[header[int(failed.group(1))]] = string()
            kinds |= _text_in(path, form, header, kinds)
    return None


_CASES = (str.lower, str.upper, str.capitalize, lambda text: "NaN" if text == "nan" else text)


def _text_in(
    path: Path, form: TextForm, header: list[str], kinds: dict[str, Any]
) -> dict[str, Any]:
    """Return the columns that hold text in the first rows, all at once."""
    from pyarrow import string

    found = {}
    for number, (_, row) in enumerate(records(path, form)):
        if number > INTAKE.sniffed:
            break
        for name, cell in zip(header, row, strict=False):
            if number and not form.is_missing(cell) and not _is_number(cell):
                found[name] = string()
    return found


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _frame(path: Path, form: TextForm, header: list[str], table: Any) -> Frame:
    """Return the cells of an arrow table; each of its columns is given up as it is copied."""
    from pyarrow import types

    numeric = [name for name in header if types.is_floating(table.schema.field(name).type)]
    slots = {name: place for place, name in enumerate(numeric)}
    numbers = np.empty((table.num_rows, len(numeric)), order="F")
    texts: dict[str, NDArray[Any]] = {}
    n_rows = int(table.num_rows)
    for name in reversed(header):
        column = table.column(table.num_columns - 1)
        table = table.remove_column(table.num_columns - 1)
        if name in slots:
            start = 0
            for chunk in column.chunks:
                # By its bytes: to_numpy would import pandas, which takes longer than many files.
                filled = chunk.fill_null(float("nan")) if chunk.null_count else chunk
                held, skipped = filled.buffers()[1], 8 * filled.offset
                part = np.frombuffer(held, np.float64, len(filled), skipped)
                numbers[start : start + len(part), slots[name]] = part
                start += len(part)
        else:
            cells = [(cell or "").strip() for cell in column.to_pylist()]
            plain = ["" if form.is_missing(cell) else cell for cell in cells]
            texts[name] = np.array(plain, dtype=object)
    ordered = {name: texts[name] for name in header if name in texts}

    def line(row: int) -> str:
        for number, (where, _) in enumerate(records(path, form)):
            if number == row + form.header:
                return f"line {where}"
        return f"row {row + 1}"

    return Frame(path, header, slots, numbers, ordered, n_rows, line=line)
