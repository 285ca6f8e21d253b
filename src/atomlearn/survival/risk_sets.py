"""RiskSets: sums over the samples at risk at each time of an event, in logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import EPS, LIMITS, Array, Rows
from atomlearn.survival.spans import Spans, sums_of_exponentials


@dataclass(frozen=True)
class RiskSets:
    """The risk sets of one stratum: for each time t with an event, those with entry < t <= time.

    Attributes
    ----------
    rows : (n,) int64
        Samples of the stratum with a weight, the latest time first.
    x : (n,) float64
        z + log s.
    ends : (m,) int64
        Number of ``rows`` with a time >= t, the earliest t first.
    events, of : (k,) int64
        Positions in ``rows`` with an event, grouped by time, and the number of the time of each.
    counts, totals : (m,) float64
        Number and weight of events at each time.
    entries : (n,) int64, optional
        Positions by entry, the latest first; None without left truncation.
    before : (m,) int64, optional
        Number of ``entries`` with an entry >= t.
    last : (n,) int64
        Number of event times up to the time of each row.
    first : (n,) int64, optional
        Number of event times up to the entry of each row.
    efron : bool
        Whether ties are Efron's.
    """

    rows: Rows
    x: Array
    ends: Rows
    events: Rows
    of: Rows
    counts: Array
    totals: Array
    entries: Rows | None
    before: Any
    last: Rows
    first: Any
    efron: bool

    @classmethod
    def of_stratum(cls, y: NDArray[Any], weight: Array, rows: Rows, efron: bool) -> RiskSets | None:
        """Return the risk sets of the samples in ``rows`` at z = 0; None if there is no event."""
        rows = rows[weight[rows] > 0.0]
        rows = rows[np.argsort(-y["time"][rows], kind="stable")]
        time = y["time"][rows]
        event = y["event"][rows]
        if not event.any():
            return None
        events = np.flatnonzero(event)[::-1]  # earliest first: those of one time are neighbors
        times, of = np.unique(time[events], return_inverse=True)
        s = weight[rows]
        entry = y["entry"][rows]
        entries = None
        before = None
        first = None
        if entry.max() >= times[0]:
            entries = np.argsort(-entry, kind="stable")
            before = np.searchsorted(-entry[entries], -times, side="right")
            first = np.searchsorted(times, entry, side="right")
        made = cls(
            rows=rows,
            x=np.log(s),
            ends=np.searchsorted(-time, -times, side="right"),
            events=events,
            of=of,
            counts=np.bincount(of).astype(np.float64),
            totals=np.asarray(np.bincount(of, weights=s[events]), dtype=np.float64),
            entries=entries,
            before=before,
            last=np.searchsorted(times, time, side="right"),
            first=first,
            efron=efron,
        )
        # Computed now, so that the copies at other predictions share them.
        _ = made.shares, made.weights, made.starts, made.least, made.spans, made.largest
        return made

    def at(self, prediction: Array) -> RiskSets:
        """Return the risk sets at other predictions (n_samples,), given these at z = 0."""
        # The copy shares everything else, because a fit makes hundreds of them.
        made = object.__new__(RiskSets)
        made.__dict__.update(self.__dict__, x=prediction[self.rows] + self.x)
        return made

    @cached_property
    def spans(self) -> Spans | None:
        """The times at which each row is at risk; None without left truncation."""
        return None if self.first is None else Spans.between(self.first, self.last, self.ends.size)

    @cached_property
    def shares(self) -> tuple[Rows, Array]:
        """The times of the terms, and the share of the events that each leaves out of its sum.

        Breslow: one term for each time, with share 0. Efron: one term for each event, l / k for the
        l-th.
        """
        if not self.efron:
            return np.arange(self.ends.size), np.zeros(self.ends.size)
        times = np.repeat(np.arange(self.ends.size), self.counts.astype(np.int64))
        starts = np.cumsum(self.counts) - self.counts
        return times, (np.arange(times.size) - starts[times]) / self.counts[times]

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """The weight of each term, and its logarithm."""
        each = (self.totals / self.counts)[self.shares[0]] if self.efron else self.totals
        return each, np.log(each)

    @cached_property
    def starts(self) -> tuple[Rows, Rows]:
        """The first event, and the first term, of each time."""
        of_events = np.searchsorted(self.of, np.arange(self.ends.size))
        return of_events, np.searchsorted(self.shares[0], np.arange(self.ends.size))

    @cached_property
    def terms(self) -> tuple[Rows, Array, Array, Array]:
        """The time, share, weight, and log of the sum of exp(x) of each term."""
        times, share = self.shares
        logs = self.at_risk[times]
        if share.any():
            tied = np.logaddexp.reduceat(self.x[self.events], self.starts[0])
            ratio = np.exp(np.minimum(tied - self.at_risk, 0.0))
            logs = logs + np.log1p(-share * ratio[times])
        return times, share, self.weights[0], logs

    @cached_property
    def at_risk(self) -> Array:
        """The log of the sum of exp(x) over those at risk at each time."""
        if self.spans is None:
            return running(self.x)[self.ends - 1]
        return self.spans.at_times(self.x)

    @cached_property
    def least(self) -> float:
        """The sum of the smallest values that single times can have."""
        times, share = self.shares
        total = float(self.totals @ np.log(self.totals))
        total += float((self.totals / self.counts)[times] @ np.log1p(-share))
        return total

    def value(self, seen: float) -> float:
        """Return the loss of the stratum; ``seen`` : sum of s_i z_i over its events."""
        _, _, weight, logs = self.terms
        return float(weight @ logs) - seen - self.least

    def rounding(self, seen: Array) -> float:
        """Return a bound on the rounding of ``value``; ``seen`` : s_i z_i of the events."""
        times, _, weight, logs = self.terms
        # The error of each logarithm is a few units of itself and of z + log s. In Efron's sums it
        # grows by the ratio of the whole sum to the remaining part.
        each = (np.abs(logs) + self.largest) * np.exp(self.at_risk[times] - logs)
        size = float(weight @ each) + float(np.abs(seen).sum()) + abs(self.least)
        return float(EPS * (4.0 + np.sqrt(self.rows.size)) * size)

    @cached_property
    def largest(self) -> float:
        """1 + the largest magnitude of x at z = 0, which is that of log s."""
        return 1.0 + float(np.abs(self.x).max())

    @cached_property
    def expected(self) -> Array:
        """The sum_m omega_m p_mi of each row: its expected weight of events."""
        times, share, weight, logs = self.terms
        hazard = np.logaddexp.reduceat(self.weights[1] - logs, self.starts[1])
        if self.spans is None:
            since = np.concatenate([[-np.inf], running(hazard)])[self.last]
        else:
            since = self.spans.over_rows(hazard)
        result = np.exp(self.x + since)
        if share.any():
            scale = logs[self.starts[1]]
            part = weight * share * np.exp(scale[times] - logs)
            less = np.add.reduceat(part, self.starts[1])[self.of]
            result[self.events] -= np.exp(self.x[self.events] - scale[self.of]) * less
        # Scaled to the observed total, because the offsets of columns multiply a rounding error in
        # it.
        return np.asarray(result * (float(self.totals.sum()) / (float(result.sum()) or 1.0)))

    def pulled(self, A: Array) -> Array:
        """Return K'A (terms, k) for A (n_samples, k); K has the columns sqrt(omega_m) p_m."""
        (times, share, _, _) = self.terms
        (each, scale) = self._scales
        result = np.empty((A.shape[1], times.size))
        for some in LIMITS.pieces(A.shape[1], self.rows.size):
            columns = each * np.take(A.T[some], self.rows, axis=1)
            result[some] = self._sums_of(columns, times, share) * scale
        return result.T

    def _sums_of(self, columns: Array, times: Rows, share: Array) -> Array:
        """Return the sum of each term over its risk set, (k, terms), for ``columns`` (k, n)."""
        running_sums = np.cumsum(columns, axis=1)
        sums = np.take(running_sums, self.ends - 1, axis=1)
        if self.entries is not None:
            later = np.zeros((columns.shape[0], columns.shape[1] + 1))
            np.cumsum(columns[:, self.entries], axis=1, out=later[:, 1:])
            sums -= later[:, self.before]
        sums = sums if times.size == self.ends.size else sums[:, times]
        if share.any():
            tied = np.add.reduceat(columns[:, self.events], self.starts[0], axis=1)
            sums -= share * tied[:, times]
        return sums

    def spread(self, B: Array) -> Array:
        """Return K B, (n, k) over ``rows``, for B (terms, k)."""
        _, share, _, _ = self.terms
        scaled = B * self._scales[1][:, None]
        at: Array = np.add.reduceat(scaled, self.starts[1])
        total = np.vstack([np.zeros(B.shape[1]), np.cumsum(at, axis=0)])
        result = total[self.last]
        if self.first is not None:
            result -= total[self.first]
        if share.any():
            tied = np.add.reduceat(share[:, None] * scaled, self.starts[1])
            result[self.events] -= tied[self.of]
        return self._scales[0][:, None] * result

    @cached_property
    def _scales(self) -> tuple[Array, Array]:
        """exp(x) of each row, and sqrt(omega) / sum of each term, relative to the largest x."""
        _, _, weight, logs = self.terms
        top = float(self.x.max())
        return np.exp(self.x - top), np.sqrt(weight) * np.exp(top - logs)


def running(x: Array) -> Array:
    """Return log of the running sums of exp(x), without loss of digits for any range of x."""
    return sums_of_exponentials(lambda terms, add: add.accumulate(terms), x)
