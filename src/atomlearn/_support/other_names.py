"""Parameter names of other packages, and the parameters of atomlearn that replace them."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, Self, TypeVar

#: For a parameter of another package: parameters of atomlearn, and how to set each of them. The
#: first one that the called function or estimator has is suggested.
PARAMETERS: dict[str, dict[str, str]] = {
    "C": {"alpha": "alpha=1 / (C * n_samples)", "alphas": "alphas=[1 / (C * n_samples)]"},
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
    "room": {"storage": "storage=room"},
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
    "positive": {"norm": "norm=norms.L1(lower=0)", "norms": "norms=norms.L1(lower=0)"},
    "groups": {"norm": "norm=norms.Groups(groups)", "norms": "norms=norms.Groups(groups)"},
    "family": {
        "loss": "loss='squared' (gaussian), 'logistic' or 'binomial', 'poisson' or 'gamma'",
        "ties": "to leave it out, as the loss is Cox's",
    },
    "quantile": {"loss": "loss=losses.Quantile(quantile)"},
    "power": {"loss": "loss=losses.Tweedie(power)"},
}
#: Other spellings of the words above.
SAME = {"lambda_": "lambda", "lam": "lambda", "lmda": "lambda", "reg_lambda": "lambda"}
SAME |= {"seed": "random_state", "regularization": "penalty", "coverage": "share"}
SAME |= {"lmda_path": "levels", "nlambda": "n_levels", "lmda_path_size": "n_levels"}
SAME |= {"n_lambda": "n_levels", "n_lambdas": "n_levels", "lambdas": "levels"}
SAME |= {"distribution": "family", "var_power": "power", "tweedie_power": "power"}
SAME |= {"lambda_min_ratio": "ratio", "min_ratio": "ratio", "eps": "ratio", "thresh": "gap"}
SAME |= {"maxit": "max_epochs", "nfolds": "n_folds", "folds": "n_folds"}
SAME |= {"lower_limits": "limits", "upper_limits": "limits", "n_nonzero_coefs": "k"}
SAME |= {"n_features_to_select": "k", "standardize": "normalize"}


#: For each interface, methods under earlier names and what replaces them.
METHODS: dict[str, dict[str, str]] = {"Design": {"taken_off": "subtracted_offsets"}}


def instead(word: str, known: Collection[str], others: dict[str, str]) -> str:
    """Return a suggestion such as "; did you mean 'logistic'?", or "" without a similar name.

    ``word`` is the unknown name, ``known`` are the valid names, and ``others`` maps lower-case
    names of other packages to ours.
    """
    key = word.lower().replace("-", "").replace("_", "").replace(" ", "")
    if key in others:
        return f"; did you mean {others[key]}?"
    matches = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def refuse_unknown(owner: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError for the first of the ``given`` keywords that is not ``known``.

    ``owner`` is the function or class that the message names. The message suggests a parameter: our
    name for a parameter of another package, else a similar name, else all known names.
    """
    for word in given:
        if word in known:
            continue
        # Suggest the first of our parameters, for this word of another package, that is known here.
        suggestions = PARAMETERS.get(SAME.get(word, word), {})
        hint = next(
            (
                f"; did you mean {suggestion}?"
                for own, suggestion in suggestions.items()
                if own in known
            ),
            "",
        )
        hint = hint or instead(word, known, {}) or f"; it takes {', '.join(known)}"
        raise TypeError(f"{owner} has no parameter {word!r}{hint}")


class OwnMethods:
    """Base class of interfaces whose subclasses may not define methods under earlier names.

    Such a method would never be called, so the default of the new one would replace it silently.
    """

    def __init_subclass__(cls, **settings: Any) -> None:
        """Refuse a new class with such a method; ``settings`` are those of the class statement."""
        super().__init_subclass__(**settings)
        for base in cls.__mro__:
            earlier = METHODS.get(base.__name__, {})
            for word in earlier.keys() & vars(cls).keys():
                raise TypeError(
                    f"a {base.__name__} has no {word!r}, which {cls.__name__} defines; "
                    f"did you mean {earlier[word]}?"
                )


class OwnParameters:
    """Base class of estimators whose constructors suggest parameters for unknown keywords."""

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Create the object; unknown parameters raise TypeError before others are set.

        ``given`` are the keyword arguments of the constructor; those by position are not checked
        here.
        """
        if given:
            refuse_unknown(cls.__name__, given, _parameters(cls.__init__))
        return super().__new__(cls)


@functools.cache  # to read a signature takes a twentieth of a small fit
def _parameters(constructor: Callable[..., None]) -> list[str]:
    """Return the names of the parameters of a ``constructor``, without self."""
    return [*inspect.signature(constructor).parameters][1:]


Function = TypeVar("Function", bound=Callable[..., Any])


def own_parameters(function: Function) -> Function:
    """Decorate ``function`` so that unknown keywords raise TypeError with a suggestion."""
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        """Check the keywords, then call the function."""
        refuse_unknown(f"{function.__name__}()", keywords, parameters)
        return function(*args, **keywords)

    return called  # type: ignore[return-value]
