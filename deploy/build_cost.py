#!/usr/bin/env python3
"""build_cost.py BUILD_DIR: prints what a build has to read, and fails when it has grown beyond its bounds.

A compiler's time goes with the lines that it reads, most of them in headers. They are counted here from Ninja's own notes of
which files each object came from, so nothing is compiled. Exit code 1: beyond a bound; 2: no build to look at.

Beyond a bound? Look which header came in (`ninja -t deps OBJECT`): a forward declaration often does, and headers of protobuf,
gRPC, JSON and LLVM belong into sources. Raise a bound only with the reason in the commit.
"""

import pathlib
import subprocess
import sys

# The longest file has Boost.Beast (262,000 lines once preprocessed, 11 s), the next most of gRPC, protobuf and JSON. Sums are of
# the product and of tests with benchmarks, in million lines; GoogleTest's headers, precompiled (tests/support), count once.
MOST_LINES_OF_A_FILE = 425_000
MOST_MILLIONS = {"product": 38.3, "tests": 51.5}


class Problem(Exception):
    pass


def read_deps(build: pathlib.Path) -> dict:
    """Object -> the files it was made from, as paths."""
    said = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise Problem(said.stderr.strip().splitlines()[-1] if said.stderr else "ninja -t deps failed")
    deps, files = {}, []
    for line in said.stdout.splitlines():
        if line.startswith(" "):
            files.append(build / line.strip())
        elif ":" in line:
            files = deps.setdefault(line.split(":")[0], [])
    if not deps:
        raise Problem("nothing was built there yet; deploy/build.sh release all does")
    return deps


def lines_of(deps: dict) -> dict:
    known = {}

    def count(file: pathlib.Path) -> int:
        if file not in known:
            known[file] = file.read_bytes().count(b"\n") if file.is_file() else 0
        return known[file]

    return {obj: sum(count(file) for file in files) for obj, files in deps.items()}


def check(lines: dict) -> bool:
    right = True
    sums = {"product": 0, "tests": 0}
    for obj, count in lines.items():
        sums["tests" if obj.startswith("tests/") else "product"] += count
        if count > MOST_LINES_OF_A_FILE:
            print(f"build cost: {obj} is made of {count:,} lines, at most {MOST_LINES_OF_A_FILE:,}")
            right = False
    longest = max(lines, key=lines.get)
    print(f"build cost: {len(lines)} compiled files; the longest {lines[longest]:,} lines "
          f"(at most {MOST_LINES_OF_A_FILE:,}): {longest}")
    for part, count in sums.items():
        most = MOST_MILLIONS[part]
        print(f"build cost: {part:8} {count / 1e6:6.1f} million lines (at most {most})")
        right = right and count <= most * 1_000_000
    return right


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("build_cost: expected a build folder", file=sys.stderr)
        return 2
    try:
        return 0 if check(lines_of(read_deps(pathlib.Path(sys.argv[1]).resolve()))) else 1
    except (Problem, OSError) as problem:
        print(f"build_cost: {sys.argv[1]}: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
