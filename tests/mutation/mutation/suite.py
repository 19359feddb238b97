"""The tests of a build, as ctest describes them, run one by one under deadlines of our own."""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import time

from . import Problem

PROGRAMS = ("bin/tuner", "bin/measure_server", "bin/runner")  # what a test that is a script may start
LONGEST_OUTPUT = 2000


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    command: list
    environment: dict
    folder: str
    seconds: float  # its own limit
    alone: bool
    skip_code: int
    target: str  # what Ninja must build for it; "": the programs
    named: tuple = ()  # programs of the build that its environment names

    def targets(self) -> list:
        return [self.target, *self.named] if self.target else [*PROGRAMS, *self.named]


ADD_TEST = re.compile(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", re.MULTILINE)


def read_commands(build: pathlib.Path) -> dict:
    """Test -> its command. ctest does not tell it as long as the program was not built; CMake's files do."""
    return {name: shlex.split(words) for path in build.rglob("CTestTestfile.cmake") for name, words in ADD_TEST.findall(path.read_text())}


def made_files(build: pathlib.Path) -> set:
    """What Ninja can make, by its path in the build folder."""
    said = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], capture_output=True, text=True, check=False)
    return {line.rsplit(":", 1)[0] for line in said.stdout.splitlines()}


def read_suite(build: pathlib.Path) -> dict:
    """Name -> Test."""
    said = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise Problem(f"ctest cannot list the tests of {build}: {said.stderr.strip()[:200]}")
    suite, commands, made = {}, read_commands(build), made_files(build)
    for test in json.loads(said.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        command = commands.get(test["name"]) or test.get("command")
        if not command:
            continue
        target = os.path.relpath(command[0], build)
        environment = dict(line.split("=", 1) for line in properties.get("ENVIRONMENT", []))
        suite[test["name"]] = Test(
            name=test["name"],
            command=command,
            environment=environment,
            folder=properties.get("WORKING_DIRECTORY", str(build)),
            seconds=float(properties.get("TIMEOUT", 300)),
            alone=bool(properties.get("RUN_SERIAL", False)),
            skip_code=int(properties.get("SKIP_RETURN_CODE", -1)),
            target="" if target.startswith("..") else target,
            named=tuple(path for path in (os.path.relpath(value, build) for value in environment.values()) if path in made),
        )
    return suite


@dataclasses.dataclass
class Ended:
    test: Test
    how: str  # passed, skipped, failed, timed out, stopped
    seconds: float
    said: str = ""  # of a failed one: its last lines


class Running:
    """One test in a process group of its own."""

    def __init__(self, test: Test, limit: float):
        self.test = test
        self.begin = time.monotonic()
        self.deadline = self.begin + limit
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(test.command, cwd=test.folder, env=os.environ | test.environment, stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)

    def look(self) -> Ended | None:
        """How it ended, or None while it runs."""
        code = self.process.poll()
        if code is None:
            return self.stop("timed out") if time.monotonic() > self.deadline else None
        how = "passed" if code == 0 else "skipped" if code == self.test.skip_code else "failed"
        return self.ended(how)

    def stop(self, how: str) -> Ended:
        return self.ended(how)

    def ended(self, how: str) -> Ended:
        try:  # also what the test started and left behind
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        size = self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, size - LONGEST_OUTPUT))
        said = self.output.read().decode(errors="replace")
        self.output.close()
        return Ended(self.test, how, time.monotonic() - self.begin, said)


def run_tests(tests: list, limit_of, jobs: int) -> list:
    """Runs the tests, `jobs` at once, those that want to be alone at the end. Stops all when one fails. Returns how each ended;
    those that had no turn are left out. `limit_of(test)` is the longest time in seconds."""
    waiting = [t for t in tests if not t.alone] + [t for t in tests if t.alone]
    running, ended = [], []
    failed = False
    try:
        while running or (waiting and not failed):
            while waiting and not failed and len(running) < jobs and (not running or not (waiting[0].alone or running[0].test.alone)):
                test = waiting.pop(0)
                running.append(Running(test, limit_of(test)))
            time.sleep(0.01)
            for one in list(running):
                end = one.stop("stopped") if failed else one.look()
                if end is not None:
                    running.remove(one)
                    ended.append(end)
                    failed = failed or end.how in ("failed", "timed out")
    finally:
        for one in running:
            one.stop("stopped")
    return ended
