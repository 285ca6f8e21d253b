"""Survival targets: time of the event or of censoring, and whether the event was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, all_text, unmasked

#: Record of one sample: whether the event was observed (else the sample is censored) at ``time``;
#: it is at risk after ``entry``, and is compared only with samples of its ``stratum``.
RECORD = np.dtype([("event", "?"), ("time", "f8"), ("entry", "f8"), ("stratum", "i8")])

_ENTRY = ("entry", "start", "truncation")
_STRATUM = ("stratum", "strata")
_EVENT = ("event", "status", "cens", "died")
_EXPECTED = (
    "a structured array with a boolean field (whether the event was observed) and a field of "
    "times, as in scikit-survival, and perhaps fields 'entry' and 'stratum', or a table of such "
    "columns; use losses.survival_target(event, time)"
)


def survival_target(event: Any, time: Any, entry: Any = None, stratum: Any = None) -> NDArray[Any]:
    """Return the structured array y that ``Cox`` and ``AtomicSurvival`` take as target.

    Parameters
    ----------
    event : (n_samples,) bool
        Whether the event was observed; otherwise the sample was censored at its time.
    time : (n_samples,)
        Time of the event or of censoring, 0 or later.
    entry : (n_samples,), optional
        Time after which the sample was under observation (left truncation). None: always.
    stratum : (n_samples,), optional
        Labels; each stratum has a separate baseline hazard.

    Returns
    -------
    (n_samples,) structured ndarray
        With the fields event, time, entry and stratum.

    References
    ----------
    J. P. Klein, M. L. Moeschberger. Survival Analysis. 2nd edition, Springer, 2003; 9.3 and 9.4.

    Examples
    --------
    >>> from atomlearn.losses import survival_target
    >>> survival_target([True, False], [3.0, 5.0])["time"].tolist()
    [3.0, 5.0]
    """
    return checked_survival(_records(event, time, entry, stratum))


def checked_survival(y: object) -> NDArray[Any]:
    """Return y converted to the dtype ``RECORD``; raise ValueError if that is impossible."""
    given = _fields_of(unmasked("y", y))
    if given.dtype.names is None or given.ndim != 1:
        raise ValueError(f"y must be {_EXPECTED}; received {given.dtype} of shape {given.shape}")
    if given.size == 0:
        raise ValueError("y is empty; expected one record per sample, at least one sample")
    found = given if given.dtype == RECORD else _recorded(given)
    late = ~(found["entry"] < found["time"])
    before = ~(found["time"] >= 0.0)
    for wrong, words in ((late, "whose entry is not before their time"), (before, "at times < 0")):
        if wrong.any():
            raise ValueError(
                f"y has {int(wrong.sum())} samples {words}, the first at index "
                f"{int(np.argmax(wrong))}; correct or drop them"
            )
    return found


def _fields_of(y: Any) -> NDArray[Any]:
    """Return y as an array; a data frame becomes a structured array with its columns as fields."""
    names = getattr(y, "columns", None)
    if names is None or not all_text(names):
        return np.asarray(y)
    fields: Any = {"names": list(names)}
    return np.rec.fromarrays([np.asarray(y[name]) for name in names], **fields)


def _recorded(given: NDArray[Any]) -> NDArray[Any]:
    """Return records from a structured array whose fields are recognized by name and type."""
    names = list(given.dtype.names or ())
    entry = next((name for name in names if name.lower() in _ENTRY), None)
    stratum = next((name for name in names if name.lower() in _STRATUM), None)
    rest = [name for name in names if name not in (entry, stratum)]
    events = [name for name in rest if given.dtype[name].kind == "b"]
    events = events or [name for name in rest if name.lower() in _EVENT]
    events = events or [name for name in rest if np.isin(given[name], (0, 1)).all()]
    times = [name for name in rest if name not in events]
    if len(events) != 1 or len(times) != 1:
        raise ValueError(f"y must be {_EXPECTED}; received the fields {names}")
    found = [None if name is None else given[name] for name in (entry, stratum)]
    return _records(given[events[0]], given[times[0]], *found)


def _records(event: Any, time: Any, entry: Any, stratum: Any) -> NDArray[Any]:
    """Return the structured array with these fields, after checks; raise ValueError."""
    times = _numbers(time, "time")
    seen = np.asarray(event)
    if seen.shape != times.shape:
        raise ValueError(
            f"y has events of shape {seen.shape} and {times.size} times; give one for each"
        )
    if seen.dtype.kind != "b" and not np.isin(seen, (0, 1)).all():
        raise ValueError(
            "y must have True or False for each sample, whether its event was observed"
        )
    y = np.zeros(times.size, dtype=RECORD)
    y["event"] = seen.astype(bool)
    y["time"] = times
    y["entry"] = -np.inf if entry is None else _numbers(entry, "entry", infinite=True)
    if stratum is not None:
        y["stratum"] = np.unique(np.asarray(stratum), return_inverse=True)[1]
    return y


def _numbers(values: Any, name: str, *, infinite: bool = False) -> Array:
    """Return the values as float64 after checks; ``infinite`` allows -inf."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must have numbers for its field {name!r}: {error}") from error
    good = numbers < np.inf if infinite else np.isfinite(numbers)
    if numbers.ndim != 1 or not good.all():
        raise ValueError(
            f"y must have one finite number for each sample in its field {name!r}; drop the others"
        )
    return numbers
