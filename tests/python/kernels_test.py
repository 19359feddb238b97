"""Kernels that are tuned from Python and called with arrays: what comes out, what is refused, threads, processes."""

import contextlib
import ctypes
import gc
import io
import json
import os
import pathlib
import platform
import subprocess
import sys
import textwrap
import threading

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error} for {sys.executable}; deploy/install.sh --python installs it")
    sys.exit(77)

import tuner
from package import BIN, QUICK, SOURCE, WithFolder
import unit_tests  # noqa: E402

#: Its space has three configs.
ADD = {"op": "elementwise", "rows": 1, "columns": 64, "residual": True, **QUICK}


def random(shape, dtype="float32"):
    array = tuner.empty(shape, dtype)
    array[...] = numpy.random.default_rng(7).standard_normal(shape)
    return array


def foreign_capsule(array, device=1, code=2, bits=32, before=0):
    """A DLPack capsule of an array, with a device or type that it may not have."""
    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                    ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor = Tensor(array.ctypes.data - before, device, 0, array.ndim, code, bits, 1, shape, None, before, None, None)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(tensor), b"dltensor", None), (tensor, shape)


class Calls(WithFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.db = cls.folder / "t.db"
        cls.add = tuner.tune(ADD, db=cls.db)

    def setUp(self):
        self.x, self.y = random((1, 64)), random((1, 64))
        self.z = tuner.empty((1, 64))

    def test_the_answer_is_right_and_new_or_in_out(self):
        expected = self.x + self.y
        new = self.add(self.x, self.y)
        numpy.testing.assert_array_equal(new, expected)
        self.assertEqual((new.shape, new.dtype, new.ctypes.data % 64), ((1, 64), numpy.float32, 0))
        self.z.fill(0)
        self.assertIs(self.add(self.x, self.y, out=self.z), self.z)
        numpy.testing.assert_array_equal(self.z, expected)
        self.z.fill(0)
        self.assertIs(self.add(self.x, self.y, self.z), self.z)
        numpy.testing.assert_array_equal(self.z, expected)

    def test_operands_are_given_by_name_too(self):
        names = [o.name for o in self.add.operands]
        roles = [o.role for o in self.add.operands]
        self.assertEqual(roles, ["input", "input", "output"])
        self.assertEqual(self.add.operands[0].shape, (1, 64))
        out = self.add(**{names[1]: self.y, names[0]: self.x})
        numpy.testing.assert_array_equal(out, self.x + self.y)
        # A name that is no interned text.
        out = self.add(self.x, **{"".join(list(names[1])): self.y})
        numpy.testing.assert_array_equal(out, self.x + self.y)

    def test_the_call_itself(self):
        first = self.add.operands[0].name
        self.assertIn(f"{first} is missing", self.message(tuner.CallError, lambda: self.add()))
        self.assertIn("found 4 arrays", self.message(tuner.CallError, lambda: self.add(self.x, self.y, self.z, self.z)))
        self.assertIn("no argument nonsense", self.message(tuner.CallError, lambda: self.add(self.x, self.y, nonsense=self.x)))
        self.assertIn("given twice", self.message(tuner.CallError, lambda: self.add(self.x, self.y, **{first: self.y})))
        self.assertIn(self.add.signature, self.message(tuner.CallError, lambda: self.add()))

    def test_each_way_an_array_does_not_fit(self):
        good = self.y
        name = self.add.operands[0].name
        for kind, array, expected in (
                (tuner.DTypeError, self.x.astype("float64"), "expected float32, found float64"),
                (tuner.DTypeError, self.x.astype(">f4"), "expected float32, found >f4"),
                (tuner.DTypeError, [[1.0] * 64], "expected a numpy array, a torch tensor or a DLPack capsule, found list"),
                (tuner.ShapeError, random((64,)), "expected shape (1, 64), found (64,)"),
                (tuner.ShapeError, random((1, 63)), "expected shape (1, 64), found (1, 63)"),
                (tuner.ShapeError, random((64, 1)), "expected shape (1, 64), found (64, 1)"),
                (tuner.StridesError, random((1, 128))[:, ::2], "expected rows one after the other (C order), found strides (512, 8) bytes"),
                (tuner.AlignmentError, random((1, 80))[:, 1:65], "multiple of 64, found one that is 4 more")):
            with self.subTest(kind.__name__):
                text = self.message(kind, lambda array=array: self.add(array, good))
                self.assertTrue(text.startswith(f"{name}: "), text)
                self.assertIn(expected, text)
                self.assertIsInstance(kind("x"), tuner.InvalidRequest)

    def test_an_output_that_may_not_be_written(self):
        self.z.setflags(write=False)
        text = self.message(tuner.ReadOnlyError, lambda: self.add(self.x, self.y, out=self.z))
        self.assertIn("found a read-only one", text)
        # An input may be read-only.
        self.x.setflags(write=False)
        numpy.testing.assert_array_equal(self.add(self.x, self.y), self.x + self.y)

    def test_an_output_that_overlaps_an_input(self):
        self.assertIn("overlaps", self.message(tuner.ArrayError, lambda: self.add(self.x, self.y, out=self.x)))

    def test_dlpack_without_a_copy(self):
        capsule = self.x.__dlpack__()
        numpy.testing.assert_array_equal(self.add(capsule, self.y), self.x + self.y)
        # It is borrowed, not used up.
        numpy.testing.assert_array_equal(self.add(capsule, self.y), self.x + self.y)
        self.add(self.x, self.y, out=self.z.__dlpack__())
        numpy.testing.assert_array_equal(self.z, self.x + self.y)

        # Some libraries say where the elements begin by an offset.
        capsule, kept = foreign_capsule(self.x, before=4096)
        numpy.testing.assert_array_equal(self.add(capsule, self.y), self.x + self.y)
        del kept

        class Tensor:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()
        self.z.fill(0)
        self.add(Tensor(self.x), self.y, out=Tensor(self.z))
        numpy.testing.assert_array_equal(self.z, self.x + self.y)

    def test_dlpack_that_does_not_fit(self):
        def refused(kind, **facts):
            capsule, kept = foreign_capsule(self.x, **facts)
            text = self.message(kind, lambda: self.add(capsule, self.y))
            del kept
            return text
        self.assertIn("expected memory of the CPU, found that of a device (DLPack's type 2", refused(tuner.DeviceError, device=2))
        self.assertIn("expected float32, found int32", refused(tuner.DTypeError, code=0))
        self.assertIn("expected float32, found float16", refused(tuner.DTypeError, bits=16))
        strided = random((1, 128))[:, ::2]
        self.assertIn("found strides (128, 2) elements", self.message(tuner.StridesError, lambda: self.add(strided.__dlpack__(), self.y)))
        used = self.x.__dlpack__()
        ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(used), b"used_dltensor")
        self.assertIn("was used", self.message(tuner.ArrayError, lambda: self.add(used, self.y)))

        class Broken:
            def __dlpack__(self):
                raise RuntimeError("it is elsewhere")
        self.assertIn("Broken gives no DLPack capsule: it is elsewhere",
                      self.message(tuner.ArrayError, lambda: self.add(Broken(), self.y)))

    def test_nothing_leaks(self):
        def count():
            return [sys.getrefcount(o) for o in (self.x, self.y, self.z, self.add)]
        before = count()
        self.assertEqual(sys.getrefcount(self.add(self.x, self.y)), sys.getrefcount(numpy.zeros(1)))
        for _ in range(100):
            self.add(self.x, self.y, out=self.z)
            self.add(self.x, self.y)
            for call in (lambda: self.add(self.x), lambda: self.add(self.x, self.y, out=self.x),
                         lambda: self.add(self.x.__dlpack__(), random((1, 3)))):
                with self.assertRaises(tuner.InvalidRequest):
                    call()
        self.assertEqual(count(), before)

    def test_two_threads_at_once(self):
        wrong = []

        def work(seed):
            rng = numpy.random.default_rng(seed)
            for _ in range(2000):
                x, y = tuner.empty((1, 64)), tuner.empty((1, 64))
                x[...], y[...] = rng.standard_normal((1, 64)), rng.standard_normal((1, 64))
                if not numpy.array_equal(self.add(x, y), x + y):
                    wrong.append(seed)
        for releases in (False, True):
            self.add.releases_gil = releases
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=60)
        self.add.releases_gil = False
        self.assertEqual(wrong, [])

    def test_a_process_that_forks(self):
        child = os.fork()
        if child == 0:
            try:
                good = numpy.array_equal(self.add(self.x, self.y), self.x + self.y)
                os._exit(0 if good else 3)
            finally:
                os._exit(4)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        numpy.testing.assert_array_equal(self.add(self.x, self.y), self.x + self.y)

    def test_what_is_known_of_it(self):
        facts = self.add.describe()
        self.assertEqual(self.add.answer.kind, "exact")
        self.assertEqual(self.add.answer.workload, facts["workload"])
        self.assertGreater(self.add.answer.time_ns, 0)
        self.assertEqual(facts["threads"], 1)
        self.assertFalse(self.add.releases_gil)  # shorter than what that costs
        self.assertTrue(self.add.answer.trial.startswith("j1."))

    def test_the_same_call_again_measures_nothing(self):
        seen = []
        again = tuner.tune(ADD, db=self.db, progress=seen.append)
        self.assertEqual(again.answer.trial, self.add.answer.trial)
        self.assertEqual([p for p in seen if p.trials_done < 3], [])

    def test_answers_and_records(self):
        database = tuner.open(self.db)
        answer, = database.query("elementwise", rows=1, columns=64, residual=True)
        self.assertEqual((answer.kind, answer.trial), ("exact", self.add.answer.trial))
        self.assertEqual(answer.config, self.add.answer.config)
        other, = database.query("elementwise", rows=1, columns=96, residual=True)
        self.assertNotEqual(other.kind, "exact")
        self.assertFalse(other.found)
        records = database.records(job="j1")
        self.assertIn(records.count, (3, 4))  # all configs: vectors of 16 numbers have one fewer than those of 8
        self.assertEqual(records["time_ns"].dtype, numpy.float64)
        self.assertTrue(numpy.all(numpy.diff(records.best()) <= 0))
        knob = next(iter(self.add.answer.config))
        self.assertEqual(records.knob(knob).shape, (records.count,))
        self.assertIn(knob, self.message(tuner.InvalidRequest, lambda: records.knob("NONSENSE")))
        self.assertIn("no such database", self.message(tuner.NotFound, lambda: tuner.open(self.folder / "none.db")))
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.assertIn("pandas", self.message(tuner.Error, records.to_frame))
        else:
            self.assertEqual(list(records.to_frame()["outcome"]), list(records["outcome"]))

    def test_plots(self):
        try:
            import matplotlib
        except ImportError:
            self.assertIn("matplotlib", self.message(tuner.Error, tuner.open(self.db).records().plot_curve))
            return
        matplotlib.use("Agg")
        records = tuner.open(self.db).records(job="j1")
        self.assertEqual(records.plot_curve().get_xlabel(), "trial")
        knob = next(iter(self.add.answer.config))
        self.assertEqual(records.plot_knob(knob).get_xlabel(), knob)

    def test_progress_is_told(self):
        seen = []
        tuner.tune("matmul", a=(8, 16), b=(16, 32), db=self.db, progress=seen.append, **{**QUICK, "trials": 6})
        self.assertEqual((seen[-1].trials_done, seen[-1].trials_total), (6, 6))
        self.assertGreater(seen[-1].best_ns, 0)

    def test_words_of_the_programs(self):
        self.assertIn("stride: expected two integers >= 1", self.message(
            tuner.InvalidRequest, lambda: tuner.tune("conv2d", data=(1, 4, 8, 8), weight=(4, 4, 3, 3), stride=[0, 1], db=self.db)))
        self.assertIn("nonsense", self.message(tuner.InvalidRequest, lambda: tuner.tune("nonsense", db=self.db)))
        self.assertIn("cannot be read", self.message(tuner.InvalidRequest, lambda: tuner.tune("none.json", db=self.db)))
        self.assertIn("found both", self.message(tuner.CallError, lambda: tuner.tune(ADD, db=self.db, daemon="127.0.0.1:1")))
        self.assertIn("--search", self.message(tuner.InvalidRequest, lambda: tuner.tune(ADD, search="nonsense", db=self.db)))

    def test_a_deadline(self):
        job = {"op": "matmul", "a": [64, 64], "b": [64, 64], **QUICK, "trials": 100000, "stop_below": 0}
        text = self.message(tuner.DeadlineExceeded, lambda: tuner.tune(job, db=self.db, timeout_s=0.5))
        self.assertIn("not done after 0.5 s", text)

    def test_an_interrupted_search_goes_on(self):
        job = {"op": "matmul", "a": [24, 64], "b": [64, 64], **QUICK, "trials": 24}

        def interrupt(p):
            if p.trials_done > 0:
                raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            tuner.tune(job, db=self.db, progress=interrupt)
        # The program has ended, and what it measured is there.
        measured = tuner.open(self.db).records(op="matmul").count
        seen = []
        kernel = tuner.tune(job, db=self.db, progress=seen.append)
        self.assertGreaterEqual(seen[0].trials_done, 1)
        self.assertGreaterEqual(measured, 1)
        self.assertEqual(seen[-1].trials_done, 24)
        self.assertEqual(kernel.operands[0].shape, (24, 64))

    def test_programs_that_are_missing(self):
        os.environ["TUNER_BIN_DIR"] = str(self.folder)
        try:
            self.assertIn("expected the program tuner", self.message(tuner.ProgramMissing, lambda: tuner.tune(ADD, db=self.db)))
        finally:
            os.environ["TUNER_BIN_DIR"] = str(BIN)


class Memory(WithFolder):
    def test_large_arrays_are_not_copied(self):
        kernel = tuner.tune("transpose", rows=768, columns=1024, db=self.folder / "t.db", **QUICK)
        x, out = random((768, 1024)), tuner.empty((1024, 768))
        data, written = x.ctypes.data, out.ctypes.data
        result = kernel(x, out=out)
        self.assertIs(result, out)
        self.assertEqual((x.ctypes.data, out.ctypes.data), (data, written))
        numpy.testing.assert_array_equal(out, x.T)
        # What the kernel reads is this memory: a change of it is seen by the next call.
        x[5, 7] = 42
        self.assertEqual(kernel(x, out=out)[7, 5], 42)
        before = _resident_kib()
        kernel(x, out=out)
        self.assertLess(_resident_kib() - before, 1500)  # a copy of either has 3072 KiB

    def test_aligned(self):
        wide = numpy.arange(200, dtype="float32").reshape(10, 20)
        copy = tuner.aligned(wide[:, 1:])
        numpy.testing.assert_array_equal(copy, wide[:, 1:])
        self.assertEqual((copy.ctypes.data % 64, copy.flags.c_contiguous), (0, True))
        self.assertIs(tuner.aligned(copy), copy)
        shifted = tuner.zeros(17)[1:]  # row-major, on another border
        self.assertEqual((shifted.ctypes.data % 64, tuner.aligned(shifted).ctypes.data % 64), (4, 0))
        self.assertEqual(tuner.aligned([1, 2], "float32").dtype, numpy.float32)
        self.assertEqual(tuner.aligned(numpy.zeros(3, ">f4")).dtype, numpy.dtype("=f4"))
        for shape in ((3, 5), 7, (), (2, 0, 3), (1 << 20,)):
            self.assertEqual(tuner.empty(shape, "int16").ctypes.data % 64, 0)
        self.assertIn("at least 0", self.message(tuner.ShapeError, lambda: tuner.empty((-1, 2))))
        self.assertIn("fit memory", self.message(tuner.ShapeError, lambda: tuner.empty((1 << 62, 1 << 62))))
        self.assertEqual(float(tuner.zeros((100, 100)).sum()), 0)

    def test_an_array_outlives_its_kernel(self):
        kernel = tuner.tune("softmax", rows=4, columns=32, db=self.folder / "t.db", **QUICK)
        result = kernel(random((4, 32)))
        del kernel
        numpy.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-5)


def _resident_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


class Constants(WithFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kernel = tuner.tune("matmul", a=(16, 32), b=(32, 48), constant=["b"], db=cls.folder / "t.db", **QUICK)

    def test_they_are_packed_once(self):
        a = random((16, 32))
        # Not aligned: it is copied anyway.
        b = numpy.random.default_rng(1).standard_normal(32 * 48 + 1).astype("float32")[1:].reshape(32, 48)
        layer = self.kernel.pack(b=b)
        expected = a @ b
        numpy.testing.assert_allclose(layer(a), expected, rtol=1e-4, atol=1e-4)
        b[...] = 0  # what is packed is a copy
        numpy.testing.assert_allclose(layer(a), expected, rtol=1e-4, atol=1e-4)
        self.assertEqual(layer.answer, self.kernel.answer)
        another = self.kernel.pack(b=b)
        self.assertEqual(float(numpy.abs(another(a)).sum()), 0)
        numpy.testing.assert_allclose(layer(a), expected, rtol=1e-4, atol=1e-4)

    def test_what_is_refused(self):
        a, b = random((16, 32)), random((32, 48))
        self.assertIn("kernel.pack(b=...)", self.message(tuner.CallError, lambda: self.kernel(a)))
        layer = self.kernel.pack(b=b)
        self.assertIn("no argument b: it is constant", self.message(tuner.CallError, lambda: layer(a, b=b)))
        self.assertIn("constant b is missing", self.message(tuner.CallError, lambda: self.kernel.pack()))
        self.assertIn("no constant", self.message(tuner.CallError, lambda: self.kernel.pack(b=b, c=b)))
        self.assertIn("by their names", self.message(tuner.CallError, lambda: self.kernel.pack(b)))
        self.assertIn("expected shape (32, 48)", self.message(tuner.ShapeError, lambda: self.kernel.pack(b=a)))


class OwnKernels(WithFolder):
    STENCIL = json.loads((SOURCE / "examples/own_kernels/stencil.json").read_text())

    def test_from_keys(self):
        keys = {key: value for key, value in self.STENCIL.items() if key not in ("op", "source", "trials")}
        kernel = tuner.kernel(SOURCE / "examples/own_kernels/stencil.c", trials=2, search="random", measure=QUICK["measure"],
                              db=self.folder / "t.db", **keys)
        self.assertEqual([o.name for o in kernel.operands], ["in", "out"])
        x = random((482, 642))
        out = kernel(x)
        self.assertEqual(out.shape, (480, 640))
        again = kernel(**{"in": x})
        numpy.testing.assert_array_equal(out, again)
        self.assertFalse(numpy.all(out == 0))
        # Threads of OpenMP sleep in its library, and wake up later: it stays when the kernel goes.
        del kernel
        gc.collect()
        self.assertIn("libgomp", pathlib.Path("/proc/self/maps").read_text())

    def test_from_a_job_file_with_an_inout(self):
        kernel = tuner.kernel(SOURCE / "examples/own_kernels/histogram.json", trials=2, db=self.folder / "t.db")
        roles = {o.name: o.role for o in kernel.operands}
        self.assertIn("inout", roles.values())
        name = next(name for name, role in roles.items() if role == "inout")
        given = {o.name: tuner.zeros(o.shape, o.dtype) for o in kernel.operands}
        result = kernel(**given)
        self.assertIs(result if len([r for r in roles.values() if r != "input"]) == 1 else result[0], given[name])
        self.assertGreater(int(numpy.abs(given[name]).sum()), 0)
        del given[name]
        self.assertIn(f"{name} is missing", self.message(tuner.CallError, lambda: kernel(**given)))

    def test_a_library_for_another_cpu_is_refused_in_one_line(self):
        if platform.machine() != "x86_64" or " xop " in pathlib.Path("/proc/cpuinfo").read_text():
            self.skipTest("needs an x86 CPU without xop, which AMD left out since 2017")
        source = self.folder / "twice.c"
        source.write_text("void twice(const float* in, float* out, long n) {\n  for (long i = 0; i < n; ++i) out[i] = TIMES * in[i];\n}\n"
                          "void plain(const float* in, float* out, long n) {\n  for (long i = 0; i < n; ++i) out[i] = in[i] + in[i];\n}\n")
        # The compiler may use xop, and does not here: the kernel could be tuned.
        text = self.message(tuner.NotFound, lambda: tuner.kernel(
            source, function="twice", reference={"function": "plain"}, sizes={"n": 64}, knobs={"TIMES": [2]}, flags=["-O1", "-mxop"],
            arguments=[{"name": "in", "type": "float32", "shape": ["n"]}, {"name": "out", "type": "float32", "shape": ["n"], "role": "out"},
                       {"name": "n", "type": "int64", "value": "n"}],
            trials=1, search="random", measure=QUICK["measure"], db=self.folder / "t.db", output=self.folder / "library"))
        self.assertIn("this CPU lacks fma4", text)  # which xop brings along
        self.assertEqual(text, self.message(tuner.NotFound, lambda: tuner.load(self.folder / "library")))

    def test_what_is_refused(self):
        self.assertIn("no such source", self.message(tuner.InvalidRequest, lambda: tuner.kernel("none.c")))
        text = self.message(tuner.InvalidRequest, lambda: tuner.kernel(SOURCE / "examples/own_kernels/stencil.c", db=self.folder / "t.db"))
        self.assertIn("function", text)


class Libraries(WithFolder):
    def test_a_list_in_a_folder_that_is_opened_again(self):
        jobs = [{**ADD, "name": "first"}, {"op": "softmax", "rows": 4, "columns": 32, "name": "second", **QUICK}]
        kernels = tuner.tune(jobs, db=self.folder / "t.db", output=self.folder / "library")
        self.assertEqual([k.name for k in kernels], ["first", "second"])
        loaded = tuner.load(self.folder / "library")
        self.assertEqual(sorted(loaded), ["first", "second"])
        x = random((4, 32))
        numpy.testing.assert_array_equal(loaded["second"](x), kernels[1](x))
        self.assertEqual(loaded["second"].answer.time_ns, kernels[1].answer.time_ns)
        self.assertIn("cannot be read", self.message(tuner.InvalidRequest, lambda: tuner.load(self.folder)))
        (self.folder / "library/manifest.json").write_text("[]")
        self.assertIn("no manifest", self.message(tuner.InvalidRequest, lambda: tuner.load(self.folder / "library")))


class Shown(WithFolder):
    """What people see of a search."""

    LINES = (("0/4 trials  best no right answer yet  []", (0, 0, 4, 0.0, 0.0, 0.0)),
             ("3/4 trials  best 72.47 ns, 8.8 GFLOP/s (5 % of the peak of 165.2)  1.7 trials/s  about 1 s left at most  [3 ok]",
              (0, 3, 4, 72.47, 1.7, 1.0)),
             ("3/9 trials  task 2/3  best 1.5 ms  2.0 trials/s  about 2 min 3 s left at most  [3 ok]", (1, 3, 9, 1.5e6, 2.0, 123.0)),
             ("5/9 trials  best 2 s  0.1 trials/s  about 1 h 2 min left at most  [3 ok]", (0, 5, 9, 2e9, 0.1, 3720.0)))

    def test_lines_of_the_command_are_read(self):
        from tuner import progress
        for line, (task, done, total, best, rate, left) in self.LINES:
            with self.subTest(line):
                self.assertEqual(progress.parse(line), tuner.Progress(task, done, total, best, "", rate, left))
        self.assertIsNone(progress.parse("race: 3 of 9 finalists left"))

    def test_a_terminal_has_one_line_that_is_written_over(self):
        from tuner import progress
        written = io.StringIO()
        with contextlib.redirect_stderr(written):
            view = progress.View(True, "conv")
            view.line(self.LINES[1][0])
            view.line("  task 1: 3 finalists race")
            view.done("tuned: 72.47 ns")
            quiet = progress.View(False, "conv")
            quiet.line(self.LINES[1][0])
            quiet.done("tuned")
        text = written.getvalue()
        self.assertEqual(text.count("\n"), 1)
        first, second, last = text.rstrip("\n").split("\r\x1b[K")[1:]
        self.assertEqual(first, "conv: [###############.....] 3/4, best 72.47 ns, 2 trials/s")
        self.assertEqual((second, last), ("conv: task 1: 3 finalists race", "conv: tuned: 72.47 ns"))


class OtherProcesses(WithFolder):
    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)

    def test_parts_are_loaded_when_they_are_used(self):
        done = self.run_python("""
            import sys, tuner
            loaded = [name for name in ("grpc", "numpy", "tuner._kernels", "tuner._search") if name in sys.modules]
            assert not loaded, loaded
            tuner.Space({"A": [1]})
            assert "numpy" not in sys.modules and "grpc" not in sys.modules
            tuner.empty((2,))
            assert "grpc" not in sys.modules
            """)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_numpy(self):
        done = self.run_python("""
            import sys
            sys.modules["numpy"] = None
            import tuner
            try:
                tuner.empty((2,))
            except tuner.ArrayError as error:
                assert "pip install numpy" in str(error), error
            else:
                sys.exit(3)
            """)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unit_tests.main()
