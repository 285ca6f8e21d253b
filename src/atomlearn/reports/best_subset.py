"""The optimality proof of a best subset search for the page: sentences, near-optima, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from atomlearn.estimators.subsets import SubsetModel
from atomlearn.findings.twins import Twins
from atomlearn.reports.drawing import Display, FittedEstimator, percent
from atomlearn.reports.registry import bounds_of, near_best_of
from atomlearn.reports.view import View
from atomlearn.subsets.result import SubsetResult, SubsetStatus

#: The sentence on the limits of the proof.
NOT_THE_WORLD = (
    "Best is meant by the objective on these rows, the loss with its ridge. It is no statement "
    "about the world: other rows may have another best subset, features that were not measured are "
    "in none, and how well the model predicts is known from held-out rows alone."
)


@dataclass(frozen=True, slots=True)
class SubsetProof:
    """The optimality proof of a best subset.

    ``over`` names the set of subsets that the lower bound covers, and ``sentences`` state the
    proof. ``near`` holds, for each near-optimal subset, the columns it lacks, the columns it has
    instead, and the relative rise of the objective. ``twins`` are the same for subsets that differ
    in one column. ``bounds`` holds the displays of near-best models and of the bounds over time.
    """

    over: str
    sentences: tuple[str, ...]
    near: Sequence[tuple[str, str, str]] = ()
    twins: Sequence[Twins] = ()
    bounds: Sequence[Display] = ()

    @classmethod
    def of(cls, view: View, refitted: bool) -> Self | None:
        """Return the proof of a best subset model, or None for other models.

        ``refitted`` is whether the held-out rows were scored with another subset than the final
        one. ``view`` is the fitted model with its inputs.
        """
        model = view.model
        if not isinstance(model, SubsetModel):
            return None
        result = model.result_
        names = model.unit_names(view.names)
        unit = "feature" if model.groups is None else "group"
        size = f"{result.n_features:,} {unit}{'' if result.n_features == 1 else 's'}"
        sentences = [
            _optimality_sentence(result, size),
            *_feature_sentences(result, size, unit, names),
        ]
        best = result.columns if result.groups is None else result.groups
        # Each near-optimal subset by the columns that it lacks, and those that it has instead.
        exchanges = []
        substitutes = list[Twins]()
        for each in (result.near or ())[1:]:
            missing_columns = np.setdiff1d(best, each.columns).tolist()
            leaving, entering = (
                ", ".join(names[column] for column in part)
                for part in (missing_columns, np.setdiff1d(each.columns, best).tolist())
            )
            rise = each.objective / result.objective - 1.0
            exchanges.append((leaving, entering, f"+{percent(rise)}"))
            # A single feature that another one replaces is shown with the feature.
            if len(missing_columns) == 1 and unit == "feature":
                substitutes.append(Twins(missing_columns[0], leaving, (), rise, 0.0, (entering,)))
        if result.near is not None:
            sentences.append(
                _near_sentence(len(exchanges), percent(model.within), result.near_complete)
            )
            sentences += _shared_sentences(result, unit, names)
        if refitted:
            sentences.append(
                "The subset that held-out rows were scored with was found in the same way among "
                "the other rows, without a proof."
            )
        fitted = FittedEstimator(model, names=view.names)
        displays: list[Display | None] = [bounds_of(fitted)]
        if result.near is not None and unit == "feature":
            displays.insert(0, near_best_of(fitted))
        sentences.append(NOT_THE_WORLD)
        pictures = [each for each in displays if each is not None]
        return cls(f"all subsets of {size}", tuple(sentences), exchanges, substitutes, pictures)


def _optimality_sentence(result: SubsetResult, size_in_words: str) -> str:
    """Return the sentence on all other subsets: whether the subset is proved to be optimal.

    ``size_in_words`` is the number of features or groups with the noun, such as "4 features".
    ``result`` is the result of the search.
    """
    bound = f"no subset of {size_in_words} has an objective more than {percent(result.gap)} lower"
    if result.status is SubsetStatus.OPTIMAL:
        return f"This is the best subset of {size_in_words}: {bound}."
    ended = str(result.status).partition(";")[0]
    return f"Not proved to be the best subset of {size_in_words} ({ended}). Proved so far: {bound}."


def _feature_sentences(
    result: SubsetResult, size: str, unit: str, names: dict[int, str]
) -> list[str]:
    """Return sentences on single features: those in no optimal subset, and those in all.

    ``size`` is the number of features with the noun, ``unit`` is "feature" or "group", and
    ``names`` maps an index to its name. ``result`` is the result of the search.
    """
    if result.open_columns is None:
        return [f"Nothing is proved of single {unit}s: they are too many to be listed."]
    n_open = result.open_columns.size - result.proved_in.size
    n_out = result.n_proved_out
    words = (
        f"{n_out:,} of {n_out + result.open_columns.size:,} {unit}s are in no best model of {size}"
    )
    sentences = [f"{words}; of {n_open:,} this is not known." if n_open else f"{words}."]
    if result.proved_in.size:
        common = ", ".join(names[column] for column in result.proved_in.tolist())
        sentences.append(f"In every best model: {common}.")
    return sentences


def _shared_sentences(result: SubsetResult, unit: str, names: dict[int, str]) -> list[str]:
    """Return sentences on the features that all near-optimal subsets share, and on the others.

    ``unit`` is "feature" or "group", and ``names`` maps an index to its name. ``result`` is the
    result of the search.
    """
    models = result.near_models
    if models is None or (len(models.subsets) == 1 and models.complete):
        return []
    in_all = ", ".join(names[column] for column in models.in_all.tolist()) or f"no {unit}"
    sentence = f"In all of them: {in_all}. In some of them: {models.in_some.size:,} {unit}s."
    if models.undecided is None:
        return [sentence]
    total = result.n_proved_out + (0 if result.open_columns is None else result.open_columns.size)
    undecided = models.undecided.size
    n_in_none = total - models.in_all.size - models.in_some.size - undecided
    sentence += f" In none of them: {n_in_none:,}."
    return [sentence + (f" Not decided: {undecided:,}." if undecided else "")]


def _near_sentence(others: int, share: str, complete: bool) -> str:
    """Return the sentence on the number of near-optimal subsets.

    ``others`` is their number, ``share`` the rise of the objective that still counts as near, and
    ``complete`` whether all of them were enumerated.
    """
    if not complete:
        return f"{others:,} others within {share} were found; there may be more of them."
    if not others:
        return f"Every other subset has an objective more than {share} higher."
    return (
        f"{others:,} other{' has' if others == 1 else 's have'} an objective at most {share} "
        "higher, and none is missing below: where features can stand for each other, no one subset "
        "is the model."
    )
