"""AIC, BIC and EBIC along a path: a choice of alpha without held-out rows, under assumptions."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.special import gammaln

from atomlearn._support import check_offset, check_weight
from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Array, Loss, is_number, own_parameters
from atomlearn.core.losses.around import mean_loss
from atomlearn.core.losses.registry import as_loss
from atomlearn.core.paths.path import PathResult

#: The criteria: how much a selected column costs.
Criterion = Literal["aic", "bic", "ebic"]
#: Losses that are minus the logarithm of a likelihood, up to a constant of y.
LIKELIHOODS = ("squared", "logistic", "poisson", "negative_binomial")


@own_parameters
def information_criterion(
    path: PathResult,
    X: object,
    y: object,
    *,
    criterion: Criterion = "ebic",
    loss: str | Loss = "squared",
    sample_weight: object = None,
    offset: object = None,
    gamma: float = 1.0,
) -> Array:
    """Return AIC, BIC or EBIC for each alpha of a path: the lowest is the choice.

    The value is minus twice the log-likelihood, plus the number of selected columns times 2 (AIC)
    or log n (BIC). EBIC adds 2 gamma log(p choose m) for m columns out of p.

    Parameters
    ----------
    path : PathResult
        A path over the columns of X, of ``paths.path``.
    X, y : array_like
        The data and the targets that the path was fitted to.
    criterion : {"aic", "bic", "ebic"}, default="ebic"
        "bic" selects too many columns if p is near n or above; "ebic" accounts for the number of
        models of each size.
    loss : str or Loss, default="squared"
        The loss of the path: "squared", "logistic", "poisson" or a negative binomial one.
    sample_weight : array (n_samples,), optional
        Weights of rows: counts of equal rows.
    offset : array (n_samples,), optional
        The offset of the path.
    gamma : float in (0, 1], default=1.0
        Share of EBIC's term.

    Returns
    -------
    array (n_alphas,)
        Values up to one constant, lower is better.

    Raises
    ------
    ValueError
        If the loss is no likelihood, or the path has several targets.

    Notes
    -----
    A criterion assumes more than cross-validation does:

    - Rows are independent, and the loss is minus their log-likelihood. For "squared" the noise is
      normal of one unknown variance, and the value is n log(RSS / n) + ...
    - The number of selected columns is the number of degrees of freedom. This holds for the lasso
      on average (Zou, Hastie, Tibshirani 2007). For groups, k-support and ridge terms it is too
      large, as coefficients are shrunk; for unpenalized columns it is exact.
    - The likelihood is that of the penalized coefficients, whose shrinkage makes small models look
      worse than they are. So more columns are selected than by a criterion of refits.
    - n is large compared with the number of selected columns.

    If rows depend on each other, use cross-validation with ``groups=``.

    References
    ----------
    G. Schwarz 1978, Estimating the dimension of a model, doi:10.1214/aos/1176344136. J. Chen, Z.
    Chen 2008, Extended Bayesian information criteria, doi:10.1093/biomet/asn034.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import paths
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 200))
    >>> y = 2 * X[:, 3] - X[:, 8] + rng.standard_normal(100)
    >>> found = paths.path(X, y, n_alphas=30)
    >>> best = paths.information_criterion(found, X, y).argmin()
    >>> found.results[best].columns.tolist()
    [3, 8]
    """
    the_loss = as_loss(loss)
    if criterion not in get_args(Criterion):
        raise ValueError(f"criterion must be one of {get_args(Criterion)}, got {criterion!r}")
    if the_loss.name not in LIKELIHOODS:
        raise ValueError(
            f"information_criterion needs a loss that is a likelihood ({', '.join(LIKELIHOODS)}), "
            f"got {the_loss.name!r}; choose alpha by cross-validation"
        )
    if not (is_number(gamma) and 0 < gamma <= 1):
        raise ValueError(f"gamma must be above 0 and at most 1, got {gamma!r}; 1.0 is usual")
    design = as_design(X)
    n_samples, p = design.shape
    if p != path.n_features:
        raise ValueError(
            f"information_criterion: X has {p} columns, and the path is over {path.n_features}; "
            "pass the X of the path, with one target"
        )
    weight = check_weight(sample_weight, n_samples)
    total = float(weight.sum())
    target = the_loss.check_target(y)
    shift = 0.0 if offset is None else check_offset(offset, n_samples)
    # Minus twice the log-likelihood, up to a constant.
    losses = [mean_loss(the_loss, target, z + shift, weight) for z in path.predict(design)]
    fit = 2.0 * total * np.array(losses)
    if the_loss.name == "squared":  # n log(RSS / n): the unknown variance is maximized out
        fit = total * np.log(2.0 * np.array(losses))
    m = path.n_selected.astype(np.float64)
    cost = 2.0 if criterion == "aic" else np.log(total)
    value: Array = fit + cost * m
    if criterion == "ebic":
        # log(p choose m), the logarithm of the number of models of m columns.
        models = gammaln(p + 1.0) - gammaln(m + 1.0) - gammaln(p - m + 1.0)
        value = value + 2.0 * gamma * models
    return value
