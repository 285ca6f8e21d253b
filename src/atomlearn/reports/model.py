"""SavedModel: a linear or additive model that is restricted to the selected features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atomlearn.core import Array, as_design, as_loss, has_link, has_probabilities
from atomlearn.estimators.prediction_sets import scale_of
from atomlearn.estimators.probabilities import log_probabilities
from atomlearn.maps.levels import nearest
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.columns import ColumnPlan

#: The label of a class, as in the data.
Label = str | int | float | bool


@dataclass(frozen=True, slots=True)
class ModelInput:
    """An input column of the model: its index, name, minimum and maximum in training."""

    index: int
    name: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Allele:
    """The allele that a genotype input counts, and the mean count in the training data.

    ``counted`` and ``other`` are the two alleles of the variant.
    """

    name: str
    chromosome: str
    position: int
    counted: str
    other: str
    mean: float


@dataclass(frozen=True, slots=True)
class ModelCurve:
    """A step function of one input, given by its values at levels of the input.

    ``levels``, shape (n_levels,), are increasing, and ``values`` has shape (n_outputs, n_levels).
    The value at x is that of the level nearest to x.
    """

    levels: Array
    values: Array

    def at(self, x: Array) -> Array:
        """Return the curve of each output at the points x, shape (len(x), n_outputs)."""
        return np.asarray(self.values[:, nearest(self.levels, x)].T)


@dataclass(frozen=True, slots=True)
class ModelFeature:
    """A selected feature: one input, the product of two inputs, or a curve of one input.

    ``index`` is the index among all features that were selected from. ``factors`` are positions in
    ``SavedModel.inputs``: one for a plain column or a curve, two for an interaction, and the same
    position twice for a square.
    """

    index: int
    name: str
    factors: tuple[int, ...]
    curve: ModelCurve | None = None


@dataclass(frozen=True, slots=True)
class ModelCertificate:
    """The optimality certificate of the fit of one output.

    ``status`` is the name of the solver status. ``objective``, ``gap`` (the duality gap) and
    ``relative_gap`` are at the saved coefficients, in the units in which they were fitted.
    ``passes`` is the number of passes over the data.
    """

    status: str
    objective: float
    gap: float
    relative_gap: float
    passes: float


def times_of(settings: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the times whose risks are predicted by default, from the settings of a model."""
    return tuple(float(time) for time in str(settings.get("at", "")).split(",") if time)


def baseline_keys(stratum: str | None = None) -> tuple[str, str]:
    """Return the settings with the times and the cumulative baseline hazard of a stratum.

    ``stratum`` is None for a model without strata.
    """
    suffix = "" if stratum is None else f"[{stratum}]"
    return f"baseline{suffix}_times", f"baseline{suffix}_hazard"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A linear or additive model over the selected features, in the units of the data.

    The score of a row is sum_j w_j f_j + b, in which f_j is the j-th feature: the product of its
    factors x_i, or a curve of x_i.

    ``coefficients`` has shape (n_outputs, n_selected) and ``intercepts`` shape (n_outputs,).
    ``classes`` are the labels of a classification, else None. Two classes have one output, whose
    positive scores predict ``classes[1]``; more classes have one output each. ``is_named`` and
    ``first_index`` say how the data file identifies columns, see ``datasets.table.Schema``.
    ``columns`` are the encoding plans of the columns that the model reads. ``alleles`` are, for
    genotypes, the counted alleles of the inputs.

    ``proof`` holds the claims that ``atomlearn verify`` checks, or the reason why there are none;
    see docs/verify.md.

    ``settings`` are the hyperparameters of the fit, as text and numbers. For survival models the
    scores are log hazards, and the settings hold ``baseline_times`` and ``baseline_hazard``, the
    cumulative baseline hazard at the mean score ``baseline_score``, the last observed time
    ``followed_until``, and ``at``, the times of ``times_of``. For regression and survival they
    hold ``held_out_errors``, from which ``interval`` makes prediction intervals.
    """

    task: str
    loss: str
    target: str
    classes: tuple[Label, ...] | None
    n_features: int
    n_inputs: int
    inputs: tuple[ModelInput, ...]
    features: tuple[ModelFeature, ...]
    is_named: bool
    first_index: int
    coefficients: Array
    intercepts: Array
    certificates: tuple[ModelCertificate, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    created_with: str = ""
    columns: tuple[ColumnPlan, ...] = ()
    alleles: tuple[Allele, ...] = ()
    proof: dict[str, object] = field(default_factory=dict)

    def scores(self, columns: Any) -> Array:
        """Return the scores X_S W' + b, shape (n_samples, n_outputs).

        The argument ``columns``, shape (n_samples, len(inputs)), holds the values of ``inputs``,
        dense or sparse. (The attribute ``columns`` holds plans.) X_S are the selected features made
        from these values, W the coefficients and b the intercepts. One feature at a time is
        converted to a dense array.
        """
        if columns.shape[1] != len(self.inputs):
            raise ValueError(
                f"the model reads {len(self.inputs)} columns and received {columns.shape[1]}; "
                "pass them in the order of model.inputs"
            )
        result = np.tile(self.intercepts, (columns.shape[0], 1))
        for added in self._terms(columns):
            result += added
        return result

    def parts(self, columns: Any) -> Array:
        """Return the terms of each score, shape (n_samples, len(features), n_outputs).

        The argument ``columns``, shape (n_samples, len(inputs)), holds the values of ``inputs``, as
        in ``scores``. A score is the sum of its terms plus the intercept.
        """
        contributions = np.zeros((columns.shape[0], len(self.features), len(self.intercepts)))
        for index, added in enumerate(self._terms(columns)):
            contributions[:, index] = added
        return contributions

    def _terms(self, columns: Any) -> Iterator[Array]:
        """Yield the term of each feature in the scores, shape (n_samples, n_outputs).

        ``columns`` are the values of ``inputs``, as in ``scores``. A term is the value of the
        feature times its coefficients.
        """
        if not self.features:
            return
        design = as_design(columns)
        for index, feature in enumerate(self.features):
            values = [design.gather(np.array([factor])).dense()[:, 0] for factor in feature.factors]
            # Values far outside of the range of the training data may overflow. The warning is
            # suppressed, because the caller checks that scores are finite.
            with np.errstate(over="ignore", invalid="ignore"):
                if feature.curve is None:
                    added = np.prod(values, axis=0)[:, None]
                else:
                    added = feature.curve.at(values[0])
                yield added * self.coefficients[:, index]

    def predict(self, scores: Array) -> list[Label]:
        """Return the label of each row of scores or, for other tasks, the expected value.

        ``scores`` is the result of ``scores``.
        """
        if self.classes is None:
            return [float(value) for value in as_loss(self.loss).mean(scores[:, 0])]
        chosen = scores[:, 0] > 0 if len(self.classes) == 2 else np.argmax(scores, axis=1)
        return [self.classes[int(position)] for position in chosen]

    def interval(self, scores: Array, share: float) -> Array:
        """Return split conformal prediction intervals, shape (n_samples, 2).

        ``share`` is the nominal coverage, such as 0.9. The width comes from the errors on held-out
        rows of a model that was fitted without them, so the coverage holds for rows from the same
        distribution as the held-out rows. For survival models the shape is (n_samples, 1): the time
        after which this share of the events occurs. ``scores`` is the result of the method of that
        name.
        """
        # Split conformal: the half width is the error of rank ceil(share (n + 1)) among n errors.
        errors = np.asarray(self.settings.get("held_out_errors", ()))
        rank = math.ceil(share * (errors.size + 1) - 1e-9)
        if not 0 < rank <= errors.size:
            raise ValueError(
                f"an interval of {share:g} is made from the errors on held-out rows, of numbers, "
                "or of times without strata and late entries: "
                f"this model ({self.task}) has {errors.size} of them; of classes see the "
                "probabilities, else ask for a smaller share, or select with --test-fraction"
            )
        error = np.sort(errors)[rank - 1]
        # The error of a survival model is -log H(T) - (score - baseline_score), with the cumulative
        # baseline hazard H at the time T of the event. So the bound is the time at which
        # H = exp(baseline_score - score - error).
        if self.task == "survival":
            hazard = np.exp(self.settings["baseline_score"] - scores - error)
            hazards_and_times = self.settings["held_out_hazard"], self.settings["held_out_times"]
            return np.asarray(np.interp(hazard, *hazards_and_times))
        loss = as_loss(self.loss)
        mean = loss.mean(scores[:, 0])
        error = error * scale_of(loss, mean)
        low = np.maximum(mean - error, 0.0) if has_link(loss) else mean - error
        return np.column_stack([low, mean + error])

    def risks(
        self, scores: Array, times: Sequence[float], strata: Sequence[str] | None = None
    ) -> Array:
        """Return the probability of an event by each time, (n_samples, n_times), of survival data.

        ``strata`` are the strata of the rows, None for a model without strata. A ValueError is
        raised for other models, unknown strata, and times beyond the last one. ``scores`` is the
        result of the method of that name.
        """
        if self.task != "survival":
            raise ValueError(f"--at needs a survival model, and this is a {self.task}")
        last_time = self.settings["followed_until"]
        if max(times) > last_time:
            raise ValueError(
                f"--at {max(times):g} is beyond the last time that was observed, {last_time:g}; "
                "nothing is known of later risks"
            )
        labels: Sequence[str | None] = [None] * len(scores) if strata is None else strata
        hazards = {label: self._hazard(label, times) for label in dict.fromkeys(labels)}
        hazard = np.array([hazards[label] for label in labels]).reshape(-1, len(times))
        # P(event by t) = 1 - exp(-H_0(t) exp(score - baseline score))
        ratio = np.exp(np.minimum(scores[:, :1] - self.settings["baseline_score"], 700.0))
        return np.asarray(-np.expm1(-ratio * hazard))

    def _hazard(self, stratum: str | None, event_times: Sequence[float]) -> Array:
        """Return the cumulative baseline hazard (n_times,) of a stratum at these times.

        ``stratum`` is None for a model without strata. Raises ValueError for an unknown one.
        """
        times, hazard = baseline_keys(stratum)
        if times not in self.settings:
            keys = [key for key in self.settings if key.startswith("baseline[")]
            strata = [key[len("baseline[") : -len("]_times")] for key in keys[::2]]
            raise ValueError(
                f"--at needs the baseline hazard of each row, and the model has none of stratum "
                f"{stratum!r}: it has {listing(strata) if strata else 'no finite one'}"
            )
        positions = np.searchsorted(self.settings[times], event_times, side="right")
        return np.append(0.0, self.settings[hazard])[positions]

    def probabilities(self, scores: Array) -> Array | None:
        """Return P(class | x), shape (n_samples, n_classes).

        The result is None if the model is no classifier or its loss has no class probabilities.
        ``scores`` is the result of the method of that name.
        """
        if self.classes is None or not has_probabilities(as_loss(self.loss)):
            return None
        is_joint = self.settings.get("classes") == "together"
        return np.asarray(np.exp(log_probabilities(as_loss(self.loss), scores, is_joint)))
