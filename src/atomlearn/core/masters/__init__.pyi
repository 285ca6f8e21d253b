"""The names that ``__init__.py`` imports on first use."""

from atomlearn.core.masters.model_newton import ModelNewton as ModelNewton
from atomlearn.core.masters.pattern_newton import PatternNewton as PatternNewton
from atomlearn.core.masters.pattern_newton import pattern_of as pattern_of
from atomlearn.core.masters.scaling_newton import ScalingNewton as ScalingNewton
from atomlearn.core.masters.scaling_newton import cheap_columns as cheap_columns
from atomlearn.core.masters.scaling_newton import is_group_problem as is_group_problem
from atomlearn.core.masters.working_sets import WorkingSets as WorkingSets
