"""Trying one fault: placed, built, tested in stages, taken back."""

import dataclasses
import json
import pathlib
import time

from . import Problem, folders, suite, work_tree

STAGES = (3, 5, 8)  # tests built and run at a time, the likeliest first; then the rest at once
BUILD_SECONDS = 900


@dataclasses.dataclass
class Result:
    """`how`: killed, survived, not compiled, equivalent or too slow (the build took too long)."""

    folder: str
    file: str
    line: int
    text: str
    becomes: str
    why: str
    source: str
    kind: str
    offset: int
    how: str
    test: str = ""
    seconds: float = 0.0
    said: str = ""
    tree: str = ""

    def key(self) -> tuple:
        return (self.file, self.text, self.becomes, self.offset)


class Bench:
    """A work tree, its suite, and how long each test takes without a fault."""

    def __init__(self, tree: work_tree.WorkTree, lists: dict, jobs: int, patience: int, say):
        self.tree, self.lists, self.jobs, self.patience, self.say = tree, lists, jobs, patience, say
        self.fingerprint = tree.mirror()
        tree.configure()
        self.suite = suite.read_suite(tree.build)
        self.seconds_file = tree.build.parent / "seconds.json"
        self.seconds = self.known_seconds()
        self.set_aside = {}  # tests that fail without a fault, and what they say: they judge nothing

    def known_seconds(self) -> dict:
        try:
            known = json.loads(self.seconds_file.read_text())
            return known["seconds"] if known["tree"] == self.fingerprint else {}
        except (OSError, ValueError, KeyError):
            return {}

    def tests_of(self, fault: folders.Fault) -> list:
        """Those of its folder: the one that it names, then one that is called as the file is, then in the list's order."""
        names = self.lists[fault.folder].tests
        for name in names:
            if name not in self.suite:
                raise Problem(f"tests/mutation/folders: {fault.folder} names {name}, which ctest does not have")
        stem = pathlib.PurePath(fault.file).stem
        near = sorted(names, key=lambda name: (name != fault.test, name.rpartition("/")[2] != stem))
        return [self.suite[name] for name in near]

    def stages(self, tests: list) -> list:
        parts, begin = [], 0
        for size in STAGES:
            parts.append(tests[begin:begin + size])
            begin += size
        parts.append(tests[begin:])
        return [part for part in parts if part]

    def without_fault(self, tests: list) -> None:
        """Builds the tests and runs those that were not run in this state of the tree. Sets those aside that fail twice."""
        new = [test for test in tests if test.name not in self.seconds and test.name not in self.set_aside]
        if not new:
            return
        self.say(f"{len(new)} tests without a fault first")
        built, said = self.tree.make([target for test in new for target in test.targets()], 4 * BUILD_SECONDS)
        if not built:
            raise Problem(f"the tree does not build without a fault:\n{said}")
        left = list(new)
        while left:
            for end in suite.run_tests(left, lambda test: test.seconds, self.jobs):
                if end.how == "stopped":
                    continue
                left.remove(end.test)
                if end.how in ("failed", "timed out"):
                    end = suite.run_tests([end.test], lambda test: test.seconds, 1)[0]
                if end.how in ("failed", "timed out"):
                    self.say(f"{end.test.name} {end.how} without a fault and is set aside:\n{end.said}")
                    self.set_aside[end.test.name] = end.said
                else:
                    self.seconds[end.test.name] = end.seconds
        self.seconds_file.write_text(json.dumps({"tree": self.fingerprint, "seconds": self.seconds}))

    def limit_of(self, test: suite.Test) -> float:
        return min(test.seconds, self.patience + 10 * self.seconds.get(test.name, test.seconds))

    def try_fault(self, fault: folders.Fault) -> Result:
        tests = self.tests_of(fault)
        result = self.result(fault)
        for stage in self.stages(tests):
            self.without_fault(stage)
        tests = [test for test in tests if test.name not in self.set_aside]
        begin = time.monotonic()
        self.tree.place(fault)
        try:
            result.how, result.test, result.said = self.outcome(tests)
        finally:
            self.tree.take_back(fault)
        result.seconds = round(time.monotonic() - begin, 1)
        return result

    def outcome(self, tests: list) -> tuple[str, str, str]:
        for stage in self.stages(tests):
            built, said = self.tree.make([target for test in stage for target in test.targets()], BUILD_SECONDS)
            if not built:
                return ("too slow" if said == "timed out" else "not compiled"), "", said
            found = self.failing(stage)
            if found is not None:
                return "killed", found.test.name, found.said
        return "survived", "", ""

    def failing(self, tests: list) -> suite.Ended | None:
        """A test that fails twice, or None. One that fails now and then must not pass for one that found the fault."""
        left = list(tests)
        while left:
            for end in suite.run_tests(left, self.limit_of, self.jobs):
                if end.how == "stopped":
                    continue
                left.remove(end.test)
                if end.how in ("failed", "timed out"):
                    again = suite.run_tests([end.test], self.limit_of, 1)[0]
                    if again.how in ("failed", "timed out"):
                        return again
                    self.say(f"{end.test.name} {end.how} once and then passed: not counted")
        return None

    def result(self, fault: folders.Fault) -> Result:
        content = (self.tree.root / fault.file).read_bytes()
        offset = fault.offset if fault.offset >= 0 else content.find(fault.text.encode())
        return Result(fault.folder, fault.file, content[:offset].count(b"\n") + 1, fault.text, fault.becomes, fault.why, fault.source,
                      fault.kind, fault.offset, "", tree=self.fingerprint)
