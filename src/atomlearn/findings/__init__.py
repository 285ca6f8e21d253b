"""Findings: whether a model predicts, which features would be chosen again, how many are false."""

from atomlearn.findings.verdict import (
    Verdict,
    classification_verdict,
    held_out_verdict,
    regression_verdict,
    survival_verdict,
)

__all__ = [
    "Verdict",
    "classification_verdict",
    "held_out_verdict",
    "regression_verdict",
    "survival_verdict",
]
