#!/usr/bin/env python3
"""Is what a search publishes ever slower than what the database answered before it?

    tests/bench/answers_first.py DB [TASKS [SEED]]         # TUNER=path of tuner; default build/release/bin/tuner

DB knows other shapes of the operators below (some dozens of tuned tasks do); it is copied, not changed. Random small
tasks that it does not know are asked for (`tuner query`) and then tuned with 48 trials each. Printed of each: at which
place the answer's config was tried, its time in the race, the published time, and their ratio; then how many were
slower by more than 0.5 %. Exit status 1 if one was, or if an answer was not tried or not raced.
"""

import json
import math
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

TUNER = os.environ.get("TUNER", "build/release/bin/tuner")


def random_task(draw):
    kind = draw.choice(["matmul", "convolution", "depthwise", "pool", "softmax", "layer_norm"])
    size = draw.choice([9, 13, 15, 20, 26, 30])
    if kind == "matmul":
        m, n, k = (draw.choice([17, 24, 40, 56, 72, 100, 120, 150, 200, 250]) for _ in range(3))
        return {"op": "matmul", "a": [m, k], "b": [k, n]}
    if kind == "convolution":
        ic, oc, window = draw.choice([8, 12, 20, 40]), draw.choice([8, 24, 48]), draw.choice([1, 3])
        return {"op": "conv2d", "data": [1, ic, size, size], "weight": [oc, ic, window, window],
                "padding": window // 2, "constant": ["weight"]}
    if kind == "depthwise":
        c = draw.choice([12, 20, 40, 56, 72])
        return {"op": "conv2d", "data": [1, c, size, size], "weight": [c, 1, 3, 3], "padding": 1, "groups": c,
                "constant": ["weight"]}
    if kind == "pool":
        return {"op": "pool2d", "data": [1, draw.choice([12, 20, 40]), size, size], "kernel": [2, 2], "stride": 2,
                "pooling": "max"}
    return {"op": kind, "rows": draw.choice([10, 33, 70, 120]), "columns": draw.choice([90, 200, 330, 700])}


def lower_quartile(samples):
    """As compiler_core/base/statistics.h counts it: between the two nearest samples."""
    ordered, at = sorted(samples), (len(samples) - 1) / 4
    below = int(at)
    return ordered[below] + (at - below) * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])


def raced_ns(finalist):
    """The lower quartile in each process, trimmed mean over the processes: as the race itself counts."""
    processes = {}
    for process, ns in zip(finalist["process"], finalist["samples_ns"]):
        processes.setdefault(process, []).append(ns)
    logs = sorted(math.log(lower_quartile(samples)) for samples in processes.values())
    cut = len(logs) // 5
    kept = logs[cut:len(logs) - cut]
    return math.exp(sum(kept) / len(kept))


def judge(db, config, template):
    """Place of the config among the latest job's trials, its time in the race, the published time; None: there is none."""
    rows = sqlite3.connect(db)
    job = rows.execute("SELECT max(job_seq) FROM trial").fetchone()[0]
    trials = rows.execute("SELECT seq, config, template_name FROM trial WHERE job_seq = ? ORDER BY seq", (job,)).fetchall()
    places = [i for i, (_, c, t) in enumerate(trials) if c == config and t == template]
    race = rows.execute("SELECT finalists, time_ns FROM race WHERE job_seq = ?", (job,)).fetchone()
    if not places or race is None:
        return (places[0] + 1 if places else None), None, None
    of_answer = [f for f in json.loads(race[0]) if f["trial"] == trials[places[0]][0]]
    return places[0] + 1, (raced_ns(of_answer[0]) if of_answer else None), race[1]


def main():
    source, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    missing = slower = 0
    with tempfile.TemporaryDirectory() as folder:
        db, file = f"{folder}/answers.db", pathlib.Path(folder, "task.json")
        with sqlite3.connect(source) as from_db, sqlite3.connect(db) as to_db:
            from_db.backup(to_db)
        done = 0
        while done < count:
            task = random_task(draw) | {"target": "cpu"}
            file.write_text(json.dumps(task))
            asked = subprocess.run([TUNER, "query", file, "--db", db, "--json"], capture_output=True, text=True)
            answer = json.loads(asked.stdout) if asked.stdout else sys.exit(asked.stderr)
            answer = answer[0] if isinstance(answer, list) else answer
            if answer["answer"] in ("exact", "default"):
                continue
            subprocess.run([TUNER, "submit", file, "--db", db, "--trials", "48"], check=True, capture_output=True)
            done += 1
            config = " ".join(f"{k}={v}" for k, v in sorted(answer["config"].items()))
            place, before, published = judge(db, config, answer["template"])
            if before is None:
                missing += 1
                print(f"{done:3} {answer['answer']:11} place {place}: not raced  {json.dumps(task)}", flush=True)
                continue
            slower += published > 1.005 * before
            print(f"{done:3} {answer['answer']:11} place {place}: answer {before:.0f} ns, published {published:.0f} ns, "
                  f"ratio {published / before:.3f}  {json.dumps(task)}", flush=True)
    print(f"{count} tasks: {slower} slower than the answer before by more than 0.5 %, {missing} answers not tried or raced")
    sys.exit(1 if slower or missing else 0)


if __name__ == "__main__":
    main()
