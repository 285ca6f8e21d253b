"""Event codings: which labels of a status column are the event, censoring, or competing events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Labels that mean an observed event, and labels that mean censoring, in lower case.
EVENT_LABELS = frozenset(
    {
        "1",
        "true",
        "yes",
        "y",
        "t",
        "dead",
        "died",
        "death",
        "deceased",
        "event",
        "observed",
        "failed",
        "relapse",
        "relapsed",
        "recurrence",
        "recurred",
        "progression",
        "progressed",
        "recurred/progressed",
    }
)
CENSORED_LABELS = frozenset(
    {
        "0",
        "false",
        "no",
        "n",
        "f",
        "alive",
        "living",
        "censored",
        "diseasefree",
        "disease-free",
        "event-free",
    }
)
#: A code before a word, as in "1:DECEASED" of cBioPortal.
_CODE = re.compile(r"^\d+:")
#: Maximum number of labels that a message lists.
_MOST_LABELS = 6


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a status column.

    Attributes
    ----------
    observed : (n_samples,) bool
        Whether the event was observed.
    competing : (n_samples,) bool
        Whether a competing event was observed that is modeled, and not treated as censoring.
    others : tuple of str
        Labels of other events, which are censored at their times.
    words : str
        A sentence for the user: what each label was taken to mean, with its number of rows.
    is_plain : bool
        Whether the labels are only 0 and 1, or true and false, which need no such sentence.
    """

    observed: NDArray[np.bool_]
    competing: NDArray[np.bool_]
    others: tuple[str, ...]
    words: str
    is_plain: bool


def read_events(
    status: Any, name: str = "status", observed: Any = None, competing: Any = None
) -> Events:
    """Return the events of a column of labels.

    Parameters
    ----------
    status : (n_samples,)
        Labels: booleans, numbers or words.
    name : str
        Name of the column, for messages.
    observed : label or sequence of labels, optional
        The labels of the event. None: the event is 1, True, yes, or a word such as dead; censoring
        is 0, False, no, or a word such as alive. With the labels 1 and 2, 2 is the event, as in R.
    competing : "all", label or sequence of labels, optional
        Labels of competing events that are modeled. "all": every label that is neither that of the
        event nor of censoring. None: rows with other events are censored at their times.

    Examples
    --------
    >>> from atomlearn.survival.events import read_events
    >>> read_events(["Dead", "Alive"]).observed.tolist()
    [True, False]
    >>> read_events([0, 1, 2], "status", observed=2).words
    "status: '2' (1 row) is the event; '0' (1 row) is censored; '1' (1 row) is another event, \
censored at its time: hazards are those of rows still at risk"
    """
    # Classify the labels: events, censored ones, and unknown ones.
    labels = label_texts(status)
    counts = Counter(labels.tolist())
    events = _labels_in_data(observed, counts, name, "the event") if observed is not None else None
    if events is None:
        events = _recognized(counts, name)
    other_labels = [label for label in sorted(counts) if label not in events]
    # If there is only one other label, it means censoring, whatever the word.
    recognized = [label for label in other_labels if _without_code(label) in CENSORED_LABELS]
    censored = recognized or (other_labels if len(other_labels) == 1 else [])
    unknown = [label for label in other_labels if label not in censored]
    # Choose the modeled competing events among the unknown labels.
    modeled = list[str]()
    if competing is not None:
        modeled = (
            unknown if competing == "all" else _labels_in_data(competing, counts, name, "competing")
        )
        if set(modeled) & set(events):
            raise ValueError(f"{name}: {modeled[0]!r} cannot be the event and compete with it")
        if competing == "all" and not recognized and len(other_labels) > 1:
            raise ValueError(
                f"{name} has the labels {_listed(counts)}, and none of them means censoring; name "
                "the competing ones, as --competing LABEL (in Python competing=LABEL)"
            )
        if not modeled:
            raise ValueError(
                f"{name} has no competing event: its labels are {_listed(counts)}; leave "
                "competing out, or name the event"
            )
    not_modeled = [label for label in other_labels if label not in modeled]
    unmodeled = tuple(label for label in not_modeled if label not in censored)
    # Say how each label was read, with its number of rows.
    roles: dict[str, Sequence[str]] = {
        "the event": events,
        "censored": [label for label in not_modeled if label in censored],
        "a competing event: hazards are those of the subdistribution (Fine and Gray)": modeled,
        "another event, censored at its time: hazards are those of rows still at risk": unmodeled,
    }
    words = [_labels_note(labels, counts, role) for role, labels in roles.items() if labels]
    return Events(
        np.isin(labels, list(events)),
        np.isin(labels, modeled),
        unmodeled,
        f"{name}: {'; '.join(words)}",
        observed is None
        and {_without_code(label) for label in counts} <= {"0", "1", "true", "false"},
    )


def label_texts(status: Any) -> NDArray[Any]:
    """Return the labels of ``status`` (n_rows,) as text; whole numbers have no decimal point."""
    cells = np.asarray(status)
    if cells.ndim != 1:
        raise ValueError(
            f"status must have one label for each row, received an array of shape {cells.shape}"
        )
    inverse = None
    if cells.dtype.kind in "biuf":  # there may be millions of rows, but few distinct labels
        cells, inverse = np.unique(cells, return_inverse=True)
    texts = [str(cell).strip().removesuffix(".0") for cell in cells.tolist()]
    labels = np.array(texts, dtype=object)
    return labels if inverse is None else labels[inverse]


def _without_code(label: str) -> str:
    """Return ``label`` in lower case, without a code such as "1:" before it."""
    return _CODE.sub("", label.casefold())


def _recognized(counts: Counter[str], name: str) -> list[str]:
    """Return the labels that mean the event, if the meaning of all labels is known.

    ``counts`` has the number of rows of each label; ``name`` is the name of the column in errors.
    Raise ValueError if a label has no known meaning.
    """
    if {*counts} == {"1", "2"}:
        return ["2"]
    # If one label has no known meaning, the user has to say which one is the event.
    all_labels = EVENT_LABELS | CENSORED_LABELS
    if any(_without_code(label) not in all_labels for label in counts):
        if len(counts) > _MOST_LABELS:
            raise ValueError(
                f"{name} has {len(counts):,} different values; expected a column of a few labels, "
                "such as 0 and 1, or name the label of the event"
            )
        suggestion = max(
            (label for label in counts if _without_code(label) not in CENSORED_LABELS), default=""
        )
        raise ValueError(
            f"{name} has the labels {_listed(counts)}; name that of the event, as --event "
            f"{name}={suggestion} (in Python observed={suggestion!r}); the others are then "
            "censored"
        )
    return [label for label in sorted(counts) if _without_code(label) in EVENT_LABELS]


def _labels_in_data(labels: Any, counts: Counter[str], name: str, role: str) -> list[str]:
    """Return ``labels``, given by the user, as they are in the data, up to upper and lower case.

    ``counts`` has the labels of the data. Raise ValueError if one of ``labels`` is absent; the
    message names the column ``name`` and the ``role`` of the label.
    """
    texts = label_texts(np.atleast_1d(np.asarray(labels, dtype=object)))
    # An exact match counts first; else labels that differ only in upper and lower case.
    labels_found = []
    for label in texts.tolist():
        matches = [known for known in counts if known == label]
        matches = matches or [known for known in counts if known.casefold() == label.casefold()]
        if not matches:
            raise ValueError(
                f"{name} has no label {label!r} for {role}; its labels are {_listed(counts)}"
            )
        labels_found += matches
    return labels_found


def _listed(counts: Counter[str]) -> str:
    """Return the labels of ``counts`` as text, each with its number of rows."""
    listed = [f"{label!r} ({counts[label]:,})" for label in sorted(counts)[:_MOST_LABELS]]
    return ", ".join(listed) + (", ..." if len(counts) > _MOST_LABELS else "")


def _labels_note(labels: Sequence[str], counts: Counter[str], role: str) -> str:
    """Return a note such as "'0' (12 rows) is censored", for ``labels`` of one role.

    ``counts`` has the number of rows of each label, and ``role`` is the part after the verb.
    """
    count = sum(counts[label] for label in labels)
    rows = f"{count:,} row{'' if count == 1 else 's'}"
    verb = "is" if len(labels) == 1 else "are"
    return f"{' and '.join(map(repr, labels))} ({rows}) {verb} {role}"
