"""AtomicClassifier: classification with an atomic norm."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import ClassifierMixin

from atomlearn.core import Loss
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.parameters import OneLevel
from atomlearn.estimators.selects_columns import SelectsColumns


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(ClassifierMixin, AtomicModel):
    """Base class of ``AtomicClassifier`` and ``AtomicClassifierCV``; not for direct use."""

    task = "classification"
    loss: str | Loss = "logistic"
    fit_intercept: bool = True
    class_weight: Any = None
    score = AtomicModel.score


@dataclass(eq=False, repr=False)
class AtomicClassifier(SelectsColumns, OneLevel, LinearClassifier):
    """min over w, b of  (1 / sum s) sum_i s_i loss(y_i, x_i'w + b) + alpha * penalty(w).

    The gauge is the value of the norm. The penalty is the gauge (``form="penalized"``) or half its
    square ("squared"). "constrained" has no penalty, but the constraint gauge(w) <= radius. More
    than two classes are fitted one against the rest, or together with
    ``multi_class="multinomial"``. Then w is a matrix W (n_features, n_classes), the loss is -log of
    the softmax, and ``norm`` may be a norm of matrices: "rows" (each feature across all classes) or
    "trace".

    Parameters
    ----------
    norm : str or Norm, default="l1"
        A name, or an object such as ``norms.KSupport(k=10)``, whose parameters ``set_params`` and
        grid searches reach as ``norm__k``.
    alpha : float, default=0.01
        Strength of the penalty; the loss is a mean over samples. With the logistic loss and columns
        of unit variance, l1 selects nothing from 0.5 on.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, from 0 to 1. The rest is the squared l2 norm: alpha *
        (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). With ``norm="l1"`` it is the
        l1_ratio of scikit-learn's ElasticNet. 0 leaves only the squared l2 norm. The constrained
        form needs 1.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the gauge (the value of the norm) enters: itself, half its square, or as a constraint.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
    loss : {"logistic", "squared_hinge"} or Loss, default="logistic"
        A loss for classification. "squared_hinge" is max(0, 1 - y z)^2 / 2.
    multi_class : {"ovr", "multinomial"}, default="ovr"
        How more than two classes are fitted: one against the rest, or together. Two classes are one
        problem either way.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights of each class; "balanced" gives all classes the same total
        weight. The loss is the mean under these weights: ``C`` of scikit-learn is 1 / (alpha * sum
        of weights).
    features : str or (str, dict), default="linear"
        "interactions" adds all products x_i x_j, i < j, after the columns of X. "quadratic" adds
        the squares, too. "polynomial" is "quadratic" with the scales of the kernel (x'y + 1)^2.
        "cubic" adds products of three (``designs.Cubic``). Products are never stored
        (``designs.Polynomial.interactions``). "splines", "intersection", "additive_gaussian" and
        "additive_chi2" make the model a sum of curves, one for each input
        (``designs.Additive(X, normalize=True)``). Then ``norm="groups"``, or
        ``norms.KSupport(k, "inputs")``, selects whole inputs. "anova" adds a surface for each pair
        of inputs (``designs.Anova(X, normalize=True)``); its groups are called "terms". A tuple of
        a name and a dictionary has settings of the features, such as ("splines", {"n_knots": 12}),
        or ("intersection", {"exponent": 2}) for the general intersection kernel.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of inputs, default=None
        Covariates without a penalty, such as age and sex: they are fitted like the intercept and
        always kept. With ``features`` other than "linear", their columns or curves are unpenalized,
        but not their products and surfaces.
    relax : float, default=0.0
        Share of a refit without penalty over the selected columns: ``coef_`` is (1 - relax) times
        the penalized fit plus relax times the refit, as in glmnet.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded as numbers. A category
        becomes a 0/1 column for each label but the first, such as "stage=4". A date becomes the
        number of days since the first date. Gaps are filled with the median, or the most frequent
        label, of the training rows. False: such tables are refused.
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Maximum number of steps of the solver.
    solver : str or Solver, default="auto"
        "auto" is column generation over subspaces or over atoms, as the norm allows. Others:
        "column_generation", "atom_generation", "fista", "kfcfw", "frank_wolfe".
    warm_start : bool, default=False
        Whether ``fit`` begins at the solution of the last ``fit``, if columns and classes are the
        same.
    n_jobs : int, default=None
        Number of classes fitted at a time, in threads that share X; it has no effect for two
        classes.
    verbose : int, default=0
        If above 0, print one line for each step.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step of the fit of each class.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far. Classes share them.

    Attributes
    ----------
    classes_ : (n_classes,) ndarray
    coef_ : (1, n_features) or (n_classes, n_features) ndarray, float64
        With ``features`` other than "linear" it has a column for each main effect, square or
        product; it is a csr_array if there are more than 2^26.
    selected_, selected_names_ : ndarray of int, list of str
        The columns with a coefficient in any class, and their names: those of the table or x0, x1,
        ...; products have names such as "age:dose".
    parts_ : list of Part, or None; a list of such lists with several classes
        For latent norms (overlapping groups): the vectors, one for each group in use, whose sum is
        ``coef_``. None for other norms.
    intercept_ : (1,) or (n_classes,) ndarray
    objective_, gap_ : float
        The objective at this point and a proved bound on its distance to the optimum. With
        several classes both are sums over the one-against-rest problems.
    status_ : Status
        CONVERGED if every class is, else the reason of the first class that is not.
    n_passes_ : float
        Passes over the data, all classes together.
    n_iter_ : int
        Number of points whose gap was computed, the starting point included; the largest one of all
        classes.
    history_ : list of Record, or a list of such lists, one for each class
    results_ : list of Result, one for two classes, else one for each class
    n_features_in_, feature_names_in_
    encoding_ : TableEncoding
        How a data frame with words, dates or gaps was encoded; absent for numbers.

    Notes
    -----
    ``alpha`` is also that of ``solve``. ``C`` of ``sklearn.linear_model.LogisticRegression`` (l1)
    is 1 / (alpha * n_samples), and ``C`` of ``LinearSVC`` (l1, squared hinge without our factor
    1/2) is 1 / (2 * alpha * n_samples). With ``class_weight`` or sample weights, n_samples is the
    sum of the sample weights times the class weights. Dense X in float32 or float64 (also
    read-only, memory mapped) and sparse CSR and CSC are not copied; a ``Design`` is accepted, too.

    References
    ----------
    .. [V] M. Vinyes, G. Obozinski. Fast column generation for atomic norm regularization. AISTATS
       2017, PMLR 54, 547-556 (the solver of ``solver="auto"``).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from atomlearn import AtomicClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AtomicClassifier(alpha=0.05).fit(scale(X), y)
    >>> model.status_.is_converged, int((model.coef_ != 0).sum())
    (True, 4)
    """

    alpha: float = 0.01
    _: KW_ONLY
    multi_class: str = "ovr"
    n_jobs: int | None = None
