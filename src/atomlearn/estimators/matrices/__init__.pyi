"""The names that ``__init__.py`` imports on first use."""

from atomlearn.estimators.matrices.joint_search import search_jointly as search_jointly
from atomlearn.estimators.matrices.tasks import joint_coefficients as joint_coefficients
from atomlearn.estimators.matrices.tasks import joint_problem as joint_problem
