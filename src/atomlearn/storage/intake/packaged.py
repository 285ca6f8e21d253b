"""Tables that are read at once: Stata, SPSS and SAS, ARFF, JSON lines; and BIOM."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import encoding_of, imported, open_text
from atomlearn.storage.formats.held import LIMITS, fits, understood
from atomlearn.storage.formats.messages import require_name
from atomlearn.storage.formats.table import DataTable, Observations, Request, Schema
from atomlearn.storage.intake.cells import as_numbers
from atomlearn.storage.intake.typed import TypedFile


class WholeFile(TypedFile):
    """Base class of files whose cells are read at once.

    The parameters are those of ``TableFile``.
    """

    def _opened(self) -> list[str]:
        """Read the file, and return the names of the columns."""
        fits(self.path, "its cells", LIMITS.copies * self.path.stat().st_size)
        with self._understood():
            self._columns = self._read()
        return list(self._columns)

    @abstractmethod
    def _read(self) -> Mapping[str, list[Any]]:
        """Return the cells of each column, by its name."""

    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        """Yield the columns of all rows as one group; the number ``rows`` is ignored."""
        yield list(self._columns.values())


class StatisticsFile(WholeFile):
    """A file of Stata, SPSS or SAS; coded values are read by their labels."""

    kind = "file of Stata, SPSS or SAS"
    module = "pyreadstat"
    extra = "statistics"
    readers: ClassVar[Mapping[str, str]] = {
        ".dta": "read_dta",
        ".sav": "read_sav",
        ".zsav": "read_sav",
        ".por": "read_por",
        ".xpt": "read_xport",
        ".sas7bdat": "read_sas7bdat",
    }

    def _read(self) -> Mapping[str, list[Any]]:
        """Return the columns by name, with the label of each value that has one in its place."""
        read = getattr(self._reader, self.readers[self.path.suffix.lower()])
        columns, about = read(str(self.path), output_format="dict")
        labels = about.variable_value_labels
        return {
            name: [labels.get(name, {}).get(cell, cell) for cell in cells]
            for name, cells in columns.items()
        }


class ArffFile(WholeFile):
    """An ARFF file, dense or sparse."""

    kind = "ARFF file"
    module = "arff"
    extra = "arff"
    library = "liac-arff"

    def _read(self) -> Mapping[str, list[Any]]:
        """Return the columns of the file by name."""
        with open_text(self.path) as stream:
            text = stream.read()
        # Rows of a sparse file begin with a brace; they are read as dictionaries (LOD).
        first = text[text.lower().find("@data") :].partition("\n")[2].lstrip()[:1]
        return_type = self._reader.LOD if first == "{" else self._reader.DENSE
        content = self._reader.loads(text, return_type=return_type)
        names = [name for name, _ in content["attributes"]]
        if return_type == self._reader.DENSE:
            return dict(zip(names, map(list, zip(*content["data"], strict=True)), strict=True))
        # A value that is not stored is 0, or the first one of a category.
        zeros = [kind[0] if isinstance(kind, list) else 0.0 for _, kind in content["attributes"]]
        return {
            name: [row.get(column, zeros[column]) for row in content["data"]]
            for column, name in enumerate(names)
        }


class JsonFile(WholeFile):
    """A file with a JSON object for each row: one a line, or in one list.

    Fields of a nested object are columns such as ``patient.age``.
    """

    kind = "file of JSON lines"
    module = "json"
    extra = ""

    def _read(self) -> Mapping[str, list[Any]]:
        """Return the columns of the file by name, with None for fields that a row lacks."""
        with open_text(self.path, encoding_of(self.path)) as stream:
            text = stream.read()
        is_list = text.lstrip().startswith("[")
        parsed = (
            json.loads(text) if is_list else map(json.loads, filter(str.strip, text.split("\n")))
        )
        rows = [_flat(row) for row in parsed]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}


def _flat(row: Any, prefix: str = "") -> dict[str, Any]:
    """Return the fields of the JSON object ``row``, those of nested objects by their path.

    ``prefix`` is the path of ``row`` itself, such as "patient.". Lists are refused.
    """
    if not isinstance(row, dict):
        raise ValueError(f"expected an object for each row, found {str(row)[:40]!r}")
    entries = dict[str, Any]()
    for name, value in row.items():
        if isinstance(value, list):
            raise ValueError(f"{prefix + name!r} holds a list; expected one value a cell")
        entries |= (
            _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return entries


def _biom(path: Path) -> Any:
    """Return the table of a BIOM file, as an object of its package: features by samples."""
    reader = imported("biom", "biom", path, "biom-format")
    fits(path, "its table", LIMITS.copies * path.stat().st_size)
    with understood(path, "BIOM file"):
        return reader.load_table(str(path))


def read_biom(path: Path, request: Request) -> DataTable:
    """Return the table of a BIOM file, sparse, with a row for each sample.

    The target of the ``request`` is a column of the metadata of the samples.
    """
    table = _biom(path)
    names = tuple(map(str, table.ids("observation")))
    target = request.target
    y = None if target is None else _samples(path, table).cells(target)
    X = table.matrix_data.T.tocsr()
    return DataTable(X, y, Schema(len(names), names), target, str(path))


def samples_of_biom(path: Path) -> Observations:
    """Return the names of the samples of a BIOM file and their metadata."""
    return _samples(path, _biom(path))


def _samples(path: Path, table: Any) -> Observations:
    """Return names and metadata of the samples of ``table``, the content of the file ``path``."""
    rows = [dict(row or {}) for row in table.metadata(axis="sample") or ()]
    names = dict.fromkeys(str(name) for row in rows for name in row)

    def cells(name: str) -> NDArray[Any]:
        """Return the column ``name`` of the metadata: numbers if all cells are, else text."""
        require_name(name, names, f"the samples of {path} have no column")
        texts = ["" if row.get(name) is None else str(row[name]) for row in rows]
        return as_numbers(np.array(texts, dtype=object))

    return Observations(tuple(map(str, table.ids("sample"))), tuple(names), cells, ())
