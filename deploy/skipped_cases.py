#!/usr/bin/env python3
"""skipped_cases.py LOG: lists the skipped cases in ctest's LastTest.log, by program and reason; test.sh and .ci/run end with it.

A test says each skipped case in a line of its own, `skipped: CASE: REASON` (tests/support/test_main.cpp, unit_tests.py), or
`skipped: REASON` where a script has no cases. A reason that names deploy/install.sh or deploy/cross.sh is one that packages
of Debian take away: those come last, under a heading of their own.
"""

import pathlib
import re
import sys

LINES = 60  # of one list
CASES = 3  # named in one line
LENGTH = 200  # characters of one reason
SAID = re.compile(r"skipped: (?:(\w[\w/]*\.\w[\w/.-]*): )?(.*)")


def shown(text: str, length: int) -> str:
    """Printable, on one line, and cut."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain if len(plain) <= length else plain[: length - 3] + "..."


def skips_of(log: str) -> dict:
    """(program, reason) -> names of cases, in the order of the log; None where no test ran. Only what tests printed counts."""
    skips, program, printing = {}, None, False
    for line in log.split("\n"):
        if begun := re.fullmatch(r" *\d+/\d+ Test: (.*)", line):
            program, printing = begun[1], False
        elif line == "Output:":
            printing = True
        elif line == "<end of output>":
            printing = False
        elif printing and (said := SAID.fullmatch(line.rstrip("\r"))):
            skips.setdefault((program, said[2]), []).append(said[1])
    return None if program is None else skips


def is_of_a_package(reason: str) -> bool:
    return "deploy/install.sh" in reason or "deploy/cross.sh" in reason


def listed(skips: dict) -> list:
    lines = []
    for (program, reason), cases in sorted(skips.items()):
        named = [case for case in cases if case]
        which = ", ".join(shown(case, 80) for case in named[:CASES])
        if len(named) > CASES:
            which += f" and {len(named) - CASES} more"
        lines.append(f"  {shown(program, 80)}: {which + ': ' if which else ''}{shown(reason, LENGTH)}")
    if len(lines) > LINES:
        lines[LINES:] = [f"  and {len(lines) - LINES} lines more: the log of ctest has them"]
    return lines


def main() -> int:
    if len(sys.argv) != 2:
        print("skipped_cases: expected the log of ctest (build/PRESET/Testing/Temporary/LastTest.log)", file=sys.stderr)
        return 2
    try:
        skips = skips_of(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        print(f"skipped_cases: {shown(sys.argv[1], LENGTH)}: {error.strerror}", file=sys.stderr)
        return 2
    if skips is None:  # ctest -N
        return 0
    packages = {key: cases for key, cases in skips.items() if is_of_a_package(key[1])}
    others = {key: cases for key, cases in skips.items() if key not in packages}
    for which, what in ((others, "skipped here:"), (packages, "skipped, which packages of Debian would run "
                        "(deploy/test.sh --suite long installs them):")):
        count = sum(map(len, which.values()))
        if count:
            print(f"test: {count} case{'s' if count > 1 else ''} {what}")
            print("\n".join(listed(which)))
    if not skips:
        print("test: no case was skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
