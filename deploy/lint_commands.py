#!/usr/bin/env python3
"""lint_commands.py BUILD_DIR: writes BUILD_DIR/lint/compile_commands.json, with a command for each source.

The compile commands of a build with TUNER_UNITY name files that include a dozen sources each (deploy/compile_together.cmake).
clang-tidy wants one for each source, as a build without it has. It cannot read the precompiled header of the tests
(tests/support), which was made by another compiler: sources include what they use.
"""

import json
import pathlib
import re
import sys


PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S+/cmake_pch\.hxx")


def commands_of(entry: dict, build: pathlib.Path) -> list:
    entry = {**entry, "command": PRECOMPILED.sub("", entry["command"])}
    file = pathlib.Path(entry["file"])
    if file.parent.name != "together" or build not in file.parents:
        return [entry]
    sources = re.findall(r'^#include "([^"]+)"$', file.read_text(), re.MULTILINE)
    if not sources:
        raise ValueError(f"{file} includes nothing")
    root = pathlib.Path(__file__).resolve().parent.parent
    return [
        {**entry, "file": str(root / source), "command": entry["command"].replace(str(file), str(root / source))}
        for source in sources
    ]


def main() -> int:
    if len(sys.argv) != 2:
        print("lint_commands: expected a build folder", file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1]).resolve()
    try:
        entries = json.loads((build / "compile_commands.json").read_text())
        commands = [command for entry in entries for command in commands_of(entry, build)]
    except (OSError, ValueError) as problem:
        print(f"lint_commands: {problem}; deploy/build.sh configures a build folder", file=sys.stderr)
        return 2
    (build / "lint").mkdir(exist_ok=True)
    (build / "lint/compile_commands.json").write_text(json.dumps(commands, indent=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
