"""Harrell's concordance: how often the one who fails earlier has the higher risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array

#: Risks nearer than this are tied, as in scikit-survival.
TIED = 1e-8


def concordance(y: Any, risk: Array) -> float:
    """Return the share of comparable pairs whose order the risks tell, ties counting for half.

    Comparable are an event and whoever was seen for longer, or as long without an event. Where no
    pair is, nan.
    """
    order = np.argsort(y["time"], kind="stable")
    time, event, risk = y["time"][order], y["event"][order], risk[order]
    right, pairs = 0.0, 0
    ends = np.searchsorted(time, time, side="right")
    starts = np.searchsorted(time, time, side="left")
    for i in np.flatnonzero(event):
        later = risk[ends[i] :]
        same = risk[starts[i] : ends[i]][~event[starts[i] : ends[i]]]
        for others in (later, same):
            pairs += others.size
            gap = risk[i] - others
            right += float(np.count_nonzero(gap > TIED))
            right += 0.5 * np.count_nonzero(np.abs(gap) <= TIED)
    return right / pairs if pairs else float("nan")
