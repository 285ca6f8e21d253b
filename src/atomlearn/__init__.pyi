"""The names that ``__init__.py`` imports on first use."""

from atomlearn import datasets as datasets
from atomlearn import designs as designs
from atomlearn import findings as findings
from atomlearn import interop as interop
from atomlearn import losses as losses
from atomlearn import masters as masters
from atomlearn import norms as norms
from atomlearn import paths as paths
from atomlearn import reports as reports
from atomlearn import solvers as solvers
from atomlearn import subsets as subsets
from atomlearn.estimators import *  # noqa: F403
from atomlearn.findings import KnockoffSelector as KnockoffSelector
from atomlearn.findings import StabilitySelector as StabilitySelector
from atomlearn.reports import report as report
from atomlearn.solvers import solve as solve
from atomlearn.subsets import solve_subset as solve_subset

__version__: str
