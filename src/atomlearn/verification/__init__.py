"""Claims of optimality, and their check from the data by NumPy alone: see docs/verify.md."""

from atomlearn._lazy import lazy

__all__ = [
    "Verified",
    "check",
    "claim_digest",
    "claim_of",
    "data_digest",
    "fit_of_result",
    "fits_of_estimator",
    "proved",
    "verify",
]

__getattr__ = lazy(
    __name__,
    {
        "answers": "Verified verify",
        "bounds": "check claim_digest data_digest proved",
        "claims": "claim_of",
        "models": "fit_of_result fits_of_estimator",
    },
)
