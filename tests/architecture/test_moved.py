"""What people kept before a module moved is found where it stands now."""

from __future__ import annotations

import importlib
import pickle

import pytest

from atomlearn import solvers
from atomlearn._moved import MOVED


def test_a_pickle_of_before_names_its_class_by_where_it_stood() -> None:
    kept = b"catomlearn.core.solvers.feature_generation\nFeatureGeneration\n."
    assert pickle.loads(kept) is solvers.FeatureGeneration


@pytest.mark.parametrize("former", MOVED)
def test_a_module_that_moved_is_one_module_under_both_names(former: str) -> None:
    assert importlib.import_module(former) is importlib.import_module(MOVED[former])


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("atomlearn.core.solvers.nothing")
