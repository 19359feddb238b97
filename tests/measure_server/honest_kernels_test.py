"""Honest candidates are judged right: 40 small tasks of every operator, type and layout that CPUs have, through daemon, builder, worker
and runner, and 20 packs through the CUDA driver of ours. What looks for cheats, doubts clocks and compares outputs must leave them alone.

TUNER_BIN_DIR: the folder of the programs. TUNER_FAKE_CUDA: the driver."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import unit_tests  # noqa: E402

BIN, FAKE_CUDA = pathlib.Path(os.environ["TUNER_BIN_DIR"]), os.environ["TUNER_FAKE_CUDA"]


def matmul(a: list, b: list, **more) -> dict:
    return {"op": "matmul", "a": a, "b": b} | more


def conv2d(data: list, weight: list, **more) -> dict:
    return {"op": "conv2d", "data": data, "weight": weight} | more


B, W = {"constant": ["b"]}, {"constant": ["weight"]}
CPU_TASKS = [
    matmul([33, 17], [17, 29]),
    matmul([64, 64], [64, 64], **B),
    matmul([1, 96], [96, 40], bias=True, activation="relu", **B),
    matmul([24, 48], [32, 48], transpose_b=True),
    matmul([40, 24], [40, 16], transpose_a=True),
    matmul([32, 16], [16, 24], batch=3),
    matmul([16, 32], [32, 16], accumulate=True),
    matmul([16, 32], [32, 16], residual=True, bias=True),
    matmul([8, 32], [32, 32], bias=True, scale=True, activation="gelu", **B),
    matmul([8, 32], [32, 32], activation={"clip": [0, 6]}),
    matmul([8, 32], [32, 32], activation={"leaky": 0.1}),
    matmul([8, 32], [32, 32], activation="silu"),
    matmul([32, 64], [64, 32], dtype="bfloat16", **B),
    matmul([32, 64], [64, 32], dtype="bfloat16", out_dtype="bfloat16"),
    matmul([32, 64], [64, 32], dtype="float16", out_dtype="float16"),
    matmul([32, 64], [64, 32], dtype="int8", **B),
    matmul([32, 64], [64, 32], dtype="int8", out_dtype="uint8", bias=True, **B),
    matmul([7, 130], [130, 9], dtype="int8", out_dtype="int8", **B),
    conv2d([1, 8, 10, 11], [16, 8, 3, 3], padding=1),
    conv2d([2, 16, 8, 8], [16, 16, 1, 1], **W),
    conv2d([1, 16, 14, 14], [16, 16, 3, 3], padding=1, bias=True, activation="relu", **W),
    conv2d([1, 6, 9, 9], [12, 3, 3, 3], groups=2),
    conv2d([1, 16, 12, 12], [16, 1, 3, 3], groups=16, padding=1),
    conv2d([1, 3, 17, 17], [8, 3, 5, 5], stride=2, padding=[2, 2]),
    conv2d([1, 4, 13, 13], [8, 4, 3, 3], dilation=2),
    conv2d([1, 16, 8, 8], [32, 16, 3, 3], layout="NCHW16c", padding=1, **W),
    conv2d([1, 8, 7, 7], [8, 8, 1, 1], residual=True, activation="relu"),
    conv2d([1, 8, 7, 7], [8, 8, 3, 3], padding=1, accumulate=True),
    conv2d([1, 16, 8, 8], [16, 16, 3, 3], dtype="bfloat16", padding=1),
    conv2d([1, 16, 8, 8], [16, 16, 3, 3], dtype="int8", padding=1, **W),
    conv2d([1, 16, 8, 8], [16, 1, 3, 3], dtype="int8", groups=16, padding=1, **W),
    conv2d([1, 16, 8, 8], [16, 16, 1, 1], dtype="int8", out_dtype="uint8", bias=True, **W),
    {"op": "pool2d", "data": [1, 8, 12, 12], "pooling": "max", "kernel": [3, 3], "stride": 2, "padding": 1},
    {"op": "pool2d", "data": [2, 8, 7, 7], "pooling": "average"},
    {"op": "softmax", "rows": 19, "columns": 77},
    {"op": "transpose", "rows": 45, "columns": 70},
    {"op": "layer_norm", "rows": 12, "columns": 96},
    {"op": "reduce", "rows": 15, "columns": 130, "reduction": "mean"},
    {"op": "elementwise", "rows": 24, "columns": 60, "scale": True, "bias": True, "activation": "hard_swish"},
    {"op": "program", "text": "in=float32[1,8,6,6],float32[8,1,1] Mul(0,1) Relu(2)"},
]
SEARCH = {"trials": 2, "search": "random", "stop_below": 0, "measure": {"min_repeat_ms": 0.1, "repeats": 3}}

# Types, storage, epilogues and layouts; the packs have small extents of the same ratios (tests/bench/rehearsal_pack.cpp).
PACK_TASKS = [
    matmul([a, b], [b, c], dtype=dtype, target="cuda -arch=sm_90", **more)
    for (a, b, c) in ((1024, 1024, 1024), (2048, 4096, 1024))
    for dtype, more in (
        ("float32", {}),
        ("float32", {"bias": True, "activation": "relu"}),
        ("float16", {}),
        ("float16", {"out_dtype": "float16", "bias": True}),
        ("bfloat16", {}),
        ("bfloat16", {"out_dtype": "bfloat16", "activation": "relu"}),
        ("int8", {}),
    )
] + [
    matmul([1024, 512], [256, 512], transpose_b=True, target="cuda -arch=sm_90"),
    matmul([1024, 512], [512, 256], batch=4, dtype="float16", target="cuda -arch=sm_90"),
    conv2d([1, 64, 56, 56], [64, 64, 3, 3], padding=1, target="cuda -arch=sm_90"),
    conv2d([1, 64, 56, 56], [128, 64, 1, 1], stride=2, bias=True, activation="relu", target="cuda -arch=sm_90"),
    conv2d([1, 64, 56, 56], [64, 64, 3, 3], padding=1, layout="NHWC", dtype="float16", target="cuda -arch=sm_90"),
    {"op": "transpose", "rows": 1024, "columns": 1024, "target": "cuda -arch=sm_90"},
]


class HonestKernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder.name, XDG_CACHE_HOME=folder.name + "/cache",
                                XDG_DATA_HOME=folder.name + "/data")

    def run_program(self, *words, **environment) -> str:
        ran = subprocess.run(list(map(str, words)), cwd=self.folder, env=self.environment | environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        return ran.stdout

    def lines_of(self, name: str) -> list:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def test_forty_tasks_of_a_cpu(self):
        self.assertEqual(len(CPU_TASKS), 40)
        (self.folder / "jobs.json").write_text(json.dumps([task | SEARCH for task in CPU_TASKS]))
        said = self.run_program(BIN / "tuner", "submit", "jobs.json", "--db", "t.db")
        self.run_program(BIN / "tuner", "records", "export", "--db", "t.db", "-o", "records.jsonl")
        rows = self.lines_of("records.jsonl")
        trials = [row for row in rows if row["kind"] == "trial"]
        self.assertEqual(len({row["workload"] for row in trials}), 40, said)
        self.assertGreaterEqual(len({row["template"] for row in trials}), 12)
        for row in trials:
            self.assertEqual(row["outcome"], "ok", row)
            self.assertEqual(row.get("attempt", 1), 1, row)
            self.assertLessEqual(row.get("max_error", 0), 1, row)
        # A race may say that the machine is too disturbed, but nobody leaves it.
        races = [row for row in rows if row["kind"] == "race"]
        self.assertEqual(len(races), 40)
        for row in races:
            for word in ("crashed", "wrong", "add up"):
                self.assertNotIn(word, row.get("error", ""), row)

    def test_twenty_packs_of_a_gpu(self):
        self.assertEqual(len(PACK_TASKS), 20)
        for number, task in enumerate(PACK_TASKS):
            with self.subTest(task=task):
                (self.folder / "job.json").write_text(json.dumps(task))
                pack, results = f"{number}.pack", f"{number}.jsonl"
                self.run_program(BIN / "rehearsal_pack", "job.json", "-o", pack)
                said = self.run_program(BIN / "runner", "run-pack", pack, "-o", results, TUNER_LIBCUDA=FAKE_CUDA,
                                        TUNER_LIBNVML=FAKE_CUDA)
                rows = [row for row in self.lines_of(results) if "outcome" in row]
                self.assertEqual({row["candidate"] for row in rows}, {0, 1, 2}, said)
                for row in rows:
                    self.assertEqual(row["outcome"], "ok", row)
                    self.assertLessEqual(row["max_error"], 1, row)
                    self.assertEqual(row["message"], "", row)
                    truth = float(row["config"].partition("=")[2])  # "ns=7000", by the clock of that driver
                    for ns in row["run_ns"]:
                        self.assertAlmostEqual(ns, truth, delta=1, msg=str(row))


if __name__ == "__main__":
    unit_tests.main()
