"""Which tests of other packages run on our estimators, and why the others have no counterpart.

Two files of scikit-learn are long, and most of their tests are of other things than numbers: the
names of those that run are listed. Of the other files all tests run but those left out.
"""

from __future__ import annotations

# Not chosen: precompute, check_input, copy_X, order and selection of coordinates, Cython kernels,
# warnings, iterations, joblib, parameters and messages of their errors, functions (enet_path,
# lasso_path), shapes and attributes of LogisticRegressionCV, whose grids are of C. Not ours:
# alpha = 0 and C = inf, which are no penalty; alphas of 0 columns (test_uniform_targets);
# coefficients in float32 (test_enet_float_precision); the gap at the dual point of scikit-learn
# (test_lasso_dual_gap), one for each target (test_enet_multitarget); a search at l1_ratio = 0
# (test_enet_l1_ratio); a search that refuses several targets (test_multioutput_enetcv_error).
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

# Not chosen of skglm: check_estimator of its classes, path, printing, the parts from which its
# models are composed, SLOPE, and the stopping criterion of its solver (``stop_crit_``), which is
# read for Cox and for groups of positive coefficients.
SKGLM = [
    "test_estimator",
    "test_mtl_vs_sklearn",
    "test_Cox_sk_like_estimator",
    "test_GroupLasso_estimator",
    "test_GroupLasso_estimator_sparse_vs_dense",
    "test_SparseLogReg_elasticnet",
    "test_grid_search",
]
# Not chosen of the generalized linear models: warm starts, warnings, links by name, arrays of other
# libraries, their Newton solver; no penalty at all where columns are more than rows, for which
# scikit-learn returns the shortest of many solutions.
GENERALIZED = [
    "test_glm_log_regression",
    "test_poisson_glmnet",
    "test_glm_sample_weight_consistency",
]
#: Estimators whose penalties are no norms, or whose loss is not smooth here: their own fit is kept.
OTHERS = ("MCP", "SVC")

#: Reasons.
_OTHER = "their steps, warnings, messages, attributes or functions"
_BROKEN = (
    "fails with its own estimator and scikit-learn 1.9: it passes n_alphas to LinearModelCV, "
    "leaves classes out of _logistic_regression_path, or uses liblinear for several classes"
)
_WEIGHTS = "refuses weights of 0, which leave a column free here"
_LINKS = "a power above 2, or a log link of the squared loss"
_TREES = "of trees"
_ROUNDED = "equality to the last bit, where ours differs by a rounding"

#: For each file the tests that are left out; a name, or the beginning of one with
#: its values in brackets.
LEFT_OUT: dict[str, dict[str, str]] = {
    "test_glm.py": {
        "test_glm_log_regression[estimator2": _LINKS,
        "test_glm_log_regression[estimator3": _LINKS,
        "test_glm_log_regression[estimator5": _LINKS,
    },
    "test_quantile.py": {
        "test_quantile_toy_example[0.5-0.01-1-1]": _ROUNDED,
        "test_error_interior_point_future": _OTHER,
    },
    "test_from_model.py": {
        "test_fit_accepts_nan_inf": _TREES,
        "test_transform_accepts_nan_inf": _TREES,
    },
    "test_lasso.py": {
        "test_celer_path": _OTHER,
        "test_convergence_warning": _OTHER,
        "test_LassoCV": _BROKEN,
        "test_weights_lasso": _WEIGHTS,
    },
    "test_enet.py": {"test_ElasticNetCV": _BROKEN},
    "test_logreg.py": {
        "test_celer_path_logreg": _BROKEN,
        "test_multinomial": _BROKEN,
        "test_check_estimator": _BROKEN,
    },
    "test_mtl.py": {
        "test_MultiTaskLassoCV": _BROKEN,
        "test_GroupLasso": "its bound on the gap is of a rule of its own, then check_estimator",
        "test_GroupLassoCV": _BROKEN,
        "test_check_weights": _WEIGHTS,
    },
}

#: The tests that run, of files of which most do not.
CHOSEN: dict[str, list[str]] = {
    "test_coordinate_descent.py": DESCENT,
    "test_estimators.py": SKGLM,
    "test_glm.py": GENERALIZED,
    "test_logistic.py": LOGISTIC,
}


def runs(file: str, test: str) -> bool:
    """Return whether a test of a file runs on our estimators."""
    name, _, values = test.partition("[")
    if any(other in values for other in OTHERS):
        return False
    left_out = LEFT_OUT.get(file, {})
    if name in left_out or any(test.startswith(start) for start in left_out if "[" in start):
        return False
    return file not in CHOSEN or name in CHOSEN[file]
