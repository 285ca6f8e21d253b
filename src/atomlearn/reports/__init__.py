"""Reports: tables, figures, the model file and report.html, as functions of what a fit found."""

from atomlearn.reports.content import Content, FitSummary, HeldOut, Score, SelectedFeature
from atomlearn.reports.data_displays import CalibrationDisplay
from atomlearn.reports.displays import (
    CoefficientDisplay,
    ConvergenceDisplay,
    PathDisplay,
    StabilityDisplay,
    ValidationDisplay,
)
from atomlearn.reports.html import ReportUnavailable, report_html, write_report
from atomlearn.reports.model import (
    ModelCertificate,
    ModelCurve,
    ModelFeature,
    ModelInput,
    SavedModel,
)
from atomlearn.reports.model_file import read_model, write_model
from atomlearn.reports.of_estimator import report
from atomlearn.reports.structure_displays import (
    GroupsDisplay,
    InteractionsDisplay,
    MatrixDisplay,
    PartsDisplay,
)
from atomlearn.reports.tables import (
    selected_csv,
    summary_lines,
    summary_of,
    write_selected_csv,
    write_summary,
)

__all__ = [
    "CalibrationDisplay",
    "CoefficientDisplay",
    "Content",
    "ConvergenceDisplay",
    "FitSummary",
    "GroupsDisplay",
    "HeldOut",
    "InteractionsDisplay",
    "MatrixDisplay",
    "ModelCertificate",
    "ModelCurve",
    "ModelFeature",
    "ModelInput",
    "PartsDisplay",
    "PathDisplay",
    "ReportUnavailable",
    "SavedModel",
    "Score",
    "SelectedFeature",
    "StabilityDisplay",
    "ValidationDisplay",
    "read_model",
    "report",
    "report_html",
    "selected_csv",
    "summary_lines",
    "summary_of",
    "write_model",
    "write_report",
    "write_selected_csv",
    "write_summary",
]
