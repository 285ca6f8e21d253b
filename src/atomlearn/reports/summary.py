"""summary.json: the verdict and the few numbers that a program asks for, beside the report."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.content import Content


def write_summary(path: str | Path, content: Content) -> None:
    """Write the summary; an existing file is replaced as a whole or not at all."""
    write_text(path, json.dumps(summary_of(content), indent=1, allow_nan=False) + "\n")


def summary_of(content: Content) -> dict[str, Any]:
    """Return the verdict, its score, what was selected and how exactly it was fitted.

    ``how`` says of each number how it was computed; what is not known is None.
    """
    found = content.verdict.as_dict()
    found["how"] |= {
        "proved_gap": f"(objective - lower bound) / objective, a duality gap over {content.over} "
        "of the model that is written, fitted to all rows; it says how exactly the problem was "
        "solved, and nothing of how well the model predicts",
        "n_selected": "features with a coefficient in the model that is written, covariates apart",
    }
    return found | {
        "headline": content.headline,
        "proved_gap": content.headline_gap if math.isfinite(content.headline_gap) else None,
        "asked_gap": content.goal,
        "fitted_exactly": content.headline_gap <= content.goal,
        "n_selected": len(content.selected),
        "n_selected_again": None if content.held_out is None else content.held_out.overlap,
        "n_features": content.n_features,
        "n_covariates": len(content.covariates),
        "covariates": [
            {"name": item.name, "coefficients": list(item.coefficients)}
            for item in content.covariates
        ],
        "n_rows": content.n_samples,
        "n_fitted_for_the_score": None if content.held_out is None else content.held_out.n_train,
        "task": content.task,
        "target": content.target,
        "data": content.data,
        "status": [fit.status for fit in content.fits],
        "warnings": list(content.warnings),
        "notes": list(content.notes),
        "command": content.command,
        "versions": content.versions,
    }
