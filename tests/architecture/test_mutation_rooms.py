"""Every package has tests that the mutation harness shows a change of it."""

from __future__ import annotations

from pathlib import Path

from tests.mutation.__main__ import ROOMS, SRC


def test_every_package_has_tests_for_mutations() -> None:
    packages = {
        path.parent.relative_to(SRC).as_posix()
        for path in Path(SRC).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert set(ROOMS) == packages
    missing = [
        name for tests in ROOMS.values() for name in tests.split() if not Path(name).exists()
    ]
    assert missing == []
