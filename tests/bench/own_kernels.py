#!/usr/bin/env python3
"""How well and how fast are kernels tuned that users bring as source?

    tests/bench/own_kernels.py sweep [SEEDS]     # TUNER=path of tuner; default build/release/bin/tuner
    tests/bench/own_kernels.py rate [ROUNDS]

    sweep    measures every valid config of three kernels of examples/own_kernels, 1,000 or more each, then plays the default search
             SEEDS (20) times on what was recorded: how far behind the best of all configs the winner after 128 trials lies
    rate     trials a second of own kernels, before the race of the best, ROUNDS (3) times in turn with the two rates that bound it: a task of ours whose kernel
             takes as long, and the compiler alone, on the same configs and one core. Then a second job with the same configs

ONLY=NAME takes one kernel. Stop everything else first. Exit status 1: a median above 2 %, or a rate below 0.8 of the smaller bound.
"""

import itertools
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

TUNER = os.environ.get("TUNER", "build/release/bin/tuner")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "own_kernels"
# Fewer values than the examples have, so that a sweep takes minutes.
SWEPT = {
    "sgemm": {"WIDTH": [512]},
    "histogram": {"LEVEL": [3], "UNROLL": [1, 2, 3, 4, 6, 8, 12, 16]},
    "spmv": {"WIDTH": ["none", "512"]},
}
# A task of ours beside each, of about the same time on one core.
BESIDE = {
    "stencil": {"op": "conv2d", "data": [1, 16, 28, 28], "weight": [24, 16, 3, 3], "padding": 1, "constant": ["weight"]},
    "sgemm": {"op": "matmul", "a": [240, 256], "b": [256, 192]},
    "spmv": {"op": "matmul", "a": [160, 160], "b": [160, 160]},  # a softmax has fewer configs than TRIALS on some CPUs
}
TRIALS = 96


def tuner(*words, env=None):
    done = subprocess.run([TUNER, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=env)
    if done.returncode not in (0, 1):
        sys.exit(f"tuner {' '.join(map(str, words))}: {done.stdout.strip()}")
    return done.stdout


def job_of(name, folder, knobs=None):
    """The example's job, with other knobs, beside its sources in `folder`."""
    for file in EXAMPLES.glob(f"{name}*.c*"):
        (folder / file.name).write_text(file.read_text())
    job = json.loads((EXAMPLES / f"{name}.json").read_text())
    job["knobs"].update(knobs or {})
    path = folder / f"{name}.json"
    path.write_text(json.dumps(job))
    return path, job


def values_of(knob):
    if isinstance(knob, list):
        return knob
    if "powers_of" in knob:
        return [v for i in range(64) if knob["from"] <= (v := knob["powers_of"]**i) <= knob["to"]]
    return list(range(knob["from"], knob["to"] + 1, knob.get("step", 1)))


def valid_configs(job):
    """By Python, whose syntax constraints share: a second opinion on tuner's own count."""
    names = list(job["knobs"])
    all_values = itertools.product(*(values_of(job["knobs"][name]) for name in names))
    rules = [compile(rule, rule, "eval") for rule in job.get("constraints", [])]
    for values in all_values:
        config = dict(zip(names, values))
        if all(eval(rule, {"__builtins__": {}}, {**job["sizes"], **config}) for rule in rules):  # noqa: S307
            yield config


def sweep(seeds):
    late = False
    for name, knobs in SWEPT.items():
        if os.environ.get("ONLY", name) != name:
            continue
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work)
            path, job = job_of(name, folder, knobs)
            count = sum(1 for _ in valid_configs(job))
            if count < 1000:
                sys.exit(f"{name}: {count} configs, expected 1000")
            start = time.monotonic()
            said = tuner("submit", path, "--db", folder / "all.db", "--search", "grid", "--trials", "all", "--stop-below", 0)
            took = time.monotonic() - start
            table = folder / "space.csv.gz"
            tuner("records", "export", "--db", folder / "all.db", "--space", path, "-o", table)
            play = ["study", "simulate", table, "--strategy", "bayesian", "--trials", 128, "--seeds", seeds]
            played = tuner(*play)
            reached = json.loads(tuner(*play, "--json"))["results"][0]["median_percent_of_optimum"]["128"]
            certified = re.search(r"certified to \+- [0-9.]+ %", said)
            print(f"{name}: {count} valid configs swept in {took:.0f} s; {certified.group(0) if certified else said}")
            print(played, flush=True)
            print(tuner("verify", path, "--db", folder / "all.db", "--times"), flush=True)
            print(f"{name}: the winner after 128 trials, median of {seeds} seeds: {100 - reached:.2f} % behind the best of all")
            late |= reached < 98
    return late


def trials_per_second(path, work, seed, env):
    said = tuner("submit", path, "--db", work / "t.db", "--trials", TRIALS, "--seed", seed, "--stop-below", 0, "--search", "random",
                 "--fresh", env=env)
    found = re.search(rf"{TRIALS}/{TRIALS} trials.* ([0-9.]+) trials/s", said)  # before the race
    if not found:
        sys.exit(said)
    return float(found.group(1))


def compiles_per_second(job, folder, seed):
    """The compiler by itself: the same flags, the same sort of configs, one at a time."""
    configs = list(valid_configs(job))
    drawn = random.Random(seed).sample(configs, min(24, len(configs)))
    cxx = job.get("language", "c") == "c++"
    start = time.monotonic()
    for config in drawn:
        words = ["c++" if cxx else "cc", "-O2", "-fPIC", "-fvisibility=hidden"]
        words += [f"-D{knob}={value}" for knob, value in config.items()]
        words += [re.sub(r"\{(\w+)\}", lambda m: str(config[m.group(1)]), flag) for flag in job["flags"]]
        words += ["-shared", "-s", job["source"], "-o", "kernel.so", "-lm"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return len(drawn) / (time.monotonic() - start)


def rate(rounds):
    slow = False
    for name, beside in BESIDE.items():
        if os.environ.get("ONLY", name) != name:
            continue
        own, ours, alone, again = [], [], [], []
        for seed in range(1, rounds + 1):
            with tempfile.TemporaryDirectory() as work:
                folder = pathlib.Path(work)
                path, job = job_of(name, folder)
                other = folder / "ours.json"
                other.write_text(json.dumps(beside))
                # A cache of its own: what was compiled before does not count.
                env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
                facts = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tuner/shared/machine.json"
                if facts.exists():
                    (folder / "cache/tuner/shared").mkdir(parents=True)
                    (folder / "cache/tuner/shared/machine.json").write_bytes(facts.read_bytes())
                own.append(trials_per_second(path, folder, seed, env))
                ours.append(trials_per_second(other, folder, seed, env))
                alone.append(compiles_per_second(job, folder, seed))
                again.append(trials_per_second(path, folder, seed, env))
        bound = min(statistics.median(ours), statistics.median(alone))
        ratio = statistics.median(own) / bound
        slow |= ratio < 0.8
        print(f"{name}: {statistics.median(own):.1f} trials/s; a task of ours {statistics.median(ours):.1f}, the compiler alone "
              f"{statistics.median(alone):.1f}: {ratio:.2f} of the smaller; a second job {statistics.median(again):.1f}", flush=True)
    return slow


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ("sweep", "rate"):
        print(__doc__, file=sys.stderr)
        return 2
    number = int(sys.argv[2]) if len(sys.argv) == 3 else None
    return int(sweep(number or 20) if sys.argv[1] == "sweep" else rate(number or 3))


if __name__ == "__main__":
    sys.exit(main())
