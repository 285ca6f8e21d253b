"""MatrixPursuit: each sample as a combination of a few others, and the affinity this makes."""

from __future__ import annotations

from typing import Any

from atomlearn.core.interfaces import Form, Norm, Solver
from atomlearn.estimators.checks import keep
from atomlearn.estimators.matrices.matrix_models import MatrixModel, amount, double
from atomlearn.matrices.pursuit import (
    affinity_of,
    coefficients,
    default_norm,
    pursuit,
    unit_rows,
)
from atomlearn.norms import as_norm


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
        result = self._solved(pursuit(data, norm, amount(self), self.form))
        self.coef_ = coefficients(result, n_samples).astype(checked.dtype)
        self.affinity_ = affinity_of(self.coef_)
        self._report(result)
        return self
