"""Claims of optimality: made from a problem and its solution, in a form that ``bounds`` checks.

A claim is a dictionary for JSON. It has the parameters of the problem, the coefficients, a dual
point, and hashes of the data and of itself. From these and the data ``bounds`` proves that no other
coefficients have an objective smaller by more than the claimed gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    L1,
    OWL,
    Array,
    Columns,
    Design,
    ElasticNetNorm,
    Groups,
    KSupport,
    Loss,
    Nonnegative,
    Norm,
    Problem,
    Scaled,
    bare_loss,
)
from atomlearn.verification.bounds import claim_digest, data_digest, proved

#: Number of bits of the stored dual point, whose steps add up to 0 exactly.
BITS = 44
#: Share by which a gap may increase if another machine adds numbers in another order.
MARGIN = 1.001
#: The losses and norms that ``bounds`` knows.
LOSSES = (
    "squared",
    "huber",
    "quantile",
    "logistic",
    "squared_hinge",
    "poisson",
    "gamma",
    "multinomial",
    "cox",
)


class NoClaim(ValueError):
    """A model whose optimality cannot be checked from a file; the message says why."""


class DesignColumns:
    """The columns of a design with the indexing that ``bounds`` needs: X[:, positions] and shape.

    Parameters
    ----------
    design : Design
        The data.
    order : (m,) int64, optional
        The columns in use, in this order; None: all.
    """

    def __init__(self, design: Design, order: Columns | None = None) -> None:
        """Store the design and the order of its columns; by default all in order."""
        self.design = design
        self.order = np.arange(design.shape[1]) if order is None else order
        self.shape = design.shape[0], self.order.size
        self.is_sparse = design.traits.is_sparse

    def __getitem__(self, key: tuple[slice, Any]) -> Any:
        """Return all rows of some columns, an array or a sparse matrix.

        ``key`` is (:, positions), where position k stands for column ``order[k]`` of the design.
        """
        block: Any = self.design.gather(self.order[key[1]])
        return block.stored() if block.traits.is_sparse else np.asarray(block.dense())

    def taken(self, order: Columns) -> DesignColumns:
        """Return the columns at the positions ``order``, in this order."""
        return DesignColumns(self.design, self.order[order])


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a claim: columns, targets as the loss takes them, weights and offsets.

    Attributes
    ----------
    X : DesignColumns
        The columns.
    y : (n_rows,) or (n_rows, n_outputs) ndarray
        Numbers, -1 and +1, codes of classes for the multinomial loss, or survival records.
    weight : (n_rows,) float64
        The sample weights.
    offset : (n_rows, n_outputs) float64 or None
        Numbers added to the predictions.
    """

    X: DesignColumns
    y: NDArray[Any]
    weight: Array
    offset: Array | None = None


@dataclass(frozen=True, slots=True)
class ClaimedPoint:
    """The coefficients of a claim, in the units of X.

    Attributes
    ----------
    columns : (m,) int64
        Numbers of coefficients: column * n_outputs + output. They repeat for overlapping groups.
    weights : (m,) float64
        The coefficients.
    intercepts : (n_outputs,) float64
        The intercept of each output.
    sets : list of int
        The group of each coefficient; empty for norms without groups.
    """

    columns: Columns
    weights: Array
    intercepts: Array
    sets: list[int] = field(default_factory=list)


def claim_of(
    problem: Problem,
    data: Data,
    point: ClaimedPoint,
    *,
    fit_intercept: bool,
    standardize: bool,
    dual: Array | None = None,
) -> dict[str, Any]:
    """Return the claim of a point, with the gap that ``bounds`` proves.

    Parameters
    ----------
    problem : Problem
        The problem of the fit; its loss is a sum over samples.
    data : Data
        The data, in the units of X.
    point : ClaimedPoint
        The coefficients.
    fit_intercept, standardize : bool
        Whether the fit has an intercept, and whether it divided columns by their deviations.
    dual : (n_rows, n_outputs) float64, optional
        A dual point, which a loss with kinks needs.

    Returns
    -------
    dict
        The claim.

    Raises
    ------
    NoClaim
        If ``bounds`` cannot check such a problem.
    """
    n_outputs = point.intercepts.size
    loss = bare_loss(problem.loss)
    penalty = problem.regularizer
    if problem.metric is not None:
        raise NoClaim("a ridge term of atoms cannot be checked from a file")
    # The claim is of the mean loss: strengths are divided by the sum of the sample weights.
    total_weight = float(problem.weight.sum()) / n_outputs
    constrained = penalty.form == "constrained"
    norm_strength = 0.0 if constrained else penalty.amount / total_weight
    tau = problem.tau / total_weight
    claim: dict[str, Any] = {
        "format": "atomlearn-claim",
        "version": 1,
        "n_rows": data.X.shape[0],
        "n_columns": data.X.shape[1],
        "outputs": n_outputs,
        "sparse": data.X.is_sparse,
        "standardize": standardize,
        "loss": loss_entry(loss),
        "norm": norm_entry(penalty.norm, data.X.shape[1] * n_outputs),
        "form": penalty.form,
        "alpha": norm_strength + tau,
        "l1_ratio": norm_strength / (norm_strength + tau) if norm_strength + tau else 1.0,
        "radius": penalty.amount if constrained else None,
        "intercept": bool(fit_intercept),
        "free": [] if problem.free is None else problem.free.tolist(),
        "columns": point.columns.tolist(),
        "sets": point.sets,
        "coefficients": point.weights.tolist(),
        "intercepts": point.intercepts.tolist(),
    }
    if claim["free"] and n_outputs > 1:
        raise NoClaim("columns without a penalty, for several outputs at once")
    offset = np.zeros((data.X.shape[0], n_outputs))
    offset += 0.0 if data.offset is None else data.offset.reshape(offset.shape)
    if loss.name != "cox":
        claim["dual"] = stored_dual(loss, data, point, claim, offset, dual)
    return sealed(claim, data, offset)


def sealed(claim: dict[str, Any], data: Data, offset: Array) -> dict[str, Any]:
    """Return the claim with the objective and the gap that ``bounds`` proves, and with hashes.

    ``data`` are the columns, targets and weights, and ``offset`` is (n_rows, n_outputs). The
    claimed gap has a margin, because another machine may add numbers in another order.
    """
    claim = claim | {"objective": math.nan, "gap": math.inf}
    numbers = proved(claim, data.X, data.y, data.weight, offset)
    claim |= {"objective": numbers["objective"], "relative_gap": numbers["relative_gap"]}
    claim["gap"] = MARGIN * numbers["gap"] + 1e-12 * abs(numbers["objective"])
    claim["data"] = data_digest(data.X, data.y, data.weight, offset, claim["sparse"])
    return claim | {"sha256": claim_digest(claim)}


def loss_entry(loss: Loss) -> dict[str, Any]:
    """Return the name and the parameters of a loss; NoClaim if ``bounds`` does not know it."""
    if loss.name not in LOSSES:
        raise NoClaim(f"the loss {loss.name!r} is not checked yet; those that are: {LOSSES}")
    inner: Any = loss
    names = [name for name in ("delta", "q", "n_classes", "ties") if hasattr(inner, name)]
    return {"name": loss.name} | {name: getattr(inner, name) for name in names}


def norm_entry(norm: Norm, n_features: int) -> dict[str, Any]:
    """Return the name and the numbers of a norm over ``n_features`` coefficients.

    The entry always has the keys weights, lower, upper (bounds on coefficients), members and starts
    (of groups), and scale. Raise NoClaim if ``bounds`` does not know the norm.
    """
    entry: dict[str, Any] = dict.fromkeys(("weights", "lower", "upper", "members", "starts"))
    entry["scale"] = 1.0
    if isinstance(norm, Scaled):
        inner = norm_entry(norm.norm, n_features)
        return inner | {"scale": inner["scale"] * norm.factor}
    if isinstance(norm, Nonnegative) and isinstance(norm.norm, L1):
        norm = L1(norm.norm.weights, 0.0, norm.norm.upper)
    if isinstance(norm, ElasticNetNorm):
        return {"name": "elasticnet", **entry, "k": float(norm.k or 1)}
    # A lift writes a norm with overlapping groups as a simpler norm over repeated coefficients.
    lift = norm.lift(n_features)
    if lift is not None:
        if not lift.expansion.repeats:
            raise NoClaim(f"{norm!r} maps its groups by numbers, which is not checked yet")
        inner = norm_entry(lift.norm, lift.expansion.shape[1])
        return inner | _sets(lift.norm, lift.expansion.matrix.indices.astype(np.int64))
    if isinstance(norm, L1):
        # Weights of the columns, and bounds on coefficients if there are any.
        box = norm._box(n_features)
        if box is not None:
            names = ("weights", "lower", "upper") if not box.symmetric else ("weights",)
            arrays = box.weights, box.lower, box.upper
            entry |= {name: numbers(array) for name, array in zip(names, arrays, strict=False)}
        return {"name": "l1", **entry}
    if isinstance(norm, Groups):
        _, weights = norm.parts(n_features)
        return {"name": "l1", **entry, "weights": numbers(weights)} | _sets(
            norm, np.arange(n_features)
        )
    if isinstance(norm, KSupport):
        sets = {} if norm.groups is None else _sets(norm, np.arange(n_features))
        return {"name": "ksupport", **entry, "k": int(norm.k)} | sets
    if isinstance(norm, OWL):
        return {"name": "owl", **entry, "weights": numbers(norm._weights(n_features))}
    raise NoClaim(f"the norm {norm!r} is not checked yet")


def _sets(norm: Any, features: Columns) -> dict[str, Any]:
    """Return the "members" of the groups of a norm, group after group, and where each "starts".

    Group g has the features members[starts[g] : starts[g + 1]]. ``features`` (m,) are the numbers
    of the features for the m coefficients of the norm.
    """
    partition = norm.partition(features.size)
    order, starts = partition.order
    return {"members": features[order].tolist(), "starts": starts.tolist()}


def numbers(values: Array) -> list[float | str]:
    """Return the values as a list for JSON, in which infinity is a string."""
    return [value if math.isfinite(value) else str(value) for value in values.tolist()]


def stored_dual(
    loss: Loss,
    data: Data,
    point: ClaimedPoint,
    claim: dict[str, Any],
    offset: Array,
    dual: Array | None,
) -> dict[str, Any]:
    """Return the dual point as integer multiples of a power of 2, with exact sums of 0.

    The dual point has one entry for each row and output. With intercepts the entries of each output
    add up to 0. For the multinomial loss the entries of each row add up to 0, too. The result has
    the "exponent" of the power, and the multiples ("steps") as text, row after row. ``dual``
    (n_rows, n_outputs) is the dual point. If it is None, the negative gradient of the loss at the
    predictions of ``point`` on ``data`` is used. ``claim`` has the number of outputs, and says
    whether there are intercepts. ``offset`` is (n_rows, n_outputs).
    """
    n_outputs = claim["outputs"]
    is_multinomial = loss.name == "multinomial"
    if dual is None:
        if loss.smoothed(1.0) is not None:
            raise NoClaim(
                f"the loss {loss.name!r} has kinks, so its proof needs the dual point of the "
                "solver: verify the result of solve(), or the estimator, before it is stored"
            )
        # W has a row for each feature in use. Coefficient ``feature * n_outputs + output`` belongs
        # to the row of this feature and the column of this output.
        features, positions = np.unique(point.columns // n_outputs, return_inverse=True)
        W = np.zeros((features.size, n_outputs))
        np.add.at(W, (positions, point.columns % n_outputs), point.weights)
        z = data.X[:, features] @ W + point.intercepts + offset
        y = np.eye(n_outputs)[data.y.astype(np.int64)] if is_multinomial else data.y
        weight = np.repeat(data.weight, n_outputs)
        dual = -loss.gradient(np.ravel(y), np.ravel(z), weight).reshape(z.shape)
    # Each output is first balanced in floating point, which leaves a sum of the size of rounding
    # errors. Then few integers have to change, by little, to make the sum exactly 0.
    v = np.array(dual, dtype=np.float64).reshape(offset.shape)
    if claim["intercept"] and not is_multinomial:
        v = np.stack([_balanced(column) for column in v.T], axis=1)
    # The unit 2^exponent is such that the largest multiple has about BITS bits.
    largest = float(np.abs(v).max(initial=0.0)) or 1.0
    exponent = math.ceil(math.log2(largest)) - BITS
    # Rounding is towards 0, which keeps each slope in the domain of the conjugate.
    steps = np.trunc(np.ldexp(v, -exponent)).astype(np.int64)
    if is_multinomial:
        _add_up_by_rows(steps, data.y.astype(np.int64), claim["intercept"])
    elif claim["intercept"]:
        for column in steps.T:
            _add_up(column)
    return {"exponent": exponent, "steps": " ".join(map(str, steps.ravel().tolist()))}


def _balanced(v: Array) -> Array:
    """Return v (n,) with sum 0 up to rounding, by scaling down the entries of one sign.

    v are numbers, not yet rounded to integers; for these see ``_add_up``. The sign with the larger
    sum of magnitudes is scaled. If all entries have the same sign, v is returned unchanged.
    """
    positive_sum = math.fsum(v[v > 0])
    negative_sum = -math.fsum(v[v < 0])
    if not positive_sum or not negative_sum:
        return v
    return np.where(
        v > 0, v * min(1.0, negative_sum / positive_sum), v * min(1.0, positive_sum / negative_sum)
    )


def _add_up(steps: NDArray[np.int64]) -> None:
    """Move the largest entries of ``steps`` (n,) towards 0 until all add up to 0, in place.

    ``steps`` are the integers of one output.
    """
    excess = int(steps.sum())
    order = np.argsort(-np.abs(steps), kind="stable")
    # Only entries with the sign of the excess change, by an equal share each. Shares are integers,
    # so a remainder is left for the next round.
    order = order[steps[order] * excess > 0]
    while excess and order.size:
        share = max(1, abs(excess) // order.size)
        changed = order[: max(1, abs(excess) // share)]
        changed = changed[np.abs(steps[changed]) >= share]
        if not changed.size:
            break
        steps[changed] -= int(math.copysign(share, excess))
        excess -= int(math.copysign(share, excess)) * changed.size


def _add_up_by_rows(
    steps: NDArray[np.int64], codes: NDArray[np.int64], has_intercepts: bool
) -> None:
    """Change ``steps`` (n_rows, n_classes) in place until the entries of each row add up to 0.

    ``codes`` (n_rows,) are the classes of the rows. With ``has_intercepts`` the entries of each
    column add up to 0, too. A row of the dual point is (one-hot of its class) - (probabilities).
    The entries of wrong classes are only raised towards 0, so the row remains feasible.
    """
    # The entry of the right class is minus the sum of the others.
    rows = np.arange(codes.size)
    steps[rows, codes] = 0
    steps[rows, codes] = -steps.sum(axis=1)
    # Move amounts from columns with a positive sum (``source``) to columns with a negative sum
    # (``target``), within rows of class ``source``. So the sums of rows do not change.
    for target in range(steps.shape[1] if has_intercepts else 0):
        for source in range(steps.shape[1]):
            excesses = steps.sum(axis=0)
            amount = min(int(excesses[source]), -int(excesses[target]))
            of_class = np.flatnonzero(codes == source)
            order = of_class[np.argsort(steps[of_class, target], kind="stable")]
            for row in order.tolist():
                if amount <= 0 or source == target:
                    break
                share = min(amount, -int(steps[row, target]))
                steps[row, target] += share
                steps[row, source] -= share
                amount -= share
