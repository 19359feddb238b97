"""Kernels that cheat are refused or found to be wrong, with the word that stands in their first line, at every level of isolation that
this host has; honest ones are not. Each is judged by the command that a person types.

TUNER_BIN_DIR: the folder of the programs. TUNER_JUDGE: "few", a cheat of each kind; "all", the whole corpus; "honest", 200 honest kernels.
TUNER_JUDGE_PART: "0/4" judges every fourth of the 200, "1/4" those behind them, and so on."""

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import unit_tests  # noqa: E402

BIN, WHICH = pathlib.Path(os.environ["TUNER_BIN_DIR"]), os.environ.get("TUNER_JUDGE", "few")
CORPUS, EXAMPLES = SOURCE / "tests/examples/judge", SOURCE / "examples/own_kernels"
FEW = ["cache_by_all", "cache_by_every_64th", "works_where_poisoned", "half_precision_sums", "syscall_behind_marks", "thread_after_return",
       "writes_behind", "calls_reference"]
FEW_CUDA = ["cuda_cache_by_sample", "cuda_half_sums", "cuda_left_to_the_next_launch", "cuda_reads_beyond", "cuda_reads_the_clock",
            "cuda_works_where_poisoned", "cuda_writes_inputs"]
ALL_WORDS = {"right", "wrong", "crashed", "timed out", "not compiled", "refused", "right, not timed", "cannot tell"}
GPU, NVRTC = os.environ.get("TUNER_FAKE_CUDA", ""), os.environ.get("TUNER_FAKE_NVRTC", "")


def levels() -> list:
    """The levels of isolation that this host has, the lowest first."""
    probe = json.loads(subprocess.run([BIN / "runner", "--probe"], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout)
    names = ["none", "process", "strict"]
    return names[: names.index(probe["isolation"]) + 1]


def judged(file: pathlib.Path, job: pathlib.Path, *words, gpu: str = "") -> tuple:
    """The verdict as JSON, and how the command ended. With `gpu`, a folder, on the GPU for tests."""
    there = {"TUNER_LIBCUDA": GPU, "TUNER_LIBNVML": GPU, "TUNER_NVRTC": NVRTC, "TUNER_FAKE_CUDA_PROGRAMS": gpu} if gpu else {}
    ran = subprocess.run([BIN / "tuner", "kernel", "judge", file, "--job", job, "--json", *words], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=120, check=False, env=os.environ | there)
    if ran.returncode == 2 or not ran.stdout:
        raise AssertionError(f"{file.name}: exit code {ran.returncode}: {ran.stderr}")
    return json.loads(ran.stdout), ran.returncode


def promised(file: pathlib.Path) -> tuple:
    """The job file and the words of its first line: "// gemm: wrong or crashed"."""
    match = re.fullmatch(r"// (\w+): (.+)", file.read_text().splitlines()[0])
    return CORPUS / (match[1] + ".json"), match[2].split(" or ")


class Corpus(unittest.TestCase):
    def check(self, files: list, at_levels: list):
        for file in files:
            job, words = promised(file)
            self.assertLessEqual(set(words), ALL_WORDS - {"right", "cannot tell"}, file.name)
            for level in at_levels:
                with self.subTest(kernel=file.name, level=level):
                    verdict, code = judged(file, job, "--isolation", level)
                    self.assertIn(verdict["verdict"], words, verdict)
                    self.assertEqual(code, 1)
                    self.assertNotEqual(verdict["why"], "")
                    self.assertNotIn("ratio", verdict)
                    if verdict["verdict"] == "wrong" and "did not write" not in verdict["why"]:
                        self.assertEqual(len(verdict["difference"]["index"]), 2 if job.name == "gemm.json" else 1, verdict)
                        self.assertNotEqual(verdict["difference"]["found"], verdict["difference"]["expected"])

    def test_a_cheat_of_each_kind(self):
        found = [file for file in (CORPUS / "cheats").iterdir() if file.stem in FEW]
        self.assertEqual(len(found), len(FEW))
        self.check(sorted(found), levels()[-1:])

    @unittest.skipUnless(WHICH == "all", "the long suite judges all")
    def test_all_cheats(self):
        files = sorted(file for file in (CORPUS / "cheats").iterdir() if file.suffix != ".cu")
        self.assertGreaterEqual(len(files), 80)
        self.check(files, levels())


class Cuda(unittest.TestCase):
    """Kernels in CUDA: on the host, and on the GPU for tests where there is an NVRTC."""

    def setUp(self):
        probe = subprocess.run([BIN / "tuner", "show", CORPUS / "scale_cuda.json", "--as", "resources"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        if probe.returncode != 0:
            self.skipTest("nothing here reads a CUDA kernel's code: " + probe.stderr.strip())
        # A folder that a user may enter whom the kernel runs as.
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o755)
        self.addCleanup(self.folder.cleanup)

    def check(self, files: list):
        for file in files:
            job, words = promised(file)
            for words_of_command, gpu in ((["--on-host"], ""), ([], self.folder.name)):
                with self.subTest(kernel=file.name, level="GPU for tests" if gpu else "host"):
                    verdict, code = judged(file, job, *words_of_command, gpu=gpu)
                    self.assertIn(verdict["verdict"], words, verdict)
                    self.assertEqual(code, 1)
                    self.assertNotEqual(verdict["why"], "")
                    self.assertNotIn("ratio", verdict)

    def test_a_cheat_of_each_kind(self):
        found = [CORPUS / "cheats" / f"{name}.cu" for name in FEW_CUDA]
        self.check(found)

    @unittest.skipUnless(WHICH == "all", "the long suite judges all")
    def test_all_cheats(self):
        files = sorted((CORPUS / "cheats").glob("*.cu"))
        self.assertGreaterEqual(len(files), 28)
        self.check(files)

    def test_honest_kernels_on_the_host(self):
        for file in sorted((CORPUS / "honest").glob("*.cu")):
            with self.subTest(kernel=file.name):
                verdict, code = judged(file, promised(file)[0], "--on-host")
                self.assertEqual((verdict["verdict"], code), ("right, not timed", 0), verdict)

    @unittest.skipUnless(WHICH == "honest", "the long suite judges the examples, too")
    def test_configs_of_the_examples(self):
        draw = random.Random(54)
        for name in ("reduce_cuda", "transpose_cuda", "conv2d_cuda"):
            entry = json.loads((EXAMPLES / f"{name}.json").read_text())
            entry["sizes"] = {size: 5 if size == "rows" else 30 + len(size) for size in entry["sizes"]}
            for config in range(8):
                entry["default"] = {knob: draw.choice(values_of(values)) for knob, values in entry["knobs"].items()}
                if not holds(entry):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    for source in EXAMPLES.iterdir():
                        if source.suffix in (".c", ".cu"):
                            (pathlib.Path(folder) / source.name).write_bytes(source.read_bytes())
                    drawn = pathlib.Path(folder) / f"{name}.json"
                    drawn.write_text(json.dumps(entry))
                    for words, gpu in ((["--on-host"], ""), ([], self.folder.name if config == 0 else "")):
                        if not words and not gpu:
                            continue
                        with self.subTest(job=name, config=entry["default"], level="GPU for tests" if gpu else "host"):
                            verdict, code = judged(drawn.parent / entry["source"], drawn, *words, gpu=gpu)
                            self.assertEqual((verdict["verdict"], code), ("right" if gpu else "right, not timed", 0), verdict)


class Honest(unittest.TestCase):
    def check(self, file: pathlib.Path, job: pathlib.Path, *words):
        """Only a busy machine may keep the judge from calling it right."""
        with self.subTest(kernel=file.name, job=job.name, words=words):
            verdict, code = judged(file, job, *words)
            self.said[verdict["verdict"]] += 1
            self.assertIn(verdict["verdict"], ("right", "cannot tell"), verdict)
            if verdict["verdict"] == "cannot tell":
                self.assertRegex(verdict["why"], "the machine is too busy|device is busy|times differ from process to process")
                self.assertEqual(code, 1)
                return
            self.assertEqual(code, 0)
            self.assertLess(verdict["ratio_low"], verdict["ratio"])
            self.assertLess(verdict["ratio"], verdict["ratio_high"])
            self.assertGreaterEqual(verdict["processes"], 3)  # six, if the time of a duel does not end first

    def setUp(self):
        self.said = collections.Counter()

    def test_one_of_each_job(self):
        for name in ("includes_reference.c", "exp_by_table.c", "add_unrolled.cpp"):
            self.check(CORPUS / "honest" / name, promised(CORPUS / "honest" / name)[0])

    @unittest.skipUnless(WHICH == "honest", "the long suite judges 200")
    def test_two_hundred(self):
        part, parts = map(int, os.environ.get("TUNER_JUDGE_PART", "0/1").split("/"))
        ours = [(file, level) for file in sorted((CORPUS / "honest").iterdir()) if file.suffix != ".cu" for level in levels()]
        for file, level in ours[part::parts]:
            self.check(file, promised(file)[0], "--isolation", level)
        with tempfile.TemporaryDirectory() as folder:
            for source in EXAMPLES.iterdir():
                if source.suffix in (".c", ".cpp"):
                    (pathlib.Path(folder) / source.name).write_bytes(source.read_bytes())
            for name, entry in drawn_entries(200 - len(ours))[part::parts]:
                drawn = pathlib.Path(folder) / name
                drawn.write_text(json.dumps(entry))
                self.check(EXAMPLES / entry["source"], drawn)
        print(f"part {part} of {parts}: {self.said.total()} kernels, {dict(self.said)}")
        self.assertEqual(self.said.total(), len(range(part, len(ours), parts)) + len(range(part, 200 - len(ours), parts)))


def drawn_entries(count: int) -> list:
    """Configs of the examples for CPUs, by the names of their job files."""
    draw, entries = random.Random(54), []
    jobs = [EXAMPLES / f"{name}.json" for name in ("sgemm", "stencil", "histogram", "spmv")]
    while len(entries) < count:
        job = jobs[len(entries) % len(jobs)]
        entry = json.loads(job.read_text())
        entry["default"] = {name: draw.choice(values_of(values)) for name, values in entry["knobs"].items()}
        if holds(entry):
            entries.append((job.name, entry))
    return entries


def values_of(values) -> list:
    """A knob's values, from a list or a range."""
    if isinstance(values, list):
        return values
    if "powers_of" in values:
        powers = [values["powers_of"] ** n for n in range(40)]
        return [n for n in powers if values["from"] <= n <= values["to"]]
    return list(range(values["from"], values["to"] + 1, values.get("step", 1)))


def holds(entry: dict) -> bool:
    """Whether the default obeys the constraints, which are expressions of Python, too."""
    names = entry["sizes"] | entry["default"] | {"min": min, "max": max}
    return all(eval(text, {"__builtins__": {}}, names) for text in entry.get("constraints", []))  # noqa: S307


if __name__ == "__main__":
    unit_tests.main()
