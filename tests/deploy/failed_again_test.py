"""What failed runs once more, alone: deploy/failed_again.py behind a real ctest."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import unit_tests  # noqa: E402

CTEST = os.environ["TUNER_CTEST"]
PASSES, FAILS = "true", "false"
# Fails where nobody ran it before.
PASSES_ALONE = "test -e ran.{0} || {{ touch ran.{0}; exit 1; }}"


class FailedAgain(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def run_all(self, **tests) -> None:
        lines = [f"add_test([=[a/{name}]=] /bin/sh -c [=[echo x >>runs.{name}; {script.format(name)}]=])" for name, script in tests.items()]
        (self.folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
        subprocess.run([CTEST, "--test-dir", self.folder], capture_output=True, timeout=60, check=False)

    def again(self) -> tuple:
        command = [sys.executable, "-B", SOURCE / "deploy/failed_again.py", self.folder, "--ctest", CTEST]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return said.returncode, [line for line in (said.stdout + said.stderr).split("\n") if line.startswith("failed_again: ")]

    def runs(self, name: str) -> int:
        return len((self.folder / f"runs.{name}").read_text().splitlines())

    def test_what_passes_alone_is_named_and_forgiven(self):
        self.run_all(good=PASSES, hurried=PASSES_ALONE)
        status, lines = self.again()
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1], "failed_again: a/hurried failed beside other tests and passed alone: it depends on the machine's load")
        self.assertEqual((self.runs("good"), self.runs("hurried")), (1, 2))

    def test_what_fails_twice_fails(self):
        self.run_all(hurried=PASSES_ALONE, wrong=FAILS, wrong_too=PASSES)
        status, lines = self.again()
        self.assertEqual(status, 8)
        self.assertEqual(lines[-1], "failed_again: a/wrong failed again, alone")
        self.assertEqual((self.runs("wrong"), self.runs("wrong_too")), (2, 1))

    def test_three_may_fail_by_chance_and_no_more(self):
        self.run_all(**{f"t{i}": PASSES_ALONE for i in range(3)})
        self.assertEqual(self.again()[0], 0)
        self.run_all(**{f"u{i}": PASSES_ALONE for i in range(4)})
        status, lines = self.again()
        self.assertEqual((status, lines), (8, ["failed_again: 4 tests failed; at most 3 are run again"]))
        self.assertEqual(self.runs("u0"), 1)

    def test_where_nothing_failed_it_is_no_excuse(self):
        self.run_all(good=PASSES)
        self.assertEqual(self.again()[0], 8)


unit_tests.main()
