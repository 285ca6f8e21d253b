"""RiskSets: log-sum-exp over the samples at risk at each event time of a stratum."""

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
    """The risk sets of one stratum: at each event time t, the samples with entry < t <= time.

    n is the number of samples, m that of distinct event times, k that of events. The loss is a sum
    of log-sum-exp *terms*: one for each event time (Breslow) or for each event (Efron).

    Attributes
    ----------
    rows : (n,) int64
        Samples of the stratum with positive weight, sorted by decreasing time.
    x : (n,) float64
        Prediction plus log weight of each sample, z + log s.
    ends : (m,) int64
        Number of samples with time >= t, for each event time t in increasing order.
    events, of : (k,) int64
        Positions in ``rows`` of the samples with events, grouped by time, and the index of the
        event time of each.
    counts, totals : (m,) float64
        Number and total weight of the events at each event time.
    entries : (n,) int64, optional
        Positions sorted by decreasing entry; None without left truncation.
    before : (m,) int64, optional
        Number of samples with entry >= t, not yet at risk at event time t.
    last : (n,) int64
        Number of event times up to the time of each row.
    first : (n,) int64, optional
        Number of event times up to the entry of each row.
    efron : bool
        Whether ties are treated by Efron's method, else by Breslow's.
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
        # These do not depend on the predictions: compute them once, for the copies made by ``at``.
        _ = made.shares, made.weights, made.starts, made.least, made.spans, made.largest
        return made

    def at(self, prediction: Array) -> RiskSets:
        """Return the same risk sets at ``prediction`` (n_samples,); self must be at z = 0."""
        # A shallow copy, because a fit makes hundreds of them.
        made = object.__new__(RiskSets)
        made.__dict__.update(self.__dict__, x=prediction[self.rows] + self.x)
        return made

    @cached_property
    def spans(self) -> Spans | None:
        """Segment tree of the times at which each row is at risk; None without left truncation."""
        return None if self.first is None else Spans.between(self.first, self.last, self.ends.size)

    @cached_property
    def shares(self) -> tuple[Rows, Array]:
        """The event time of each term, and the fraction of the tied events that its sum excludes.

        Breslow: one term for each event time, with fraction 0. Efron: one term for each of the k
        events at a time, with fraction l / k for l = 0, ..., k - 1.
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
        """The positions of the first event and of the first term of each event time."""
        of_events = np.searchsorted(self.of, np.arange(self.ends.size))
        return of_events, np.searchsorted(self.shares[0], np.arange(self.ends.size))

    @cached_property
    def terms(self) -> tuple[Rows, Array, Array, Array]:
        """Event time, excluded fraction (``shares``), weight and log-sum-exp of each term."""
        times, share = self.shares
        logs = self.at_risk[times]
        if share.any():
            tied = np.logaddexp.reduceat(self.x[self.events], self.starts[0])
            ratio = np.exp(np.minimum(tied - self.at_risk, 0.0))
            logs = logs + np.log1p(-share * ratio[times])
        return times, share, self.weights[0], logs

    @cached_property
    def at_risk(self) -> Array:
        """The log-sum-exp of x over the risk set at each event time, (m,)."""
        if self.spans is None:
            return running(self.x)[self.ends - 1]
        return self.spans.at_times(self.x)

    @cached_property
    def least(self) -> float:
        """The constant that ``value`` subtracts: the sum of the infima over event times."""
        times, share = self.shares
        total = float(self.totals @ np.log(self.totals))
        total += float((self.totals / self.counts)[times] @ np.log1p(-share))
        return total

    def value(self, seen: float) -> float:
        """Return the loss of the stratum; ``seen`` is the sum of s_i z_i over its events."""
        _, _, weight, logs = self.terms
        return float(weight @ logs) - seen - self.least

    def rounding(self, seen: Array) -> float:
        """Return a rounding error bound for ``value``; ``seen`` contains s_i z_i of the events."""
        times, _, weight, logs = self.terms
        # The error of each logarithm is a few units of rounding of its size and of that of z + log
        # s. Efron's subtraction amplifies it by the ratio of the whole sum to the remaining part.
        each = (np.abs(logs) + self.largest) * np.exp(self.at_risk[times] - logs)
        size = float(weight @ each) + float(np.abs(seen).sum()) + abs(self.least)
        return float(EPS * (4.0 + np.sqrt(self.rows.size)) * size)

    @cached_property
    def largest(self) -> float:
        """1 + max_i |log s_i|; computed at z = 0, where x = log s."""
        return 1.0 + float(np.abs(self.x).max())

    @cached_property
    def expected(self) -> Array:
        """The expected weight of events of each row, sum_m omega_m p_mi, (n,)."""
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
        # Expected and observed totals are equal in theory. Enforce it, because a column with a
        # large mean would multiply a rounding error in the total.
        return np.asarray(result * (float(self.totals.sum()) / (float(result.sum()) or 1.0)))

    def pulled(self, A: Array) -> Array:
        """Return K'A (n_terms, k) for A (n_samples, k); K has the columns sqrt(omega_m) p_m."""
        (times, share, _, _) = self.terms
        (each, scale) = self._scales
        result = np.empty((A.shape[1], times.size))
        for some in LIMITS.pieces(A.shape[1], self.rows.size):
            columns = each * np.take(A.T[some], self.rows, axis=1)
            result[some] = self._sums_of(columns, times, share) * scale
        return result.T

    def _sums_of(self, columns: Array, times: Rows, share: Array) -> Array:
        """Return the sums of ``columns`` (k, n) over the risk set of each term, (k, n_terms)."""
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
        """Return K B for B (n_terms, k), with one row for each of ``rows``, (n, k)."""
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
        """exp(x_i - max x) of each row, and the factors sqrt(omega_m) exp(max x - log sum_m).

        Entry (i, m) of K is the product of the two.
        """
        _, _, weight, logs = self.terms
        top = float(self.x.max())
        return np.exp(self.x - top), np.sqrt(weight) * np.exp(top - logs)


def running(x: Array) -> Array:
    """Return the cumulative log-sum-exp of x, accurate for any range of x."""
    return sums_of_exponentials(lambda terms, add: add.accumulate(terms), x)
