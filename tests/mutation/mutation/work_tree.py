"""A copy of the tree with a build of its own, in which one fault at a time is placed, built and taken back."""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess

from . import Problem, folders


class WorkTree:
    """WORK/tree and WORK/build; owned by one process at a time."""

    def __init__(self, root: pathlib.Path, work: pathlib.Path):
        self.root, self.tree, self.build = root, work / "tree", work / "build"
        work.mkdir(parents=True, exist_ok=True)
        self.lock = open(work / "lock", "w", encoding="ascii")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Problem(f"{work} is in use by another run; name another folder with --work") from error

    def mirror(self) -> str:
        """Makes the copy equal to the tree. Only files that differ are written, so only they are compiled again. A fault that an
        interrupted run left behind goes with it. Returns a fingerprint of all files."""
        names = folders.tracked(self.root)
        digest = hashlib.sha256()
        for name in names:
            content = (self.root / name).read_bytes()
            digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
            target = self.tree / name
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                shutil.copymode(self.root / name, target)
        self.remove_others(set(names))
        return digest.hexdigest()[:16]

    def remove_others(self, names: set) -> None:
        for folder, _, files in os.walk(self.tree):
            for file in files:
                path = pathlib.Path(folder) / file
                if str(path.relative_to(self.tree)) not in names:
                    path.unlink()

    def configure(self) -> None:
        """Sources are compiled one by one, so that a fault costs one file. Otherwise as a release, whose objects of the tests a
        compiler cache has."""
        command = ["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTUNER_UNITY=OFF"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment())
        if said.returncode != 0:
            raise Problem(f"cmake failed in {self.build}: {said.stderr.strip()[-300:]}")

    def environment(self) -> dict:
        return os.environ | {"CCACHE_BASEDIR": str(self.tree)}

    def make(self, targets: list, seconds: float) -> tuple[bool, str]:
        """Builds the targets. False, with the last lines, when that fails; "timed out" after `seconds`."""
        command = ["ninja", "-C", str(self.build), *sorted(set(targets))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment(),
                              errors="replace") as process:
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.terminate()  # Ninja ends its compilers
                process.communicate()
                return False, "timed out"
            except BaseException:
                process.terminate()
                raise
        return process.returncode == 0, said[-2000:]

    def place(self, fault: folders.Fault) -> None:
        path = self.tree / fault.file
        if fault.offset < 0:
            changed = folders.placed(fault, path.read_text()).encode()
        else:
            content = path.read_bytes()
            end = fault.offset + len(fault.text.encode())
            if content[fault.offset:end] != fault.text.encode():
                raise Problem(f"{fault.file} has changed since the fault was drawn")
            changed = content[:fault.offset] + fault.becomes.encode() + content[end:]
        path.write_bytes(changed)

    def take_back(self, fault: folders.Fault) -> None:
        (self.tree / fault.file).write_bytes((self.root / fault.file).read_bytes())
