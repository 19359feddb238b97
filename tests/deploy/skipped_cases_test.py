"""What is skipped shows: a program whose cases were all skipped is Skipped in ctest, and deploy/skipped_cases.py lists each case with
its reason, also those of programs that passed or failed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SUPPORT = SOURCE / "tests/support"
sys.path.insert(0, str(SUPPORT))
import unit_tests  # noqa: E402

CTEST, SKIPPING = os.environ["TUNER_CTEST"], os.environ["TUNER_SKIPPING"]
UNIT_TESTS = """import sys, unittest
sys.path.insert(0, {support!r})
import unit_tests
class Some(unittest.TestCase):
    def test_skips(self): self.skipTest("no such\\n  module")
    def test_runs(self): pass
    def test_fails(self): self.fail("wrong")
    def test_part(self):
        with self.subTest(1): self.skipTest("one of two")
@unittest.skip("the whole class")
class Whole(unittest.TestCase):
    def test_one(self): self.fail("ran")
unit_tests.main()
"""


def run(*words) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60, check=False)


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def ctest(self, **tests) -> tuple:
        """ctest runs these commands; what it called each, the list that test.sh ends with, and ctest's exit status."""
        text = "".join(
            f"add_test([=[{name}]=] {' '.join(f'[=[{word}]=]' for word in command)})\n"
            f"set_tests_properties([=[{name}]=] PROPERTIES SKIP_RETURN_CODE 77)\n"
            for name, command in tests.items()
        )
        (self.folder / "CTestTestfile.cmake").write_text(text)
        said = run(CTEST, "--test-dir", self.folder, "-j", 4)
        words = {}
        for name in tests:
            line = next(line for line in said.stdout.split("\n") if f": {name} ." in line)
            words[name] = next(word for word in ("Passed", "Skipped", "Failed") if word in line)
        log = self.folder / "Testing/Temporary/LastTest.log"
        listed = run(sys.executable, "-B", SOURCE / "deploy/skipped_cases.py", log)
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        return words, listed.stdout, said.returncode


class Programs(InAFolder):
    def cases(self, pattern: str) -> list:
        return [SKIPPING, f"--gtest_filter={pattern}"]

    def test_ctest_calls_a_program_skipped_only_where_every_case_was(self):
        words, _, status = self.ctest(
            all=self.cases("Device.*:Package.*"),
            setup=self.cases("Each/*"),
            some=self.cases("Device.*:Plain.Runs"),
            none=self.cases("Plain.Runs"),
            fails=self.cases("Device.*:Plain.FailsAndSkips"),
            only=self.cases("Plain.FailsAndSkips"),
        )
        expected = {"all": "Skipped", "setup": "Skipped", "some": "Passed", "none": "Passed"}
        self.assertEqual(words, expected | {"fails": "Failed", "only": "Failed"})
        self.assertEqual(status, 8)

    def test_exit_statuses_are_told_apart(self):
        for pattern, status in (("Device.*", 77), ("*.Runs", 0), ("Plain.F*", 1), ("*IsNotHere:*Runs", 0), ("none", 0)):
            self.assertEqual(run(*self.cases(pattern)).returncode, status, pattern)

    def test_every_skipped_case_is_listed_with_its_reason_in_passed_and_failed_programs_too(self):
        _, listed, _ = self.ctest(
            passed=self.cases("Device.*:Package.*:Plain.Runs"), failed=self.cases("Device.SaysNothing:Plain.FailsAndSkips")
        )
        self.assertEqual(
            listed,
            "test: 3 cases skipped here:\n"
            "  failed: Device.SaysNothing: no reason given\n"
            "  passed: Device.IsNotHere: no device [31m here: looked at /dev/none\n"
            "  passed: Device.SaysNothing: no reason given\n"
            "test: 1 case skipped, which packages of Debian would run (deploy/test.sh --suite long installs them):\n"
            "  passed: Package.IsNotHere: no zsh here: deploy/install.sh --shells\n",
        )

    def test_cases_with_one_reason_share_a_line(self):
        _, listed, _ = self.ctest(setup=self.cases("Each/*"))
        self.assertEqual(
            listed,
            "test: 5 cases skipped here:\n"
            "  setup: Each/InSetUp.IsNotHere/0, Each/InSetUp.IsNotHere/1, Each/InSetUp.IsNotHere/2 and 2 more: told in SetUp\n",
        )

    def test_nothing_skipped_is_told(self):
        self.assertEqual(self.ctest(none=self.cases("Plain.Runs"))[1], "test: no case was skipped\n")

    def test_scripts_and_unit_tests_say_it_in_the_same_way(self):
        script = self.folder / "some.py"
        script.write_text(UNIT_TESTS.format(support=str(SUPPORT)))
        python = [sys.executable, "-B", script]
        words, listed, _ = self.ctest(
            script=["bash", "-c", "echo 'skipped: only root makes network namespaces'; exit 77"],
            half=["bash", "-c", "echo 'skipped: nothing was built: deploy/cross.sh aarch64'"],
            skips=[*python, "Some.test_skips", "Whole"],
            both=[*python, "Some.test_skips", "Some.test_runs"],
            part=[*python, "Some.test_part"],
            fails=[*python, "Some.test_skips", "Some.test_fails"],
        )
        passed = {"half": "Passed", "both": "Passed", "part": "Passed"}
        self.assertEqual(words, passed | {"script": "Skipped", "skips": "Skipped", "fails": "Failed"})
        for line in (
            "  script: only root makes network namespaces\n",
            "  half: nothing was built: deploy/cross.sh aarch64\n",
            "  skips: Some.test_skips: no such module\n",
            "  skips: Whole.test_one: the whole class\n",
            "  fails: Some.test_skips: no such module\n",
        ):
            self.assertIn(line, listed)


class TheList(InAFolder):
    def of(self, log: str) -> str:
        path = self.folder / "log"
        path.write_bytes(log.encode("utf-8", "surrogateescape"))
        return run(sys.executable, "-B", SOURCE / "deploy/skipped_cases.py", path).stdout

    def block(self, name: str, printed: str) -> str:
        return f" 1/10 Testing: {name}\n 1/10 Test: {name}\nOutput:\n-----\n{printed}\n<end of output>\n"

    def test_what_a_program_printed_is_bounded_and_cannot_move_the_cursor(self):
        long = "skipped: A.B: " + "x" * 5000
        listed = self.of(self.block("a", f"{long}\nskipped: A.C: \x1b[2Jgone\x07\u202e\udcff"))
        self.assertTrue(all(c.isprintable() or c == "\n" for c in listed), repr(listed))
        self.assertLess(max(map(len, listed.split("\n"))), 300)
        self.assertIn("\\x1b[2Jgone\\x07\\x202e", listed)
        many = self.of("".join(self.block(f"t{i:03}", "skipped: A.B: why") for i in range(500)))
        self.assertLess(many.count("\n"), 65)
        self.assertIn("test: 500 cases skipped here:", many)
        self.assertIn("  and 440 lines more", many)

    def test_only_what_tests_print_counts(self):
        self.assertEqual(self.of("Start testing\nEnd testing\n"), "", "tests were only listed")
        noise = "skipped: Out.Side: before\n" + self.block("a", "it skipped: A.B: no\n  skipped: A.C: no") + "skipped: x\n"
        self.assertEqual(self.of(noise), "test: no case was skipped\n")

    def test_a_log_that_is_not_there_is_told_in_one_line(self):
        for words in ((), ("a", "b"), (self.folder / "no\nlog",)):
            said = run(sys.executable, "-B", SOURCE / "deploy/skipped_cases.py", *words)
            self.assertEqual((said.returncode, said.stdout, said.stderr.count("\n")), (2, "", 1), said.stderr)


class ThisBuild(InAFolder):
    def test_every_test_may_say_that_it_was_skipped(self):
        # From a folder of its own: ctest would write a log into the build, where another ctest runs this test.
        (self.folder / "CTestTestfile.cmake").write_text(f"subdirs([=[{os.environ['TUNER_BUILD_DIR']}]=])\n")
        shown = run(CTEST, "--test-dir", self.folder, "--show-only=json-v1")
        tests = json.loads(shown.stdout)["tests"]
        self.assertGreater(len(tests), 300)
        without = [
            test["name"]
            for test in tests
            if not any(p["name"] == "SKIP_RETURN_CODE" and str(p["value"]) == "77" for p in test["properties"])
        ]
        self.assertEqual(without, [])


if __name__ == "__main__":
    unit_tests.main()
