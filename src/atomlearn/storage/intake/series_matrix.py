"""Series matrices of GEO: descriptions of the samples, and a table with a probe in each row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import open_text
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.cells import TextForm, as_numbers
from atomlearn.storage.intake.frame import Frame, distinct_names, transposed
from atomlearn.storage.intake.text import TextFile

_BEGIN = "!series_matrix_table_begin"
_END = "!series_matrix_table_end"
_SAMPLE = "!Sample_"
#: Lines about the samples that become columns; others describe the laboratory.
_KEPT = ("geo_accession", "title", "source_name_ch1", "source_name_ch2")


def looks_like_series_matrix(line: str) -> bool:
    """Return whether the first line of a text file is that of a series matrix."""
    return line.startswith("!Series_")


class SeriesMatrix(TextFile):
    """A series matrix as a table with a row for each sample.

    Its first columns describe the samples: "disease: lupus" among the characteristics is "lupus"
    in the column "disease". The other columns are the probes. The parameters are those of
    ``TableFile``.
    """

    transposes = False

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        """Open the file ``path``; ``form`` says how text is written, and ``sheet`` is unused."""
        self._about: dict[str, NDArray[Any]] = {}
        super().__init__(path, form, sheet)

    def _text_above(self) -> str:
        """Return the text above the table, and keep its descriptions of the samples."""
        lines = list[str]()
        with self._readable(), open_text(self.path, self.form.encoding, self._errors()) as stream:
            for line in stream:
                lines.append(line)
                if line.startswith(_BEGIN):
                    break
        if not lines[-1].startswith(_BEGIN):
            raise ValueError(
                f"{self.path} has no line {_BEGIN}; it is cut off, or no series matrix"
            )
        # Lines "!Sample_name<tab>cell<tab>cell ...", with a cell for each sample.
        described = [line for line in lines if line.startswith(_SAMPLE)]
        rows = [row for row in csv.reader(described, delimiter="\t") if len(row) > 1]
        self._about = _described_samples([[row[0][len(_SAMPLE) :], *row[1:]] for row in rows])
        return "".join(lines)

    def _blocks(self, begin: int, n_bytes: int) -> Iterator[tuple[int, str]]:
        """Yield blocks of lines of the table, each after the number of lines before it.

        ``begin`` is the position of the table, ``n_bytes`` the size of a block. The line after the
        table ends the blocks.
        """
        for n_lines, content in super()._blocks(begin, n_bytes):
            table, end, _ = content.partition(_END)
            if table:
                yield n_lines, table
            if end:
                return

    def frame(self) -> Frame:
        """Return the table with a row for each sample: its description, then its values."""
        if next(self.pieces(), None) is None:
            raise ValueError(
                f"{self.path} has no values between {_BEGIN} and {_END}; those of sequencing are "
                "in supplementary files: read these by --transpose, with this file as --pheno"
            )
        table, samples = transposed(super().frame())
        # The accessions name the samples above the table, and the columns in it.
        order = self._about.get("geo_accession")
        if order is None or list(order) != samples:
            samples_text = listing(samples)
            raise ValueError(
                f"{self.path} describes other samples than those of its table ({samples_text}); "
                "copy it afresh"
            )
        names, _ = distinct_names([*self._about, *table.header])
        columns = [*self._about.values(), *table.columns.values()]
        cells = dict(zip(names, columns, strict=True))
        return Frame(self.path, cells, len(samples), table.notes)


def _described_samples(rows: list[list[str]]) -> dict[str, NDArray[Any]]:
    """Return the columns that describe the samples, by name.

    Each of the ``rows`` is a name and a cell for each sample. A cell "key: value" of a line of
    characteristics goes to the column "key", because a characteristic may be in different lines
    for different samples.
    """
    n_samples = max((len(row) - 1 for row in rows), default=0)
    descriptions = dict[str, list[str]]()
    # The accession comes first, because it names the rows.
    for name, *cells in sorted(rows, key=lambda row: row[0] != _KEPT[0]):
        if name in _KEPT:
            descriptions[name] = [cell.strip() for cell in cells]
        elif name.startswith("characteristics"):
            for index, cell in enumerate(cells):
                key, colon, value = cell.partition(":")
                key = key.strip() if colon else name
                column = descriptions.setdefault(key, [""] * n_samples)
                column[index] = (value if colon else cell).strip()
    return {name: as_numbers(np.array(cells, dtype=object)) for name, cells in descriptions.items()}
