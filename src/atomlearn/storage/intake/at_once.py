"""A large plain text file by one call of polars, which parses and copies with all threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels.threads import share_out
from atomlearn.storage.formats.fast_text import polars
from atomlearn.storage.intake.cells import TextForm, missing_words, of_series

Cells = dict[int, NDArray[Any]]


def read_at_once(
    path: Path, form: TextForm, width: int, text: set[int], before: int, first: bytes
) -> tuple[NDArray[np.float64], Cells] | None:
    """Return the numbers (n_rows, n_numeric), and the cells of each column of text.

    text : columns of text; before : lines in front of the rows; first : some of the rows, by which
    it is found out whether missing values are written as words. None where the file is not plain,
    or a line of it is too short or too long: who reads by pieces then says which.
    """
    pl = polars()
    if pl is None or width == 1 or form.delimiter == " ":
        return None
    names = [str(place) for place in range(width)]
    given = {
        "has_header": False,
        "separator": form.delimiter,
        "schema": {name: pl.String if int(name) in text else pl.Float64 for name in names},
    }
    words = missing_words(form)
    ways: list[tuple[str, ...] | None] = [words]
    try:
        pl.read_csv(first, **given)
        ways = [None, words]  # none of them so far: sooner
    except pl.exceptions.PolarsError:
        pass
    for nulls in ways:
        try:
            frame = pl.read_csv(path, skip_lines=before, null_values=nulls, **given)
            break
        except pl.exceptions.PolarsError:
            continue
    else:
        return None
    if frame[names[-1]].null_count():
        return None  # perhaps lines that are blank or short, which polars fills up
    numeric = [name for name in names if int(name) not in text]
    cells = {place: of_series(pl, frame[str(place)], form, True) for place in sorted(text)}
    return _side_by_side([frame[name] for name in numeric], frame.height), cells


def _side_by_side(series: list[Any], n_rows: int) -> NDArray[np.float64]:
    """Return columns of numbers as an array, copied by all threads: its memory is new to each."""
    numbers = np.empty((n_rows, len(series)), order="F")

    def copied(place: int) -> None:
        start = 0
        for chunk in series[place].get_chunks():
            stop = start + len(chunk)
            numbers[start:stop, place] = chunk.to_numpy()
            start = stop

    share_out(copied, len(series), 8.0 * numbers.size)
    return numbers
