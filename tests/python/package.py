"""What tests of the package share: a folder of their own for databases and caches, and small kernels."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ["TUNER_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["TUNER_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests/support"))

#: Measures little and races for one round: these tests ask nothing of times.
QUICK = {"trials": 4, "search": "random", "measure": {"min_repeat_ms": 0.05, "repeats": 3}}
os.environ.setdefault("TUNER_RACE_LIMIT_S", "0.001")


class WithFolder(unittest.TestCase):
    """Each class has a folder for its database, caches and sockets."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tuner-python-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for variable, name in (("XDG_RUNTIME_DIR", "run"), ("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data")):
            (cls.folder / name).mkdir(mode=0o700)
            before = os.environ.get(variable)
            os.environ[variable] = str(cls.folder / name)
            cls.addClassCleanup(os.environ.pop if before is None else os.environ.__setitem__, variable,
                                *(() if before is not None else (None,)), *(() if before is None else (before,)))

    def message(self, kind, call):
        """The one line of the exception of that kind."""
        with self.assertRaises(kind) as caught:
            call()
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        self.assertIs(type(caught.exception), kind)
        return text
