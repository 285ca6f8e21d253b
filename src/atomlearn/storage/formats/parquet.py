"""Parquet files: columns of numbers, a few at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.held import fits
from atomlearn.storage.formats.sources import About, ColumnSource, TextColumns
from atomlearn.storage.formats.table import Request, require_name
from atomlearn.storage.formats.understood import understood

_KIND = "Parquet file"


class ParquetColumns(ColumnSource):
    """Columns of numbers of a Parquet file."""

    def __init__(self, path: Path, request: Request) -> None:
        target, exclude = request.target, request.exclude
        known = None if request.schema is None else request.schema.names
        pq = imported("pyarrow.parquet", "pyarrow", path)
        with understood(path, _KIND):
            self._file = pq.ParquetFile(path)
            schema = self._file.schema_arrow
        self.path, self._target = path, target
        for name in (*exclude, *(known or ()), *([] if target is None else [target])):
            require_name(name, schema.names, path)
        pa = imported("pyarrow", "pyarrow", path)
        names, types = [], []
        for field in schema:
            if field.name in (target, *exclude) or field.name not in (known or schema.names):
                continue
            kind = field.type
            numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if not numeric and not pa.types.is_boolean(kind):
                raise TextColumns(
                    f"column {field.name!r} of {path} is {kind}; leave it out (--drop), or turn "
                    "it into numbers"
                )
            names.append(field.name)
            types.append(np.dtype(kind.to_pandas_dtype()))
        if len(set(schema.names)) < len(schema.names):
            raise ValueError(f"{path} has two columns of the same name; rename one")
        if not names:
            raise ValueError(f"{path} has no column left for X besides the target")
        self.shape = (self._file.metadata.num_rows, len(names))
        if not 0 < self.shape[0] < 2**62:
            raise ValueError(f"{path} has {self.shape[0]} rows; expected one row a sample")
        widest = np.result_type(*types)
        self.about = About(names, False, widest if widest.kind != "b" else np.dtype(np.int8))

    def _column(self, table: Any, name: str) -> NDArray[Any]:
        column = table.column(name)
        if column.null_count:
            # Integers with nulls come as floats with NaN, which the type of the store decides on.
            return np.asarray(column.cast("float64").to_numpy())
        return np.asarray(column.to_numpy())

    def columns(self, start: int, stop: int) -> NDArray[Any]:
        assert self.about.names is not None
        wanted = list(self.about.names[start:stop])
        fits(self.path, f"a piece of {len(wanted)} columns", 8 * self.shape[0] * len(wanted))
        with understood(self.path, _KIND):
            table = self._file.read(columns=wanted)
            columns = [self._column(table, name) for name in wanted]
            if any(column.shape != self.shape[:1] for column in columns):
                raise ValueError("its columns have not as many rows as it says")
        X = np.empty((self.shape[0], len(wanted)), np.result_type(*columns), order="F")
        for place, column in enumerate(columns):
            X[:, place] = column
        return X

    def target(self) -> NDArray[Any] | None:
        if self._target is None:
            return None
        with understood(self.path, _KIND):
            values = self._file.read(columns=[self._target]).column(self._target).to_numpy()
        return values.astype(np.str_) if values.dtype.kind == "O" else np.asarray(values)
