"""RiskSets: log-sum-exp over the samples at risk at each event time of a stratum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import EPS
from atomlearn.core import LIMITS, Array, Rows
from atomlearn.survival.spans import Spans, sums_of_exponentials


@dataclass(frozen=True, slots=True)
class Staying:
    """Samples that stay in the risk sets after a competing event (Fine and Gray).

    The weight of such a sample with time c in the risk set of a later event time t is multiplied by
    G(t-) / G(c-). G is the Kaplan-Meier estimate of the censoring distribution, in which events
    precede censoring at the same time.

    Attributes
    ----------
    rows : (q,) int64
        Positions of the samples in ``RiskSets.rows``, by increasing time.
    log_G_of_rows : (q,) float64
        log G(c-) of each of these samples.
    log_G_at_events : (m,) float64
        log G(t-) at each event time t.
    before : (m,) int64
        Number of these samples with c < t, for each event time t.
    since : (q,) int64
        Number of event times t <= c, for each of these samples.
    """

    rows: Rows
    log_G_of_rows: Array
    log_G_at_events: Array
    before: Rows
    since: Rows

    @classmethod
    def of(cls, y: NDArray[Any], s: Array, times: Array, last: Rows) -> Staying | None:
        """Return the samples that stay in later risk sets; None if none has a competing event.

        Parameters
        ----------
        y : (n,) records
            Targets of the stratum, in decreasing order of time.
        s : (n,)
            Their sample weights.
        times : (m,)
            Event times, increasing.
        last : (n,) int64
            Number of event times up to each time.
        """
        rows = np.flatnonzero(y["competing"])[::-1]
        if not rows.size:
            return None
        # The Kaplan-Meier estimate of G: at each time of censoring, the weight that is censored
        # there as a share of the weight at risk. Times decrease, so that the weight at risk is a
        # cumulative sum.
        time = y["time"]
        censored = ~(y["event"] | y["competing"])
        censoring_times, time_of = np.unique(time[censored], return_inverse=True)
        n_censored = np.bincount(time_of, weights=s[censored], minlength=censoring_times.size)
        weight_at_risk = np.append(0.0, np.cumsum(s))[
            np.searchsorted(-time, -censoring_times, side="right")
        ]
        # An event precedes censoring at the same time. So its sample is subtracted from those at
        # risk of censoring.
        event_times, event_of = np.unique(time[~censored], return_inverse=True)
        n_events = np.bincount(event_of, weights=s[~censored], minlength=event_times.size)
        is_event_time = np.isin(censoring_times, event_times)
        weight_at_risk[is_event_time] -= n_events[np.isin(event_times, censoring_times)]
        # log G after each censoring time; the first entry is log 1, before all of them.
        with np.errstate(divide="ignore"):
            log_G = np.append(
                0.0, np.cumsum(np.log1p(-np.minimum(n_censored / weight_at_risk, 1.0)))
            )

        def just_before(asked_times: Array) -> Array:
            """Return log G just before each of the times ``asked_times``."""
            return np.asarray(log_G[np.searchsorted(censoring_times, asked_times, side="left")])

        competing_times = time[rows]
        before = np.searchsorted(competing_times, times, side="left")
        return cls(rows, just_before(competing_times), just_before(times), before, last[rows])

    def sums(self, columns: Array) -> Array:
        """Return the weighted sums of ``columns`` (k, n) over these samples, (k, m).

        There is one sum for each of the m event times t, over the samples with c < t. The weights
        are the factors G(t-) / G(c-).
        """
        cumulative = np.zeros((columns.shape[0], self.rows.size + 1))
        np.cumsum(
            columns[:, self.rows] * np.exp(-self.log_G_of_rows), axis=1, out=cumulative[:, 1:]
        )
        return np.asarray(np.exp(self.log_G_at_events) * cumulative[:, self.before])

    def spread(self, values: Array) -> Array:
        """Return the weighted sums of ``values`` (m, k) over the event times t > c, (q, k).

        There is one row for each of these samples, with the weights G(t-) / G(c-). This is the
        transpose of the linear map of ``sums``.
        """
        sums = np.zeros((values.shape[0] + 1, values.shape[1]))
        np.cumsum((np.exp(self.log_G_at_events)[:, None] * values)[::-1], axis=0, out=sums[1:])
        return np.asarray(np.exp(-self.log_G_of_rows)[:, None] * sums[::-1][self.since])


@dataclass(frozen=True)
class RiskSets:
    """The risk sets of one stratum: at each event time t, the samples with entry < t <= time.

    n is the number of samples, m the number of distinct event times, k the number of events. The
    loss is a sum of log-sum-exp *terms*: one for each event time (Breslow) or for each event
    (Efron). A term m has a weight omega_m and probabilities p_m over its risk set (see ``Cox``).

    The properties are computed from the attributes when they are needed, and then cached. Among
    them are ``terms``, ``at_risk`` (the log-sum-exp of x at each event time), ``least`` (a constant
    that ``value`` subtracts) and ``largest`` (a magnitude, by which ``rounding`` bounds errors).

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
    times : (m,) float64
        The event times, increasing.
    staying : Staying, optional
        The samples that stay in later risk sets; None if none has a competing event.
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
    times: Array
    staying: Staying | None

    @classmethod
    def of_stratum(cls, y: NDArray[Any], weight: Array, rows: Rows, efron: bool) -> RiskSets | None:
        """Return the risk sets of the samples in ``rows`` at z = 0; None if there is no event.

        ``y`` and ``weight`` are the targets and weights of all samples; ``efron`` is whether ties
        are treated by Efron's method. The positions in the result are explained in ``RiskSets``.
        """
        rows = rows[weight[rows] > 0.0]
        rows = rows[np.argsort(-y["time"][rows], kind="stable")]
        time = y["time"][rows]
        event = y["event"][rows]
        if not event.any():
            return None
        # Events by increasing time, so that tied events are adjacent.
        events = np.flatnonzero(event)[::-1]
        times, event_time = np.unique(time[events], return_inverse=True)
        row_weight = weight[rows]
        entry = y["entry"][rows]
        # If all samples enter before the first event, there is no left truncation.
        entries = None
        before = None
        first = None
        if entry.max() >= times[0]:
            entries = np.argsort(-entry, kind="stable")
            before = np.searchsorted(-entry[entries], -times, side="right")
            first = np.searchsorted(times, entry, side="right")
        # All positions come from sorted times by binary search.
        last = np.searchsorted(times, time, side="right")
        sets = cls(
            rows=rows,
            x=np.log(row_weight),
            ends=np.searchsorted(-time, -times, side="right"),
            events=events,
            of=event_time,
            counts=np.bincount(event_time).astype(np.float64),
            totals=np.asarray(
                np.bincount(event_time, weights=row_weight[events]), dtype=np.float64
            ),
            entries=entries,
            before=before,
            last=last,
            first=first,
            efron=efron,
            times=times,
            staying=Staying.of(y[rows], row_weight, times, last),
        )
        # These do not depend on the predictions: compute them once, for the copies made by ``at``.
        _ = sets.shares, sets.weights, sets.starts, sets.least, sets.spans, sets.largest
        return sets

    def at(self, prediction: Array) -> RiskSets:
        """Return the same risk sets at ``prediction`` (n_samples,); self must be at z = 0."""
        # A shallow copy, because a fit makes hundreds of them.
        sets = object.__new__(RiskSets)
        sets.__dict__.update(self.__dict__, x=prediction[self.rows] + self.x)
        return sets

    @cached_property
    def spans(self) -> Spans | None:
        """Segment tree of the times at which each row is at risk; None without left truncation."""
        return None if self.first is None else Spans.between(self.first, self.last, self.ends.size)

    @cached_property
    def shares(self) -> tuple[Rows, Array]:
        """The event time of each term, and the fraction of the tied events that its sum excludes.

        Both are (n_terms,); the event time is its index 0, ..., m - 1.
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
        """The weight omega of each term, and its logarithm."""
        omega = (self.totals / self.counts)[self.shares[0]] if self.efron else self.totals
        return omega, np.log(omega)

    @cached_property
    def starts(self) -> tuple[Rows, Rows]:
        """The first positions in ``events`` and in ``terms`` of each event time, both (m,)."""
        of_events = np.searchsorted(self.of, np.arange(self.ends.size))
        return of_events, np.searchsorted(self.shares[0], np.arange(self.ends.size))

    @cached_property
    def terms(self) -> tuple[Rows, Array, Array, Array]:
        """Event time, excluded fraction (``shares``), weight and log-sum-exp of each term.

        All are (n_terms,). With Efron's method, a term subtracts its excluded fraction of the sum
        over the tied events: log(sum - share * tied) = log(sum) + log(1 - share * tied / sum).
        """
        times, share = self.shares
        logs = self.at_risk[times]
        if share.any():
            tied = np.logaddexp.reduceat(self.x[self.events], self.starts[0])
            ratio = np.exp(np.minimum(tied - self.at_risk, 0.0))
            logs = logs + np.log1p(-share * ratio[times])
        return times, share, self.weights[0], logs

    @cached_property
    def at_risk(self) -> Array:
        """The log-sum-exp of x over the risk set at each event time, (m,).

        Without left truncation it is a cumulative sum over samples by decreasing time. Samples that
        stay at risk after a competing event are added, with their factors G(t-) / G(c-).
        """
        if self.spans is not None:
            return self.spans.at_times(self.x)
        # Rows are sorted by decreasing time: those at risk at t are the first ``ends`` ones.
        log_sums = running(self.x)[self.ends - 1]
        staying = self.staying
        if staying is not None:
            log_competing = np.append(
                -np.inf, running(self.x[staying.rows] - staying.log_G_of_rows)
            )[staying.before]
            log_sums = np.logaddexp(log_sums, staying.log_G_at_events + log_competing)
        return log_sums

    @cached_property
    def least(self) -> float:
        """The constant that ``value`` subtracts: the sum of the infima over event times.

        An event time with k events of total weight d adds d log d. With Efron's method it also adds
        sum_l (d / k) log(1 - l / k) over l = 0, ..., k - 1.
        """
        times, share = self.shares
        total = float(self.totals @ np.log(self.totals))
        total += float((self.totals / self.counts)[times] @ np.log1p(-share))
        return total

    def value(self, event_sum: float) -> float:
        """Return the loss of the stratum; ``event_sum`` is the sum of s_i z_i over its events."""
        _, _, weight, logs = self.terms
        return float(weight @ logs) - event_sum - self.least

    def rounding(self, event_terms: Array) -> float:
        """Return a bound on the rounding error of ``value``.

        ``event_terms`` (n,) are s_i z_i for the rows with an event, and 0 for the others.
        """
        times, _, weight, logs = self.terms
        # ``value`` is a sum of three parts: the logarithms, the terms of events, and ``least``. The
        # rounding error of each part is proportional to its magnitude, so magnitudes are added.
        # The error of each logarithm is a few units of rounding of its magnitude and of z + log s.
        # Efron's subtraction amplifies it by the ratio of the whole sum to the remaining part.
        error_bounds = (np.abs(logs) + self.largest) * np.exp(self.at_risk[times] - logs)
        magnitudes = float(weight @ error_bounds + np.abs(event_terms).sum()) + abs(self.least)
        return float(EPS * (4.0 + np.sqrt(self.rows.size)) * magnitudes)

    @cached_property
    def largest(self) -> float:
        """1 + max_i |log s_i| + the largest |log G| of both kinds; at z = 0, where x = log s.

        ``rounding`` multiplies it by the relative rounding error of one operation.
        """
        staying = self.staying
        largest_log_G = (
            0.0
            if staying is None
            else -float(staying.log_G_at_events.min() + staying.log_G_of_rows.min())
        )
        return 1.0 + float(np.abs(self.x).max()) + largest_log_G

    @cached_property
    def expected(self) -> Array:
        """The expected weight of events of each row, sum_m omega_m p_mi, (n,)."""
        times, share, weight, logs = self.terms
        # The logarithm of the hazard at each event time: the sum of omega_m / sum_m over its terms,
        # with sum_m = exp(logs) the sum of exp(x) over the risk set of the term.
        log_hazard = self.weights[1] - logs
        if log_hazard.size > self.ends.size:
            log_hazard = np.logaddexp.reduceat(log_hazard, self.starts[1])
        # The cumulative hazard: the sum over the event times at which a row is at risk.
        if self.spans is None:
            log_hazards = np.concatenate([[-np.inf], running(log_hazard)])[self.last]
        else:
            log_hazards = self.spans.over_rows(log_hazard)
        staying = self.staying
        if staying is not None:
            later_hazards = running((log_hazard + staying.log_G_at_events)[::-1])[::-1]
            later_hazards = np.append(later_hazards, -np.inf)[staying.since] - staying.log_G_of_rows
            log_hazards[staying.rows] = np.logaddexp(log_hazards[staying.rows], later_hazards)
        result = np.exp(self.x + log_hazards)
        # Efron's method excludes the fraction ``share`` of each tied event from a term. So the sum
        # of omega_m share_m / sum_m over the terms of its time is subtracted from its hazard. The
        # sum of the first term, exp(scale), is factored out against overflow.
        if share.any():
            scale = logs[self.starts[1]]
            shares = weight * share * np.exp(scale[times] - logs)
            efron_part = np.add.reduceat(shares, self.starts[1])[self.of]
            result[self.events] -= np.exp(self.x[self.events] - scale[self.of]) * efron_part
        # The expected and the observed total are equal in exact arithmetic. They are made equal in
        # floating point, too, because a column with a large mean multiplies an error of the total.
        return np.asarray(result * (float(self.totals.sum()) / (float(result.sum()) or 1.0)))

    def pulled(self, A: Array) -> Array:
        """Return K'A (n_terms, k) for A (n_samples, k); K has the columns sqrt(omega_m) p_m."""
        times, share = self.shares
        row_scales, term_scales = self._scales
        result = np.empty((A.shape[1], times.size))
        for piece in LIMITS.pieces(A.shape[1], self.rows.size):
            columns = row_scales * np.take(A.T[piece], self.rows, axis=1)
            result[piece] = self._sums_of(columns, times, share) * term_scales
        return result.T

    def _sums_of(self, columns: Array, times: Rows, share: Array) -> Array:
        """Return the sums of ``columns`` (k, n) over the risk set of each term, (k, n_terms).

        ``times`` and ``share`` are the event time and the excluded fraction of each term
        (``shares``).
        """
        # Rows are sorted by decreasing time, so the sum over rows with time >= t is cumulative. The
        # rows that enter at t or later are subtracted. The rows that stay at risk after a competing
        # event are added. At last Efron's share of the tied events is subtracted.
        running_sums = np.cumsum(columns, axis=1)
        sums = np.take(running_sums, self.ends - 1, axis=1)
        if self.entries is not None:
            later = np.zeros((columns.shape[0], columns.shape[1] + 1))
            np.cumsum(columns[:, self.entries], axis=1, out=later[:, 1:])
            sums -= later[:, self.before]
        if self.staying is not None:
            sums += self.staying.sums(columns)
        sums = sums if times.size == self.ends.size else sums[:, times]
        if share.any():
            tied = np.add.reduceat(columns[:, self.events], self.starts[0], axis=1)
            sums -= share * tied[:, times]
        return sums

    def spread(self, B: Array) -> Array:
        """Return K B for B (n_terms, k), with one row for each of ``rows``, (n, k).

        K has the columns sqrt(omega_m) p_m of ``pulled``.
        """
        # The transpose of ``_sums_of``: the sums over the event times at which a row is at risk.
        _, share = self.shares
        row_scales, term_scales = self._scales
        _, first_terms = self.starts
        scaled = B * term_scales[:, None]
        per_time: Array = np.add.reduceat(scaled, first_terms)
        total = np.vstack([np.zeros(B.shape[1]), np.cumsum(per_time, axis=0)])
        result = total[self.last]
        if self.first is not None:
            result -= total[self.first]
        if self.staying is not None:
            result[self.staying.rows] += self.staying.spread(per_time)
        if share.any():
            tied = np.add.reduceat(share[:, None] * scaled, first_terms)
            result[self.events] -= tied[self.of]
        return row_scales[:, None] * result

    def means(self, A: Array) -> Array:
        """Return the mean of A (n_samples, k) over the risk set of each event time, (m, k).

        With Efron's method it is the mean over the terms of the time.
        """
        of_terms = self.pulled(A) / np.sqrt(self.weights[0])[:, None]
        counts = np.bincount(self.shares[0])
        return np.asarray(np.add.reduceat(of_terms, self.starts[1]) / counts[:, None])

    @cached_property
    def _scales(self) -> tuple[Array, Array]:
        """Factors of K: exp(x_i - max x) of rows, sqrt(omega_m) exp(max x - log sum_m) of terms.

        Entry (i, m) of K is their product. log sum_m is the log-sum-exp of x over the risk set of
        term m, and omega_m its weight. Without max x, exp(x_i) could overflow.
        """
        _, _, weight, logs = self.terms
        top = float(self.x.max())
        return np.exp(self.x - top), np.sqrt(weight) * np.exp(top - logs)


def running(x: Array) -> Array:
    """Return the cumulative log-sum-exp of ``x``, accurate for any range of x."""
    return sums_of_exponentials(lambda terms, add: add.accumulate(terms), x)
