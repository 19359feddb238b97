"""The wheel: it installs into a fresh virtual environment, needs no compiler, and brings its libraries."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from package import BIN, SOURCE
import unit_tests  # noqa: E402

#: Those of C and C++, which every interpreter has.
SYSTEM = re.compile(r"linux-vdso|/ld-linux|/lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s)\.so")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("patchelf") is None:
            raise unittest.SkipTest("no patchelf here: deploy/install.sh --python")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tuner-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        built = subprocess.run([str(SOURCE / "deploy/python/wheel.sh"), "--built", str(BIN.parent), str(cls.folder)],
                               capture_output=True, text=True, timeout=300)
        if built.returncode != 0:
            raise AssertionError(built.stderr)
        cls.wheel, = cls.folder.glob("tuner-*.whl")

    def install(self, *options):
        place = self.folder / f"env{len(list(self.folder.glob('env*')))}"
        subprocess.run([sys.executable, "-m", "venv", *options, str(place)], check=True, timeout=120)
        # --no-index: what it needs is in it.
        done = subprocess.run([str(place / "bin/pip"), "install", "-q", "--no-index", str(self.wheel)], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return place

    def python(self, place, code):
        """Runs it without PATH: no compiler, no program of ours elsewhere."""
        return subprocess.run([str(place / "bin/python"), "-c", code], capture_output=True, text=True, timeout=300, cwd="/",
                              env={"PATH": "/nonexistent", "HOME": str(place), "TUNER_RACE_LIMIT_S": "0.001"})

    def test_a_first_kernel(self):
        place = self.install("--system-site-packages")
        done = self.python(place, "import tuner, numpy\n"
                           "kernel = tuner.tune('softmax', rows=4, columns=32, trials=3)\n"
                           "print(kernel(tuner.zeros((4, 32))).sum(), tuner.__file__)")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[0], "4.0")
        self.assertIn(str(place), done.stdout)

    def test_without_numpy_and_grpc(self):
        place = self.install()
        done = self.python(place, "import tuner\n"
                           "print(len(tuner.Space({'A': [1, 2, 3]})))\n"
                           "try:\n    tuner.Client()\nexcept ImportError as error:\n    print(error)\n"
                           "try:\n    tuner.empty(3)\nexcept tuner.ArrayError as error:\n    print(error)\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        count, client, array = done.stdout.splitlines()
        self.assertEqual(count, "3")
        self.assertIn("grpc", client)
        self.assertIn("pip install numpy", array)

    def test_all_libraries_are_its_own(self):
        place = self.install()
        package, = place.glob("lib/python*/site-packages/tuner")
        for file in [*(package / "_programs").iterdir(), *package.glob("*.so")]:
            listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, timeout=60).stdout
            strangers = [line for line in listed.splitlines() if not SYSTEM.search(line) and str(package) not in line]
            self.assertEqual(strangers, [], file)


if __name__ == "__main__":
    unit_tests.main()
