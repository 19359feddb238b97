"""The Python client against a real daemon and worker: submit, watch, query, and every way a call can fail."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import grpc  # noqa: F401
    import google.protobuf  # noqa: F401
except ImportError as error:
    print(f"skipped: {error} for {sys.executable}; deploy/install.sh --python installs it")
    sys.exit(77)

import tuner

BIN = pathlib.Path(os.environ["TUNER_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["TUNER_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests/support"))
import unit_tests  # noqa: E402
JOB = {"op": "matmul", "a": [48, 64], "b": [64, 96], "search": "random",
       "measure": {"min_repeat_ms": 0.05, "repeats": 3}}


class Farm:
    """A daemon, and a worker on request, in a folder of their own."""

    def __init__(self, tls=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tuner-python-"))
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(self.folder), XDG_CACHE_HOME=str(self.folder / "cache"),
                        XDG_DATA_HOME=str(self.folder / "data"))
        self.started, self.serve_log, self.address = [], None, "127.0.0.1:0"
        self.scheme = "tls:" if tls else ""
        if tls:
            self.admin("ca")
        self.serve()

    def admin(self, *words):
        done = self.tuner("admin", *words, "--db", str(self.folder / "t.db"))
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def token(self, name, *more):
        """Its credentials file, which may be called from the next second on: next_second() waits for it."""
        path = self.folder / f"{name}.credentials"
        self.admin("token", name, "--address", self.address, "-o", str(path), *more)
        return path

    @staticmethod
    def next_second():
        """A running daemon looks once per second at what was given out and revoked."""
        time.sleep(1.1)

    def start(self, *words):
        path = self.folder / f"log{len(self.started)}"
        with open(path, "w") as log:
            process = subprocess.Popen([str(BIN / words[0]), *words[1:]], env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=subprocess.STDOUT)
        self.started.append(process)
        return process, path

    def serve(self):
        self.daemon, log = self.start("tuner", "serve", "--listen", self.scheme + self.address, "--db", str(self.folder / "t.db"))
        end = time.monotonic() + 30
        while True:
            text = log.read_text()
            found = re.search(r"listening on (?:tls:)?(\S+)", text)
            if found:
                self.address = found.group(1)
                return
            if time.monotonic() > end or self.daemon.poll() is not None:
                raise RuntimeError(f"the daemon does not listen: {text}")
            time.sleep(0.05)

    def worker(self):
        self.start("measure_server", "--daemon", self.address, "--worker-id", "w1", "--work-dir",
                   str(self.folder / "worker"))
        with tuner.Client(self.address) as client:
            end = time.monotonic() + 60
            while not client.workers():
                if time.monotonic() > end:
                    raise RuntimeError("the worker does not come")
                time.sleep(0.1)

    def tuner(self, *words):
        return subprocess.run([str(BIN / "tuner"), *words], env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)

    def close(self):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)


class WithFarm(unittest.TestCase):
    worker = False

    @classmethod
    def setUpClass(cls):
        cls.farm = Farm()
        cls.addClassCleanup(cls.farm.close)
        if cls.worker:
            cls.farm.worker()

    def setUp(self):
        self.client = tuner.Client(self.farm.address, timeout_s=20)
        self.addCleanup(self.client.close)


class Tuning(WithFarm):
    worker = True

    def check_order(self, events):
        """In order, and none that is more than progress twice; but the last, which closes a watch."""
        self.assertEqual([e.seq for e in events], sorted(e.seq for e in events))
        kept = [e.seq for e in events[:-1] if e.progress is None]
        self.assertEqual(kept, sorted(set(kept)))

    def test_submit_watch_query_give_what_the_command_gives(self):
        path = self.farm.folder / "job.json"
        path.write_text(json.dumps(JOB))
        jobs = self.client.submit(path, trials=12, seed=3)
        self.assertEqual(len(jobs), 1)
        self.assertFalse(jobs[0].already_finished)
        self.assertRegex(jobs[0].tasks[0].workload, r"^v1 matmul b=1 m=48 n=96 k=64 ")
        self.assertTrue(jobs[0].tasks[0].target.startswith("llvm -mcpu="), "cpu is the CPU of the worker")
        events = []
        self.client.wait(jobs[0], timeout_s=180, on_event=events.append)
        self.assertEqual(events[-1].state, "finished")
        done = [e.progress.trials_done for e in events if e.progress]
        self.assertEqual(done[-1], 12)
        self.assertEqual(done, sorted(done))
        self.check_order(events)
        tuned = [e.answer for e in events if e.answer]
        self.assertEqual(len(tuned), 1)

        answer, = self.client.query(path)
        self.assertTrue(answer.found)
        self.assertEqual(answer.kind, "exact")
        self.assertEqual(answer.trial, tuned[0].trial)
        low, high = answer.time_interval_ns
        self.assertTrue(0 < low <= answer.time_ns <= high, answer)
        self.assertEqual(self.client.query(jobs[0].tasks), [answer])

        printed = self.farm.tuner("query", str(path), "--db", str(self.farm.folder / "t.db"), "--json")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn(answer.trial, printed.stdout)
        for name, value in answer.config.items():
            self.assertRegex(printed.stdout, rf'"{name}": {value}\b')

        again, = self.client.submit(path, trials=12, seed=3)
        self.assertTrue(again.already_finished)
        self.assertEqual(again.id, jobs[0].id)
        self.client.wait(again, timeout_s=1)
        more, = self.client.submit(path, trials=16, seed=3)
        self.assertTrue(more.continued)
        self.client.wait(more, timeout_s=180)
        self.assertEqual({j.id: j.state for j in self.client.jobs()}[more.id], "finished")
        self.assertEqual(self.client.workers()[0].id, "w1")

    def test_entries_that_are_measured_alike_are_one_job(self):
        other = dict(JOB, a=[16, 32], b=[32, 16])
        jobs = self.client.submit([JOB, other, dict(JOB, uses=4), dict(other, seed=9)], trials=6)
        self.assertEqual([len(j.tasks) for j in jobs], [2, 1])
        self.assertEqual(jobs[0].tasks[0].uses, 5)
        for job in jobs:
            self.client.wait(job, timeout_s=180)

    def test_a_task_with_cold_constants_is_asked_about_as_one(self):
        cold = dict(JOB, constant=["b"], measure=dict(JOB.get("measure", {}), constants="cold"))
        job, = self.client.submit(cold, trials=2, fresh=True)
        self.assertEqual(job.tasks[0].constants, "cold")
        self.client.wait(job, timeout_s=180)
        for asked in (cold, job.tasks[0]):
            answer, = self.client.query(asked)
            self.assertEqual(answer.kind, "exact", answer.note)

    def test_a_watch_goes_on_behind_a_daemon_that_was_restarted(self):
        job, = self.client.submit(dict(JOB, a=[40, 64]), trials=60, fresh=True)
        events, seen = [], threading.Event()

        def follow():
            with tuner.Client(self.farm.address) as client:
                for event in client.watch(job, timeout_s=240):
                    events.append(event)
                    if event.progress and event.progress.trials_done >= 3:
                        seen.set()

        thread = threading.Thread(target=follow)
        thread.start()
        self.assertTrue(seen.wait(120))
        self.farm.daemon.kill()
        self.farm.daemon.wait(timeout=20)
        self.farm.serve()
        thread.join(timeout=240)
        self.assertFalse(thread.is_alive())
        self.assertEqual(events[-1].state, "finished")
        self.check_order(events)

    def test_the_example_tunes_a_file(self):
        path = self.farm.folder / "example.json"
        path.write_text(json.dumps(dict(JOB, a=[24, 64])))
        ended = subprocess.run([sys.executable, str(SOURCE / "deploy/python/examples/tune.py"), str(path), "--trials", "4", "--daemon",
                                self.farm.address], capture_output=True, text=True, timeout=180)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"v1 matmul b=1 m=24 .*\n  exact: [0-9.]+ us, matmul")

    def test_a_kernel_tuned_by_a_farm_runs_here(self):
        try:
            import numpy
            import tuner._kernels  # noqa: F401
        except ImportError as error:
            self.skipTest(f"{error}: deploy/install.sh --python")
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            self.addCleanup(os.environ.__setitem__ if name in os.environ else os.environ.pop, name,
                            *([os.environ[name]] if name in os.environ else [None]))
            os.environ[name] = self.farm.env[name]
        job = {**{key: value for key, value in JOB.items() if key != "op"}, "a": [32, 64]}
        kernel = tuner.tune(JOB["op"], trials=4, daemon=self.farm.address, **job)
        a, b = tuner.zeros((32, 64)), tuner.zeros((64, 96))
        a[...], b[...] = numpy.arange(64), numpy.eye(64, 96)
        numpy.testing.assert_array_equal(kernel(a, b), a @ b)
        # It is the daemon's answer: no other database was asked.
        answer, = self.client.query({"op": JOB["op"], **job})
        self.assertEqual((kernel.answer.trial, kernel.answer.config), (answer.trial, answer.config))
        self.assertFalse((self.farm.folder / "data/tuner/tuner.db").exists())
        with self.assertRaises(tuner.InvalidRequest) as nobody:
            tuner.tune("softmax", rows=2, columns=4, trials=1, daemon="127.0.0.1:99999")
        self.assertIn("127.0.0.1:99999", str(nobody.exception))


class Failing(WithFarm):
    """Nobody measures here."""

    CUDA = dict(JOB, target="cuda -arch=sm_90")

    def test_a_wrong_job_file_is_refused_in_the_words_of_the_command(self):
        path = self.farm.folder / "wrong.json"
        path.write_text(json.dumps(dict(JOB, b=[63, 96])))
        with self.assertRaises(tuner.InvalidRequest) as caught:
            self.client.submit(path)
        said = self.farm.tuner("submit", str(path))
        self.assertEqual(said.returncode, 2)
        self.assertEqual(f"tuner: {caught.exception}", said.stderr.strip())
        with self.assertRaisesRegex(tuner.InvalidRequest, "search"):
            self.client.submit(self.CUDA, search="no-such")
        for field, value, allowed in (("trials", 5_000_000_000, "1 to 10000000"), ("trials", 0, "1 to 10000000"),
                                      ("trials", 1.5, "1 to 10000000"), ("seed", -1, "0 to 18446744073709551615"),
                                      ("seed", "x", "0 to 18446744073709551615")):
            with self.assertRaises(tuner.InvalidRequest) as refused:
                self.client.submit(self.CUDA, **{field: value})
            self.assertEqual(str(refused.exception), f"submit.{field}: expected an integer from {allowed}, found {value}")
        # The bounds are those of the daemon: its own words, for a number that no client looked at.
        request, = self.client._read(self.CUDA, "", tuner.client._Deadline(20))
        request.request_id, request.trials = "many", 10_000_001
        with self.assertRaises(tuner.InvalidRequest) as refused:
            self.client._call(self.client._jobs.Submit, request)
        self.assertEqual(str(refused.exception), "submit.trials: expected an integer from 1 to 10000000, found 10000001")
        with self.assertRaisesRegex(tuner.InvalidRequest, "cannot be read"):
            self.client.submit(self.farm.folder / "not-there.json")
        with self.assertRaises(TypeError):
            self.client.submit(7)

    def test_cpu_without_a_worker_says_what_to_start(self):
        with self.assertRaisesRegex(tuner.InvalidRequest, "no worker with one is connected.*measure_server"):
            self.client.submit(JOB)
        with self.assertRaisesRegex(tuner.InvalidRequest, "target: "):
            self.client.submit(JOB, target="riscv")

    def test_a_wait_ends_at_its_limit_and_the_job_can_be_cancelled(self):
        job, = self.client.submit(self.CUDA, trials=4)
        with self.assertRaisesRegex(tuner.DeadlineExceeded, f"^{job.id} is still .* after 0.5 s and goes on"):
            self.client.wait(job, timeout_s=0.5)
        self.assertEqual(self.client.cancel(job), "cancelled")
        with self.assertRaises(tuner.JobFailed) as caught:
            self.client.wait(job, timeout_s=20)
        self.assertEqual(caught.exception.state, "cancelled")

    def test_a_daemon_that_was_away_for_some_time_is_found_again(self):
        for away_s in (0.3, 2):
            self.client.workers()  # there is a connection
            self.farm.daemon.kill()
            self.farm.daemon.wait(timeout=20)
            again = threading.Timer(away_s, self.farm.serve)
            again.start()
            self.assertEqual(self.client.jobs(), self.client.jobs())  # within the time limit of a call
            again.join()

    def test_what_is_not_there_is_not_found(self):
        with self.assertRaises(tuner.NotFound):
            self.client.wait("j999", timeout_s=10)
        answer, = self.client.query(self.CUDA)
        self.assertFalse(answer.found)

    def test_no_daemon_is_unavailable_within_the_time_limit(self):
        with tuner.Client("127.0.0.1:1", timeout_s=0.6) as client:
            with self.assertRaisesRegex(tuner.Unavailable, "tuner serve"):
                client.jobs()
        with self.assertRaises(ValueError):
            tuner.Client(timeout_s=0)

    def test_a_port_that_there_is_not_is_refused_before_anybody_dials(self):
        path = self.farm.folder / "moved.credentials"
        path.write_text("# moved\ndaemon: farm:65536\n")
        for daemon, words in (("127.0.0.1:99999", "127.0.0.1:99999: expected a port from 1 to 65535, found 99999"),
                              ("[::1]:0", "[::1]:0: expected a port from 1 to 65535, found 0"),
                              (path, f"{path}:2: farm:65536: expected a port from 1 to 65535, found 65536")):
            with self.assertRaises(tuner.InvalidRequest) as refused:
                tuner.Client(daemon)
            self.assertEqual(str(refused.exception), words)


class Secured(unittest.TestCase):
    """A daemon on TLS, as `tuner admin` makes it: callers are known by what their credentials file says."""

    @classmethod
    def setUpClass(cls):
        cls.farm = Farm(tls=True)
        cls.addClassCleanup(cls.farm.close)
        cls.alice, cls.bob, cls.carol = (cls.farm.token(name) for name in ("alice", "bob", "carol"))
        cls.clerk = cls.farm.token("clerk", "--roles", "work")
        cls.farm.next_second()

    def jobs(self, daemon, timeout_s=20):
        with tuner.Client(daemon, timeout_s=timeout_s) as client:
            return client.jobs()

    def changed(self, path, pattern, text):
        self.changes = getattr(self, "changes", 0) + 1
        other = path.with_suffix(f".changed{self.changes}")
        other.write_text(re.sub(pattern, text, path.read_text()))
        return other

    def test_a_credentials_file_is_called_as_an_address_is(self):
        with tuner.Client(self.alice, timeout_s=20) as client:
            self.assertEqual(client.jobs(), [])
            job = client.submit({"op": "matmul", "a": [8, 8], "b": [8, 8], "target": "llvm -mcpu=haswell"}, trials=4)[0]
            with self.assertRaises(tuner.DeadlineExceeded):
                client.wait(job, timeout_s=0.5)  # a watch has the token, too
            self.assertEqual(client.cancel(job), "cancelled")

    def test_who_may_not_is_denied_in_the_daemons_words(self):
        bob, clerk = self.bob, self.clerk
        ask = ": ask the farm's administrator for credentials (tuner admin token), and give them as --daemon FILE"
        for daemon, words in ((clerk, "clerk may work; List needs the role query"),
                              (self.changed(bob, "token: .*\n", ""), "this daemon answers nobody it does not know" + ask),
                              (self.changed(bob, "token: tuner_.", "token: tuner_x"),
                               "the token is not known here" + ask)):
            with self.assertRaises(tuner.Denied) as denied:
                self.jobs(daemon)
            self.assertEqual(str(denied.exception), words)
        self.jobs(bob)
        self.farm.admin("revoke", "bob")
        self.farm.next_second()
        with self.assertRaises(tuner.Denied) as denied:
            self.jobs(bob)
        self.assertEqual(str(denied.exception), "the token of bob was revoked" + ask)

    def test_what_is_no_credentials_file_is_told_at_once(self):
        carol = self.carol
        for daemon, words in ((self.farm.folder / "none", "none: cannot be read: No such file or directory. Expected "),
                              (self.changed(carol, "daemon:", "demon:"), ":2: expected `daemon:`, `token:`"),
                              (self.changed(carol, "-----END CERT.*\n", ""), "ends inside a PEM block")):
            with self.assertRaises(tuner.InvalidRequest) as wrong:
                tuner.Client(daemon)
            self.assertIn(words, str(wrong.exception))
            self.assertNotIn("tuner_", str(wrong.exception))
        with self.assertRaises(tuner.Unavailable) as away:
            self.jobs(self.changed(carol, "(daemon: .*):[0-9]+", r"\1:1"), timeout_s=1)
        self.assertIn("tuner serve --listen tls:127.0.0.1:1", str(away.exception))
        # Without the authority's certificate it would be plain text, which the daemon does not speak.
        with self.assertRaises(tuner.Unavailable) as plain:
            self.jobs(self.changed(carol, "-----BEGIN[^~]*-----\n", ""), timeout_s=1)
        self.assertIn("; who listens there may ask for TLS: give a credentials file, not an address. Is a daemon",
                      str(plain.exception))


class Package(unittest.TestCase):
    def test_building_it_makes_the_stubs(self):
        try:
            import setuptools  # noqa: F401
        except ImportError:
            self.skipTest("python3-setuptools is not installed: deploy/install.sh --python")
        with tempfile.TemporaryDirectory() as folder:
            built = subprocess.run([sys.executable, "setup.py", "-q", "build", "--build-base", folder + "/base",
                                    "--build-lib", folder + "/lib", "egg_info", "--egg-base", folder],
                                   cwd=SOURCE / "deploy/python", capture_output=True, text=True, timeout=120)
            self.assertEqual(built.returncode, 0, built.stderr)
            imported = subprocess.run([sys.executable, "-c", "import tuner; print(tuner.__file__)"], cwd=folder,
                                      env=dict(os.environ, PYTHONPATH=folder + "/lib"), capture_output=True, text=True,
                                      timeout=60)
            self.assertEqual(imported.stdout.strip(), folder + "/lib/tuner/__init__.py", imported.stderr)


if __name__ == "__main__":
    unit_tests.main()
