"""The committed lists: folders/NAME.toml, one per folder of product code. Format: tests/mutation/README.md."""

import dataclasses
import pathlib
import re
import subprocess
import tomllib

from . import Problem

LEAST_FAULTS = 4  # per folder that has C++ or Python of its own
PRODUCT = ("compiler_core", "templates", "tuner", "measure_server", "db", "proto", "deploy")
CODE = (".cpp", ".h", ".c")


@dataclasses.dataclass(frozen=True)
class Fault:
    """One change of one file: the only occurrence of `text` becomes `becomes`; of a drawn one, the bytes at `offset`."""

    folder: str
    file: str
    text: str
    becomes: str
    why: str
    test: str = ""  # hand-made: the test that should find it
    source: str = "hand"  # or "seed N"
    kind: str = ""
    offset: int = -1  # bytes from the start of the file; -1: look for the text

    def key(self) -> tuple:
        return (self.file, self.text, self.becomes, self.offset)


@dataclasses.dataclass(frozen=True)
class Folder:
    name: str
    tests: list
    promises: list
    faults: list
    equivalent: list


def read_folder(path: pathlib.Path) -> Folder:
    try:
        data = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path}: {error}") from error
    check_keys(path, data, {"folder": str, "tests": list}, {"promise": list, "fault": list, "equivalent": list})
    name = data["folder"]
    if path.stem != name.replace("/", "_"):
        raise Problem(f"{path}: the folder is {name}, so the file must be called {name.replace('/', '_')}.toml")
    faults = []
    for fault in data.get("fault", []):
        check_keys(path, fault, {"file": str, "text": str, "becomes": str, "why": str}, {"test": str})
        faults.append(Fault(name, fault["file"], fault["text"], fault["becomes"], fault["why"], fault.get("test", "")))
    for promise in data.get("promise", []):
        check_keys(path, promise, {"says": str, "in": str, "test": str}, {})
    for change in data.get("equivalent", []):
        check_keys(path, change, {"file": str, "text": str, "becomes": str, "why": str}, {})
    return Folder(name, data["tests"], data.get("promise", []), faults, data.get("equivalent", []))


def check_keys(path: pathlib.Path, data: dict, needed: dict, optional: dict) -> None:
    for key, kind in needed.items():
        if not isinstance(data.get(key), kind):
            raise Problem(f"{path}: expected \"{key}\" ({kind.__name__}) in {shortened(data)}")
    for key, value in data.items():
        kind = needed.get(key) or optional.get(key)
        if kind is None:
            raise Problem(f"{path}: found \"{key}\", expected one of {', '.join(needed | optional)}")
        if not isinstance(value, kind):
            raise Problem(f"{path}: \"{key}\" is no {kind.__name__}")


def shortened(data) -> str:
    text = str(data)
    return text if len(text) <= 120 else text[:117] + "..."


def read_all(root: pathlib.Path) -> dict:
    """Name -> Folder, of every list."""
    lists = [read_folder(path) for path in sorted((root / "tests/mutation/folders").glob("*.toml"))]
    if not lists:
        raise Problem("tests/mutation/folders has no list")
    return {folder.name: folder for folder in lists}


def tracked(root: pathlib.Path) -> list:
    """The files of the tree, as git lists them: committed, changed and new ones, ignored ones not."""
    said = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True, check=True)
    return [name for name in said.stdout.decode().split("\0") if name and (root / name).is_file()]


def product_folders(files: list) -> set:
    """Folders of the product that have sources of their own."""
    return {str(pathlib.PurePath(name).parent) for name in files if name.split("/")[0] in PRODUCT and name.endswith(CODE)}


def placed(fault: Fault, content: str) -> str:
    """The content with the fault in it."""
    count = content.count(fault.text)
    if count != 1:
        raise Problem(f"{fault.file}: found {count} times what a fault of {fault.folder} replaces, expected once: {shortened(fault.text)}")
    return content.replace(fault.text, fault.becomes)


def problems_of_lists(root: pathlib.Path, known_tests: set) -> list:
    """What is wrong with the lists, one line each. `known_tests` are the names that ctest has."""
    files = tracked(root)
    lists = read_all(root)
    found = []
    for name in sorted(product_folders(files)):
        if name not in lists:
            found.append(f"{name}: no tests/mutation/folders/{name.replace('/', '_')}.toml")
    sources = test_sources(root, files)
    for folder in lists.values():
        if len(folder.faults) < LEAST_FAULTS:
            found.append(f"{folder.name}: {len(folder.faults)} hand-made faults, expected at least {LEAST_FAULTS}")
        for test in folder.tests:
            if test not in known_tests:
                found.append(f"{folder.name}: ctest has no {test}")
        found.extend(problems_of_faults(root, folder))
        found.extend(problems_of_promises(folder, files, sources, known_tests))
    return found


def problems_of_faults(root: pathlib.Path, folder: Folder) -> list:
    found = []
    for fault in folder.faults:
        if str(pathlib.PurePath(fault.file).parent) != folder.name:
            found.append(f"{folder.name}: {fault.file} is in another folder")
            continue
        try:
            if placed(fault, (root / fault.file).read_text()) == (root / fault.file).read_text():
                found.append(f"{fault.file}: a fault changes nothing: {shortened(fault.text)}")
        except (Problem, OSError) as problem:
            found.append(str(problem))
        if len(fault.why.split()) < 3:
            found.append(f"{fault.file}: \"why\" says too little: {shortened(fault.text)}")
        if fault.test and fault.test not in folder.tests:
            found.append(f"{fault.file}: {fault.test} is not among the tests of {folder.name}")
    return found


def problems_of_promises(folder: Folder, files: list, sources: dict, known_tests: set) -> list:
    found = []
    for promise in folder.promises:
        if promise["in"] not in files:
            found.append(f"{folder.name}: a promise is said to stand in {promise['in']}, which is no file here")
        test, _, case = promise["test"].partition(" ")
        if test not in known_tests:
            found.append(f"{folder.name}: a promise names {test}, which ctest does not have")
        elif case != "*" and case not in sources.get(test.rpartition("/")[2], set()):
            found.append(f"{folder.name}: a promise names the case {shortened(case)}, which {test} does not have")
    return found


CASE = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)


def test_sources(root: pathlib.Path, files: list) -> dict:
    """Name of a test -> its cases, "Suite.Case"."""
    cases = {}
    for name in files:
        if name.startswith("tests/") and name.endswith("_test.cpp"):
            stem = pathlib.PurePath(name).name.removesuffix("_test.cpp")
            cases.setdefault(stem, set()).update(f"{a}.{b}" for a, b in CASE.findall((root / name).read_text()))
    return cases
