"""verify: check from the data that a model is as good as it says, without the solvers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.core import Result, as_design, feature_names
from atomlearn.survival.target import checked_survival
from atomlearn.verification.bounds import check, claim_digest
from atomlearn.verification.claims import MARGIN, DesignColumns
from atomlearn.verification.models import Fit, fit_of_result, fits_of_estimator

#: Amount by which worst-case bounds on rounding may exceed a relative gap that assumes typical
#: rounding errors.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of ``verify``.

    Attributes
    ----------
    holds : bool
        Whether each claim of the model is proved on these data.
    relative_gap : float
        The largest proved gap over its objective, rounding included; infinite without a proof.
    explanation : str
        One sentence that says what is proved, or what is wrong.
    objectives, gaps : tuple of float
        The proved objective and gap of each problem of the model.
    """

    holds: bool
    relative_gap: float
    explanation: str
    objectives: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        """Return ``holds``."""
        return self.holds

    def __str__(self) -> str:
        """Return the explanation."""
        return self.explanation


def verify(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None
) -> Verified:
    """Prove again that a model is near the best of its kind, from the data and with all roundings.

    The objective and a lower bound on all objectives are computed by
    ``atomlearn/verification/bounds.py``, which uses NumPy and no code of the solvers.

    Parameters
    ----------
    model : Result of ``solve``, fitted estimator, or model file
        A file is a path of ``model.json``, or its content as a dict.
    X : array, sparse matrix, data frame or Design, shape (n_rows, n_columns)
        The data of the fit. Columns of a file with names are found by their names.
    y : (n_rows,) or (n_rows, n_targets)
        The targets of the fit: numbers, labels, or survival records.
    sample_weight, offset : arrays, optional
        The sample weights and offsets of the fit.

    Returns
    -------
    Verified
        With ``holds``, ``relative_gap`` and ``explanation``.

    Notes
    -----
    By Fenchel's inequality each dual point bounds the objective of all models from below. The
    stored dual point adds up to zero exactly, and is scaled until it is feasible for all columns. A
    bound on its distance from points that are exactly orthogonal to the columns without a penalty
    is included. See docs/verify.md.

    References
    ----------
    S. M. Rump 2010, doi:10.1017/S096249291000005X.

    Examples
    --------
    >>> import numpy as np
    >>> import atomlearn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 200))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(50)
    >>> model = atomlearn.AtomicRegressor(alpha=0.1).fit(X, y)
    >>> found = atomlearn.verify(model, X, y)
    >>> found.holds, found.relative_gap < 1e-6
    (True, True)
    >>> atomlearn.verify(model, X, y + 1e-3 * X[:, 5]).relative_gap < 1e-6
    False
    """
    try:
        if isinstance(model, (str, Path, Mapping)):
            return _of_file(model_content(model), X, y, sample_weight, offset)
        if isinstance(model, Result):
            fits = [fit_of_result(model, X, y, sample_weight, offset)]
        else:
            fits, _ = fits_of_estimator(model, X, y, sample_weight, offset)
        return summed_up([_verified_fit(fit) for fit in fits])
    except (KeyError, IndexError, TypeError) as error:
        return refused(f"the claim is damaged ({type(error).__name__}: {error})")
    except ValueError as error:
        return refused(str(error))


def refused(reason: str) -> Verified:
    """Return the result for a model that is not verified, with the reason."""
    return Verified(False, math.inf, f"not verified: {reason}")


def claimed(proof: Mapping[str, Any]) -> str:
    """Return the explanation of a proof that was just computed from the data.

    ``proof`` is the entry of a model file: its claims, or the reason why there are none.
    """
    if not proof["claims"]:
        return f"not verified: {proof['why']}"
    # A claim over selected columns only lists them under "among".
    claims = [
        {**claim, "columns": claim["n_columns"], "selected": claim["among"] is not None}
        for claim in proof["claims"]
    ]
    return summed_up(claims).explanation


def summed_up(proved: Sequence[Mapping[str, Any]]) -> Verified:
    """Return the result of ``verify`` from the numbers proved of each problem of a model.

    Each entry of ``proved`` is one problem. It has "objective", "gap", "relative_gap", the number
    of "columns", and whether the problem is over the "selected" columns only.
    """
    full = [proof for proof in proved if not proof["selected"]]
    selected_only = [proof for proof in proved if proof["selected"]]
    worst = max(full, key=lambda proof: proof["relative_gap"])
    subject = f"each of {len(full)} objectives is" if len(full) > 1 else "the objective is"
    all_columns = _columns(worst["columns"])
    # A relative gap of 1 proves only that the best objective is at least 0, which is known.
    is_open = worst["relative_gap"] >= 1.0 and bool(selected_only)
    proofs = [] if is_open else [(worst, f"all {all_columns}")]
    proofs += [(proof, f"the {_columns(proof['columns'], 'selected ')}") for proof in selected_only]
    words = ", and ".join(
        f"within {rounded_up(proof['relative_gap'])} of the best over {where}"
        for proof, where in proofs
    )
    remark = f"; over all {all_columns} nothing is proved" if is_open else ""
    return Verified(
        True,
        worst["relative_gap"],
        f"verified: {subject} {words}, relative to it and rounding included{remark}",
        tuple(proof["objective"] for proof in proved),
        tuple(proof["gap"] for proof in proved),
    )


def _columns(count: int, kind: str = "") -> str:
    """Return ``count`` columns in words, with ``kind`` before the noun."""
    return f"{count:,} {kind}column{'' if count == 1 else 's'}"


def rounded_up(gap: float) -> str:
    """Return a gap as text with two digits, rounded up."""
    if not 0.0 < gap < math.inf:
        return f"{gap:g}"
    digit = 10.0 ** (math.floor(math.log10(gap)) - 1)
    return f"{math.ceil(gap / digit) * digit:.2g}"


def _verified_fit(fit: Fit) -> dict[str, float]:
    """Return the numbers proved of a fit, in the format of an entry of ``summed_up``.

    Raise ValueError if the proved gap is larger than the one that the fit reports. A fit over
    selected columns only (``fit.among``) reports no gap of its own.
    """
    claim, data = fit.claim()
    result = fit.result
    # A fit that converged promises its tolerance, even if its last gap was smaller.
    promised = max(result.relative_gap, result.tol if result.converged else 0.0)
    promised = promised * MARGIN + ROUNDING
    gap = claim["relative_gap"]
    if fit.among is None and not gap <= promised:
        raise ValueError(
            f"expected a relative gap of at most {promised:.3g}, as the fit says; received "
            f"{gap:.3g} on these data: pass the very X, y, sample_weight and offset of the fit"
        )
    numbers = {name: claim[name] for name in ("objective", "gap", "relative_gap")}
    return numbers | {"columns": data.X.shape[1], "selected": fit.among is not None}


def model_content(model: Any) -> dict[str, Any]:
    """Return the content of a model file; ``model`` is its path, its folder, or the content."""
    if isinstance(model, Mapping):
        return dict(model)
    path = Path(model)
    path = path / "model.json" if path.is_dir() else path
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("format") != "atomlearn-model":
        raise ValueError(f"expected a model file such as model.json of `select`; received {path}")
    return content


def _of_file(content: dict[str, Any], X: Any, y: Any, weight: Any, offset: Any) -> Verified:
    """Return the result for the content of a model file on data X, y, weight and offset."""
    proof = proof_of(content)
    design = as_design(X)
    names = feature_names(X)
    data = in_order(DesignColumns(design), names, proof)
    return verify_file(content, data, y, weight, offset)


def proof_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the proof in the content of a model file.

    Raise ValueError if the hash of the file does not agree, or if there is no proof.
    """
    expected = content.get("sha256")
    received = claim_digest(content)
    if expected != received:
        raise ValueError(
            f"the file was changed after it was written: its sha256 says {str(expected)[:16]}, "
            f"and its content has {received[:16]}"
        )
    proof: dict[str, Any] = content.get("proof") or {}
    if not proof.get("claims"):
        why = proof.get("why") or "it was written without its data; pass X and y to write_model"
        raise ValueError(f"the model file has no claim: {why}")
    return proof


def in_order(columns: DesignColumns, names: Any, proof: Mapping[str, Any]) -> DesignColumns:
    """Return ``columns``, whose names are ``names``, in the order of the claim.

    ``proof`` is the entry of the model file, with the "names" in the order of the claim. If it or
    the data have no names, the order is not changed. Raise ValueError if columns are missing.
    """
    claim_names = proof["names"]
    if claim_names is None or names is None or list(names) == claim_names:
        return columns
    position = {name: index for index, name in enumerate(names)}
    missing = [name for name in claim_names if name not in position]
    if missing or len(position) != len(claim_names):
        example = f" and not {missing[0]!r}" if missing else ""
        raise ValueError(
            f"expected the {len(claim_names):,} columns of the claim; received {len(position):,} "
            f"columns{example}"
        )
    return columns.taken(np.array([position[name] for name in claim_names]))


def verify_file(
    content: Mapping[str, Any], X: DesignColumns, y: Any, weight: Any, offset: Any
) -> Verified:
    """Return the result of ``verify`` for the ``content`` of a model file, whose hash was checked.

    X has the columns in the order of the claims. y, ``weight`` and ``offset`` are the targets,
    sample weights and offsets of the fit; the last two may be None.
    """
    proof = content["proof"]
    offsets = None if offset is None else np.asarray(offset, dtype=np.float64)
    results = []
    for number, claim in enumerate(proof["claims"]):
        # A claim over selected columns has the same coefficients as the one over all columns.
        if claim["among"] is None:
            _same_coefficients(content, claim, number)
        # A claim of one output needs its own column of the offsets, a joint claim needs all.
        offsets_of_claim = offsets if offsets is None or offsets.ndim < 2 else offsets[:, [number]]
        offsets_of_claim = offsets if claim["outputs"] > 1 else offsets_of_claim
        target = claimed_target(claim, proof["classes"], y)
        columns = claim["among"]
        X_claimed = X if columns is None else X.taken(np.array(columns, dtype=np.int64))
        results.append(
            check(claim, X_claimed, target, weight, offsets_of_claim)
            | {"columns": X_claimed.shape[1], "selected": columns is not None}
        )
    return summed_up(results)


def claimed_target(claim: Mapping[str, Any], labels: Any, y: Any) -> Any:
    """Return the targets y in the coding of the claim's loss.

    Survival records are checked, and numbers become float64. Labels become codes of classes for
    the multinomial loss, and else -1 and +1. ``labels`` are all labels in the order of their codes,
    or None if targets are numbers. ``claim["positive"]`` is the code of the class that becomes +1.
    If it is None, the result has a column for each class against the rest.
    """
    if claim["loss"]["name"] == "cox":
        return checked_survival(y)
    values = np.asarray(y)
    if labels is None:
        return values.astype(np.float64)
    code_of = {str(label): code for code, label in enumerate(labels)}
    codes = [code_of.get(str(label)) for label in values.tolist()]
    if None in codes:
        unknown = values.tolist()[codes.index(None)]
        raise ValueError(f"expected the labels {labels}; received {unknown!r}")
    if claim["positive"] is None:
        if claim["loss"]["name"] == "multinomial":
            return np.array(codes, dtype=np.int64)
        return np.where(np.array(codes)[:, None] == np.arange(len(labels)), 1.0, -1.0)
    return np.where(np.array(codes) == claim["positive"], 1.0, -1.0)


def _same_coefficients(content: Mapping[str, Any], claim: Mapping[str, Any], number: int) -> None:
    """Raise ValueError if the model predicts with other coefficients than the claim has.

    ``content`` is that of the model file, and ``number`` the number of the claim in it. The claim
    numbers its coefficients by column * outputs + output. Coefficients that repeat are added up.
    """
    outputs = claim["outputs"]
    if any(feature["curve"] is not None for feature in content["features"]):
        return  # curves are sums of many columns
    # The position in the model file of each column in use.
    features = {feature["index"]: position for position, feature in enumerate(content["features"])}
    # ``claimed`` and ``expected``: coefficients (outputs, features) of the claim and of the model.
    claimed = np.zeros((outputs, len(features)))
    for column, weight in zip(claim["columns"], claim["coefficients"], strict=True):
        position = features.get(column // outputs)
        if position is not None:
            claimed[column % outputs, position] += weight
        elif weight:
            raise ValueError(f"coefficient of column {column // outputs}: expected one in features")
    expected = np.array(content["coefficients"], dtype=np.float64).reshape(-1, len(features))
    expected = expected if outputs > 1 else expected[[number]]
    wrong = np.abs(claimed - expected) > 1e-12 * np.abs(expected).max(initial=0.0)
    if wrong.any():
        output, position = np.argwhere(wrong)[0]
        name = content["features"][position]["name"]
        raise ValueError(
            f"coefficient of {name!r}: expected {claimed[output, position]:.17g}, as claimed; "
            f"received {expected[output, position]:.17g}"
        )
