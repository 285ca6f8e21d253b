"""libsvm and CSV, plain or compressed, a piece of whole lines at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.conversion.sources import About, RowPiece, RowSource
from atomlearn.storage.formats.compressed import open_bytes
from atomlearn.storage.formats.delimited import (
    delimiter_of,
    header_of,
    inner_suffix,
    is_missing,
    is_number,
)
from atomlearn.storage.formats.table import near_names

#: A line of text longer than this is not one of a data file.
LONGEST_LINE = 2**30
#: Text takes about so many times its bytes while it is parsed.
_PARSED = 4


class LibsvmRows(RowSource):
    """``label index:value ...`` lines; positions are bytes of the text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about = About(None, True, np.dtype(np.float64), drops_first=True)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        # Imported here: scikit-learn's datasets take longer to import than most files to read.
        from sklearn.datasets import load_svmlight_file

        for text, end in _whole_lines(self.path, position, max(piece_bytes // _PARSED, 1)):
            try:
                X, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
            except ValueError as error:
                raise ValueError(
                    f"{self.path} is not a readable libsvm file between bytes {end - len(text):,} "
                    f"and {end:,} of its text ({error}); expected lines of 'label index:value ...' "
                    "with ascending indices"
                ) from error
            if X.shape[0]:
                yield RowPiece(sp.csr_array(X), y, end)


def _whole_lines(path: Path, position: int, n_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yield pieces of text that end with a line, and the position after each."""
    with open_bytes(path) as stream:
        stream.seek(position)
        while text := stream.read(n_bytes):
            if not text.endswith(b"\n"):
                text += stream.readline(LONGEST_LINE)
            position += len(text)
            yield text, position


class DelimitedRows(RowSource):
    """CSV and TSV with a header line and numbers below it; positions are bytes of the text.

    The target may be text. Other columns of text are refused: which values they take is known
    only at the end of the file.
    """

    def __init__(self, path: Path, target: str | None, exclude: Sequence[str]) -> None:
        self.path, self._target = path, target
        lines = self._lines(0)
        self._delimiter = ","
        for line in lines:
            if line.strip():
                self._delimiter = {".tsv": "\t", ".tab": "\t"}.get(
                    inner_suffix(path)
                ) or delimiter_of(line)
                break
        record, self._body = next(self._records(0), (None, 0))
        header = header_of(record or [], path)
        for name in (*exclude, *([] if target is None else [target])):
            if name not in header:
                raise ValueError(f"{path} has no column {name!r}{near_names(name, header)}")
        left_out = {target, *exclude}
        self._kept = [place for place, name in enumerate(header) if name not in left_out]
        if not self._kept:
            raise ValueError(f"{path} has no column left for X besides the target")
        self._header = header
        self._place = None if target is None else header.index(target)
        names = [header[place] for place in self._kept]
        self.about = About(names, False, np.dtype(np.float64))

    def _lines(self, position: int) -> Iterator[str]:
        """Yield lines as text; ``self._at`` is the position after the last one."""
        with open_bytes(self.path) as stream:
            stream.seek(position)
            self._at = position
            first = position == 0
            while line := stream.readline(LONGEST_LINE):
                self._at += len(line)
                try:
                    text = line.decode("utf-8-sig" if first else "utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{self.path} is not UTF-8 text ({error.reason} before byte {self._at}); "
                        "save it as UTF-8"
                    ) from error
                first = False
                yield text

    def _records(self, position: int) -> Iterator[tuple[list[str], int]]:
        """Yield the cells of each record that is not blank, and the position after it."""
        csv.field_size_limit(1 << 27)
        reader = csv.reader(self._lines(position), delimiter=self._delimiter, strict=True)
        try:
            for row in reader:
                if row and not (len(row) == 1 and not row[0].strip()):
                    yield row, self._at
        except csv.Error as error:
            raise ValueError(f"{self.path} is not a readable table: {error}") from error

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        count = max(1, piece_bytes // (8 * len(self._kept)))
        X = np.empty((count, len(self._kept)))
        y: list[str] = []
        filled, end = 0, position
        for cells, after in self._records(position or self._body):
            if len(cells) != len(self._header):
                raise ValueError(
                    f"the line of {self.path} that ends at byte {after:,} has {len(cells)} cells, "
                    f"the header has {len(self._header)}; every line needs the same number"
                )
            X[filled] = self._numbers(cells, after)
            if self._place is not None:
                y.append(self._label(cells[self._place].strip(), after))
            filled, end = filled + 1, after
            if filled == count:
                yield RowPiece(X, self._labels(y), end)
                X, y, filled = np.empty_like(X), [], 0
        if filled:
            yield RowPiece(X[:filled].copy(), self._labels(y), end)

    def _numbers(self, cells: list[str], after: int) -> list[float]:
        kept = [cells[place] for place in self._kept]
        try:
            # Python reads 1_000 as a number; a data file that has it means a name.
            if "_" not in "".join(kept):
                return list(map(float, kept))
        except ValueError:
            pass
        result = []
        for place, cell in zip(self._kept, kept, strict=True):
            if not is_number(cell) and not is_missing(cell):
                raise ValueError(
                    f"column {self._header[place]!r} of {self.path} holds text ({cell!r} in the "
                    f"line that ends at byte {after:,}); leave it out (--exclude), or turn it into "
                    "numbers"
                )
            result.append(float(cell) if is_number(cell) else float("nan"))
        return result

    def _label(self, cell: str, after: int) -> str:
        if is_missing(cell):
            raise ValueError(
                f"the target {self._target!r} of {self.path} is missing in the line that ends at "
                f"byte {after:,}; drop that line"
            )
        return cell

    def _labels(self, y: list[str]) -> NDArray[Any] | None:
        return None if self._place is None else np.array(y, dtype=np.str_)
