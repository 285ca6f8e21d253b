"""AtomicSurvivalCV: norm and alpha of a model of hazards, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Form, Norm, Solver
from atomlearn.core.paths.cross_validation import Rule
from atomlearn.core.paths.ends import End
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.stopping import StoppingRule
from atomlearn.estimators.checks import keep
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.estimators.selects_columns import SelectsColumns
from atomlearn.estimators.survival import LinearSurvival


class AtomicSurvivalCV(SelectsColumns, CrossValidatedModel, LinearSurvival):  # type: ignore[misc]
    """``AtomicSurvival`` with norm and alpha chosen by cross-validation, then fitted to all data.

    Each (norm, fold) is one warm-started path from the most regularized alpha on.

    Parameters
    ----------
    norms, alphas, n_alphas, alpha_ratio, selection, refit, n_jobs, verbose, observers, stop,
    time_limit, until
        As in ``AtomicRegressorCV``.
    ties, form, features, unpenalized, relax, adaptive, tol, max_iter, solver
        As in ``AtomicSurvival``.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means 5 folds, with as many events in each: a dozen or more. A splitter sees the events
        for classes.
    scoring : "concordance", callable or None, default=None
        None means minus the mean held-out loss: the partial likelihood of the fold's samples among
        themselves. A scorer ``(model, X, y) -> number`` sees ``model.predict`` only, such as one
        by scikit-survival's ``concordance_index_censored``.

    Attributes
    ----------
    norm_, alpha_, relax_, alphas_, cv_results_
        As of ``AtomicRegressorCV``.
    coef_, unique_times_, baselines_, selected_, selected_names_, objective_, gap_, status_,
    n_passes_, n_iter_, history_, results_
        Of the final fit, see ``AtomicSurvival``.
    n_features_in_, feature_names_in_

    References
    ----------
    N. Simon, J. Friedman, T. Hastie, R. Tibshirani. Regularization paths for Cox's proportional
    hazards model via coordinate descent. Journal of Statistical Software 39(5), 2011.
    P. J. M. Verweij, H. C. van Houwelingen. Cross-validation in survival analysis. Statistics in
    Medicine 12 (1993) 2305-2314.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicSurvivalCV
    >>> from atomlearn.losses import survival_target
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = survival_target(rng.random(200) < 0.7, rng.exponential(np.exp(-X[:, 3])))
    >>> model = AtomicSurvivalCV(n_alphas=10, cv=3).fit(X, y)
    >>> bool(np.argmax(np.abs(model.coef_)) == 3 and model.score(X, y) > 0.7)
    True
    """

    def __init__(
        self,
        norms: str | Norm | Sequence[str | Norm] = "l1",
        alphas: Any = None,
        ties: Literal["efron", "breslow"] = "efron",
        *,
        n_alphas: int = 20,
        alpha_ratio: float | None = None,
        form: Form = "penalized",
        features: str = "linear",
        unpenalized: Any = None,
        relax: Any = 0.0,
        adaptive: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        selection: Rule = "best",
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        observers: Sequence[Observer] | None = None,
        stop: StoppingRule | None = None,
        time_limit: float | None = None,
        until: End | None = None,
    ) -> None:
        keep(self, locals())

    def _strata(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Return the events: folds each have their part of them, where there are enough of both."""
        events: NDArray[Any] = y["event"].astype(np.int64)
        folds = 5 if self.cv is None else self.cv
        rarest = min(int(events.sum()), int((1 - events).sum()))
        return events, not isinstance(folds, int) or rarest >= folds
