"""Designs of a file with gaps: the rows of each fit and fold decide the imputed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Affine, DenseDesign, Rows
from atomlearn.estimators.encoded import EncodedDesign
from atomlearn.estimators.tables import TableEncoding
from atomlearn.estimators.units import Units
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.gaps import Gap, gaps_filled


@dataclass(frozen=True, slots=True, eq=False)
class FileEncoding(TableEncoding):
    """The encoded columns of a file, each described by its own plan, and how gaps are filled.

    Attributes
    ----------
    gaps : tuple of Gap
        The columns of the file with gaps, and their imputed values.
    """

    gaps: tuple[Gap, ...] = ()

    @property
    def fills(self) -> list[float | str | None]:
        """The imputed value of each column with gaps."""
        return [gap.plan.fill for gap in self.gaps]

    @property
    def imputed(self) -> dict[str, float]:
        """The share of imputed values of each column of the file that had gaps."""
        return {gap.plan.name: float(gap.is_missing.mean()) for gap in self.gaps}

    def of_rows(self, rows: Rows) -> FileEncoding:
        """Return the same encoding with the imputed values of these rows."""
        gaps = tuple(gap.learned(rows) for gap in self.gaps)
        return replace(self, gaps=gaps, n_rows=rows.size)


class FileDesign(EncodedDesign, DenseDesign):
    """The encoded columns of a file, with a record of its gaps.

    Parameters
    ----------
    X : (n_rows, n_columns) array
        The encoded columns, with the imputed values of ``encoding`` in the gaps.
    encoding : FileEncoding
    """

    encoding: FileEncoding

    def __init__(self, X: NDArray[Any], encoding: FileEncoding) -> None:
        """Store the columns and how their gaps are filled."""
        super().__init__(X)
        self.encoding = encoding

    @classmethod
    def of(cls, X: NDArray[Any], names: Sequence[str], gaps: Sequence[Gap]) -> FileDesign:
        """Return the design of a file whose columns have these names.

        X : (n_rows, n_columns) with filled gaps. gaps : the columns with gaps and their imputed
        values.
        """
        plans = tuple(ColumnPlan(name) for name in names)
        return cls(X, FileEncoding(plans, X.dtype, len(X), tuple(gaps)))

    def learned_from(self, rows: Rows | None = None) -> FileDesign:
        """Return this design with its gaps filled by values that are imputed from some rows.

        rows : numbers of these rows of this design; None: all of them.
        """
        file_rows = np.arange(len(self._X)) if self._rows is None else self._rows
        return self.filled_by(self.encoding.of_rows(file_rows if rows is None else file_rows[rows]))

    def filled_by(self, encoding: FileEncoding) -> FileDesign:
        """Return the same rows with gaps filled by another encoding of the same columns."""
        if encoding.fills == self.encoding.fills:
            return self
        filled = FileDesign(gaps_filled(self._X, encoding.gaps), encoding)
        return filled if self._rows is None else filled.with_rows(self._rows)


class ScaledFile(EncodedDesign, Affine):
    """A ``FileDesign`` whose columns are centered and scaled by the means and scales of a fit.

    The means and scales stay the same if gaps are filled with other values.

    Parameters
    ----------
    design : FileDesign
    units : Affine
        A design with these means and scales.
    """

    def __init__(self, design: FileDesign, units: Affine) -> None:
        """Scale the columns of the file with the means and scales of ``units``."""
        super().__init__(design, units.means, units.scales, units.factors)
        self.design: FileDesign = design
        self.encoding = design.encoding

    def with_rows(self, rows: Rows) -> ScaledFile:
        """Return the design of these rows, with the same means and scales."""
        return ScaledFile(self.design.with_rows(rows), self)

    def learned_from(self, rows: Rows | None = None) -> ScaledFile:
        """Return this design with gaps filled by values imputed from ``rows``; None: from all."""
        return ScaledFile(self.design.learned_from(rows), self)

    def filled_by(self, encoding: FileEncoding) -> ScaledFile:
        """Return the same rows with gaps filled by another encoding of the same columns."""
        return ScaledFile(self.design.filled_by(encoding), self)


def scaled_file(design: FileDesign, units: Units) -> Units:
    """Return ``units`` with a scaled design that can fill its gaps again.

    design : the columns of the file. units : the result of ``standardized_design`` for them, whose
    scaled design cannot fill gaps.
    """
    scaled: Any = units.design
    return replace(units, design=ScaledFile(design, scaled))
