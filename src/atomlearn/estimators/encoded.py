"""Designs of encoded tables, with a record of how words, dates and gaps became numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core import Design, unwrapped


class EncodedDesign(Design):
    """Base class of designs whose columns were made of a table.

    Attributes
    ----------
    encoding : TableEncoding
        How the words, dates and gaps of the table became the columns.
    """

    encoding: Any

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.encoding.names
        return names


def was_encoded(X: object) -> bool:
    """Return whether X is a design of the encoded columns of a table, or some rows of one."""
    return isinstance(unwrapped(X), EncodedDesign)


def is_finite(design: Design) -> bool:
    """Return whether all entries of the design are finite, by one pass.

    The column sums are finite only if all entries are. The result is also False if sums of finite
    entries overflow.
    """
    return bool(np.isfinite(design.scores(np.ones(design.shape[0])).full()).all())
