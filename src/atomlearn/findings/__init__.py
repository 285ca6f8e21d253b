"""Findings: whether a model predicts, which features would be chosen again, how many are false."""

from atomlearn.findings.conditional import conditional_importance, p_values
from atomlearn.findings.conformal import full_conformal
from atomlearn.findings.effects import estimates
from atomlearn.findings.enrichment import enrichment
from atomlearn.findings.explain import explain
from atomlearn.findings.gaussian import gaussian_knockoffs
from atomlearn.findings.held_out import held_out_verdict
from atomlearn.findings.knockoffs import KnockoffSelector
from atomlearn.findings.near_best import near_best
from atomlearn.findings.new_rows import keep, monitor
from atomlearn.findings.power import power
from atomlearn.findings.prediction_sets import prediction_sets
from atomlearn.findings.stability import StabilitySelector
from atomlearn.findings.twins import twins

__all__ = [
    "KnockoffSelector",
    "StabilitySelector",
    "conditional_importance",
    "enrichment",
    "estimates",
    "explain",
    "full_conformal",
    "gaussian_knockoffs",
    "held_out_verdict",
    "keep",
    "monitor",
    "near_best",
    "p_values",
    "power",
    "prediction_sets",
    "twins",
]
