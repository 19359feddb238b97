"""How long the first build takes and how many steps it has: tests/bench/results/build.json."""

import datetime
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from .problems import Problem, check, check_fields
from .summaries import read_json, write_text

FILE = "build.json"
WHAT = (
    "steps of the build graph; minutes of a first build and of the tests (deploy/figures.py --measure-build, "
    "or CCACHE_DISABLE=1 .ci/run and --record-build)"
)
TARGETS = ("installed", "all")
CORES = 2
MOST_HOURS = 4  # per command
FREE = 0.85  # share of both cores that compiling reaches when nobody else works on them
MOST_OFF = 0.1  # how far the committed number of steps may be from that of a build folder


def read(folder: pathlib.Path) -> dict:
    build, where = read_json(folder / FILE), FILE
    check(build, "an object", where)
    check_fields(build, where, {"date": "a text", "steps": "an object"}, {"minutes": "an object"})
    check_fields(build["steps"], f"{where}: steps", dict.fromkeys(TARGETS, "a whole number from 1"))
    if "minutes" in build:
        check_fields(build["minutes"], f"{where}: minutes", dict.fromkeys((*TARGETS, "tests"), "a number"))
        check_fields(build, where, {"machine": "a text", "busy": "true or false"})
    return build


def count_steps(folder: pathlib.Path) -> dict:
    """Commands that ninja runs for each target from nothing."""
    if not (folder / "build.ninja").is_file():
        raise Problem(
            f"{folder}: found no build.ninja, expected a configured one; deploy/build.sh release makes it"
        )
    steps = {}
    for target in TARGETS:
        ran = subprocess.run(
            ["ninja", "-C", folder, "-t", "commands", target], capture_output=True, text=True, timeout=300
        )
        if ran.returncode != 0:
            raise Problem(f"{folder}: ninja -t commands {target}: {(ran.stdout + ran.stderr).strip()[-200:]}")
        steps[target] = sum(1 for line in ran.stdout.splitlines() if line and not line.startswith("ninja: "))
    return steps


def steps_differ(build: dict, folder: pathlib.Path) -> str:
    """One line if the committed number of steps is far from that of the build folder; else empty."""
    now = count_steps(folder)
    for target in TARGETS:
        said = build["steps"][target]
        if abs(said - now[target]) > MOST_OFF * now[target]:
            return (
                f"{FILE}: {target}: found {said} steps, but the build graph has {now[target]}; "
                f"deploy/figures.py --record-steps {folder} writes them"
            )
    return ""


def write(folder: pathlib.Path, build: dict) -> None:
    write_text(folder / FILE, json.dumps({"what": WHAT} | build, indent=1) + "\n")


def record_steps(results: pathlib.Path, folder: pathlib.Path) -> None:
    kept = read(results) if (results / FILE).exists() else {}
    kept.pop("what", None)
    write(results, kept | {"steps": count_steps(folder)} | ({} if "minutes" in kept else {"date": today()}))


def record_log(results: pathlib.Path, log: pathlib.Path) -> None:
    """Keeps the minutes that a .ci/run on a clean clone printed, which ran without a compiler cache on two cores."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Problem(f"{log}: cannot be read: {error}") from None
    built = re.findall(
        r"^build: \d+ steps took (\d+) s, (\d+) s of CPU and (\d+) s of the system$", text, re.MULTILINE
    )
    tests = re.findall(r"^Total Test time \(real\) = +([\d.]+) sec$", text, re.MULTILINE)
    if len(built) != 2 or not tests:  # check.sh runs a test, too, later
        raise Problem(
            f"{log}: found {len(built)} builds and {len(tests)} runs of tests, expected 2 and some: the output of "
            "CCACHE_DISABLE=1 .ci/run in a clean clone"
        )
    first, rest = ([int(number) for number in line] for line in built)
    share = min((user + system) / (CORES * took) for took, user, system in (first, rest))
    kept = read(results) if (results / FILE).exists() else {}
    kept.pop("commit", None)
    minutes = [round(seconds / 60, 1) for seconds in (first[0], rest[0], float(tests[0]))]
    write(
        results,
        kept
        | {"date": today(), "machine": _cpu_name(), "busy": share < FREE}
        | {"minutes": dict(zip((*TARGETS, "tests"), minutes))},
    )


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def _cpu_name() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def _timed(command: list, folder: pathlib.Path, log) -> tuple:
    """Minutes, and the share of both cores that it had. A command that fails ends the measurement."""
    print(f"figures: {' '.join(command)}", flush=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:CORES])
    words = ["taskset", "-c", cores, *command]
    ran = subprocess.Popen(
        words, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        code = ran.wait(MOST_HOURS * 3600)
    except BaseException:  # a deadline or Ctrl-C ends what the command started, too
        os.killpg(ran.pid, signal.SIGTERM)
        raise
    seconds = time.monotonic() - start
    if code != 0:
        raise Problem(f"{' '.join(command)}: ended with {code}; its output is in {log.name}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"figures: {seconds / 60:.1f} minutes, {100 * cpu / seconds / CORES:.0f} % of {CORES} cores",
        flush=True,
    )
    return seconds / 60, cpu / seconds / CORES


def measure(root: pathlib.Path, results: pathlib.Path) -> None:
    """Builds a clone of HEAD from nothing, without a compiler cache, and runs its tests."""
    if len(os.sched_getaffinity(0)) < CORES or not shutil.which("taskset"):
        raise Problem(
            f"found {len(os.sched_getaffinity(0))} cores, expected {CORES}, and taskset of util-linux"
        )
    with tempfile.TemporaryDirectory(prefix="first_build_") as scratch:
        clone = pathlib.Path(scratch) / "clone"
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", root, clone], check=True, timeout=600)
        commit = subprocess.run(
            ["git", "-C", clone, "rev-parse", "--short", "HEAD"],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.strip()
        with tempfile.NamedTemporaryFile("w", prefix="first_build_", suffix=".log", delete=False) as log:
            first, share = _timed(["deploy/build.sh", "release", "installed"], clone, log)
            rest, share_of_rest = _timed(["deploy/build.sh", "release", "all"], clone, log)
            tests, _ = _timed(["ctest", "--preset", "release", "-LE", "long", "-j", str(CORES)], clone, log)
        os.unlink(log.name)
        write(
            results,
            {
                "date": today(),
                "machine": _cpu_name(),
                "commit": commit,
                "busy": min(share, share_of_rest) < FREE,
                "steps": count_steps(clone / "build" / "release"),
                "minutes": {"installed": round(first, 1), "all": round(rest, 1), "tests": round(tests, 1)},
            },
        )
