"""Builds the package: the sources, and the stubs of the public protos, which are made here and never committed."""

import pathlib
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import make_stubs  # noqa: E402  (lies beside this file)


class BuildWithStubs(build_py):
    def run(self):
        super().run()
        make_stubs.make(pathlib.Path(self.build_lib))


setup(packages=["tuner"], cmdclass={"build_py": BuildWithStubs})
