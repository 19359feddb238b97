"""unittest.main() for ctest: one line for each skipped case, and exit status 77 where all were, as in test_main.cpp."""

import sys
import unittest

ALL_SKIPPED = 77  # SKIP_RETURN_CODE of the tests


def _is_whole(test) -> bool:
    """A skip in a subTest leaves the rest of its case; one of a class has run none of its cases."""
    return isinstance(test, unittest.TestCase) and not hasattr(test, "test_case")


def main():
    result = unittest.main(exit=False).result
    sys.stderr.flush()
    for test, reason in result.skipped:
        print(f"skipped: {test.id().removeprefix('__main__.')}: {' '.join(reason.split())}")
    if not result.wasSuccessful():
        sys.exit(1)
    whole = sum(_is_whole(test) for test, _ in result.skipped)
    sys.exit(ALL_SKIPPED if result.skipped and result.testsRun == whole else 0)
