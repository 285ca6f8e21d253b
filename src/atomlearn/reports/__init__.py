"""Reports: tables, figures, the model file and report.html, as functions of a fitted model."""

from atomlearn.reports.data_displays import CalibrationDisplay, CoverageDisplay
from atomlearn.reports.displays import (
    BoundsDisplay,
    CoefficientDisplay,
    ConvergenceDisplay,
    NearBestDisplay,
    PathDisplay,
    StabilityDisplay,
    ValidationDisplay,
)
from atomlearn.reports.model_file import read_model, write_model
from atomlearn.reports.page import report
from atomlearn.reports.structure_displays import GroupsDisplay, InteractionsDisplay, MatrixDisplay

__all__ = [
    "BoundsDisplay",
    "CalibrationDisplay",
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "CoverageDisplay",
    "GroupsDisplay",
    "InteractionsDisplay",
    "MatrixDisplay",
    "NearBestDisplay",
    "PathDisplay",
    "StabilityDisplay",
    "ValidationDisplay",
    "read_model",
    "report",
    "write_model",
]
