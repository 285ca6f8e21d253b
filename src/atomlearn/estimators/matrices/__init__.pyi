"""The names that ``__init__.py`` imports on first use."""

from atomlearn.estimators.matrices.tasks import fit_tasks as fit_tasks
