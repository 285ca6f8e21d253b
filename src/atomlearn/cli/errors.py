"""CommandError: what a user can mend; shown as one line, without a traceback."""


class CommandError(ValueError):
    """Something is wrong with what was asked or with the data; the message says the remedy."""
