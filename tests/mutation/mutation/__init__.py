"""The parts of tests/mutation/run."""


class Problem(Exception):
    """What a user can mend, in one line."""
