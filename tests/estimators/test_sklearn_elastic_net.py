"""scikit-learn's own tests of the elastic net, run over our estimators.

The tests are those of the installed scikit-learn. Each runs in its module, with the names of
scikit-learn's classes replaced by subclasses that fit by our estimators.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model.tests import test_coordinate_descent as descent
from sklearn.linear_model.tests import test_logistic as logistic
from sklearn.utils.class_weight import compute_sample_weight

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, norms

#: Tighter than most of the tests ask for; ``tol`` of scikit-learn has another meaning.
TOL = 1e-11


def fitted(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit, whatever is proved: the tests compare the numbers themselves."""
    weight = None if sample_weight is None else np.broadcast_to(sample_weight, np.shape(X)[:1])
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return model.fit(X, y, weight)


class OurNet:
    """scikit-learn's ElasticNet and its subclasses, fitted by AtomicRegressor."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        norm: Any = "rows" if "MultiTask" in type(self).__name__ else "l1"
        if getattr(self, "positive", False):
            norm = norms.Nonnegative(norms.L1())
        # An error in coefficients is one of its square in the objective.
        tol = max(min(TOL, self.tol**2), 1e-15)
        options = {"fit_intercept": self.fit_intercept, "tol": tol}
        model = AtomicRegressor(norm, self.alpha, l1_ratio=self.l1_ratio, **options)
        fitted(model, X, y, sample_weight)
        self.coef_, self.intercept_, self.dual_gap_ = model.coef_, model.intercept_, model.gap_
        self.n_iter_, self.n_features_in_ = model.n_iter_, model.n_features_in_
        return self


class OurNetCV:
    """scikit-learn's ElasticNetCV and LassoCV, fitted by AtomicRegressorCV."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        norm = norms.Nonnegative(norms.L1()) if self.positive else "l1"
        options = {"fit_intercept": self.fit_intercept, "cv": self.cv or 5, "tol": TOL}
        if isinstance(self.alphas, int):
            options |= {"n_alphas": self.alphas, "alpha_ratio": self.eps}
        elif not isinstance(self.alphas, str):
            options["alphas"] = self.alphas
        else:
            options |= {"n_alphas": 100, "alpha_ratio": self.eps}
        ratio = 1.0 if isinstance(self, linear_model.LassoCV) else self.l1_ratio
        model = AtomicRegressorCV(norm, l1_ratio=ratio, **options)
        fitted(model, X, y, sample_weight)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.alpha_, self.l1_ratio_, self.alphas_ = model.alpha_, model.l1_ratio_, model.alphas_
        table = model.cv_results_
        splits = [table[key] for key in table if key.startswith("split")]
        self.mse_path_ = -2.0 * np.transpose(splits).reshape(*self.alphas_.shape, -1)
        if "alphas" in options:
            self.alphas_ = np.ravel(self.alphas_)[: len(self.alphas)]
        self.n_features_in_ = model.n_features_in_
        return self


class OurLogistic:
    """scikit-learn's LogisticRegression, fitted by AtomicClassifier."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        weight = compute_sample_weight(self.class_weight, y)
        weight = weight if sample_weight is None else weight * sample_weight
        ratio = {"l1": 1.0, "l2": 0.0}.get(self.penalty, self.l1_ratio)
        model = AtomicClassifier(
            alpha=1.0 / (self.C * weight.sum()),
            l1_ratio=ratio,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            multi_class="multinomial",
            tol=1e-9,
        )
        fitted(model, X, y, sample_weight)
        self.coef_, self.intercept_, self.classes_ = model.coef_, model.intercept_, model.classes_
        self.n_iter_, self.n_features_in_ = np.array([model.n_iter_]), model.n_features_in_
        return self


NAMES = {
    OurNet: ("ElasticNet", "Lasso", "MultiTaskElasticNet", "MultiTaskLasso"),
    OurNetCV: ("ElasticNetCV", "LassoCV"),
    OurLogistic: ("LogisticRegression",),
}
#: Subclasses of scikit-learn's classes by the name of what they stand for.
STAND_INS = {
    name: type(name, (ours, getattr(linear_model, name)), {})
    for ours, each in NAMES.items()
    for name in each
}

# Tests that are left out. Of other things than numbers: precompute, check_input, copy_X, order and
# selection of coordinates, Cython kernels, warnings, iterations, joblib, parameters and their
# errors, functions (enet_path, lasso_path), shapes and attributes of LogisticRegressionCV, whose
# grids are of C. Not ours: searches of several targets at once; alpha = 0 and C = inf, which are no
# penalty; alphas of 0 columns (test_uniform_targets); coefficients in float32
# (test_enet_float_precision); the gap at the dual point of scikit-learn (test_lasso_dual_gap), one
# for each target (test_enet_multitarget); a search at l1_ratio = 0 (test_enet_l1_ratio).
DESCENT = [
    "test_lasso_zero",
    "test_lasso_toy",
    "test_enet_toy",
    "test_lasso_cv",
    "test_lasso_cv_with_some_model_selection",
    "test_lasso_cv_positive_constraint",
    "test_enet_path",
    "test_warm_start",
    "test_lasso_positive_constraint",
    "test_enet_positive_constraint",
    "test_enet_cv_positive_constraint",
    "test_multi_task_lasso_vs_skglm",
    "test_lasso_readonly_data",
    "test_multi_task_lasso_readonly_data",
    "test_sparse_input_dtype_enet_and_lassocv",
    "test_elasticnet_precompute_gram",
    "test_random_descent",
    "test_lasso_non_float_y",
    "test_coef_shape_not_zero",
    "test_warm_start_multitask_lasso",
    "test_enet_sample_weight_consistency",
    "test_enet_cv_sample_weight_correctness",
    "test_enet_cv_grid_search",
    "test_enet_cv_sample_weight_consistency",
    "test_enet_sample_weight_does_not_overwrite_sample_weight",
    "test_enet_ridge_consistency",
    "test_sample_weight_invariance",
    "test_enet_alpha_max",
]
LOGISTIC = [
    "test_predict_2_classes",
    "test_predict_3_classes",
    "test_logistic_glmnet",
    "test_logistic_regression_solvers",
    "test_logistic_regression_solvers_multiclass",
    "test_logistic_regression_sample_weights",
    "test_logistic_regression_solver_class_weights",
    "test_logistic_regression_class_weights",
    "test_logreg_l1",
    "test_saga_vs_liblinear",
    "test_elastic_net_coeffs",
    "test_elastic_net_l1_l2_equivalence",
    "test_elastic_net_vs_l1_l2",
    "test_LogisticRegression_elastic_net_objective",
    "test_elastic_net_versus_sgd",
]


def cases(module: ModuleType, names: list[str]) -> Iterator[Any]:
    """Yield each test with each set of the values that its marks give to its parameters."""
    for name in names:
        test = getattr(module, name)
        axes = []
        for mark in getattr(test, "pytestmark", []):
            if mark.name == "parametrize":
                keys, values = mark.args[:2]
                keys = [key.strip() for key in keys.split(",")] if isinstance(keys, str) else keys
                single = len(keys) == 1
                axes.append([dict(zip(keys, [v] if single else v, strict=True)) for v in values])
        for number, parts in enumerate(itertools.product(*axes)):
            given = {key: value for part in parts for key, value in part.items()}
            if any("MultiTask" in str(v) and "CV" in str(v) for v in given.values()):
                continue
            yield pytest.param(module, test, given, id=f"{name}-{number}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "test", "given"), [*cases(descent, DESCENT), *cases(logistic, LOGISTIC)]
)
def test_numbers_are_those_of_scikit_learn(
    module: ModuleType,
    test: Callable[..., None],
    given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, stand_in in STAND_INS.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, stand_in)
    replaced = {}
    for key, value in given.items():
        name = getattr(value, "__name__", type(value).__name__)
        replaced[key] = value
        if name in STAND_INS:
            kind = STAND_INS[name]
            replaced[key] = kind if isinstance(value, type) else kind(**value.get_params())
    if "global_random_seed" in test.__code__.co_varnames[: test.__code__.co_argcount]:
        replaced["global_random_seed"] = 42
    test(**replaced)
