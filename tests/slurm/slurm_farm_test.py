"""A farm of two workers under the real Slurm: brought up, preempted, its node lost and returned, scaled to none and back, while
ResNet-50's last layer is tuned. Then no trial is lost, none is doubled, none has a false verdict, and no worker's id was used twice.

    slurm_farm_test.py BIN
"""

import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, free_ports, lacking, wait_for  # noqa: E402

SKIPPED = 77
LAST_LAYER = {"op": "matmul", "a": [1, 2048], "b": [2048, 1000], "bias": True, "constant": ["b"], "target": "cpu", "trials": 96}
JOBS = "tuner-workers"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def say(text):
    print(f"{time.monotonic() - BEGUN:6.1f} s  {text}", flush=True)


class Farm:
    """The daemon, and tuner's commands."""

    def __init__(self, folder, bin_folder, cluster):
        self.folder, self.bin, self.cluster = folder, bin_folder, cluster
        self.env = dict(cluster.env, HOME=f"{folder}/home", XDG_RUNTIME_DIR=f"{folder}/home", XDG_CACHE_HOME=f"{folder}/home/cache",
                        TUNER_LOCK_DIR=f"{folder}/locks")
        for name in ("home", "locks", "nodes"):
            os.makedirs(f"{folder}/{name}")
        cluster.env["TUNER_LOCK_DIR"] = f"{folder}/locks"
        self.db = f"{folder}/farm.db"
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.daemon = None

    def tuner(self, *words, limit_s=120, may_fail=False):
        done = subprocess.run([f"{self.bin}/tuner", *words], env=self.env, cwd=self.folder, capture_output=True, text=True,
                              timeout=limit_s)
        if done.returncode != 0 and not may_fail:
            raise RuntimeError(f"tuner {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def slurm(self, act, *words, **how):
        return self.tuner("farm", "slurm", act, "--folder", f"{self.folder}/farm", *words, **how)

    def status(self):
        return self.slurm("status", "--daemon", "token")

    def start(self):
        self.tuner("admin", "ca", "--db", self.db)
        log = open(f"{self.folder}/serve.log", "ab")
        self.daemon = subprocess.Popen([f"{self.bin}/tuner", "serve", "--db", self.db, "--listen", f"tls:{self.address}"],
                                       env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        to = ("--db", self.db, "--address", self.address)
        self.tuner("admin", "worker", "nodes", "--fleet", *to, "-o", "nodes.credentials")
        self.tuner("admin", "token", "test", "--roles", "submit,query,admin", *to, "-o", "token")
        wait_for("the daemon", lambda: "ready" in self.tuner("health", "--daemon", "token", may_fail=True))
        with open(f"{self.folder}/last.json", "w") as file:
            json.dump(LAST_LAYER, file)

    def measuring(self, count):
        wait_for(f"{count} workers that measure", lambda: self.status().count("  measures, ") == count, limit_s=120, every_s=1)

    def stop(self):
        if self.daemon is not None:
            self.daemon.terminate()
            try:
                self.daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()


class Tuning(threading.Thread):
    """Tunes the layer again and again, each time with another seed, until told to end."""

    def __init__(self, farm):
        super().__init__(daemon=True)
        self.farm, self.enough, self.ended, self.failure = farm, threading.Event(), 0, None

    def once(self, seed):
        return self.farm.tuner("submit", "last.json", "--seed", str(seed), "--stop-below", "0", "--daemon", "token", limit_s=900)

    def run(self):
        try:
            while not self.enough.is_set():
                self.once(100 + self.ended)
                self.ended += 1
        except Exception as error:  # told by the main thread
            self.failure = error

    def end(self):
        self.enough.set()
        self.join(timeout=900)
        check(not self.is_alive(), "a job did not end within 15 minutes")
        if self.failure is not None:
            raise self.failure


def restarts(cluster):
    return sum(row[3] for row in cluster.tasks(JOBS).values())


def running(cluster):
    return {job: row for job, row in cluster.tasks(JOBS).items() if row[2] == "RUNNING"}


def both_run(cluster):
    def look():
        cluster.hurry(JOBS)
        return len(running(cluster)) == 2

    wait_for("both tasks run again", look, limit_s=180, every_s=1)


def preempt(cluster, times):
    for n in range(times):
        before = restarts(cluster)
        cluster.preempt("n1" if n % 2 == 0 else "n2")
        wait_for("a worker that starts again", lambda: restarts(cluster) > before, limit_s=120)
        both_run(cluster)
        if n == 0 or (n + 1) % 5 == 0:
            say(f"preempted {n + 1} times")


def lose_a_node(farm, cluster):
    job = next(job for job, row in running(cluster).items() if row[4] == "n2")
    task = running(cluster)[job]
    former = f"nodes.s{task[0]}-{task[1]}-{task[3]}"
    cluster.kill_node("n2")
    wait_for("Slurm misses n2", lambda: cluster.states()["n2"].startswith("down"), limit_s=120)
    text = wait_for("status tells what became of it",
                    lambda: (t := farm.status()) and "node n2 is lost" in t and f"worker {former} lives on" in t and t, limit_s=60)
    say("a node is lost, its worker lives on:\n" + "".join(f"            {line}\n" for line in text.splitlines()))
    cluster.start_node("n2")
    # As an operator would, after what status says.
    wait_for("n2 is back", lambda: cluster.states()["n2"].rstrip("*") in ("idle", "allocated", "drained", "draining", "mixed", "completing"),
             limit_s=120)
    if "drain" in cluster.states()["n2"]:
        text = farm.status()
        check("node n2 gets no work" in text, f"status says nothing of a drained node: {text}")
        say("n2 is drained: " + next(line for line in text.splitlines() if "node n2" in line))
        cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    farm.tuner("admin", "drain", former, "--daemon", "token", may_fail=True)
    wait_for("the former worker is gone", lambda: former + " lives on" not in farm.status(), limit_s=60)
    both_run(cluster)


def follow_the_queue(farm, cluster, tuning):
    """With no worker and a queue: workers come, the job ends, they go."""
    log = open(f"{farm.folder}/follow.log", "ab")
    follower = subprocess.Popen([f"{farm.bin}/tuner", "farm", "slurm", "scale", "--folder", f"{farm.folder}/farm", "--min", "0",
                                 "--max", "2", "--every", "1", "--daemon", "token"],
                                env=farm.env, cwd=farm.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    log.close()
    try:
        tuning.once(7)
        wait_for("the queue is empty, and so is the farm", lambda: not cluster.tasks(JOBS), limit_s=90)
    finally:
        follower.terminate()
        code = follower.wait(timeout=30)
    with open(f"{farm.folder}/follow.log") as file:
        text = file.read()
    check(code == 0, f"scale --min --max ended with {code}: {text}")
    check("2 workers submitted" in text or text.count("1 workers submitted") >= 2, f"no workers came: {text}")
    say("followed the queue: 0-2-0")


def judge(farm, jobs):
    """How many trials there are: each measured, once, and right."""
    farm.tuner("records", "export", "--db", farm.db, "-o", "records.jsonl")
    with open(f"{farm.folder}/records.jsonl") as file:
        lines = [json.loads(line) for line in file]
    trials = [line for line in lines if line.get("kind") == "trial"]
    measured = [line for line in trials if "outcome" in line]
    lost = {line["trial"] for line in trials} - {line["trial"] for line in measured if line["terminal"]}
    times = collections.Counter(line["trial"] for line in measured if line["terminal"])
    again = sum(not line["terminal"] for line in measured)
    outcomes = collections.Counter(line["outcome"] for line in measured)
    say(f"{len(times)} trials of {jobs} jobs, outcomes {dict(outcomes)}; {again} late results kept as extra samples")
    check(not lost, f"trials without a result: {sorted(lost)}")
    check(max(times.values()) == 1, "a trial was counted twice")
    check(set(outcomes) == {"ok"}, f"false verdicts: {dict(outcomes)}")
    return len(times)


def ids_of_workers(farm):
    begun = []
    for log in glob.glob(f"{farm.folder}/farm/workers/logs/*.log"):
        with open(log, errors="replace") as file:
            begun += re.findall(r"^worker (\S+) begins on (\S+)$", file.read(), re.MULTILINE)
    ids = [worker for worker, _ in begun]
    check(len(ids) == len(set(ids)), f"an id was used twice: {[i for i, n in collections.Counter(ids).items() if n > 1]}")
    check(all(re.fullmatch(r"nodes\.s\d+-\d+-\d+", i) for i in ids), f"ids: {ids}")
    return ids


def run(folder, bin_folder):
    preemptions = int(os.environ.get("TUNER_SLURM_PREEMPTIONS", "20"))
    cluster = Cluster(folder)
    farm = Farm(folder, bin_folder, cluster)
    try:
        cluster.start()
        farm.start()
        print(farm.slurm("up", "--credentials", "nodes.credentials", "--workers", "2", "--cores", "1", "--partition", "low",
                         "--work-root", f"{folder}/nodes"), end="")
        refused = farm.slurm("up", "--credentials", "nodes.credentials", "--workers", "1", may_fail=True)
        check("submitted" not in refused, "a second farm of that name came up")
        farm.measuring(2)
        say("up: two workers measure")
        tuning = Tuning(farm)
        tuning.start()
        preempt(cluster, preemptions)
        lose_a_node(farm, cluster)
        say("the node is back")
        farm.slurm("scale", "0")
        wait_for("no task is left", lambda: not cluster.tasks(JOBS), limit_s=90)
        farm.slurm("scale", "2")
        farm.measuring(2)
        say("scaled 2-0-2")
        tuning.end()
        farm.slurm("scale", "0")
        wait_for("no task is left", lambda: not cluster.tasks(JOBS), limit_s=90)
        follow_the_queue(farm, cluster, tuning)
        answer = json.loads(farm.tuner("query", "last.json", "--json", "--db", farm.db))
        check(json.dumps(answer).find('"certified": true') >= 0, f"the answer is not certified: {answer}")
        ids = ids_of_workers(farm)
        check(len(ids) >= preemptions + 5, f"{len(ids)} workers began, expected {preemptions + 5} and more")
        farm.slurm("down")
        trials = judge(farm, tuning.ended + 1)
        say(f"certified; {len(ids)} workers, no id twice; {trials} trials: 0 lost, 0 doubled, 0 false verdicts")
        print(farm.tuner("records", "check", "--db", farm.db), end="")
    finally:
        cluster.stop()
        farm.stop()


def main():
    if missing := lacking():
        print(f"skipped: not here: {' '.join(missing)}. Debian: apt-get install slurmctld slurmd slurm-client munge")
        return SKIPPED
    kept = os.environ.get("TUNER_SLURM_KEEP", "")
    folder = kept or tempfile.mkdtemp(prefix="tuner-slurm-test-")
    os.makedirs(folder, exist_ok=True)
    try:
        run(folder, os.path.abspath(sys.argv[1]))
    except Exception as error:
        print(f"FAILED: {type(error).__name__}: {error}")
        for log in sorted(glob.glob(f"{folder}/*.log") + glob.glob(f"{folder}/farm/workers/logs/*.log")):
            with open(log, errors="replace") as file:
                print(f"--- {log}\n{''.join(file.readlines()[-8:])}", end="")
        return 1
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


BEGUN = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())
