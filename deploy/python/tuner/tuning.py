"""From an operator, or a source, to a kernel that is called with arrays."""

import json
import os
import pathlib
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from . import _kernels, errors, programs, progress
from ._kernels import Kernel
from .values import Answer, JobFile, Path

#: Shorter kernels keep the GIL: to give it up and to take it back costs as much as a call of theirs.
_RELEASES_GIL_FROM_NS = 5000.0
_Job = Union[Dict[str, Any], List[Dict[str, Any]]]


def tune(what: JobFile, *, target: str = "", trials: Optional[int] = None, search: Optional[str] = None,
         seed: Optional[int] = None, stop_below_percent: Optional[float] = None, time_limit_s: Optional[float] = None,
         fresh: bool = False, db: Optional[Path] = None, daemon: Optional[Path] = None,
         progress: progress.Show = None, timeout_s: float = 3600.0, output: Optional[Path] = None,
         **keys: Any) -> Any:
    """Tunes, and returns a kernel that is called with arrays.

        kernel = tuner.tune("conv2d", data=(1, 64, 56, 56), weight=(64, 64, 3, 3), padding=1, trials=64)
        y = kernel(x, w)

    `what`: an operator, whose keys follow as in a job file; or a job file as a path, a dict or a list. Of a list, the result is a
    list of kernels. What was tuned before is taken from the database: the same call again is quick.

    `daemon`: a farm's address or credentials file tunes instead of this machine; the kernel must still run here.
    `output`: a folder that keeps the library; tuner.load() opens it again.
    """
    if isinstance(what, str) and not what.endswith(".json") and "/" not in what:
        job: _Job = {"op": what, **_plain(keys)}
        folder: Optional[pathlib.Path] = None
    else:
        if keys:
            raise errors.CallError(f"tune: {next(iter(keys))}= goes with the name of an operator; a job file says it itself")
        job, folder = _read(what)
    wish = _Wish(target, trials, search, seed, stop_below_percent, time_limit_s, fresh, db, daemon, progress, timeout_s, output)
    kernels = _tune(job, folder, wish)
    return kernels if isinstance(job, list) else kernels[0]


def kernel(source: Path, *, target: str = "", trials: Optional[int] = None, search: Optional[str] = None,
           seed: Optional[int] = None, stop_below_percent: Optional[float] = None, time_limit_s: Optional[float] = None,
           fresh: bool = False, db: Optional[Path] = None, daemon: Optional[Path] = None,
           progress: progress.Show = None, timeout_s: float = 3600.0, output: Optional[Path] = None,
           **keys: Any) -> Kernel:
    """Tunes a kernel of yours, and returns it.

        stencil = tuner.kernel("stencil.c", function="stencil", sizes={...}, arguments=[...], knobs={...}, trials=64)

    The keys are those of a job file with "op": "kernel" (docs/own_kernels.md). Names of files are relative to the folder of
    `source`. A path that ends with .json is a job file that says all of this.
    """
    path = pathlib.Path(source)
    wish = _Wish(target, trials, search, seed, stop_below_percent, time_limit_s, fresh, db, daemon, progress, timeout_s, output)
    if path.suffix == ".json":
        if keys:
            raise errors.CallError(f"kernel: {next(iter(keys))}= goes with a source; a job file says it itself")
        job, folder = _read(path)
        if isinstance(job, list):
            raise errors.InvalidRequest(f"{path}: expected one kernel, found a list of {len(job)}; tuner.tune() takes lists")
    else:
        if not path.is_file():
            raise errors.InvalidRequest(f"{path}: there is no such source")
        job, folder = {"op": "kernel", "source": path.name, **_plain(keys)}, path.resolve().parent
    return _tune(job, folder, wish)[0]


def load(folder: Path) -> Dict[str, Kernel]:
    """The kernels of a folder that `tuner build`, or `output=`, wrote, by the names of their functions."""
    manifest = _manifest(pathlib.Path(folder))
    return {str(entry["function"]): _load_one(pathlib.Path(folder), entry, None) for entry in manifest}


def compile(model: Path, *, name: str = "", tune: bool = True, trials: Optional[int] = None,
            time_limit_s: Optional[float] = None, threads: int = 1, batch: Optional[int] = None,
            dims: Optional[Mapping[str, int]] = None, constants: Optional[Mapping[str, Any]] = None,
            db: Optional[Path] = None, progress: progress.Show = None, timeout_s: float = 3600.0,
            output: Optional[Path] = None) -> Kernel:
    """Tunes and compiles an ONNX model, and returns it. It is called with the model's inputs, and returns its outputs.

        net = tuner.compile("model.onnx", time_limit_s=60)
        scores = net(image)

    `tune=False` takes what is known, and default configs for the rest. `dims`: extents of the model that have names. `constants`:
    inputs that never change, as arrays. `output`: a folder that keeps the library; tuner.load_model() opens it again.
    """
    words = ["compile", os.path.abspath(os.fspath(model)), "--threads", str(threads)]
    if name:
        words += ["--name", name]
    if not tune:
        words.append("--no-tune")
    if trials is not None:
        words += ["--trials", str(trials)]
    if time_limit_s is not None:
        words += ["--time-limit", str(time_limit_s)]
    if batch is not None:
        words += ["--batch", str(batch)]
    for dim, extent in (dims or {}).items():
        words += ["--dim", f"{dim}={extent}"]
    words += _db(db)
    view = _view(progress, os.path.basename(os.fspath(model)))
    with tempfile.TemporaryDirectory(prefix="tuner-") as scratch:
        for number, (constant, value) in enumerate((constants or {}).items()):
            import numpy
            path = os.path.join(scratch, f"constant{number}.npy")
            numpy.save(path, value)
            words += ["--constant", f"{constant}={path}"]
        folder = os.path.abspath(os.fspath(output)) if output is not None else os.path.join(scratch, "model")
        try:
            programs.run([*words, "-o", folder], timeout_s=timeout_s, on_line=view.line)
            view.done("compiled")
        finally:
            view.close()
        return load_model(folder)


def load_model(folder: Path, threads: int = 0) -> Kernel:
    """The model of a folder that `tuner compile` wrote. `threads`: 0 as many as it was compiled for."""
    if not 0 <= threads <= 4096:
        raise errors.InvalidRequest(f"threads: expected 0 to 4096, found {threads}")
    return _kernels.load_model(os.path.abspath(os.fspath(folder)), threads)


class _Wish:
    """How to tune, as options of the command."""

    def __init__(self, target: str, trials: Optional[int], search: Optional[str], seed: Optional[int],
                 stop_below_percent: Optional[float], time_limit_s: Optional[float], fresh: bool,
                 db: Optional[Path], daemon: Optional[Path], show: progress.Show, timeout_s: float,
                 output: Optional[Path]):
        self.target = ["--target", target] if target else []
        self.search: List[str] = []
        for word, value in (("--trials", trials), ("--search", search), ("--seed", seed),
                            ("--stop-below", stop_below_percent), ("--time-limit", time_limit_s)):
            if value is not None:
                self.search += [word, str(value)]
        if fresh:
            self.search.append("--fresh")
        if db is not None and daemon is not None:
            raise errors.CallError("tune: expected db= or daemon=, found both; a daemon has its own database")
        self.db = _db(db)
        self.daemon = ["--daemon", _daemon_word(daemon)] if daemon is not None else []
        self.show = show
        self.timeout_s = timeout_s
        self.output = pathlib.Path(output).resolve() if output is not None else None


def _tune(job: _Job, folder: Optional[pathlib.Path], wish: _Wish) -> List[Kernel]:
    text = json.dumps(job)
    entries = job if isinstance(job, list) else [job]
    view = _view(wish.show, str(entries[0].get("name") or entries[0].get("op", "job")) if entries else "job")
    where = wish.daemon or wish.db
    with tempfile.TemporaryDirectory(prefix="tuner-") as scratch:
        cwd = folder if folder is not None else pathlib.Path(scratch)
        try:
            done = programs.run(["submit", "-", "--json", *wish.search, *wish.target, *where], text=text, folder=cwd,
                                timeout_s=wish.timeout_s, on_line=view.line, accept=(0, 1))
            answers, order = _answers(done)
            view.done("tuned: " + ", ".join(progress.time_text(a.time_ns) for a in list(answers.values())[:4]))
        finally:
            view.close()
        target = wish.output if wish.output is not None else pathlib.Path(scratch) / "library"
        known = wish.db
        if wish.daemon:
            # The daemon's answers as text; building needs no database then.
            lock = os.path.join(scratch, "answers.lock")
            programs.run(["lock", "-", "-o", lock, *wish.target, *wish.daemon], text=text, folder=cwd, timeout_s=wish.timeout_s)
            known = ["--lock", lock]
        programs.run(["build", "-", "-o", str(target), "--emit", "so", *wish.target, *known], text=text, folder=cwd,
                     timeout_s=wish.timeout_s)
        made = {str(entry["workload"]): entry for entry in _manifest(target)}
        return [_load_one(target, made[workload], answers[workload]) for workload in order]


def _answers(done: programs.Done) -> Tuple[Dict[str, Answer], List[str]]:
    """What `tuner submit` found for each workload, and their order."""
    try:
        jobs = json.loads(done.output) if done.output.strip() else []
    except ValueError:
        raise errors.Error(f"tuner submit printed no JSON: {done.output[:80]!r}") from None
    found: Dict[str, Answer] = {}
    order: List[str] = []
    for job in jobs:
        for task in job["tasks"]:
            if task["tuned"] is None:
                raise errors.JobFailed(job["job"], "failed", f"it has no right config of {task['workload']}: {done.message()}")
            order.append(task["workload"])
            found[task["workload"]] = answer_of(task["tuned"], kind="exact")
    if not order:
        raise errors.Error(done.message())
    return found, order


def answer_of(tuned: Dict[str, Any], kind: str) -> Answer:
    """The Answer that a JSON object of a tuned config, or of `tuner query`, is."""
    exact = kind in ("exact", "locked") and "time_ns" in tuned
    low, high = tuned.get("time_low_ns"), tuned.get("time_high_ns")
    predicted = tuned.get("predicted")
    return Answer(kind, tuned["workload"], tuned["target"], tuned.get("template", ""), int(tuned.get("template_version", 0)),
                  dict(tuned.get("config", {})), float(tuned["time_ns"]) if exact else 0.0,
                  (float(low), float(high)) if exact and low is not None and high is not None else (0.0, 0.0),
                  str(tuned.get("trial", "")) if exact else "",
                  1.0 if kind == "exact" else float((predicted or {}).get("of_optimum", 0.0)), str(tuned.get("note", "")), tuned)


def _load_one(folder: pathlib.Path, entry: Dict[str, Any], answer: Optional[Answer]) -> Kernel:
    if "launcher" in entry:
        raise errors.InvalidRequest(f"{entry['function']}: is a kernel for a GPU, which {entry['launcher']} launches from C. Python "
                                    "calls kernels of CPUs; tuner.tune(..., output=DIR) keeps the folder")
    if answer is None and entry.get("measured"):
        answer = answer_of({**entry["measured"], "workload": entry["workload"], "target": entry["target"]}, kind="exact")
    time_ns = answer.time_ns if answer is not None else 0.0
    made = _kernels.load_kernel(str(folder), entry["workload"], not 0 < time_ns < _RELEASES_GIL_FROM_NS)
    made.name = str(entry["function"])
    made.answer = answer
    return made


def _manifest(folder: pathlib.Path) -> List[Dict[str, Any]]:
    path = folder / "manifest.json"
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return cast(List[Dict[str, Any]], read["kernels"])
    except OSError as error:
        raise errors.InvalidRequest(f"{path}: cannot be read: {error.strerror}. Expected a folder that tuner build wrote") from None
    except (ValueError, KeyError, TypeError):
        raise errors.InvalidRequest(f"{path}: is no manifest of a library. Build it again: tuner build FILE -o DIR") from None


def _read(what: JobFile) -> Tuple[_Job, Optional[pathlib.Path]]:
    if isinstance(what, (dict, list)):
        return cast(_Job, _plain(what)), None
    if not isinstance(what, (str, os.PathLike)):
        raise errors.CallError(f"expected an operator's name, or a job file as a path, a dict or a list; found {type(what).__name__}")
    path = pathlib.Path(what)
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidRequest(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'no text'}") from None
    except ValueError as error:
        raise errors.InvalidRequest(f"{path}: expected JSON, found {error}") from None
    return read, path.resolve().parent


def _plain(value: Any) -> Any:
    """Tuples, ranges and numpy's numbers as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, range):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return value.item()
    return value


def _db(db: Optional[Path]) -> List[str]:
    return ["--db", os.path.abspath(os.fspath(db))] if db is not None else []


def _daemon_word(daemon: Path) -> str:
    """A credentials file is named from any folder."""
    word = os.fspath(daemon)
    return os.path.abspath(word) if os.path.isfile(word) else word


def _view(show: progress.Show, what: str) -> progress.View:
    return progress.View(show, what)


__all__: Sequence[str] = ("tune", "kernel", "load", "compile", "load_model")
