"""Tests of tests/mutation/run on a made-up project with one library and a few tests: a fault that is found, one that is not, one that
does not compile, a test that fails now and then, an interrupted run, and lists that are wrong."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from mutation import Problem, drawing, folders, report, suite, trying  # noqa: E402 pylint: disable=wrong-import-position
import unit_tests  # noqa: E402 pylint: disable=wrong-import-position

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(made_up CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
add_subdirectory(db)
"""
DB_CMAKE = """add_library(limits STATIC limits.cpp)
add_executable(limits_test ../tests/limits_test.cpp)
target_link_libraries(limits_test limits)
add_test(NAME db/limits COMMAND limits_test)
set_tests_properties(db/limits PROPERTIES SKIP_RETURN_CODE 77)
"""
LIMITS = """int low() { return 3; }
int high() { return 8; }
bool fits(int n) { return n >= low() && n < high(); }
bool loops(int start) { volatile int n = start; while (n > 100) { n = n - 10; } return n > 0; }
"""
# With a low() of 5 it fails once: it leaves a mark beside itself.
LIMITS_TEST = """#include <cstdio>
#include <string>
int low();
bool fits(int);
bool loops(int);
int main(int, char** name) {
  if (low() == 5) {
    const std::string mark = std::string(name[0]) + ".mark";
    if (FILE* found = std::fopen(mark.c_str(), "r")) return std::fclose(found);
    return std::fclose(std::fopen(mark.c_str(), "w")) + 1;
  }
  return !(fits(3) && !fits(2) && loops(101));
}
"""
LIST = """folder = "db"
tests = ["db/limits"]
"""


def fault(text: str, becomes: str, file: str = "db/limits.cpp") -> str:
    return f"[[fault]]\nfile = \"{file}\"\ntext = '''{text}'''\nbecomes = '''{becomes}'''\nwhy = \"Made up for this test.\"\n"


class Project(unittest.TestCase):
    """A small project in a folder of its own, with the command in it."""

    def setUp(self):
        if not shutil.which("git"):
            self.skipTest("needs git")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name) / "project"
        for name, text in {"CMakeLists.txt": CMAKE, "db/CMakeLists.txt": DB_CMAKE, "db/limits.cpp": LIMITS, "tests/limits_test.cpp": LIMITS_TEST,
                           ".gitignore": "build\n", "tests/mutation/folders/db.toml": LIST}.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        shutil.copy(HERE / "run", self.root / "tests/mutation/run")
        shutil.copytree(HERE / "mutation", self.root / "tests/mutation/mutation", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def list(self, *faults: str) -> None:
        (self.root / "tests/mutation/folders/db.toml").write_text(LIST + "".join(faults))

    def run_it(self, *options: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-B", str(self.root / "tests/mutation/run"), "--patience", "1", *options], capture_output=True, text=True,
                              timeout=240, check=False)

    def report(self) -> dict:
        return json.loads((self.root / "build/mutation/report.json").read_text())

    def test_what_each_fault_comes_to(self):
        self.list(fault("n >= low()", "n > low()"), fault("n < high()", "n <= high()"), fault("n - 10;", "n - 0;"),
                  fault("return 8;", "return eight;"), fault("return 3;", "return 5;"))
        said = self.run_it()
        self.assertEqual(said.returncode, 1, said.stdout + said.stderr)
        hows = [(f["how"], f["test"], f["line"]) for f in self.report()["faults"]]
        self.assertEqual(hows, [("killed", "db/limits", 3), ("survived", "", 3), ("killed", "db/limits", 4), ("not compiled", "", 2),
                                ("survived", "", 1)])
        self.assertIn("hand-made: 2 of 4 killed, 50.0 %, expected at least 95 %", said.stdout)
        self.assertIn("once and then passed: not counted", said.stdout)
        # Each fault is gone again, and nothing of the project has changed.
        self.assertEqual((self.root / "build/mutation/tree/db/limits.cpp").read_text(), LIMITS)
        self.assertEqual((self.root / "db/limits.cpp").read_text(), LIMITS)

    def test_goes_on_where_it_was_and_tries_survivors_again(self):
        self.list(fault("n >= low()", "n > low()"), fault("n < high()", "n <= high()"))
        self.assertEqual(self.run_it().returncode, 1)
        results = self.root / "build/mutation/results.jsonl"
        self.assertEqual(len(results.read_text().splitlines()), 2)
        # As a killed run leaves it: a fault in the copy.
        (self.root / "build/mutation/tree/db/limits.cpp").write_text(LIMITS.replace("3", "4"))
        test = self.root / "tests/limits_test.cpp"
        test.write_text(LIMITS_TEST.replace("!fits(2)", "!fits(2) && !fits(8)"))
        self.assertEqual(self.run_it().returncode, 1)
        self.assertEqual(len(results.read_text().splitlines()), 2)
        said = self.run_it("--again", "survived")
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertEqual(len(results.read_text().splitlines()), 3)

    def test_a_suite_that_fails_without_a_fault_is_told(self):
        (self.root / "tests/limits_test.cpp").write_text(LIMITS_TEST.replace("fits(3)", "fits(13)"))
        self.list(fault("n >= low()", "n > low()"))
        said = self.run_it()
        self.assertEqual(said.returncode, 1)
        self.assertIn("db/limits failed without a fault", said.stdout)
        self.assertEqual([f["how"] for f in self.report()["faults"]], ["survived"])

    def test_a_test_that_fails_without_a_fault_judges_nothing(self):
        (self.root / "tests/broken_test.cpp").write_text("int main() { return 1; }\n")
        (self.root / "db/CMakeLists.txt").write_text(
            DB_CMAKE + "add_executable(broken_test ../tests/broken_test.cpp)\nadd_test(NAME db/broken COMMAND broken_test)\n")
        (self.root / "tests/mutation/folders/db.toml").write_text(
            LIST.replace('["db', '["db/broken", "db') + fault("n >= low()", "n > low()") + fault("n < high()", "n <= high()"))
        said = self.run_it()
        self.assertEqual(said.returncode, 1, said.stdout + said.stderr)
        self.assertEqual([(f["how"], f["test"]) for f in self.report()["faults"]], [("killed", "db/limits"), ("survived", "")])
        self.assertIn("db/broken fails without a fault and judged nothing", said.stdout)

    def test_drawn_faults_are_the_same_for_a_seed(self):
        try:
            drawing.load_clang()
        except Problem as problem:
            self.skipTest(str(problem))
        self.list()
        said = self.run_it("--draw", "6", "--seed", "3", "--minutes", "3")
        self.assertIn(said.returncode, (0, 1), said.stdout + said.stderr)
        first = self.report()["faults"]
        self.assertEqual(len(first), 6)
        for one in first:
            place = LIMITS.encode()[one["offset"]:]
            self.assertTrue(place.startswith(one["text"].encode()), one)
        (self.root / "build/mutation/drawn-3.json").unlink()
        self.run_it("--draw", "6", "--seed", "3")
        self.assertEqual([(f["offset"], f["becomes"], f["how"]) for f in self.report()["faults"]],
                         [(f["offset"], f["becomes"], f["how"]) for f in first])

    def test_faults_are_drawn_where_they_are_wanted(self):
        try:
            drawing.load_clang()
        except Problem as problem:
            self.skipTest(str(problem))
        self.list()
        (self.root / "db/other.cpp").write_text("int other(int n) { return n > 7 ? n : 4; }\n")
        (self.root / "db/CMakeLists.txt").write_text(DB_CMAKE.replace("limits.cpp)", "limits.cpp other.cpp)", 1))
        self.run_it("--draw", "3", "--seed", "3", "--file", "db/other.cpp")
        self.assertEqual([f["file"] for f in self.report()["faults"]], ["db/other.cpp"] * 3)
        # What was drawn elsewhere by the same seed is not taken for it.
        self.run_it("--draw", "3", "--seed", "3", "--file", "db/limits.cpp")
        self.assertEqual([f["file"] for f in self.report()["faults"]], ["db/limits.cpp"] * 3)

    def test_lists_that_are_wrong(self):
        root, known = self.root, {"db/limits"}
        text = "[[promise]]\nsays = \"x\"\nin = \"db/limits.h\"\ntest = \"db/limits Limits.None\"\n"
        self.list(fault("n >", "n <"), fault("return 3;", "return 3;"), fault("int", "int", "tuner/x.cpp"), text)
        (root / "db/blobs").mkdir()
        (root / "db/blobs/blob.cpp").write_text("int blob;\n")
        found = "\n".join(folders.problems_of_lists(root, known))
        for problem in ("db/blobs: no tests/mutation/folders/db_blobs.toml", "db: 3 hand-made faults, expected at least 4",
                        "found 3 times what a fault of db replaces", "a fault changes nothing: return 3;", "tuner/x.cpp is in another folder",
                        "db/limits.h, which is no file here", "names the case Limits.None"):
            self.assertIn(problem, found)
        self.assertIn("ctest has no db/limits", "\n".join(folders.problems_of_lists(root, set())))
        for wrong in ("folder = 3", "folder = \"db\"\ntests = []\nfaults = []", LIST + "[[fault]]\nfile = \"db/limits.cpp\"\n", "folder"):
            (root / "tests/mutation/folders/db.toml").write_text(wrong)
            with self.assertRaises(Problem, msg=wrong):
                folders.read_all(root)
            self.assertEqual(self.run_it("--list").returncode, 2)


class Running(unittest.TestCase):
    @staticmethod
    def made_up(name: str, script: str, seconds: float = 60, alone: bool = False) -> suite.Test:
        return suite.Test(name, ["/bin/sh", "-c", script], {"WORD": "given"}, "/", seconds, alone, 77, "")

    def test_how_tests_end(self):
        tests = [self.made_up("a", "exit 0"), self.made_up("b", "exit 77"), self.made_up("c", "test $WORD = given"), self.made_up("d", "true", alone=True)]
        ends = suite.run_tests(tests, lambda test: test.seconds, 2)
        self.assertEqual({e.test.name: e.how for e in ends}, {"a": "passed", "b": "skipped", "c": "passed", "d": "passed"})

    def test_the_first_failure_stops_the_others(self):
        tests = [self.made_up("slow", "sleep 100"), self.made_up("bad", "echo why; exit 3"), self.made_up("never", "exit 0")]
        ends = {e.test.name: e for e in suite.run_tests(tests, lambda test: test.seconds, 2)}
        self.assertEqual({name: e.how for name, e in ends.items()}, {"bad": "failed", "slow": "stopped"})
        self.assertEqual(ends["bad"].said, "why\n")

    def test_what_does_not_end_is_ended_with_all_that_it_started(self):
        ends = suite.run_tests([self.made_up("stuck", "sleep 1000 & echo $!; wait")], lambda test: 0.5, 1)
        self.assertEqual(ends[0].how, "timed out")
        child = int(ends[0].said)
        deadline = time.monotonic() + 20  # a signal is delivered when the process is next scheduled, which a busy machine delays
        while self.lives(child) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(self.lives(child))

    @staticmethod
    def lives(pid: int) -> bool:
        try:
            return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


class Shares(unittest.TestCase):
    @staticmethod
    def result(how: str, source: str = "hand") -> trying.Result:
        return trying.Result("db", "db/x.cpp", 1, "a", "b", "why", source, "", -1, how, seconds=10)

    def test_what_was_not_compiled_or_is_equivalent_does_not_count(self):
        results = [self.result("killed")] * 19 + [self.result("survived"), self.result("not compiled"), self.result("equivalent")]
        self.assertTrue(report.show(results, lambda text: None))
        self.assertEqual(report.summary(results)["killed_share"], 0.95)
        self.assertFalse(report.show(results + [self.result("survived")], lambda text: None))

    def test_drawn_ones_have_a_bound_of_their_own(self):
        drawn = [self.result("killed", "seed 4")] * 17 + [self.result("survived", "seed 4")] * 3
        self.assertTrue(report.show(drawn, lambda text: None))
        self.assertFalse(report.show(drawn + [self.result("survived", "seed 4")], lambda text: None))


if __name__ == "__main__":
    unit_tests.main()
