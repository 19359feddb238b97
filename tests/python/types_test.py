"""The types of the package: mypy accepts it, and what a caller sees of it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

from package import SOURCE
import unit_tests  # noqa: E402


#: What one run has read of numpy's types, the next one knows.
CACHE = tempfile.TemporaryDirectory(prefix="tuner-mypy-")


def mypy(*words):
    return subprocess.run([sys.executable, "-m", "mypy", *words], cwd=SOURCE / "deploy/python", capture_output=True, text=True,
                          timeout=300,
                          env={**os.environ, "MYPY_CACHE_DIR": CACHE.name, "MYPYPATH": str(SOURCE / "deploy/python")})


try:
    import mypy as found  # noqa: F401
except ImportError as error:
    print(f"skipped: {error} for {sys.executable}; deploy/install.sh --python installs it")
    sys.exit(77)


class Types(unittest.TestCase):
    def test_the_package(self):
        done = mypy("-p", "tuner")
        self.assertEqual(done.returncode, 0, done.stdout)

    def check(self, code):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"tuner_types_{os.getpid()}.py"
        path.write_text(textwrap.dedent(code))
        self.addCleanup(path.unlink)
        return mypy(str(path)).stdout

    def test_a_program_that_uses_it(self):
        out = self.check("""
            import tuner
            kernel: tuner.Kernel = tuner.kernel("stencil.json", trials=4)
            if kernel.answer is not None:
                time: float = kernel.answer.time_ns
            names = [operand.name for operand in kernel.operands]
            verdict: bool = tuner.judge("a.c", job="job.json").right
            best = tuner.Space({"A": [1, 2]}).search(seed=1).minimize(lambda config: 1.0, 2)
            reveal_type(best)
            """)
        self.assertIn('Revealed type is "Tuple[builtins.dict[builtins.str, Any], builtins.float]"', out)
        self.assertNotIn("error", out)

    def test_a_program_that_uses_it_wrongly(self):
        out = self.check("""
            import tuner
            tuner.Space({"A": [1]}).search(seed="one")
            tuner.judge("a.c")
            """)
        self.assertIn('Argument "seed" to "search" of "Space" has incompatible type "str"', out)
        self.assertIn('Missing named argument "job"', out)

    def test_stubs_say_what_the_modules_have(self):
        import tuner
        import tuner._search
        kernel = tuner.Kernel
        stub = (SOURCE / "deploy/python/tuner/_kernels.pyi").read_text()
        for name in ("pack", "empty", "describe", "operands", "signature", "releases_gil"):
            self.assertIn(name, stub)
            self.assertTrue(hasattr(kernel, name), name)
        search = (SOURCE / "deploy/python/tuner/_search.pyi").read_text()
        for owner in (tuner._search.Space, tuner._search.Search, tuner._search.RecordedSpace):
            for name in dir(owner):
                if not name.startswith("_"):
                    self.assertIn(name, search)


if __name__ == "__main__":
    unit_tests.main()
