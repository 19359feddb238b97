"""Search as a library: it proposes what `tuner submit` proposes, and recorded spaces are played."""

import csv
import gzip
import json
import math
import os
import pathlib
import sqlite3
import subprocess
import sys
import threading

import tuner
from package import BIN, QUICK, SOURCE, WithFolder
import unit_tests  # noqa: E402


def measured(config):
    """A rugged objective with failures, above 0."""
    if config["C"] == 3 and config["A"] > 40:
        return None
    bumps = 0.3 * (1 + math.sin(config["A"]))
    return 5 + abs(config["A"] - 33) / 8 + abs(config["B"] - 12) / 4 + config["C"] / 2 + bumps + (2 if config["ORDER"] == "rows" else 0)


KNOBS = {"A": range(1, 65), "B": {"from": 4, "to": 32, "step": 4}, "C": [0, 1, 3], "ORDER": ["rows", "columns", "blocks"]}
CONSTRAINTS = ["A * B <= 1024", "C > 0 or ORDER != 'rows'"]


class Spaces(WithFolder):
    def setUp(self):
        self.space = tuner.Space(KNOBS, constraints=CONSTRAINTS, default={"A": 8, "B": 8, "C": 1})

    def test_the_space_is_that_of_its_constraints(self):
        all_configs = self.space.configs()
        self.assertEqual(len(all_configs), len(self.space))
        expected = [(a, b, c, o) for a in range(1, 65) for b in range(4, 33, 4) for c in (0, 1, 3) for o in ("rows", "columns", "blocks")
                    if a * b <= 1024 and (c > 0 or o != "rows")]
        self.assertEqual(sorted((c["A"], c["B"], c["C"], c["ORDER"]) for c in all_configs), sorted(expected))
        self.assertEqual(self.space.default, {"A": 8, "B": 8, "C": 1, "ORDER": "rows"})
        self.assertIn({"A": 8, "B": 8, "C": 1, "ORDER": "rows"}, self.space)
        self.assertNotIn({"A": 64, "B": 32, "C": 1, "ORDER": "rows"}, self.space)
        self.assertNotIn({"A": 8}, self.space)

    def test_every_strategy_asks_each_config_once_and_begins_with_the_default(self):
        small = tuner.Space({"A": [4, 1, 2], "B": ["x", "y"]}, constraints=["A > 1 or B == 'x'"])
        self.assertEqual(small.default, {"A": 4, "B": "x"})
        for strategy in tuner.strategies():
            with self.subTest(strategy):
                search, seen = small.search(strategy, seed=3), []
                while True:
                    configs = search.ask(2)
                    if not configs:
                        break
                    seen += configs
                    search.tell_all([(c, c["A"] + 1) for c in configs])
                if strategy != "random":
                    self.assertEqual(seen[0], small.default)
                self.assertEqual(len(seen), len(small))
                self.assertEqual(len({tuple(sorted(c.items())) for c in seen}), len(small))
                self.assertEqual(search.best[1], 2)

    def test_the_same_seed_and_results_give_the_same_proposals(self):
        def play(seed):
            search, asked = self.space.search(seed=seed), []
            for _ in range(5):
                batch = search.ask(8)
                asked += batch
                search.tell_all([(c, measured(c)) for c in batch])
            return asked
        self.assertEqual(play(1), play(1))
        self.assertNotEqual(play(1), play(2))

    def test_it_finds_the_minimum(self):
        best = min(value for value in map(measured, self.space.configs()) if value is not None)
        config, value = self.space.search(seed=1).minimize(measured, 160, batch=8)
        self.assertEqual(value, measured(config))
        self.assertLess(value, 1.02 * best)

    def test_what_is_refused(self):
        def refused(call):
            return self.message(tuner.InvalidRequest, call)
        self.assertIn("A: expected at least one value", refused(lambda: tuner.Space({"A": []})))
        self.assertIn("A: expected integers, or words", refused(lambda: tuner.Space({"A": [1, "x"]})))
        self.assertIn("A: found a value twice", refused(lambda: tuner.Space({"A": [1, 1]})))
        self.assertIn('"powers_of"', refused(lambda: tuner.Space({"A": {"from": 1}})))
        self.assertIn("constraints[0]: column 5", refused(lambda: tuner.Space({"A": [1]}, constraints=["A < <"])))
        self.assertIn("unknown name NONE", refused(lambda: tuner.Space({"A": [1]}, constraints=["NONE < 3"])))
        self.assertIn("knobs: ", refused(lambda: tuner.Space({"A": [1]}, constraints=["A > 1"])))
        self.assertIn("there is no knob 'B'", refused(lambda: tuner.Space({"A": [1]}, default={"B": 1})))
        self.assertIn("no value of it", refused(lambda: tuner.Space({"A": [1]}, default={"A": 2})))
        search = self.space.search(seed=1)
        config = search.ask()[0]
        for value in (0, -1.0, math.nan, math.inf):
            self.assertIn("above 0", refused(lambda value=value: search.tell(config, value)))
        search.tell(config, 2)
        self.assertIn("was told before", refused(lambda: search.tell(config, 2)))
        self.assertIn("the knob A is missing", refused(lambda: search.tell({"B": 4}, 2)))
        self.assertIn("no value of the knob", refused(lambda: search.tell({**config, "A": 1000}, 2)))
        self.assertIn("a key that is no knob", refused(lambda: search.tell({**config, "Z": 1}, 2)))
        self.assertIn("expected 1 to", refused(lambda: search.ask(0)))
        self.assertIn("bayesian", refused(lambda: self.space.search("nonsense")))
        self.assertIn("seed: ", refused(lambda: self.space.search(seed=-1)))

    def test_threads(self):
        search, lock, seen = self.space.search(seed=1), threading.Lock(), []

        def work():
            for _ in range(10):
                config = search.ask()[0]
                with lock:
                    seen.append(tuple(sorted(config.items())))
                search.tell(config, measured(config))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        self.assertEqual(len(set(seen)), 40)


class Submitted(WithFolder):
    """A job's search, as its database tells it, against the same search asked and told here."""

    def test_it_proposes_what_submit_proposes(self):
        job = json.loads((SOURCE / "examples/own_kernels/stencil.json").read_text())
        # Small, so that trials are quick; with a constraint and words.
        job.update(sizes={"height": 64, "width": 64}, measure=QUICK["measure"], stop_below=0, trials=40)
        job["knobs"] = {"TILE_Y": [8, 1, 2, 4, 16, 32, 64], "TILE_X": {"from": 16, "to": 64, "step": 16}, "UNROLL": [1, 2, 4, 8],
                        "WIDTH": [128, 256, 512]}
        job["constraints"] = ["TILE_Y * TILE_X >= 64", "UNROLL <= TILE_Y"]
        job["default"] = {"TILE_Y": 8, "TILE_X": 64}
        # Each trial is compiled: the fast suite has one strategy, that of tuner submit, and python/search_all has three.
        others = (("xgb-genetic", 6), ("annealing", 7)) if os.environ.get("TUNER_TEST_SAMPLES") == "all" else ()
        for strategy, seed in (("bayesian", 5), *others):
            with self.subTest(strategy):
                db = self.folder / f"{strategy}.db"
                done = subprocess.run([str(BIN / "tuner"), "submit", "-", "--db", str(db), "--search", strategy, "--seed", str(seed)],
                                      input=json.dumps(job), cwd=SOURCE / "examples/own_kernels", capture_output=True, text=True,
                                      timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                space = tuner.Space(job["knobs"], constraints=job["constraints"], default=job["default"])
                self.check(db, space.search(strategy, seed=seed))

    def check(self, path, search):
        database = sqlite3.connect(path)
        self.addCleanup(database.close)
        trials = {seq: {name: int(value) for name, _, value in (word.partition("=") for word in config.split())}
                  for seq, config in database.execute("SELECT seq, config FROM trial")}
        records = database.execute("SELECT record_id, trial_seq, outcome, cut, time_ns FROM record WHERE terminal = 1 "
                                   "ORDER BY record_id").fetchall()
        told = compared = 0
        for asked, count, first, observed, donor in database.execute(
                "SELECT asked, count, first_trial_seq, observed_record_id, donor_record_id FROM proposal ORDER BY proposal_seq"):
            self.assertEqual(donor, 0)
            batch = [r for r in records if told < r[0] <= observed]
            told = max(told, observed)
            if batch:
                search.tell_all([(trials[seq], time_ns if outcome == "ok" else None, bool(cut))
                                 for _, seq, outcome, cut, time_ns in batch])
            if asked == 0:  # the database's answer, which no search proposes
                continue
            self.assertEqual(search.ask(asked), [trials[seq] for seq in range(first, first + count)])
            compared += count
        self.assertGreaterEqual(compared, 39)


class Recorded(WithFolder):
    def write(self):
        path = self.folder / "space.csv.gz"
        space = tuner.Space({"A": range(1, 17), "B": [1, 2, 4, 8]})
        with gzip.open(path, "wt", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["A", "B", "time_ms", "status"])
            for c in space.configs():
                works = c["A"] * c["B"] != 12
                writer.writerow([c["A"], c["B"], abs(c["A"] - 11) + abs(c["B"] - 4) + 1 if works else "", "ok" if works else "crashed"])
        return path

    def test_a_recorded_space_is_played(self):
        recorded = tuner.RecordedSpace(self.write())
        self.assertEqual((len(recorded), recorded.best_ns), (64, 1e6))
        self.assertEqual(recorded.measure({"A": 11, "B": 4}), 1e6)
        self.assertIsNone(recorded.measure({"A": 12, "B": 1}))
        shares = recorded.play(seed=1, trials=64, batch=4)
        self.assertEqual((len(shares), shares[-1]), (64, 1))
        self.assertEqual(shares, sorted(shares))
        self.assertEqual(shares, recorded.play(seed=1, trials=64, batch=4))

    def test_it_is_played_as_the_command_plays_it(self):
        path = self.write()
        done = subprocess.run([str(BIN / "tuner"), "study", "simulate", str(path), "--strategy", "bayesian", "--trials", "24", "--seeds",
                               "1", "--json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout
        self.assertIn("bayesian", text)

    def test_what_is_refused(self):
        path = self.folder / "bad.csv"
        path.write_text("A,time_ms,status\n1,x,ok\n")
        self.assertIn("bad.csv", self.message(tuner.InvalidRequest, lambda: tuner.RecordedSpace(path)))
        self.assertTrue(pathlib.Path(path).exists())


if __name__ == "__main__":
    unit_tests.main()
