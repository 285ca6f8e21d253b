"""The command line: ``atomlearn select``, ``atomlearn predict``, ``atomlearn demo``."""

from atomlearn.cli.command_line import main

__all__ = ["main"]
