"""What was measured: answers of a database, and its records as arrays."""

import csv
import io
import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional

from . import errors, programs, tuning
from .values import Answer, JobFile, Path


def open(db: Optional[Path] = None) -> "Database":
    """A database of tuner; None: the one that commands use by default. It is only read."""
    return Database(db)


class Database:
    """Answers and records. Each method reads the database anew."""

    def __init__(self, db: Optional[Path] = None):
        if db is not None and not os.path.exists(os.fspath(db)):
            raise errors.NotFound(f"{os.fspath(db)}: there is no such database; tuner.tune(..., db=...) makes one")
        self._words = ["--db", os.path.abspath(os.fspath(db))] if db is not None else []

    def query(self, what: JobFile, *, target: str = "", timeout_s: float = 60.0, **keys: Any) -> List[Answer]:
        """The config of each task, in order: of an operator with its keys, or of a job file."""
        if isinstance(what, str) and not what.endswith(".json") and "/" not in what:
            job: Any = {"op": what, **tuning._plain(keys)}
            folder = None
        elif keys:
            raise errors.CallError(f"query: {next(iter(keys))}= goes with the name of an operator; a job file says it itself")
        else:
            job, folder = tuning._read(what)
        words = ["query", "-", "--json", *self._words]
        if target:
            words += ["--target", target]
        done = programs.run(words, text=json.dumps(job), folder=folder, timeout_s=timeout_s, accept=(0, 1))
        try:
            read = json.loads(done.output)
        except ValueError:
            raise errors.Error(done.message()) from None
        return [tuning.answer_of(answer, kind=answer["answer"]) for answer in (read if isinstance(read, list) else [read])]

    def records(self, *, job: str = "", op: str = "", since: str = "", target: str = "", timeout_s: float = 600.0) -> "Records":
        """The records of trials, in the order of the database; `job`, `op`, `since` and `target` choose."""
        words = ["records", "export", "--format", "csv", "-o", "-", *self._words]
        for word, value in (("--job", job), ("--op", op), ("--since", since), ("--target", target)):
            if value:
                words += [word, value]
        done = programs.run(words, timeout_s=timeout_s)
        return Records(_columns(done.output))

    def __repr__(self) -> str:
        return f"tuner.open({self._words[1]!r})" if self._words else "tuner.open()"


def _columns(text: str) -> Dict[str, List[str]]:
    # The table of another tuner's rows follows ours behind an empty line, with its own header.
    reader = csv.reader(io.StringIO(text))
    header: List[str] = []
    columns: Dict[str, List[str]] = {}
    for row in reader:
        if not header:
            header, columns = row, {name: [] for name in row}
        elif len(row) != len(header):
            break
        else:
            for name, cell in zip(header, row):
                columns[name].append(cell)
    return columns


class Records(Mapping[str, Any]):
    """Records as arrays, one per column. Numbers are numpy arrays of float64 or int64 (an empty cell is NaN), all else is text.

        r = tuner.open(db).records(job="j1")
        r["time_ns"]; r.knob("TILE_X"); r.best(); r.to_frame()
    """

    def __init__(self, columns: Dict[str, List[str]]):
        self._cells = columns
        self._arrays: Dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __getitem__(self, name: str) -> Any:
        if name not in self._arrays:
            self._arrays[name] = _array(self._cells[name])
        return self._arrays[name]

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(next(iter(self._cells.values()), []))

    def configs(self) -> List[Dict[str, int]]:
        return [{name: int(value) for name, _, value in (word.partition("=") for word in cell.split())}
                for cell in self._cells.get("config", [])]

    def knob(self, name: str) -> Any:
        """The knob's value in each record; NaN where a record's template lacks it."""
        import numpy
        values = [config.get(name) for config in self.configs()]
        if all(value is None for value in values):
            known = sorted({knob for config in self.configs() for knob in config})
            raise errors.InvalidRequest(f"records: there is no knob {name!r}; known are {', '.join(known) or 'none'}")
        return numpy.array([float("nan") if value is None else value for value in values])

    def best(self) -> Any:
        """The fastest right time so far, after each record, in nanoseconds; infinite before the first."""
        import numpy
        right = (self["outcome"] == "ok") & (self["time_ns"] > 0)
        if "cut" in self._cells:
            right &= numpy.array([cell not in ("1", "true") for cell in self._cells["cut"]], dtype=bool)
        return numpy.minimum.accumulate(numpy.where(right, self["time_ns"], numpy.inf)) if self.count else numpy.array([])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with the same columns."""
        try:
            import pandas
        except ImportError:
            raise errors.Error("to_frame needs pandas: pip install pandas, or the package python3-pandas") from None
        return pandas.DataFrame({name: self[name] for name in self._cells})

    def plot_curve(self, axes: Any = None) -> Any:
        """The best time so far over the trials, with matplotlib; returns the axes."""
        import numpy
        axes = _axes(axes)
        time_us = self["time_ns"] / 1e3
        right = self["outcome"] == "ok"
        trial = numpy.arange(1, self.count + 1)
        axes.plot(trial[right], time_us[right], ".", color="0.7", label="trials")
        axes.step(trial, self.best() / 1e3, where="post", label="best so far")
        axes.set_yscale("log")
        axes.set_xlabel("trial")
        axes.set_ylabel("time of a call (us)")
        axes.legend()
        return axes

    def plot_knob(self, name: str, axes: Any = None) -> Any:
        """The times over the values of one knob, with matplotlib; returns the axes."""
        axes = _axes(axes)
        right = self["outcome"] == "ok"
        axes.plot(self.knob(name)[right], self["time_ns"][right] / 1e3, ".")
        axes.set_yscale("log")
        axes.set_xlabel(name)
        axes.set_ylabel("time of a call (us)")
        return axes


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise errors.Error("plots need matplotlib: pip install matplotlib, or the package python3-matplotlib") from None
    return pyplot.subplots()[1]


def _array(cells: List[str]) -> Any:
    import numpy
    for kind in (int, float):
        try:
            if kind is int and any(not cell for cell in cells):
                raise ValueError
            return numpy.array([kind(cell) if cell else float("nan") for cell in cells],
                               dtype=numpy.int64 if kind is int else numpy.float64)
        except (ValueError, OverflowError):
            continue
    return numpy.array(cells, dtype=object if not cells else None)

