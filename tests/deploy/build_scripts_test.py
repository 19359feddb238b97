"""deploy/lint_commands.py and deploy/build_cost.py, on build folders made up here: each source has a lint command of its own,
and a build that grew beyond a bound is found, and so is one that nobody can look at."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import unit_tests  # noqa: E402


def run(script: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-B", str(SOURCE / "deploy" / script), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name).resolve()


class LintCommands(InAFolder):
    def commands(self, *entries: dict) -> dict:
        (self.build / "compile_commands.json").write_text(json.dumps(entries))
        ended = run("lint_commands.py", str(self.build))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        written = json.loads((self.build / "lint/compile_commands.json").read_text())
        files = [entry["file"] for entry in written]
        self.assertEqual(len(files), len(set(files)))
        return {entry["file"]: entry["command"] for entry in written}

    def test_sources_that_are_compiled_together_have_a_command_each(self):
        together = self.build / "tuner/text/together/tuner_text-tuner_text-1.cpp"
        together.parent.mkdir(parents=True)
        together.write_text('#include "tuner/text/format.cpp"\n#include "tuner/text/facts.cpp"\n')
        alone = str(SOURCE / "tuner/cli/main.cpp")
        commands = self.commands(
            {"directory": str(self.build), "file": str(together), "command": f"c++ -O2 -c {together} -o one.o"},
            {"directory": str(self.build), "file": alone, "command": f"c++ -O2 -c {alone}"},
        )
        expected = {alone: f"c++ -O2 -c {alone}"}
        for name in ("format", "facts"):
            source = str(SOURCE / f"tuner/text/{name}.cpp")
            expected[source] = f"c++ -O2 -c {source} -o one.o"
        self.assertEqual(commands, expected)

    def test_a_precompiled_header_of_another_compiler_is_left_out(self):
        command = "c++ -O1 -Winvalid-pch -include /b/tests/support/CMakeFiles/test_headers.dir/cmake_pch.hxx -include own.h -c /t/one.cpp"
        self.assertEqual(self.commands({"file": "/t/one.cpp", "command": command}), {"/t/one.cpp": "c++ -O1 -include own.h -c /t/one.cpp"})

    def test_a_folder_of_that_name_in_the_tree_is_no_list_of_sources(self):
        source = "/elsewhere/together/main.cpp"
        self.assertEqual(self.commands({"file": source, "command": f"c++ {source}"}), {source: f"c++ {source}"})

    def test_a_folder_without_a_build_is_one_line(self):
        ended = run("lint_commands.py", str(self.build))
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"\Alint_commands: .*compile_commands\.json.*deploy/build\.sh.*\n\Z")


class BuildCost(InAFolder):
    def built(self, objects: dict) -> subprocess.CompletedProcess:
        """`objects`: path of an object -> lines of the one source that it is made of."""
        rules = ["rule copy", "  command = printf '$out: $in\\n' > $out.d && : > $out", "  depfile = $out.d", "  deps = gcc"]
        for number, (path, lines) in enumerate(objects.items()):
            (self.build / path).parent.mkdir(parents=True, exist_ok=True)
            (self.build / f"source{number}").write_bytes(b"\n" * lines)
            rules.append(f"build {path}: copy source{number}")
        (self.build / "build.ninja").write_text("\n".join(rules) + "\n")
        subprocess.run(["ninja", "-C", str(self.build)], capture_output=True, timeout=60, check=True)
        return run("build_cost.py", str(self.build))

    def test_lines_are_those_of_all_files_behind_an_object(self):
        ended = self.built({"tuner/a.o": 1000, "tests/b.o": 250_000})
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("2 compiled files; the longest 250,000 lines", ended.stdout)
        self.assertRegex(ended.stdout, r"(?m)^build cost: product +0\.0 million")
        self.assertRegex(ended.stdout, r"(?m)^build cost: tests +0\.2 million")

    def test_a_file_beyond_the_bound_is_named(self):
        ended = self.built({"tuner/small.o": 10, "tuner/daemon/large.o": 500_000})
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("tuner/daemon/large.o is made of 500,000 lines", ended.stdout)
        self.assertNotIn("small.o is", ended.stdout)

    def test_many_files_within_their_bound_may_be_too_much(self):
        ended = self.built({f"tuner/o{i}.o": 360_000 for i in range(110)})
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertNotIn("is made of", ended.stdout)
        self.assertRegex(ended.stdout, r"product +39\.6 million")

    def test_what_was_never_built_is_one_line(self):
        (self.build / "build.ninja").write_text("rule copy\n  command = cp $in $out\n")
        for folder in (self.build, self.build / "missing"):
            ended = run("build_cost.py", str(folder))
            self.assertEqual(ended.returncode, 2, folder)
            self.assertRegex(ended.stderr, rf"\Abuild_cost: {folder}: .+\n\Z")


if __name__ == "__main__":
    unit_tests.main()
