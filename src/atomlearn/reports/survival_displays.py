"""Displays of survival: held-out rows by their told risk, and calibration at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Mask
from atomlearn.reports.data_displays import CalibrationDisplay
from atomlearn.reports.drawing import Display

#: Groups of held-out rows by their told risk.
THIRDS = ("low risk", "middle", "high risk")


def kaplan_meier(records: NDArray[Any]) -> tuple[Array, Array]:
    """Return the times of events, and the share without an event after each (Kaplan and Meier).

    Rows are at risk after their entry.
    """
    times, counts = np.unique(records["time"][records["event"]], return_counts=True)
    left = 1.0 - counts / np.maximum(at_risk(records, times), 1)
    return times, np.asarray(np.cumprod(left), dtype=np.float64)


def at_risk(records: NDArray[Any], times: Array) -> Array:
    """Return how many rows are at risk at each time."""
    seen = (records["entry"] < times[:, None]) & (records["time"] >= times[:, None])
    return np.asarray(seen.sum(axis=1), dtype=np.float64)


def shares_of(risk: Array, count: int) -> list[Mask]:
    """Return the rows of each of ``count`` equal groups, by increasing risk."""
    places = np.argsort(np.argsort(risk, kind="stable")) * count // max(risk.size, 1)
    return [places == at for at in range(count)]


@dataclass
class SurvivalDisplay(Display):
    """Share of held-out rows without an event, of thirds by the risk they were told."""

    records: NDArray[Any]
    risk: Array
    title = "Held-out rows without an event"
    about = "Thirds by the told risk (Kaplan and Meier). Below each time: how many are at risk."
    part = "prediction"

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        ticks = np.linspace(0.0, self.records["time"].max(), 5)
        numbers = []
        for name, mine in zip(THIRDS, shares_of(self.risk, 3), strict=True):
            times, left = kaplan_meier(self.records[mine])
            ends = np.r_[0.0, times, self.records["time"][mine].max(initial=0.0)]
            values = np.r_[1.0, left, left[-1:] if left.size else 1.0]
            ax.step(ends, values, where="post", label=name, **options)
            numbers.append(at_risk(self.records[mine], np.maximum(ticks, 1e-12)))
        columns = [[f"{tick:.3g}" for tick in ticks], *np.array(numbers, dtype=int).astype(str)]
        ax.set_xticks(ticks, ["\n".join(lines) for lines in zip(*columns, strict=True)])
        ax.set(xlabel=f"time; at risk: {', '.join(THIRDS)}", ylabel="without an event")
        ax.set_ylim(0, 1.01)
        ax.legend()


class CalibratedAtDisplay(CalibrationDisplay):
    """Share without an event at a time, against the share that was told, of equal groups."""

    title = "Calibration at a time"
    about = "Groups of equally many held-out rows, at the median time of their events."
    across, up = "told share without an event", "share without an event"

    @classmethod
    def of(
        cls, records: NDArray[Any], left: Callable[[float], Array] | None
    ) -> list[CalibratedAtDisplay]:
        """Return the display at the median time of events; nothing where nobody told shares."""
        if left is None or not records["event"].any():
            return []
        time = float(np.median(records["time"][records["event"]]))
        told = left(time)
        points = []
        for mine in shares_of(told, max(1, min(5, records.size // 10))):
            times, shares = kaplan_meier(records[mine])
            place = int(np.searchsorted(times, time, side="right"))
            points.append((told[mine].mean(), 1.0 if place == 0 else shares[place - 1]))
        means, found = np.array(points).T
        return [cls([(means, found)], [f"at time {time:.3g}"])]
