#!/usr/bin/env python3
"""make_stubs.py [FOLDER]: makes FOLDER/tuner/_proto from the protos, with protoc and grpc_python_plugin.

FOLDER is by default that of this file, so that `PYTHONPATH=deploy/python` works from a checkout. Needs the Debian
packages protobuf-compiler and protobuf-compiler-grpc (deploy/install.sh --python).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = ("record.proto", "build.proto", "measure.proto", "tuning.proto")
PACKAGE = "tuner/_proto"


def make(folder: pathlib.Path) -> None:
    source = pathlib.Path(os.environ.get("TUNER_PROTO_DIR", HERE.parent.parent / "proto"))
    missing = [str(source / name) for name in PROTOS if not (source / name).exists()]
    if missing:
        sys.exit(f"make_stubs: {missing[0]} is not there; TUNER_PROTO_DIR names the folder of the protos")
    plugin = shutil.which("grpc_python_plugin")
    if shutil.which("protoc") is None or plugin is None:
        sys.exit("make_stubs: protoc or grpc_python_plugin is missing; install protobuf-compiler and "
                 "protobuf-compiler-grpc (deploy/install.sh --python)")
    with tempfile.TemporaryDirectory() as scratch:
        # The files are known to Python's registry of protos by their paths, so they get one that is ours alone; the
        # stubs then import each other as modules of this package.
        copies = pathlib.Path(scratch) / PACKAGE
        copies.mkdir(parents=True)
        for name in PROTOS:
            text = (source / name).read_text()
            for other in PROTOS:
                text = re.sub(rf'import "{re.escape(other)}"', f'import "{PACKAGE}/{other}"', text)
            (copies / name).write_text(text)
        target = folder / PACKAGE
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["protoc", f"-I{scratch}", f"--python_out={folder}", f"--plugin=protoc-gen-grpc_python={plugin}",
             f"--grpc_python_out={folder}", *(f"{PACKAGE}/{name}" for name in PROTOS)],
            check=True, timeout=120)
        (target / "__init__.py").write_text("")


if __name__ == "__main__":
    if len(sys.argv) > 2 or "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(__doc__)
    make(pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else HERE)
