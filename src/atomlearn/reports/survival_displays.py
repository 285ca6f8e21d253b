"""Displays of survival models: Kaplan-Meier curves by predicted risk, and calibration at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array
from atomlearn.reports.data_displays import SharesDisplay
from atomlearn.reports.drawing import Display

#: Names of the thirds of the held-out rows, by increasing predicted risk.
THIRDS = ("low risk", "middle", "high risk")


def kaplan_meier(records: NDArray[Any]) -> tuple[Array, Any]:
    """Return the event times, and the share of rows without an event after each of them.

    It is the Kaplan-Meier estimate, and with competing events that of Aalen and Johansen: one less
    the cumulative incidence. ``records`` is a structured array of ``losses.survival_target``.
    """
    times, counts = np.unique(records["time"][records["event"]], return_counts=True)
    event_shares = counts / at_risk(records, times)
    if not records["competing"].any():
        return times, np.cumprod(1.0 - event_shares)
    # With competing events, the incidence rises at each time t by S(t-) d(t) / n(t). Here S is the
    # Kaplan-Meier curve of events of any kind, d the number of events and n that at risk.
    any_event = records.copy()
    any_event["event"] |= any_event["competing"]
    any_event["competing"] = False
    ends, survival = kaplan_meier(any_event)
    survival_before = np.append(1.0, survival)[np.searchsorted(ends, times, side="left")]
    return times, 1.0 - np.cumsum(survival_before * event_shares)


def at_risk(records: NDArray[Any], times: Array) -> Any:
    """Return the number of rows at risk at each time.

    ``records`` is a structured array of survival records, and ``times`` has shape (n_times,). A row
    is at risk after its entry until its event or censoring, inclusive.
    """
    is_at_risk = (records["entry"] < times[:, None]) & (records["time"] >= times[:, None])
    return is_at_risk.sum(axis=1)


@dataclass
class SurvivalDisplay(Display):
    """Kaplan-Meier curves of held-out rows, in thirds by predicted risk.

    ``records`` holds the survival records of the rows, and ``risk`` their predicted log hazards.
    """

    records: NDArray[Any]
    risk: Array
    title = "Held-out rows without an event"
    about = "Thirds by predicted risk (Kaplan and Meier). Below each time: how many are at risk."
    part = "prediction"

    def _draw(self, ax: Any, options: dict[str, Any]) -> None:
        """Draw the three curves, with the numbers at risk below the ticks.

        ``ax`` are the axes of matplotlib to draw on. ``options`` are further arguments of
        matplotlib.
        """
        last_time = self.records["time"].max()
        # Ticks at round times.
        ticks = ax.xaxis.get_major_locator().tick_values(0.0, last_time)[::2]
        ticks = ticks[(ticks >= 0.0) & (ticks <= last_time)]
        tick_labels = [[f"{tick:.6g}" for tick in ticks]]
        for name, rows in zip(THIRDS, np.array_split(np.argsort(self.risk), 3), strict=True):
            times, survival = kaplan_meier(self.records[rows])
            ax.step(np.r_[0.0, times], np.r_[1.0, survival], where="post", label=name, **options)
            tick_labels.append([str(count) for count in at_risk(self.records[rows], ticks)])
        ax.set_xticks(ticks, ["\n".join(lines) for lines in zip(*tick_labels, strict=True)])
        names = f"time; at risk: {', '.join(THIRDS)}"
        ax.set(xlabel=names, ylabel="without an event", ylim=(0, 1.01))
        ax.legend()


class CalibratedAtDisplay(SharesDisplay):
    """Calibration at a time: Kaplan-Meier estimate against predicted survival probability."""

    title = "Calibration at a time"
    about = (
        "Groups of equally many held-out rows, by predicted risk; the share without an event is "
        "Kaplan and Meier's, with competing events Aalen and Johansen's. Points on the dashed line "
        "are predicted right."
    )
    across = "predicted share without an event"
    up = "share without an event"
    marker = "o"

    @classmethod
    def of(
        cls, records: NDArray[Any], survival: Callable[[float], Array], at: Sequence[float] = ()
    ) -> CalibratedAtDisplay:
        """Return the display at these times, or at the median time of events.

        ``survival`` maps a time to the predicted survival probability of each row. Rows are grouped
        by quantiles of this probability. ``records`` are the survival records of held-out rows.
        """
        times_drawn = at or (float(np.median(records["time"][records["event"]])),)
        curves = []
        for time in times_drawn:
            shares = survival(time)
            points = []
            for rows in np.array_split(np.argsort(shares), max(1, min(5, records.size // 10))):
                times, estimate = kaplan_meier(records[rows])
                position = np.searchsorted(times, time, side="right")
                points.append((shares[rows].mean(), np.r_[1.0, estimate][position]))
            means, observed = np.transpose(points)
            curves.append((means, observed))
        return cls(curves, [f"at time {time:.6g}" for time in times_drawn])
