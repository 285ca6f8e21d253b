"""Survival targets: time of the event or of censoring, and whether the event was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import all_text, unmasked
from atomlearn.core import Array
from atomlearn.survival.events import Events, read_events

#: Record of one sample: whether the event was observed (else the sample is censored) at ``time``;
#: it is at risk after ``entry``, and is compared only with samples of its ``stratum``. If a
#: ``competing`` event was observed at ``time``, it stays in later risk sets (Fine and Gray).
RECORD = np.dtype(
    [("event", "?"), ("time", "f8"), ("entry", "f8"), ("stratum", "i8"), ("competing", "?")]
)

_ENTRY = ("entry", "start", "truncation")
_STRATUM = ("stratum", "strata")
_EVENT = ("event", "status", "cens", "died")
_COMPETING = ("competing",)
_EXPECTED = (
    "a structured array with a boolean field (whether the event was observed) and a field of "
    "times, as in scikit-survival, and perhaps fields 'entry', 'stratum' and 'competing', or a "
    "table of such columns; use losses.survival_target(event, time)"
)


def survival_target(
    event: Any,
    time: Any,
    entry: Any = None,
    stratum: Any = None,
    *,
    observed: Any = None,
    competing: Any = None,
) -> NDArray[Any]:
    """Return the structured array y that ``Cox`` and ``AtomicSurvival`` take as target.

    Parameters
    ----------
    event : (n_samples,)
        Whether the event was observed; otherwise the sample was censored at its time. Booleans, 0
        and 1, 1 and 2 (2 is the event, as in R), words such as dead and alive, or any labels if
        ``observed`` names that of the event.
    time : (n_samples,)
        Time of the event or of censoring, 0 or later.
    entry : (n_samples,), optional
        Time after which the sample was under observation (left truncation). None: always.
    stratum : (n_samples,), optional
        Labels; each stratum has a separate baseline hazard.
    observed : label or list of labels, optional
        The labels of the event. All other labels are censored, also those of competing events.
    competing : "all", label or list of labels, optional
        Labels of competing events, after which the event cannot happen. Hazards are then those of
        the subdistribution (Fine and Gray), so that risks are shares of all samples. "all" means
        every label except those of the event and of censoring.

    Returns
    -------
    (n_samples,) structured ndarray
        With the fields event, time, entry, stratum and competing.

    References
    ----------
    J. P. Klein, M. L. Moeschberger. Survival Analysis. 2nd edition, Springer, 2003; 9.3 and 9.4.
    J. P. Fine, R. J. Gray. A proportional hazards model for the subdistribution of a competing
    risk. Journal of the American Statistical Association 94 (1999) 496-509.

    Examples
    --------
    >>> from atomlearn.losses import survival_target
    >>> survival_target([True, False], [3.0, 5.0])["time"].tolist()
    [3.0, 5.0]
    >>> y = survival_target([0, 1, 2], [3.0, 5.0, 4.0], observed=2, competing=1)
    >>> y["event"].tolist(), y["competing"].tolist()
    ([False, False, True], [False, True, False])
    """
    events = read_events(event, "event", observed, competing)
    return survival_records(events, time, entry, stratum)


def survival_records(events: Events, time: Any, entry: Any, stratum: Any) -> NDArray[Any]:
    """Return the checked structured array y of events that were read from a column.

    ``time``, ``entry`` and ``stratum`` are the arguments of ``survival_target``.
    """
    return checked_survival(_records(events.observed, time, entry, stratum, events.competing))


def checked_survival(y: object) -> NDArray[Any]:
    """Return ``y`` converted to the dtype ``RECORD``; raise ValueError if that is impossible."""
    fields = _fields_of(unmasked("y", y))
    if fields.dtype.names is None or fields.ndim != 1:
        raise ValueError(f"y must be {_EXPECTED}; received {fields.dtype} of shape {fields.shape}")
    if fields.size == 0:
        raise ValueError("y is empty; expected one record per sample, at least one sample")
    records = fields if fields.dtype == RECORD else _records_of_fields(fields)
    # A comparison with NaN is false, so that NaN counts as wrong here.
    late = ~(records["entry"] < records["time"])
    is_negative = ~(records["time"] >= 0.0)
    for wrong, explanation in (
        (late, "whose entry is not before their time"),
        (is_negative, "at times < 0"),
    ):
        if wrong.any():
            raise ValueError(
                f"y has {int(wrong.sum())} samples {explanation}, the first at index "
                f"{int(np.argmax(wrong))}; correct or drop them"
            )
    if records["competing"].any() and np.isfinite(records["entry"]).any():
        raise ValueError(
            "y has competing events and entries: the subdistribution needs samples that are "
            "observed from time 0; leave competing out, which censors these events"
        )
    return records


def competing_at_infinity(y: NDArray[Any]) -> NDArray[Any]:
    """Return the records ``y`` with the times of competing events replaced by infinity.

    In the model of Fine and Gray a sample with a competing event remains at risk forever.
    """
    if not y["competing"].any():
        return y
    later = y.copy()
    later["time"][y["competing"]] = np.inf
    return later


def _fields_of(y: Any) -> NDArray[Any]:
    """Return ``y`` as an array; the columns of a data frame become fields of a structured array."""
    names = getattr(y, "columns", None)
    if names is None or not all_text(names):
        return np.asarray(y)
    # Each column keeps its type: the event may be boolean and the time a float.
    fields: Any = {"names": list(names)}
    return np.rec.fromarrays([np.asarray(y[name]) for name in names], **fields)


def _records_of_fields(records: NDArray[Any]) -> NDArray[Any]:
    """Return records from a structured array whose fields are recognized by name and type.

    The event is the only boolean field, else the only field with a usual name, else the only field
    of zeros and ones. The time is the only field that is left.
    """
    names = list(records.dtype.names or ())
    # Find the optional fields by name.
    entry, stratum, competing = (
        next((name for name in names if name.lower() in known), None)
        for known in (_ENTRY, _STRATUM, _COMPETING)
    )
    # Of the other fields, one is the event and one the time.
    other_names = [name for name in names if name not in (entry, stratum, competing)]
    events = [name for name in other_names if records.dtype[name].kind == "b"]
    events = events or [name for name in other_names if name.lower() in _EVENT]
    events = events or [name for name in other_names if np.isin(records[name], (0, 1)).all()]
    times = [name for name in other_names if name not in events]
    if len(events) != 1 or len(times) != 1:
        raise ValueError(f"y must be {_EXPECTED}; received the fields {names}")
    columns = [None if name is None else records[name] for name in (entry, stratum, competing)]
    event = read_events(records[events[0]], events[0]).observed
    return _records(event, records[times[0]], *columns)


def _records(event: Any, time: Any, entry: Any, stratum: Any, competing: Any) -> NDArray[Any]:
    """Return the structured array with these fields, each (n_samples,) or None, after checks.

    ``event`` and ``competing`` are booleans; a sample cannot have both. None means no left
    truncation, one stratum, or no competing events. Raise ValueError if the shapes differ.
    """
    checked_times = _checked_numbers(time, "time")
    observed = np.asarray(event)
    if observed.shape != checked_times.shape:
        raise ValueError(
            f"y has events of shape {observed.shape} and {checked_times.size} times; give one for "
            "each"
        )
    y = np.zeros(checked_times.size, dtype=RECORD)
    y["event"] = observed
    y["time"] = checked_times
    # Without left truncation every sample is at risk from the beginning.
    y["entry"] = -np.inf if entry is None else _checked_numbers(entry, "entry", infinite=True)
    if stratum is not None:
        y["stratum"] = np.unique(np.asarray(stratum), return_inverse=True)[1]
    if competing is not None:
        y["competing"] = np.asarray(competing, dtype=bool) & ~y["event"]
    return y


def _checked_numbers(values: Any, name: str, *, infinite: bool = False) -> Array:
    """Return ``values`` as float64 after checks; ``name`` is the field for the error message.

    ``infinite`` : whether -inf is allowed.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must have numbers for its field {name!r}: {error}") from error
    is_valid = numbers < np.inf if infinite else np.isfinite(numbers)
    if numbers.ndim != 1 or not is_valid.all():
        raise ValueError(
            f"y must have one finite number for each sample in its field {name!r}; drop the others"
        )
    return numbers
