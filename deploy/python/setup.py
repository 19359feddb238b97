"""Builds the package.

Alone (`pip install ./deploy/python`) it is the daemon's client: the sources, and the stubs of the public protos, which are made here and
never committed. With TUNER_WHEEL_FROM, a folder that wheel.sh prepared, it is a wheel for this platform: all of the package, with the
programs and the libraries that they need.
"""

import os
import pathlib
import shutil
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import make_stubs  # noqa: E402  (lies beside this file)

PREPARED = os.environ.get("TUNER_WHEEL_FROM")


class BuildAll(build_py):
    def run(self):
        super().run()
        if PREPARED:
            shutil.copytree(PREPARED, pathlib.Path(self.build_lib) / "tuner", dirs_exist_ok=True)
        else:
            make_stubs.make(pathlib.Path(self.build_lib))


class Platform(Distribution):
    def has_ext_modules(self):
        return bool(PREPARED)


setup(packages=["tuner"], package_data={"tuner": ["py.typed", "*.pyi"]}, cmdclass={"build_py": BuildAll}, distclass=Platform)
