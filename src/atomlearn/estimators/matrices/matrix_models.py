"""Base classes of the estimators of matrices, and MatrixPursuit."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import normalize

from atomlearn.core import (
    Array,
    DenseDesign,
    Design,
    Form,
    KSupport,
    Norm,
    Problem,
    Regularizer,
    Result,
    Squared,
    Status,
    as_norm,
    refuse_not_finite,
)
from atomlearn.estimators.checks import amount_of, checked_array
from atomlearn.estimators.coefficients import coefficient_matrix
from atomlearn.estimators.parameters import ProvedModel, entries_of
from atomlearn.matrices.designs.tasks import Tasks


class MatrixModel(ProvedModel):
    """An estimator that fits a matrix to X, without y; not for direct use."""

    def _checked(self, X: Any, *, reset: bool, least: int = 1, gaps: bool = False) -> NDArray[Any]:
        """Return X in float32 or float64 after its checks.

        reset : whether X is the data of a fit, whose shape and names are stored. least : minimum
        number of rows. gaps : whether NaN is allowed.
        """
        checked = checked_array(self, X, reset=reset, ensure_min_samples=least)
        aligned: NDArray[Any] = np.require(checked, requirements="A")
        refuse_not_finite(
            DenseDesign(np.where(np.isnan(aligned), 0.0, aligned) if gaps else aligned), X
        )
        return aligned

    def _solved(self, problem: Problem) -> Result:
        """Return the result of one problem, and record its convergence attributes."""
        [result] = self._solve([problem], [None], self._settings())
        self._record(result)
        return result

    def _record(self, result: Result) -> None:
        """Set the attributes of the fit; warn if its gap is not proved.

        ``result`` is the solution.
        """
        self.result_ = result
        # SEARCH_RELATIVE: the gap is proved only if the search for atoms, which is NP-hard, missed
        # none. That is usual for such norms, so there is no warning.
        searched = result.status is Status.SEARCH_RELATIVE
        self._report([result], complete=result.converged or searched)


class MatrixTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MatrixModel):
    """A MatrixModel with one row of ``components_`` for each new column; not for direct use."""

    components_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: ``transform`` keeps the type of the numbers."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        """Number of columns that ``transform`` returns."""
        return int(self.components_.shape[0])


def double(X: NDArray[Any]) -> Array:
    """Return X as a C-contiguous array of float64."""
    return np.ascontiguousarray(X, dtype=np.float64)


def problem_of_entries(design: Design, entries: Array, regularizer: Regularizer) -> Problem:
    """Return the problem with the loss 1 / (2 N) times the squared errors of the N entries.

    design : the linear map from the parameters to the N predicted entries. entries : the entries to
    predict. regularizer : the penalty.
    """
    weight = 1.0 / entries.size
    return Problem.build(design, entries.reshape(-1), Squared(), regularizer, sample_weight=weight)


@dataclass(eq=False, repr=False)
class MatrixPursuit(MatrixModel):
    """min over W of  1/(2 N) ||X' - X'W||_F^2 + penalty(W), samples in the rows of X: [L] 4.2.

    N = n_samples n_features is the number of entries. Column i of W has the weights of the samples
    that add up to sample i. Use ``affinity_`` = |W| + |W|' with
    ``SpectralClustering(affinity="precomputed")``.

    Parameters
    ----------
    norm : str or Norm, default=None
        None: the k-support norm of all entries of W with k = 4 n_samples, as in [L], Figure 2.
        Others: ``norms.KSupport(k)``, "l1", "trace".
    alpha : float, default=None
        Weight of gauge^2 / 2. None: 40 / N, the lambda = 20 of [L], which writes 1/2 ||X' -
        X'W||_F^2 + lambda gauge^2.
    form : {"penalized", "squared", "constrained"}, default="squared"
        How the gauge (the value of the norm) enters: itself, half its square, or as a constraint.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
    normalize : bool, default=True
        Whether to scale each sample (a row of X) to norm 1 first, as in [L] and
        ``sklearn.preprocessing.normalize``. ``standardize`` of other estimators scales columns.
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Maximum number of steps of the solver.
    solver : str or Solver, default="auto"
        "auto" is column generation over subspaces or over atoms, as the norm allows. Others:
        "column_generation", "atom_generation", "fista", "kfcfw", "frank_wolfe".
    verbose : int, default=0
        If above 0, print one line for each step.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far.

    Attributes
    ----------
    coef_ : (n_samples, n_samples) csr_array
        The matrix W.
    affinity_ : (n_samples, n_samples) csr_array
        |W| + |W|', symmetric.
    alpha_ : float
        The value used in the fit.
    objective_, gap_ : float
        Objective at W and a proved bound on its distance to the optimum.
    status_ : Status
    n_passes_ : float
        Passes over the data; one product X(X' - X'W) is one pass.
    n_iter_, history_
    result_ : Result
    n_features_in_, feature_names_in_

    References
    ----------
    [L] section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import SpectralClustering
    >>> from atomlearn import MatrixPursuit
    >>> rng = np.random.default_rng(0)
    >>> planes = [rng.normal(size=(20, 2)) @ rng.normal(size=(2, 10)) for _ in range(2)]
    >>> X = np.vstack(planes)
    >>> model = MatrixPursuit(alpha=0.1 / X.size).fit(X)
    >>> clustering = SpectralClustering(2, affinity="precomputed", random_state=0)
    >>> labels = clustering.fit_predict(model.affinity_)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    norm: str | Norm | None = None
    alpha: float | None = None
    _: KW_ONLY
    form: Form = "squared"
    radius: float = 1.0
    normalize: bool = True

    def fit(self, X: Any, y: Any = None) -> MatrixPursuit:
        """Fit to X (n_samples, n_features); y is not used."""
        checked = self._checked(X, reset=True, least=2)
        data = double(checked)
        n = checked.shape[0]
        if self.normalize:
            # Division by the largest entry first prevents overflow.
            data = normalize(normalize(data, "max"))
        # Four non-zeros for each sample, as in Figures 2 and 3 of [L].
        norm = KSupport(min(4 * n, n * n)) if self.norm is None else as_norm(self.norm)
        design = Tasks(np.asfortranarray(data.T), n)
        self.alpha_ = amount_of(self, lambda: 40.0 / data.size)
        regularizer = Regularizer(norm, self.form, self.alpha_)
        result = self._solved(problem_of_entries(design, data.T, regularizer))
        self.coef_ = coefficient_matrix(*entries_of(result), (n, n))
        magnitude = abs(self.coef_)
        self.affinity_ = (magnitude + magnitude.T).tocsr()
        return self
