"""Displays of survival: held-out rows by their predicted risk, and calibration at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array
from atomlearn.reports.data_displays import SharesDisplay
from atomlearn.reports.drawing import Display

#: Groups of held-out rows by their predicted risk.
THIRDS = ("low risk", "middle", "high risk")


def kaplan_meier(records: NDArray[Any]) -> tuple[Array, Any]:
    """Return the times of events, and the share without an event after each (Kaplan and Meier)."""
    times, counts = np.unique(records["time"][records["event"]], return_counts=True)
    return times, np.cumprod(1.0 - counts / at_risk(records, times))


def at_risk(records: NDArray[Any], times: Array) -> Any:
    """Return how many rows are at risk at each time: after their entry, and not gone."""
    seen = (records["entry"] < times[:, None]) & (records["time"] >= times[:, None])
    return seen.sum(axis=1)


@dataclass
class SurvivalDisplay(Display):
    """Share of held-out rows without an event, of thirds by their predicted risk."""

    records: NDArray[Any]
    risk: Array
    title = "Held-out rows without an event"
    about = "Thirds by predicted risk (Kaplan and Meier). Below each time: how many are at risk."
    part = "prediction"

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        ticks = np.linspace(0.0, self.records["time"].max(), 5)
        below = [[f"{tick:.6g}" for tick in ticks]]
        for name, rows in zip(THIRDS, np.array_split(np.argsort(self.risk), 3), strict=True):
            times, left = kaplan_meier(self.records[rows])
            ax.step(np.r_[0.0, times], np.r_[1.0, left], where="post", label=name, **options)
            below.append([str(count) for count in at_risk(self.records[rows], ticks)])
        ax.set_xticks(ticks, ["\n".join(lines) for lines in zip(*below, strict=True)])
        names = f"time; at risk: {', '.join(THIRDS)}"
        ax.set(xlabel=names, ylabel="without an event", ylim=(0, 1.01))
        ax.legend()


class CalibratedAtDisplay(SharesDisplay):
    """Share without an event at a time, against the predicted share, of equal groups."""

    title = "Calibration at a time"
    about = "Groups of equally many held-out rows, at the median time of their events."
    across = "predicted share without an event"
    up = "share without an event"
    marker = "o"

    @classmethod
    def of(cls, records: NDArray[Any], told: Callable[[float], Array]) -> CalibratedAtDisplay:
        """Return the display at the median time of events."""
        time = float(np.median(records["time"][records["event"]]))
        shares = told(time)
        points = []
        for rows in np.array_split(np.argsort(shares), max(1, min(5, records.size // 10))):
            times, left = kaplan_meier(records[rows])
            place = np.searchsorted(times, time, side="right")
            points.append((shares[rows].mean(), np.r_[1.0, left][place]))
        means, found = np.transpose(points)
        return cls([(means, found)], [f"at time {time:.3g}"])
