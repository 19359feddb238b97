"""Models on arrays, and the judge, from Python."""

import json
import os
import subprocess
import sys
import threading

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error} for {sys.executable}; deploy/install.sh --python installs it")
    sys.exit(77)

import tuner
from package import SOURCE, WithFolder
import unit_tests  # noqa: E402


class Models(WithFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.folder / "classifier.onnx"
        subprocess.run([sys.executable, str(SOURCE / "examples/model/make_model.py"), str(cls.file)], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        cls.net = tuner.compile(cls.file, name="net", tune=False, output=cls.folder / "net", db=cls.folder / "none.db")
        cls.image = tuner.empty((1, 3, 64, 64))
        cls.image[...] = numpy.random.default_rng(3).standard_normal((1, 3, 64, 64))

    def test_it_computes_what_the_command_computes(self):
        self.assertEqual([(o.name, o.role) for o in self.net.operands], [("image", "input"), ("scores", "output")])
        scores = self.net(self.image)
        self.assertEqual(scores.shape, (1, 10))
        self.assertAlmostEqual(float(scores.sum()), 1, places=5)
        numpy.save(self.folder / "image.npy", self.image)
        done = subprocess.run([os.path.join(os.environ["TUNER_BIN_DIR"], "tuner"), "run", str(self.folder / "net"), "--input",
                               f"image={self.folder}/image.npy", "--output", f"scores={self.folder}/scores.npy"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        numpy.testing.assert_array_equal(numpy.load(self.folder / "scores.npy"), scores)

    def test_out_and_names(self):
        out = self.net.empty("scores")
        self.assertIs(self.net(image=self.image, out=out), out)
        numpy.testing.assert_array_equal(out, self.net(self.image))
        self.assertIn("expected shape (1, 3, 64, 64)", self.message(tuner.ShapeError, lambda: self.net(tuner.zeros((1, 3, 64, 65)))))

    def test_threads_have_contexts_of_their_own(self):
        expected, wrong = self.net(self.image), []

        def work():
            for _ in range(20):
                if not numpy.array_equal(self.net(self.image), expected):
                    wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        self.assertEqual(wrong, [])

    def test_a_process_that_forks(self):
        threaded = tuner.load_model(self.folder / "net", threads=2)
        expected = threaded(self.image)
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if numpy.array_equal(threaded(self.image), expected) else 3)
            finally:
                os._exit(4)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        numpy.testing.assert_array_equal(threaded(self.image), expected)

    def test_a_folder_that_is_gone_goes_on(self):
        net = tuner.compile(self.file, tune=False, db=self.folder / "none.db")  # its library was temporary
        numpy.testing.assert_array_equal(net(self.image), self.net(self.image))

    def test_what_is_refused(self):
        self.assertIn("none.onnx", self.message(tuner.InvalidRequest, lambda: tuner.compile("none.onnx")))
        self.assertIn("plan.json", self.message(tuner.InvalidRequest, lambda: tuner.load_model(self.folder)))
        self.assertIn("0 to 4096", self.message(tuner.InvalidRequest, lambda: tuner.load_model(self.folder / "net", threads=-1)))


class Judge(WithFolder):
    JOB = SOURCE / "examples/own_kernels/sgemm.json"

    def test_a_wrong_kernel(self):
        job = json.loads(self.JOB.read_text())
        wrong = self.folder / "wrong.c"
        names = ", ".join(("const " if a.get("role", "in") == "in" and "shape" in a else "") +
                          {"float32": "float", "int64": "long", "int32": "int"}[a["type"]] + ("* " if "shape" in a else " ") + a["name"]
                          for a in job["arguments"])
        wrong.write_text(f"void {job['function']}({names}) {{}}\n")
        verdict = tuner.judge(wrong, job=self.JOB, isolation="process")
        self.assertEqual((verdict.verdict, verdict.right, bool(verdict)), ("wrong", False, False))
        self.assertTrue(verdict.why)
        self.assertEqual(verdict.raw["verdict"], "wrong")

    def test_a_right_one(self):
        # Whether it can say how fast it is depends on how calm the machine is: one answer of two.
        verdict = tuner.judge(SOURCE / "examples/own_kernels/sgemm.c", job=self.JOB)
        self.assertIn(verdict.verdict, ("right", "cannot tell"))
        if verdict:
            self.assertTrue(verdict.ratio_interval[0] <= verdict.ratio <= verdict.ratio_interval[1])
            self.assertGreater(verdict.time_ns, 0)

    def test_what_is_refused(self):
        self.assertIn("none.c", self.message(tuner.InvalidRequest, lambda: tuner.judge("none.c", job=self.JOB)))


if __name__ == "__main__":
    unit_tests.main()
