#!/usr/bin/env python3
"""failed_again.py BUILD: runs the tests that failed in the last ctest run of a build folder once more, one after the other.

A test that fails while others load the machine and passes alone depends on time that it does not control: a fault, but not of
the change that is being tested. It is listed as such. Exit status: 0 when every test passed alone, 8 when one failed again, or
when more than three had failed: so many do not fail by chance.
"""

import argparse
import pathlib
import re
import subprocess
import sys

MOST = 3
LIMIT_S = 1800  # each


def failed(build: pathlib.Path) -> list:
    """Names of the tests that failed, as ctest wrote them down ("12:tuner/time_limit")."""
    log = build / "Testing/Temporary/LastTestsFailed.log"
    return [line.split(":", 1)[1] for line in log.read_text().splitlines() if ":" in line] if log.exists() else []


def passes(ctest: str, build: pathlib.Path, name: str) -> bool:
    command = [ctest, "--test-dir", build, "-R", f"^{re.escape(name)}$", "--output-on-failure", "--no-tests=error"]
    try:
        return subprocess.run(command, timeout=LIMIT_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ctest", default="ctest")
    args = parser.parse_args()
    names = failed(args.build)
    if not names:
        print(f"failed_again: {args.build} has no list of failed tests; ctest ended for another reason", file=sys.stderr)
        return 8
    if len(names) > MOST:
        print(f"failed_again: {len(names)} tests failed; at most {MOST} are run again", file=sys.stderr)
        return 8
    print(f"failed_again: once more, alone: {', '.join(names)}", flush=True)
    again = [name for name in names if not passes(args.ctest, args.build, name)]
    for name in names:
        how = "failed again, alone" if name in again else "failed beside other tests and passed alone: it depends on the machine's load"
        print(f"failed_again: {name} {how}")
    return 8 if again else 0


if __name__ == "__main__":
    sys.exit(main())
