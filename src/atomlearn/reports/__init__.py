"""Reports: tables, drawings, the model file and report.html, as functions of what a fit found."""

from atomlearn.reports.content import Content, Curve, FitSummary, HeldOut, Score, SelectedFeature
from atomlearn.reports.displays import (
    CalibrationDisplay,
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
from atomlearn.reports.notebook import NotebookProgress
from atomlearn.reports.of_estimator import report
from atomlearn.reports.pictures import affinity_plot, components_plot, decomposition_plot
from atomlearn.reports.structure import Drawing, groups_plot, matrix_of_parts, parts_plot
from atomlearn.reports.structure_displays import GroupsDisplay, InteractionsDisplay
from atomlearn.reports.summary import summary_of, write_summary
from atomlearn.reports.tables import selected_csv, summary_lines, write_selected_csv

__all__ = [
    "CalibrationDisplay",
    "CoefficientDisplay",
    "Content",
    "ConvergenceDisplay",
    "Curve",
    "Drawing",
    "FitSummary",
    "GroupsDisplay",
    "HeldOut",
    "InteractionsDisplay",
    "ModelCertificate",
    "ModelCurve",
    "ModelFeature",
    "ModelInput",
    "NotebookProgress",
    "PathDisplay",
    "ReportUnavailable",
    "SavedModel",
    "Score",
    "SelectedFeature",
    "StabilityDisplay",
    "ValidationDisplay",
    "affinity_plot",
    "components_plot",
    "decomposition_plot",
    "groups_plot",
    "matrix_of_parts",
    "parts_plot",
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
