"""Findings: whether a model predicts, which features would be chosen again, how many are false."""

from atomlearn.findings.conditional import FeatureTests, conditional_importance, p_values
from atomlearn.findings.conformal import full_conformal
from atomlearn.findings.effects import estimates
from atomlearn.findings.explain import Explanation, explain
from atomlearn.findings.gaussian import gaussian_knockoffs
from atomlearn.findings.held_out import held_out_verdict
from atomlearn.findings.intervals import Estimates
from atomlearn.findings.kept import Kept
from atomlearn.findings.knockoffs import KnockoffSelector, knockoff_threshold
from atomlearn.findings.new_rows import Monitored, keep, monitor
from atomlearn.findings.power import PowerCurve, power
from atomlearn.findings.prediction_sets import prediction_sets
from atomlearn.findings.stability import (
    StabilitySelector,
    meinshausen_buhlmann,
    unimodal,
)
from atomlearn.findings.twins import Twins, correlated_columns, twins
from atomlearn.findings.verdict import Verdict, verdict_on

__all__ = [
    "Estimates",
    "Explanation",
    "FeatureTests",
    "Kept",
    "KnockoffSelector",
    "Monitored",
    "PowerCurve",
    "StabilitySelector",
    "Twins",
    "Verdict",
    "conditional_importance",
    "correlated_columns",
    "estimates",
    "explain",
    "full_conformal",
    "gaussian_knockoffs",
    "held_out_verdict",
    "keep",
    "knockoff_threshold",
    "meinshausen_buhlmann",
    "monitor",
    "p_values",
    "power",
    "prediction_sets",
    "twins",
    "unimodal",
    "verdict_on",
]
