"""What the estimators over matrices share; and MatrixPursuit, samples as sums of a few others."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from atomlearn.core.data.convert import readable
from atomlearn.core.interfaces import Array, Form, Norm, Solver
from atomlearn.estimators.checks import amount_of, as_solver, keep, whole
from atomlearn.matrices.pursuit import affinity_of, coefficients, default_norm, pursuit, unit_rows
from atomlearn.norms import as_norm
from atomlearn.paths import Settings
from atomlearn.problem import Problem, positive
from atomlearn.result import Result, Status
from atomlearn.solvers import PrintProgress


class MatrixModel(BaseEstimator):
    """An estimator of a matrix made of X alone; not for direct use.

    Subclasses have the parameters form, tol, max_iter, solver and verbose.
    """

    form: Form
    tol: float
    max_iter: int
    solver: str | Solver
    verbose: int

    def _checked(self, X: Any, *, reset: bool, least: int = 1) -> NDArray[Any]:
        """Return X as a finite array in float32 or float64, its names and width compared."""
        checked: NDArray[Any] = validate_data(
            self,
            readable(X),
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=least,
        )
        return np.require(checked, requirements="A")

    def _settings(self) -> Settings:
        tol = positive("tol", self.tol, "relative duality gap to prove, for example 1e-6")
        return Settings(tol, whole("max_iter", self.max_iter), as_solver(self.solver, tol))

    def _solved(self, problem: Problem) -> Result:
        settings = self._settings()
        if self.verbose:
            settings = replace(settings, observers=(PrintProgress(every=1),))
        result = settings.run(problem)
        result.state = None
        return result

    def _report(self, result: Result) -> None:
        """Set what is known of the fit; warn where it fell short of its own doing."""
        self.result_ = result
        self.objective_, self.gap_ = float(result.objective), float(result.gap)
        self.status_ = result.status
        self.n_passes_ = float(result.passes)
        self.n_iter_ = max(len(result.history), 1)
        self.history_ = result.history
        # A search that is NP-hard ends this way as a rule: status and search gap say so.
        if not (result.converged or result.status is Status.SEARCH_RELATIVE):
            warnings.warn(
                f"{type(self).__name__}: {self.status_}. Relative gap proved: "
                f"{result.relative_gap:.2e}, asked for: tol={self.tol:.2e}",
                ConvergenceWarning,
                stacklevel=3,
            )


class MatrixTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MatrixModel):
    """A MatrixModel with ``components_``, one for each column that it makes; not for direct use."""

    components_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def double(X: NDArray[Any]) -> Array:
    """Return X in float64, in rows."""
    return np.ascontiguousarray(X, dtype=np.float64)


class MatrixPursuit(MatrixModel):
    """min over W of  1/2 ||X' - X'W||_F^2 + penalty(W), samples in the rows of X: [L] 4.2.

    Column i of W says which samples sample i is made of. ``affinity_`` = |W| + |W|' is ready for
    ``SpectralClustering(affinity="precomputed")``.

    Parameters
    ----------
    norm : str or Norm, optional
        None: the k-support norm of all entries of W with k = 4 n_samples, as in [L], Figure 2.
        Others: ``norms.KSupport(k)``, "l1", "trace".
    alpha : float, default=40.0
        Weight of gauge^2 / 2; [L] writes lambda gauge^2, so lambda = alpha / 2 = 20.
    form : {"penalized", "squared", "constrained"}, default="squared"
    radius : float, default=1.0
        Bound on the gauge where ``form="constrained"``; there alpha plays no part.
    normalize : bool, default=True
        Whether samples are scaled to norm 1 first, as in [L].
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Bound on steps of the solver.
    solver : str or Solver, default="auto"
    verbose : int, default=0
        Above 0, print one line a step.

    Attributes
    ----------
    coef_ : (n_samples, n_samples) csr_array, W
    affinity_ : (n_samples, n_samples) csr_array, symmetric and >= 0
    objective_, gap_ : float
        Objective at W and a proved bound on its distance to the optimum.
    status_ : Status
    n_passes_ : float
        Passes: one X(X' - X'W) is one.
    n_iter_, history_
    result_ : Result
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import SpectralClustering
    >>> from atomlearn import MatrixPursuit
    >>> rng = np.random.default_rng(0)
    >>> planes = [rng.normal(size=(20, 2)) @ rng.normal(size=(2, 10)) for _ in range(2)]
    >>> model = MatrixPursuit(alpha=0.1).fit(np.vstack(planes))
    >>> clustering = SpectralClustering(2, affinity="precomputed", random_state=0)
    >>> labels = clustering.fit_predict(model.affinity_)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)

    References
    ----------
    [L] section 4.2.
    """

    def __init__(
        self,
        norm: str | Norm | None = None,
        alpha: float = 40.0,
        *,
        form: Form = "squared",
        radius: float = 1.0,
        normalize: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def fit(self, X: Any, y: Any = None) -> MatrixPursuit:
        """Fit to X (n_samples, n_features); y is not used."""
        checked = self._checked(X, reset=True, least=2)
        data = unit_rows(double(checked)) if self.normalize else double(checked)
        n_samples = data.shape[0]
        norm = default_norm(n_samples) if self.norm is None else as_norm(self.norm)
        result = self._solved(pursuit(data, norm, amount_of(self), self.form))
        self.coef_ = coefficients(result, n_samples).astype(checked.dtype)
        self.affinity_ = affinity_of(self.coef_)
        self._report(result)
        return self
