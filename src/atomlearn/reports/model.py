"""SavedModel: score = sum_j w_j prod_{i in factors(j)} x_i + b, over the selected features only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atomlearn.core import Array, as_design, as_loss, has_link, has_probabilities, log_probabilities
from atomlearn.estimators.prediction_sets import scale_of
from atomlearn.maps.levels import nearest
from atomlearn.storage.intake.columns import ColumnPlan

#: The label of a class, as in the data.
Label = str | int | float | bool


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A column of the data that the model reads: its index there and its name."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Allele:
    """The allele that a genotype input counts, and the mean of its copies."""

    name: str
    chromosome: str
    position: int
    counted: str
    other: str
    mean: float


@dataclass(frozen=True, slots=True)
class ModelCurve:
    """A curve by its values at levels of the input; between them that of the nearest level holds.

    levels : (n_levels,) increasing; values : (n_outputs, n_levels).
    """

    levels: Array
    values: Array

    def at(self, x: Array) -> Array:
        """Return the curve of each output at x, (len(x), n_outputs)."""
        return np.asarray(self.values[:, nearest(self.levels, x)].T)


@dataclass(frozen=True, slots=True)
class ModelFeature:
    """A selected feature: the product of one or two inputs, or a curve of one.

    index : its number among all features it was selected from; factors : positions in ``inputs``,
    one for a plain column, two for an interaction, the same one twice for a square.
    """

    index: int
    name: str
    factors: tuple[int, ...]
    curve: ModelCurve | None = None


@dataclass(frozen=True, slots=True)
class ModelCertificate:
    """How close to optimal the fit of one output is proved to be.

    status : the name of the Status; objective, gap, relative_gap : at the saved coefficients in
    the units they were fitted in; passes : passes over the data.
    """

    status: str
    objective: float
    gap: float
    relative_gap: float
    passes: float


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A linear model over the selected features, in the units of the data.

    coefficients : (n_outputs, n_selected) float64; intercepts : (n_outputs,); classes : the
    labels, or None for regression. Two classes have one output, whose positive scores mean
    ``classes[1]``; more have one output a class. is_named, first_index : how the data file tells
    its columns, see ``datasets.table.Schema``; columns : what is made of those that are read
    (``ColumnPlan``); alleles : for genotypes, chromosome, position, the allele that is
    counted and the other one of each input, and its mean. settings : how it was fitted (text and
    numbers; of survival times the scores are log hazard ratios, and the settings hold
    baseline_times and baseline_hazard, cumulative there for the score baseline_score; of numbers
    and times held_out_errors, see ``interval``).
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

    def scores(self, columns: Any) -> Array:
        """Return X_S W' + b, shape (n_samples, n_outputs).

        ``columns`` is the (n_samples, len(inputs)) data of the inputs, dense or sparse. Only the
        few columns that the model reads are ever made dense, one feature at a time.
        """
        if columns.shape[1] != len(self.inputs):
            raise ValueError(
                f"the model reads {len(self.inputs)} columns and received {columns.shape[1]}; "
                "pass them in the order of model.inputs"
            )
        result = np.tile(self.intercepts, (columns.shape[0], 1))
        for added in self._added(columns):
            result += added
        return result

    def parts(self, columns: Any) -> Array:
        """Return the terms of each score, (n_samples, n_features, n_outputs)."""
        found = np.zeros((columns.shape[0], len(self.features), len(self.intercepts)))
        for place, added in enumerate(self._added(columns)):
            found[:, place] = added
        return found

    def _added(self, columns: Any) -> Iterator[Array]:
        if not self.features:
            return
        design = as_design(columns)
        for place, feature in enumerate(self.features):
            values = [design.gather(np.array([at])).dense()[:, 0] for at in feature.factors]
            # Values far outside of the fitted range overflow: the caller sees an infinite score.
            with np.errstate(over="ignore", invalid="ignore"):
                if feature.curve is None:
                    added = np.prod(values, axis=0)[:, None]
                else:
                    added = feature.curve.at(values[0])
                yield added * self.coefficients[:, place]

    def predict(self, scores: Array) -> list[Label]:
        """Return the label of each row of scores, or for regression the expected value."""
        if self.classes is None:
            return [float(value) for value in as_loss(self.loss).mean(scores[:, 0])]
        chosen = scores[:, 0] > 0 if len(self.classes) == 2 else np.argmax(scores, axis=1)
        return [self.classes[int(position)] for position in chosen]

    def interval(self, scores: Array, share: float) -> Array:
        """Return the bounds between which a share of targets is expected, (n_samples, 2).

        Of survival times one, (n_samples, 1), which a share of the events come after.
        By the errors of the model without the held-out rows on these (split conformal): of rows
        that come from where these come from.
        """
        errors = np.asarray(self.settings.get("held_out_errors", ()))
        place = math.ceil(share * (errors.size + 1) - 1e-9)
        if not 0 < place <= errors.size:
            raise ValueError(
                f"an interval of {share:g} is made from the errors on held-out rows, of numbers, "
                "or of times without strata and late entries: "
                f"this model ({self.task}) has {errors.size} of them; of classes see the "
                "probabilities, else ask for a smaller share, or select with --test-fraction"
            )
        far = np.sort(errors)[place - 1]
        if self.task == "survival":
            hazard = np.exp(self.settings["baseline_score"] - scores - far)
            clock = self.settings["held_out_hazard"], self.settings["held_out_times"]
            return np.asarray(np.interp(hazard, *clock))
        loss = as_loss(self.loss)
        mean = loss.mean(scores[:, 0])
        far = far * scale_of(loss, mean)
        low = np.maximum(mean - far, 0.0) if has_link(loss) else mean - far
        return np.column_stack([low, mean + far])

    def probabilities(self, scores: Array) -> Array | None:
        """Return P(class | x), (n_samples, n_classes), where the loss knows them; else None."""
        if self.classes is None or not has_probabilities(as_loss(self.loss)):
            return None
        together = self.settings.get("classes") == "together"
        return np.asarray(np.exp(log_probabilities(as_loss(self.loss), scores, together)))
