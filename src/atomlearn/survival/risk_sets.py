"""RiskSets: sums over those at risk at each time of an event, in logarithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import EPS, Array, Rows


@dataclass(frozen=True)
class RiskSets:
    """The risk sets of one stratum: of each time t with an event, those with entry < t <= time.

    rows : (n,) samples of the stratum with a weight, the latest time first; x : (n,) z + log s;
    ends : (m,) how many of ``rows`` have a time >= t, the earliest t first; events : rows (their
    positions here) with an event, grouped by time, and ``of`` : the time of each; counts, totals :
    (m,) number and weight of events at a time; entries : positions by entry, the latest first, and
    ``before`` : (m,) how many of those have an entry >= t; None without left truncation; efron :
    whether ties are Efron's.
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
        """Return those of the samples in ``rows`` at z = 0, None where there is no event."""
        rows = rows[weight[rows] > 0.0]
        rows = rows[np.argsort(-y["time"][rows], kind="stable")]
        time, event = y["time"][rows], y["event"][rows]
        if not event.any():
            return None
        events = np.flatnonzero(event)[::-1]  # earliest first: those of one time are neighbors
        times, of = np.unique(time[events], return_inverse=True)
        s = weight[rows]
        entry, entries, before, first = y["entry"][rows], None, None, None
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
        # What is kept of it, for those at other predictions too.
        _ = made.shares, made.weights, made.starts, made.least
        return made

    def at(self, prediction: Array) -> RiskSets:
        """Return those of z = 0 at other predictions (n_samples,)."""
        # All else, and what is kept of it, is shared: hundreds of these are made in a fit.
        made = object.__new__(RiskSets)
        made.__dict__.update(self.__dict__, x=prediction[self.rows] + self.x)
        return made

    @cached_property
    def shares(self) -> tuple[Rows, Array]:
        """The times of the terms, and the share of the events that each leaves out of its sum.

        Breslow: one term a time, nothing left out. Efron: one term an event, l / k for the l-th.
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
        """Where each time begins among the events, and among the terms."""
        of_events = np.searchsorted(self.of, np.arange(self.ends.size))
        return of_events, np.searchsorted(self.shares[0], np.arange(self.ends.size))

    @cached_property
    def terms(self) -> tuple[Rows, Array, Array, Array]:
        """Of each term its time, share, weight, and the log of its sum of exp(x)."""
        at_risk = running(self.x)[self.ends - 1]
        if self.entries is not None:
            later = running(self.x[self.entries])
            out = np.where(self.before > 0, later[np.maximum(self.before, 1) - 1], -np.inf)

            def among(m: int) -> float:
                """Return the log sum of one risk set, one by one."""
                return float(np.logaddexp.reduce(self.x[(self.last > m) & (self.first <= m)]))

            at_risk = difference(at_risk, out, among)
        times, share = self.shares
        logs = at_risk[times]
        if share.any():
            tied = np.logaddexp.reduceat(self.x[self.events], self.starts[0])
            ratio = np.exp(np.minimum(tied - at_risk, 0.0))
            logs = logs + np.log1p(-share * ratio[times])
        return times, share, self.weights[0], logs

    @cached_property
    def least(self) -> float:
        """The sum of the least values that the times can have, each by itself."""
        times, share = self.shares
        total = float(self.totals @ np.log(self.totals))
        total += float((self.totals / self.counts)[times] @ np.log1p(-share))
        return total

    def value(self, seen: float) -> float:
        """Return the loss of the stratum, ``seen`` = sum of s_i z_i over its events."""
        _, _, weight, logs = self.terms
        return float(weight @ logs) - seen - self.least

    def rounding(self, seen: Array) -> float:
        """Return what ``value`` may be off by, ``seen`` = s_i z_i of the events."""
        _, _, weight, logs = self.terms
        # Each logarithm is off by a few digits of itself, and of the sum that it is of.
        size = float(weight @ (np.abs(logs) + 1.0)) + float(np.abs(seen).sum()) + abs(self.least)
        return float(EPS * (4.0 + np.sqrt(self.rows.size)) * size)

    @cached_property
    def expected(self) -> Array:
        """The sum_m omega_m p_mi of each row: the weight of events expected there."""
        times, share, weight, logs = self.terms
        hazard = np.logaddexp.reduceat(self.weights[1] - logs, self.starts[1])
        total = np.concatenate([[-np.inf], running(hazard)])
        since = total[self.last]
        if self.first is not None:
            ends = list(zip(self.first, self.last, strict=True))
            since = difference(
                since, total[self.first], lambda i: np.logaddexp.reduce(hazard[slice(*ends[i])])
            )
        result = np.exp(self.x + since)
        if share.any():
            scale = logs[self.starts[1]]
            part = weight * share * np.exp(scale[times] - logs)
            less = np.add.reduceat(part, self.starts[1])[self.of]
            result[self.events] -= np.exp(self.x[self.events] - scale[self.of]) * less
        result = np.maximum(result, 0.0)
        # As many as were seen: what rounding adds would count times the offsets of columns.
        return np.asarray(result * (float(self.totals.sum()) / (float(result.sum()) or 1.0)))

    def pulled(self, A: Array) -> Array:
        """Return K'A of the columns sqrt(omega_m) p_m, (terms, k), for A (n_samples, k)."""
        (times, share, _, _), (each, scale) = self.terms, self._scales
        result = np.empty((A.shape[1], times.size))
        for some in LIMITS.pieces(A.shape[1], self.rows.size):
            columns = each * np.take(A.T[some], self.rows, axis=1)
            result[some] = self._sums_of(columns, times, share) * scale
        return result.T

    def _sums_of(self, columns: Array, times: Rows, share: Array) -> Array:
        """Return of each term the sum over its risk set, (k, terms), for ``columns`` (k, n)."""
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
        """exp(x) of each row, and sqrt(omega) / (the sum) of each term, both less the largest x."""
        _, _, weight, logs = self.terms
        top = float(self.x.max())
        return np.exp(self.x - top), np.sqrt(weight) * np.exp(top - logs)


def difference(whole: Array, part: Array, exact: Callable[[int], float]) -> Array:
    """Return log(exp(whole) - exp(part)); where hardly anything is left, ``exact`` sums it up."""
    some = whole > -np.inf
    left = np.zeros_like(whole)
    left[some] = -np.expm1(np.minimum(part[some] - whole[some], 0.0))
    result = whole + np.log(np.maximum(left, 1e-6))
    near = np.flatnonzero(left < 1e-6)
    result[near] = [exact(int(i)) for i in near]
    return result


def running(x: Array) -> Array:
    """Return log of the running sums of exp(x), which lose no digits however far x reaches."""
    top = float(x.max())
    # Within so many powers of e nothing underflows.
    if top - float(x.min()) < 600.0:
        result: Array = np.exp(x - top)
        np.cumsum(result, out=result)
        np.log(result, out=result)
        result += top
        return result
    return np.logaddexp.accumulate(x)
