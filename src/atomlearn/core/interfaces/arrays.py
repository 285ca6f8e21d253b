"""The kinds of arrays that all rooms speak of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Numbers: predictions, weights, scores.
Array = NDArray[np.float64]
#: Places of columns of X, counted from 0.
Columns = NDArray[np.int64]
#: Places of rows of X, counted from 0.
Rows = NDArray[np.int64]
#: Which of some things are meant.
Mask = NDArray[np.bool_]
