"""deploy/figures.py --summarise: raw results of each program become runs of a summary, with the figures that
the program printed.

Expected figures come from Python's statistics module and by hand, not from bench_figures."""

import copy
import json
import pathlib
import statistics
import tempfile
import unittest

from figures_cases import figures, raw_cpu_result

import unit_tests
from bench_figures import judge, raw_results, rounding, summaries
from bench_figures.problems import Problem

SAID = {"date": "", "command": "bench_cpu --set net", "busy": False, "note": "", "set": ""}


def lower_quartile(samples: list) -> float:
    return statistics.quantiles(samples, n=4, method="inclusive")[0]


def with_groups(raw: dict) -> dict:
    """The result with the groups that bench_cpu would print."""
    ratios = {}
    for shape in raw["shapes"]:
        times = {
            c["name"]: lower_quartile(c["ns"]) for c in shape["contestants"] if c["kind"] in ("ours", "peer")
        }
        ours = times.pop("ours")
        ratios[shape["name"]] = min(times.values()) / ours
    worst = min(ratios, key=ratios.get)
    mean = statistics.geometric_mean(ratios.values())
    raw["groups"] = [
        {
            "group": "some",
            "shapes": len(ratios),
            "geometric_mean": mean,
            "worst": ratios[worst],
            "worst_shape": worst,
            "direct_geometric_mean": mean,
            "direct_worst": ratios[worst],
            "direct_worst_shape": worst,
        }
    ]
    return raw


def gpu_result() -> dict:
    workload = "v1 matmul b=1 m=64 n=32 k=16 ta=0 tb=1 bias=0 act=none dtype=bfloat16 const=none"

    def timed(ns):
        return {"ns": ns, "time_ns": {"low": min(ns), "median": statistics.median(ns), "high": max(ns)}}

    task = {
        "workload": workload,
        "template": "matmul_cuda",
        "config": "a=1",
        "share_of_ceiling": 0.75,
        "flops": 1,
        "bytes": 1,
        "ceiling": "16-bit tensor peak, measured",
        "states": ["1485 MHz, memory 3201 MHz, 46 C, 201 W, throttled by power cap"],
        "others": [
            {"template": "matmul_cuda", "config": f"a={i}", **timed([300.0 + i] * 3)} for i in range(2, 9)
        ],
        "peer": {
            "name": "cuBLASLt",
            "note": "best of 8; the product alone, without bias and activation",
            "ratio_to_ours": {"low": 0.7, "median": 0.8, "high": 0.9},
            **timed([160.0, 150.0, 170.0]),
        },
        **timed([200.0, 190.0, 300.0]),
    }
    return {
        "format": 1,
        "bench": "bench_gpu",
        "date": "2026-12-01T12:00:00Z",
        "rounds": 3,
        "batch_ns": 1e6,
        "operands": "warm",
        "device": "NVIDIA H200",
        "arch": "sm_90",
        "pack_about": "8 candidates",
        "cublas": "13.1.0",
        "cublaslt": "13.1.0",
        "cudnn": "",
        "stopped": "",
        "copy_gbps": 4271.2,
        "ffma_gflops": 65822.3,
        "tasks": [task],
        "geometric_means": {"cuBLASLt/ours": 0.8},
    }


def model_result() -> dict:
    peer = {
        "name": "ONNX Runtime as it comes",
        "ns": 3e6,
        "ratio": 1.5,
        "ratio_low": 1.4,
        "ratio_high": 1.6,
        "first_ms": 90.123,
        "peak_kb": 4000,
    }
    return {
        "model": "net.onnx",
        "threads": 1,
        "rounds": 40,
        "error": 1e-6,
        "ours_ns": 2e6,
        "sum_of_steps_ns": 1.9e6,
        "ours_once": {"first_ms": 10.5, "peak_kb": 1000},
        "peers": [peer, peer | {"name": "optimised", "ns": 2.5e6, "ratio": 1.25}],
        "chains": [{"name": "oneDNN chained, direct", "ns": 2.2e6, "ratio": 1.1}],
        "onnxruntime_over_ours": 1.25,
    }


class Summarise(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        (self.folder / "out").mkdir()
        self.addCleanup(self.scratch.cleanup)

    def summarise(self, raw, name: str, *words):
        path = self.folder / name
        path.write_text(json.dumps(raw))
        return figures("--summarise", path, "-o", self.folder / "out", *words)

    def read(self, name: str) -> dict:
        return json.loads((self.folder / "out" / name).read_text())

    def test_groups_of_random_results_are_those_that_the_program_printed(self):
        for seed in range(50):
            raw = with_groups(raw_cpu_result(seed, shapes=1 + seed % 7, rounds=5 + 4 * (seed % 10)))
            run = raw_results.run_of(raw, "r", SAID)
            summaries.check_run(run, f"seed {seed}")
            counted, printed = judge.groups_of(run)[0], raw["groups"][0]
            for key in ("geometric_mean", "worst"):
                self.assertEqual(f"{counted[key]:.3f}", f"{printed[key]:.3f}", f"seed {seed}")
            self.assertEqual(counted["worst_shape"], printed["worst_shape"])
            for shape, of in zip(run["shapes"], raw["shapes"]):
                times = {c["name"]: c["ns"] for c in of["contestants"]}
                self.assertEqual(
                    shape["rounds"], [round(p / o, 3) for p, o in zip(times[shape["peer"]], times["ours"])]
                )

    def test_a_result_whose_groups_do_not_follow_from_its_shapes_is_refused(self):
        raw = with_groups(raw_cpu_result(1))
        raw["groups"][0]["geometric_mean"] += 0.001
        ran = self.summarise(raw, "2026-12-01-zen5-x.json", "--machine", "zen5")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("geometric_mean: found", ran.stderr)
        self.assertEqual(list((self.folder / "out").iterdir()), [])

    def test_runs_come_together_by_machine_and_date_and_replace_themselves(self):
        first, second, other_day = (with_groups(raw_cpu_result(seed)) for seed in range(3))
        other_day["date"] = "2026-12-02T00:00:01Z"
        for raw, name in (
            (first, "2026-12-01-zen5-a.json"),
            (second, "2026-12-01-zen5-b.json"),
            (other_day, "c.json"),
        ):
            ran = self.summarise(raw, name, "--machine", "zen5", "--command", "bench_cpu --set net", "--busy")
            self.assertEqual(ran.returncode, 0, ran.stderr)
        both = self.read("2026-12-01-zen5.json")
        self.assertEqual(
            [(r["name"], r["busy"], r["command"]) for r in both["runs"]],
            [("a", True, "bench_cpu --set net"), ("b", True, "bench_cpu --set net")],
        )
        self.assertEqual(len(self.read("2026-12-02-zen5.json")["runs"]), 1)
        ran = self.summarise(first, "2026-12-01-zen5-a.json", "--machine", "zen5")
        self.assertIn("again run a of", ran.stdout)
        after = self.read("2026-12-01-zen5.json")
        self.assertEqual([r["busy"] for r in after["runs"]], [False, True])
        self.assertEqual(after["runs"][1], both["runs"][1])

    def test_a_result_that_is_refused_leaves_the_summary_as_it_was(self):
        self.summarise(with_groups(raw_cpu_result(0)), "a.json", "--machine", "zen5")
        before = self.read("2026-12-01-zen5.json")
        raw = with_groups(raw_cpu_result(1))
        del raw["shapes"][1]["contestants"][0]["time_ns"]
        ran = self.summarise(raw, "b.json", "--machine", "zen5")
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1))
        self.assertIn("found KeyError \"'time_ns'\" where bench_cpu writes a figure", ran.stderr)
        self.assertEqual(self.read("2026-12-01-zen5.json"), before)

    def test_one_line_per_shape(self):
        self.summarise(with_groups(raw_cpu_result(3, shapes=7)), "a.json", "--machine", "zen5")
        lines = (self.folder / "out" / "2026-12-01-zen5.json").read_text().split("\n")
        self.assertEqual(sum('"set":"net","name":"layer' in line for line in lines), 7)

    def test_format_1_has_other_names_for_the_same(self):
        raw = with_groups(raw_cpu_result(4))
        now = raw_results.run_of(raw, "r", SAID)
        old = copy.deepcopy(raw) | {"format": 1, "onednn": "2.6.3"}
        del old["libraries"]
        for shape in old["shapes"]:
            shape["share_of_fma_peak"] = shape.pop("share_of_peak")
        then = raw_results.run_of(old, "r", SAID)
        self.assertEqual(then["libraries"], ["oneDNN 2.6.3"])
        self.assertEqual(then["shapes"], now["shapes"])

    def test_winograd_beside_direct_and_the_time_of_one_thread_over_two(self):
        raw = with_groups(raw_cpu_result(5, shapes=1)) | {"threads": 2}
        shape = raw["shapes"][0]
        ours = shape["contestants"][0]

        def times(name, kind, algorithm, factor):
            at = {key: value * factor for key, value in ours["time_ns"].items()}
            return ours | {
                "name": name,
                "kind": kind,
                "algorithm": algorithm,
                "time_ns": at,
                "ns": [n * factor for n in ours["ns"]],
            }

        ours["algorithm"] = "winograd"
        shape["contestants"] += [
            times("ours direct", "ours", "direct", 2),
            times("ours, 1 thread", "peer as found", "direct", 3.8),
        ]
        shape["peak_times_one_core"] = 1.95
        ratio = shape["best_peer_over_ours"]["ratio"]
        shape["best_direct_peer_over_ours_direct"] = {
            "peer": shape["best_peer_over_ours"]["peer"],
            "ratio": {key: value / 2 for key, value in ratio.items()},
        }
        for key in ("direct_geometric_mean", "direct_worst"):
            raw["groups"][0][key] /= 2
        run = raw_results.run_of(raw, "r", SAID)
        summaries.check_run(run, "r")
        (of,) = run["shapes"]
        self.assertEqual((of["not_direct"], of["scaling"], of["peak_times_one_core"]), (["ours"], 1.9, 1.95))
        self.assertAlmostEqual(of["direct"][1], ratio["middle"] / 2, places=6)
        self.assertNotIn("ours, 1 thread", of["ns"])

    def test_bench_gpu(self):
        ran = self.summarise(
            gpu_result(), "2026-12-01-h200-wgmma.json", "--machine", "h200", "--set", "products"
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        (run,) = self.read("2026-12-01-h200.json")["runs"]
        (shape,) = run["shapes"]
        self.assertEqual(
            (run["name"], run["libraries"], run["ceilings"]),
            ("wgmma", ["cuBLAS 13.1.0", "cuBLASLt 13.1.0"], {"copy_gbps": 4271, "ffma_gflops": 65820}),
        )
        self.assertEqual(
            (shape["set"], shape["name"], shape["ns"], shape["ratio"], shape["rounds"]),
            (
                "products",
                "64x32x16 bfloat16 t",
                {"ours": 200, "cuBLASLt": 160},
                [0.8, 0.7, 0.9],
                [0.8, 0.789, 0.567],
            ),
        )
        self.assertEqual(
            (shape["clocks"], shape["peer_note"], shape["ceiling"]),
            (["1485 MHz, throttled by power cap"], "best of 8", "16-bit tensor peak"),
        )
        self.assertEqual(
            [config for config, _ in shape["others"]], [f"matmul_cuda a={i}" for i in range(2, 7)]
        )

    def test_two_tasks_of_one_name_keep_their_workloads(self):
        raw = gpu_result()
        raw["tasks"].append(
            raw["tasks"][0] | {"workload": raw["tasks"][0]["workload"] + " out_dtype=bfloat16"}
        )
        names = [shape["name"] for shape in raw_results.run_of(raw, "r", SAID)["shapes"]]
        self.assertEqual(names, [task["workload"] for task in raw["tasks"]])

    def test_bench_model_needs_a_date(self):
        ran = self.summarise(model_result(), "model_net.json", "--machine", "zen5")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--date says it", ran.stderr)
        ran = self.summarise(model_result(), "model_net.json", "--machine", "zen5", "--date", "2026-12-01")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        (model,) = self.read("2026-12-01-zen5.json")["runs"][0]["models"]
        self.assertEqual(
            (model["name"], model["ns"], [p["ratio"] for p in model["peers"]], model["chains"][0]["ratio"]),
            ("net", 2000000, [1.5, 1.25], 1.1),
        )

    def test_leave_one_out(self):
        way = {
            "fraction": 1.0,
            "ns": 500.0,
            "predicted": 0.93731,
            "low": 0.8,
            "high": 1.0,
            "config": "a=1",
            "from": "",
        }
        raw = [
            {
                "workload": "v1 conv2d",
                "ways": [way | {"name": name} for name in ("answer", "default", "product", "tuned")],
            }
        ]
        (layer,) = raw_results.run_of(raw, "r", SAID | {"date": "2026-12-01"})["layers"]
        self.assertEqual(
            layer,
            {
                "workload": "v1 conv2d",
                "ns": dict.fromkeys(("answer", "default", "product", "tuned"), 500),
                "answer": "a=1",
                "predicted": 0.9373,
                "interval": [0.8, 1.0],
            },
        )

    def test_what_is_no_result_is_a_line(self):
        for raw in (
            [],
            {},
            {"bench": "other"},
            [1],
            "text",
            {"bench": "bench_cpu", "date": "2026-12-01T00:00:00Z"},
            {"bench": "bench_gpu", "date": 5},
        ):
            with self.assertRaises(Problem) as caught:
                raw_results.run_of(raw, "r", SAID)
            self.assertNotIn("\n", str(caught.exception))

    def test_times_keep_seven_digits(self):
        for value in (3.141592653, 999.99996, 123456.789, 958379.25, 1234567.89, 9.87654321e9):
            self.assertLess(abs(rounding.ns(value) - value) / value, 5.1e-7)
        self.assertEqual([rounding.ns(v) for v in (958379.0, 1234567.89)], [958379, 1234568])


if __name__ == "__main__":
    unit_tests.main()
