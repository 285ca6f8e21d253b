"""Mutation testing: plausible changes of one line, and whether a test notices.

    python -m tests.mutation --known                # the changes that once went unnoticed
    python -m tests.mutation --random 50 --seed 1   # drawn ones, over the rooms of ROOMS

The package is copied, changed there, and imported from there: the working tree stays as it is.
"""
