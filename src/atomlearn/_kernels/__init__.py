"""Kernels in C++ for what NumPy, SciPy and BLAS cannot do at memory speed.

Types and shapes of arguments are checked, here or in the C++ bindings. Every function releases the
interpreter lock and runs on the number of OpenMP threads that ``OMP_NUM_THREADS`` or
``threadpoolctl`` allow. Sums are in float64 whatever the precision of the data. Every function has
a slow reference version of the same name in ``tests/oracles``. Numbers must be finite and sparse
arrays valid (``sparse_fault``): the kernels do not check every value.

Loops are compiled for several sets of vector instructions. On import the best set that the
processor supports is chosen; ``_native.simd()`` returns it. The environment variable
``ATOMLEARN_SIMD`` (baseline, avx2 or avx512) limits the choice.
"""

from atomlearn._lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "active_set": "ActiveFactor QPOutcome QPStatus active_set_qp",
        "codes": (
            "CodedColumns code_columns code_histograms find_levels pair_histograms spline_knots "
            "spline_scores table_scores thermometer_scores"
        ),
        "dense": (
            "STORED_TYPES gather_dense in_lanes many_dense pair_sums_dense predict_dense "
            "scores_dense top_magnitude"
        ),
        "descent": "descend_quadratic",
        "group_newton": "NewtonOutcome NewtonStatus group_newton",
        "ksupport": "ksupport_gauge ksupport_multiplier ksupport_prox",
        "newton_qp": "KeptHessian newton_qp",
        "pairs": "pair_bounds_csc pair_rows pair_search",
        "pattern_newton": "balance_level branch_newton pattern_newton",
        "pivoting": "pivot_path",
        "sparse": (
            "factor_ridge many_csc matrix_product_csr pair_sums_csc sampled_products sparse_dots "
            "sparse_fault sparse_sums weighted_squares_csr"
        ),
        "stored": (
            "add_genotypes count_genotypes gather_genotypes genotype_search multiply_genotypes "
            "padded scores_genotypes"
        ),
        "threads": "load_blas max_threads share_out single_threaded_blas sum_of_pieces",
    },
)
