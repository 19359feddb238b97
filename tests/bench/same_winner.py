#!/usr/bin/env python3
"""Does a task that is tuned again keep its answer, and is a slower one found out?

    tests/bench/same_winner.py again|planted|empty [ROUNDS]      # TUNER=path of tuner; default build/release/bin/tuner

    again    five small tasks, tuned ROUNDS (10) times in one database with seeds 1, 2, ...: how often the answer changed, and how
             certain each gain was, computed here from the race's samples
    planted  each task's answer is replaced by one that is some 5 % slower, raced and certified; a job of 32 trials follows. ROUNDS
             (20) jobs: how many answered with something faster
    empty    five small tasks, each tuned in ROUNDS (10) empty databases with seeds 1, 2, ...: different winners, and how far the
             published gains over the default lie apart

Stop everything else first. Exit status 1: an answer changed without a certain gain, or a planted one stayed.
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TUNER = os.environ.get("TUNER", "build/release/bin/tuner")
TASKS = {
    "matmul96": {"op": "matmul", "a": [96, 96], "b": [96, 96]},
    "matmul_tall": {"op": "matmul", "a": [200, 64], "b": [64, 48]},
    "conv": {"op": "conv2d", "data": [1, 32, 14, 14], "weight": [32, 32, 3, 3], "padding": 1, "constant": ["weight"]},
    "depthwise": {"op": "conv2d", "data": [1, 40, 20, 20], "weight": [40, 1, 3, 3], "padding": 1, "groups": 40,
                  "constant": ["weight"]},
    "softmax": {"op": "softmax", "rows": 64, "columns": 330},
}
TRIALS = "32"


def run(*words):
    done = subprocess.run([TUNER, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def tune(task, db, seed):
    run("submit", task, "--db", db, "--trials", TRIALS, "--stop-below", 0, "--seed", seed, "--fresh")


def answer(task, db):
    """The published answer: what `tuner query` says."""
    said = json.loads(run("query", task, "--db", db, "--json"))
    while isinstance(said, list) or "tasks" in said:
        said = (said if isinstance(said, list) else said["tasks"])[0]
    return said


def config_of(said):
    """Template and knobs, of an answer or of an exported line."""
    knobs = said["config"] if isinstance(said["config"], dict) else dict(word.split("=", 1) for word in said["config"].split())
    return said["template"], " ".join(f"{knob}={knobs[knob]}" for knob in sorted(knobs))


def races(db):
    """All races of a database, oldest first, with the config of each finalist."""
    lines = [json.loads(line) for line in run("records", "export", "--db", db).splitlines()]
    configs = {line["trial"]: config_of(line) for line in lines if line.get("kind") == "record"}
    return [(line, {f["trial"]: configs[f["trial"]] for f in line["finalists"] if f["trial"] in configs})
            for line in lines if line.get("kind") == "race"]


def lower_quartile(samples):
    ordered, at = sorted(samples), (len(samples) - 1) / 4
    below = int(at)
    return ordered[below] + (at - below) * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])


def by_process(finalist):
    samples = {}
    for process, ns in zip(finalist["process"], finalist["samples_ns"]):
        samples.setdefault(process, []).append(ns)
    return {process: math.log(lower_quartile(ns)) for process, ns in samples.items()}


def gain(race, slower, faster):
    """How much faster `faster` is, with the standard error of that, from the processes that both ran in."""
    a, b = ({f["trial"]: by_process(f) for f in race["finalists"]}[t] for t in (slower, faster))
    differences = [a[p] - b[p] for p in a if p in b]
    if len(differences) < 2:
        return (differences[0] if differences else 0.0), math.inf
    return statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(differences))


def again(rounds, folder):
    changes = uncertain = 0
    for name, task in TASKS.items():
        file, db = write(folder, name, task), folder / f"{name}.db"
        before, winners = None, []
        for seed in range(1, rounds + 1):
            tune(file, db, seed)
            now = answer(file, db)
            config = config_of(now)
            if before is not None and config != before:
                changes += 1
                race, configs = races(db)[-1]
                old = next((t for t, c in configs.items() if c == before), None)
                new = next(t for t, c in configs.items() if c == config)
                more, error = gain(race, old, new) if old else (0.0, math.inf)
                certain = more > 1.5 * error > 0
                uncertain += not certain
                print(f"  {name} round {seed}: {100 * (math.exp(more) - 1):+.1f} % (standard error {100 * error:.1f} %)"
                      f"{'' if certain else '  NOT CERTAIN'}", flush=True)
            before = config
            winners.append(config)
        print(f"{name}: {len(set(winners))} winners in {rounds} jobs", flush=True)
    print(f"answers changed {changes} times, {uncertain} without a certain gain")
    return uncertain == 0


def plant(file, db, folder):
    """A database that answers with a config some 5 % slower than the best of `db`: its lines, but of its race the slower one alone
    and the default. None: no finalist is."""
    race, _ = races(db)[-1]
    times = {f["trial"]: statistics.mean(by_process(f).values()) for f in race["finalists"]}
    fastest = min(times, key=times.get)
    # In the processes that both ran in, with a standard error of a per cent at most: what is planted is slower.
    more = {t: gain(race, t, fastest) for t in times if t != fastest}
    slower = {t: by for t, (by, error) in more.items() if 0.04 < by < 0.08 and error < 0.01}
    if not slower:
        return None
    chosen = min(slower, key=lambda t: abs(slower[t] - 0.05))
    lines = [json.loads(line) for line in run("records", "export", "--db", db).splitlines()]
    finalist = next(f for f in race["finalists"] if f["trial"] == chosen)
    ns = math.exp(times[chosen])
    out = folder / "planted.jsonl"
    with out.open("w") as to:
        for line in lines:
            if line.get("kind") == "race":
                line.update(winner=chosen, tied=[chosen], finalists=[finalist], time_ns=ns, time_low_ns=ns * 0.98,
                            time_high_ns=ns * 1.02, certified=True, uncertified_why="", default_trial="",
                            default_time_ns=0, stored_trial="", won_by="fastest", other_time_ns=0)
            to.write(json.dumps(line) + "\n")
    planted = folder / "planted.db"
    for old in folder.glob("planted.db*"):
        old.unlink()
    run("records", "import", out, "--db", planted)
    return planted, math.exp(slower[chosen])


def planted(rounds, folder):
    found = done = seed = 0
    while done < rounds and seed < 4 * rounds:
        seed += 1
        name = list(TASKS)[seed % len(TASKS)]
        file, db = write(folder, name, TASKS[name]), folder / f"{name}-{seed}.db"
        tune(file, db, seed)
        made = plant(file, db, folder)
        if made is None:
            continue
        before = answer(file, made[0])
        tune(file, made[0], 100 + seed)
        after = answer(file, made[0])
        replaced = config_of(before) != config_of(after)
        done += 1
        found += replaced
        print(f"  {name}: an answer {100 * (made[1] - 1):.1f} % slower was {'replaced' if replaced else 'KEPT'}"
              f" ({before['time_ns'] / after['time_ns']:.3f} times as fast now)", flush=True)
    print(f"{found} of {done} planted answers were replaced")
    return done >= rounds and found >= 0.95 * done


def empty(rounds, folder):
    for name, task in TASKS.items():
        file, winners, gains, certified = write(folder, name, task), {}, [], 0
        for seed in range(1, rounds + 1):
            db = folder / f"{name}-empty-{seed}.db"
            tune(file, db, seed)
            now = answer(file, db)
            key = config_of(now)
            winners[key] = winners.get(key, 0) + 1
            certified += bool(now.get("certified"))
            if now.get("certified") and now.get("default_time_ns", 0) > 0:
                gains.append(now["default_time_ns"] / now["time_ns"])
        apart = 100 * (max(gains) / min(gains) - 1) if gains else math.nan
        middle = statistics.median(gains) if gains else math.nan
        furthest = 100 * max((abs(g / middle - 1) for g in gains), default=math.nan)
        print(f"{name}: {len(winners)} winners in {rounds} databases ({', '.join(map(str, sorted(winners.values(), reverse=True)))}), "
              f"{certified} certified; gain {middle:.2f}, furthest {furthest:.1f} % from it, {apart:.1f} % apart", flush=True)
    return True


def write(folder, name, task):
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"name": name, "target": "cpu", **task}))
    return file


def main():
    modes = {"again": (again, 10), "planted": (planted, 20), "empty": (empty, 10)}
    if len(sys.argv) < 2 or sys.argv[1] not in modes or (len(sys.argv) > 2 and not sys.argv[2].isdigit()):
        print(__doc__, file=sys.stderr)
        return 2
    mode, rounds = modes[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        return 0 if mode(int(sys.argv[2]) if len(sys.argv) > 2 else rounds, pathlib.Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
