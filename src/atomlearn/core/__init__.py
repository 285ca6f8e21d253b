"""The core: losses, norms, designs in memory, problems, masters, solvers and paths.

All other packages import from here and from no module below; ``__init__.pyi`` tells type checkers
where the names are. A name is imported on first use.
"""

from atomlearn._lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "catalogue": "loaded",
        "data.blocks": "DenseBlock SparseBlock check_same_rows coupled_gram",
        "data.cached_block": "CachedBlock distinct_columns",
        "data.compressed": "is_sparse",
        "data.convert": (
            "as_compressed as_design check_shape feature_names is_opened readable refuse_entry "
            "refuse_not_finite"
        ),
        "data.dense": "DenseDesign",
        "data.half_gram": "counted_products",
        "data.lifted": "RepeatedBlock",
        "data.limits": "LIMITS",
        "data.moments": "from_moments",
        "data.parts": "ColumnSubset RowSubset SpreadRows check_rows dense_part part_of",
        "data.scores": "FoundScores",
        "data.sparse": "SparseDesign block_of_entries",
        "data.standardized": (
            "Affine Standardized affine_block centered column_moments scaled_design "
            "scales_of_inputs"
        ),
        "data.wrappers": "Concatenated Counted",
        "interfaces": "Array Columns Mask Rows",
        "interfaces.certificate": "Certificate Status",
        "interfaces.design": "Block Design RowAccess Traits",
        "interfaces.factored": "Factored MatrixPart",
        "interfaces.forwarding": "Forwarding unwrapped",
        "interfaces.lift": "Expansion Nested Part SearchWork",
        "interfaces.loss": "Loss Task has_link has_probabilities is_quadratic",
        "interfaces.norm": "Form GroupWeights Lift Norm Term is_restrictable",
        "interfaces.proximal": "ProxJacobian ProxPoint",
        "interfaces.scores": "ArrayScores Scores",
        "interfaces.warm_start": "Arrays Atom WarmStart",
        "losses.around": "Offset bare_loss loss_of_rows mean_loss",
        "losses.domain": "EDGE_TOLERANCE",
        "losses.free_columns": "FreeColumns free_columns",
        "losses.logistic": "Logistic",
        "losses.multinomial": "Multinomial",
        "losses.pieces": "pieces",
        "losses.registry": "as_loss loss_names",
        "losses.shift": "least_shift",
        "losses.squared": "Squared",
        "masters.accelerated_gradient": "Acceleration Iterate",
        "masters.choose": "choose_master",
        "masters.kernel_columns": "columns_for_kernel",
        "masters.master": "Master Refit",
        "masters.model_newton": "ModelNewton hessian spanned",
        "masters.newton": "AcceleratedGradient SemismoothNewton",
        "masters.pattern_newton": "PatternNewton pattern_of",
        "masters.sequential_qp": "SequentialQP",
        "masters.tuning": "TUNING",
        "norms.base": "RatedNorm VectorNorm checked_norm lifted_point refuse_free",
        "norms.blocks": "Blocks",
        "norms.combine": "Nonnegative Scaled",
        "norms.elastic_net": "ElasticNetNorm",
        "norms.groups": "Groups L2 l1_weights",
        "norms.ksupport": "KSupport fair_share",
        "norms.ksupport_point": "ksupport_point",
        "norms.l1": "L1",
        "norms.names": "named_columns resolved",
        "norms.ordered": "LInf OWL",
        "norms.parameters": "Parameters",
        "norms.partition": "Membership Partition check_members set_weights",
        "norms.registry": "as_norm",
        "paths.cross_validation": "CrossValidation Rule cross_validate",
        "paths.ends": "End NoImprovement NumberOfFeatures Reached",
        "paths.folds": "Fold Score decisions_at held_out_loss training_part",
        "paths.levels": "alpha_grid check_levels largest_useful_alpha level_grids",
        "paths.path": "PathResult path path_of",
        "paths.pool": "Pool",
        "paths.relax": "relaxed",
        "paths.search_ends": "ended_by known_folds solved",
        "paths.settings": "Settings",
        "problem.checks": "check_free check_loss",
        "problem.problem": (
            "Problem center_targets changed checked_problem enter free_part gauge_of is_perfect "
            "loss_at_zero loss_gradient loss_value negative_gradient negligible_objective "
            "objective_at of_checked_data optimal_intercept restrict"
        ),
        "problem.proof": "certificate_of dual_part prove",
        "problem.regularizer": "Regularizer",
        "problem.result": "Record Result together",
        "problem.rounding": "Lengths",
        "solvers.atom_generation": "AtomGeneration PATIENCE_WITH_NEW_ATOMS",
        "solvers.atoms": "AtomSet",
        "solvers.checkpoint": "Checkpoint",
        "solvers.column_generation": "ColumnGeneration",
        "solvers.gauge": "gauge_by_generation warm_atoms",
        "solvers.progress": "Observer PrintProgress Progress RunObserver",
        "solvers.run": "default_solver run",
        "solvers.schedule": "drive",
        "solvers.solver": "INNER_RATIO MAX_ITER PATIENCE Solver State TOLERANCE",
        "solvers.stopping": "Callback StoppingRule",
    },
)
