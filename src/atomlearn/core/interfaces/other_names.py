"""What people type who come from another package, and what it is called here."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, Self, TypeVar

#: Parameters of others; of ours the first that the function or estimator has, and how to set it.
PARAMETERS: dict[str, dict[str, str]] = {
    "C": {
        "alpha": "alpha=1 / (C * n_samples)",
        "alphas": "alphas=[1 / (C * n_samples)]",
    },
    "Cs": {"alphas": "alphas=1 / (Cs * n_samples)"},
    "alpha": {"C": "C=1 / (alpha * n_samples), or AtomicClassifier and AtomicRegressor"},
    "cv": {"alpha": "AtomicRegressorCV, AtomicClassifierCV or AtomicSurvivalCV, which take cv="},
    "lambda": {"alpha": "alpha=lambda", "alphas": "alphas=[lambda]"},
    "l1_ratio": {"l2": "l2=alpha * (1 - l1_ratio)"},
    "tau": {
        "alphas": "alphas=(levels + tau) / n_samples and l1_ratio=levels / (levels + tau)",
        "l1_ratio": "alpha=(level + tau) / n_samples and l1_ratio=level / (level + tau)",
    },
    "penalty": {
        "norm": "norm='l1', or an object of atomlearn.norms",
        "norms": "norms='l1'",
        "alpha": "alpha=penalty / n_samples",
    },
    "random_state": {
        "rng": "rng=0",
        "random_state": "random_state=0",
        "cv": "cv=KFold(5, shuffle=True, random_state=0)",
        "max_iter": "to leave it out, as nothing here is random",
    },
    "intercept": {"fit_intercept": "fit_intercept=True"},
    "gap": {"tol": "tol=1e-6, the relative duality gap to prove"},
    "tolerance": {"tol": "tol=1e-6, the relative duality gap to prove"},
    "final_tolerance": {"tol": "tol=final_tolerance"},
    "normalize": {
        "standardize": "standardize=True",
        "normalize": "normalize=True, which scales rows and not columns",
        "X": "X=designs.Standardized(X), with coefficients in its units",
    },
    "rng": {
        "random_state": "random_state=rng",
        "cv": "cv=KFold(5, shuffle=True, random_state=0)",
        "max_iter": "to leave it out, as nothing here is random",
    },
    "ridge": {
        "l2": "l2=ridge (l2=ridge / n_samples if ridge was of the sum of the losses)",
        "l1_ratio": "l1_ratio=0, or l1_ratio between 0 and 1 for the norm and squares",
    },
    "exclude": {"drop": "drop=exclude"},
    "max_features": {"n_features": "n_features=max_features"},
    "k": {"n_features": "n_features=k"},
    "ks": {"n_features": "n_features=ks"},
    "max_sets": {"max_near": "max_near=max_sets"},
    "max_iter": {"max_nodes": "max_nodes=max_iter"},
    "max_epochs": {"max_iter": "max_iter=max_epochs"},
    "level": {
        "confidence": "confidence=0.95",
        "rank": "alpha=level / n_entries (the loss is a mean over observed entries, not a sum)",
        "alpha": "alpha=level / n_samples (the loss is a mean, not a sum)",
    },
    "levels": {"alphas": "alphas=levels / n_samples (the loss is a mean, not a sum)"},
    "n_levels": {"n_alphas": "n_alphas=n_levels"},
    "ratio": {"alpha_ratio": "alpha_ratio=ratio"},
    "share": {"confidence": "confidence=0.9"},
    "n_folds": {"cv": "cv=n_folds"},
    "weights": {
        "sample_weight": "sample_weight=weights",
        "norm": "norm=norms.L1(weights=weights)",
        "norms": "norms=norms.L1(weights=weights)",
    },
    "penalty_factor": {
        "norm": "norm=norms.L1(weights=penalty_factor)",
        "norms": "norms=norms.L1(weights=penalty_factor)",
    },
    "limits": {
        "norm": "norm=norms.L1(lower=..., upper=...)",
        "norms": "norms=norms.L1(lower=..., upper=...)",
    },
    "positive": {
        "norm": "norm=norms.L1(lower=0)",
        "norms": "norms=norms.L1(lower=0)",
    },
    "groups": {"norm": "norm=norms.Groups(groups)", "norms": "norms=norms.Groups(groups)"},
}
#: Other spellings of the words above.
SAME = {"lambda_": "lambda", "lam": "lambda", "lmda": "lambda", "reg_lambda": "lambda"}
SAME |= {"seed": "random_state", "regularization": "penalty", "coverage": "share"}
SAME |= {"lmda_path": "levels", "nlambda": "n_levels", "lmda_path_size": "n_levels"}
SAME |= {"lambda_min_ratio": "ratio", "min_ratio": "ratio", "eps": "ratio", "thresh": "gap"}
SAME |= {"maxit": "max_epochs", "nfolds": "n_folds", "folds": "n_folds"}
SAME |= {"lower_limits": "limits", "upper_limits": "limits", "n_nonzero_coefs": "k"}
SAME |= {"n_features_to_select": "k", "standardize": "normalize"}


def instead(word: str, known: Collection[str], others: dict[str, str]) -> str:
    """Return "; did you mean 'logistic'?", or nothing where no name of ours is meant.

    others : what other packages call it -> what to write here, of words in small letters.
    """
    plain = word.lower().replace("-", "").replace("_", "").replace(" ", "")
    if plain in others:
        return f"; did you mean {others[plain]}?"
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def refuse_unknown(owner: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError for the first keyword that is not known, with what stands for it here."""
    for word in given:
        if word in known:
            continue
        meant = PARAMETERS.get(SAME.get(word, word), {})
        told = next((f"; did you mean {said}?" for own, said in meant.items() if own in known), "")
        told = told or instead(word, known, {}) or f"; it takes {', '.join(known)}"
        raise TypeError(f"{owner} has no parameter {word!r}{told}")


class OwnParameters:
    """An estimator whose constructor says what stands for the parameters of other packages."""

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Make the object; its parameters are refused before they are set."""
        if given:
            refuse_unknown(cls.__name__, given, _parameters(cls.__init__))
        return super().__new__(cls)


@functools.cache  # to read a signature takes a twentieth of a small fit
def _parameters(make: Callable[..., None]) -> list[str]:
    return [*inspect.signature(make).parameters][1:]


Function = TypeVar("Function", bound=Callable[..., Any])


def own_parameters(function: Function) -> Function:
    """Have a function say what stands for the parameters of other packages."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        refuse_unknown(f"{function.__name__}()", named, known)
        return function(*given, **named)

    return called  # type: ignore[return-value]
