"""Made-up results for the tests of deploy/figures.py, and a copy of the tree that it works on."""

import os
import pathlib
import random
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "deploy"), str(SOURCE / "tests/support")]
RESULTS = pathlib.Path("tests/bench/results")


def figures(*words, root: pathlib.Path = None, **environment) -> subprocess.CompletedProcess:
    of = ["--root", str(root)] if root else []
    return subprocess.run(
        [sys.executable, "-B", SOURCE / "deploy" / "figures.py", *map(str, words), *of],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )


def copy_of_the_tree(folder: pathlib.Path) -> pathlib.Path:
    """README.md, docs/*.md, tests/bench/RESULTS.md and the results, as they are committed."""
    (folder / RESULTS).mkdir(parents=True)
    (folder / "docs").mkdir()
    for page in ("README.md", "tests/bench/RESULTS.md"):
        shutil.copy(SOURCE / page, folder / page)
    for page in (SOURCE / "docs").glob("*.md"):
        shutil.copy(page, folder / "docs")
    for result in (SOURCE / RESULTS).glob("*.json"):
        shutil.copy(result, folder / RESULTS)
    return folder


def shape(name: str, ours: float, peers: dict, set_name: str = "net", **more) -> dict:
    """A shape of a summary: times in ns."""
    peer = min(peers, key=peers.get)
    ratio = round(peers[peer] / ours, 6)
    return {
        "set": set_name,
        "name": name,
        "group": "some",
        "workload": "v1 conv2d",
        "ns": {"ours": ours} | peers,
        "peer": peer,
        "ratio": [ratio, ratio, ratio],
        "rounds": [ratio] * 2,
        "share_of_peak": 0.5,
    } | more


def run(name: str, date: str, shapes: list, **more) -> dict:
    return {
        "bench": "bench_cpu",
        "name": name,
        "date": date,
        "command": f"bench_cpu {name}",
        "busy": False,
        "note": "",
        "threads": 1,
        "rounds": 2,
        "toolchain": "llvm",
        "libraries": ["fast 1.0"],
        "stopped": "",
        "shapes": shapes,
        "groups": [],
        "networks": [],
    } | more


def summary(date: str, runs: list, machine: str = "zen5") -> dict:
    return {"summary": 1, "date": date, "machine": machine, "runs": runs}


def _contestant(name: str, kind: str, samples: list, algorithm: str = "direct") -> dict:
    ordered = sorted(samples)
    quarter = ordered[len(ordered) // 4]  # of 4 n + 1 samples the lower quartile is one of them
    return {
        "name": name,
        "kind": kind,
        "ns": samples,
        "calls_a_batch": 1,
        "algorithm": algorithm,
        "detail": "some_cpu a=1",
        "time_ns": {"low": quarter, "middle": quarter, "high": quarter},
        "max_error_in_tolerances": 0.1,
    }


def raw_cpu_result(seed: int, shapes: int = 3, rounds: int = 9) -> dict:
    """What bench_cpu writes (format 2): random times. Its groups are left empty, for the test to fill."""
    draw = random.Random(seed)
    result = {
        "format": 2,
        "bench": "bench_cpu",
        "date": "2026-12-01T10:00:00Z",
        "cpu": "a CPU",
        "target": "llvm -threads=1",
        "toolchain": "llvm codegen 9",
        "libraries": ["fast 1.0"],
        "missing_peers": [],
        "threads": 1,
        "rounds": rounds,
        "clock": "CPU time of the thread",
        "batch_ns": 1e6,
        "quantile_of_rounds": 0.25,
        "operands": "warm",
        "bootstrap_seed": 1,
        "stopped": "",
        "shapes": [],
        "groups": [],
        "networks": [],
    }
    for i in range(shapes):

        def samples(ns):
            return [ns * draw.uniform(1, 1.3) for _ in range(rounds)]

        ours = _contestant("ours", "ours", samples(draw.uniform(1e3, 1e6)))
        peers = [
            _contestant(name, "peer", samples(ours["time_ns"]["middle"] * draw.uniform(0.8, 2)))
            for name in "ab"
        ]
        best = min(peers, key=lambda c: c["time_ns"]["middle"])
        ratio = best["time_ns"]["middle"] / ours["time_ns"]["middle"]
        against = {
            "peer": best["name"],
            "ratio": {"low": ratio * 0.99, "middle": ratio, "high": ratio * 1.01},
        }
        probe = {
            "name": "FMA peak of one core",
            "kind": "probe",
            "ns": [10.0] * rounds,
            "calls_a_batch": 1,
            "time_ns": {"low": 10, "middle": 10, "high": 10},
            "work_a_call": 2500,
        }
        result["shapes"].append(
            {
                "set": "net",
                "name": f"layer{i}",
                "group": "some",
                "uses": i + 1,
                "workload": "v1 matmul m=1",
                "flops": 1000,
                "bytes": 100,
                "level": "L2",
                "operand_sets": 1,
                "missing": [],
                "share_of_peak": 0.9,
                "share_of_read_bandwidth": 0.1,
                "best_peer_over_ours": against,
                "best_direct_peer_over_ours_direct": against,
                "contestants": [
                    ours,
                    *peers,
                    _contestant("a as found", "peer as found", samples(1.0)),
                    probe,
                ],
            }
        )
    return result
