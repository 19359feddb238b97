"""Runs the programs of tuner: finds them, gives them a deadline, and turns what they say into exceptions.

They are programs, not a library, for three reasons. A crash of a candidate, of LLVM or of a compiler then ends no Python process. The
daemon that they host keeps a job when Python is interrupted. And nothing of gRPC or LLVM meets that of another Python package.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from . import errors
from .values import Path

#: Where a wheel has them (wheel.sh).
_OWN = pathlib.Path(__file__).resolve().parent / "_programs"
#: After its deadline or an interruption, a program has so long to store what it measured.
_GRACE_S = 20.0
_MOST_OUTPUT = 256 << 20


def find(name: str = "tuner") -> str:
    """The program: of TUNER_BIN_DIR, of this package, or of PATH. ProgramMissing if it is nowhere."""
    asked = os.environ.get("TUNER_BIN_DIR")
    if asked:
        path = pathlib.Path(asked) / name
        if os.access(path, os.X_OK):
            return str(path)
        raise errors.ProgramMissing(f"TUNER_BIN_DIR={asked}: expected the program {name} there, found none")
    if os.access(_OWN / name, os.X_OK):
        return str(_OWN / name)
    found = shutil.which(name)
    if found:
        return found
    raise errors.ProgramMissing(f"the program {name} is not installed: install the wheel of deploy/python/wheel.sh or the package "
                                "tuner, or set TUNER_BIN_DIR")


class Done:
    """A program that ended: exit code, standard output, lines of standard error."""

    def __init__(self, code: int, output: str, lines: List[str]):
        self.code = code
        self.output = output
        self.lines = lines

    def message(self) -> str:
        """What it said was wrong, in one line."""
        said = [line[len("tuner: "):] for line in self.lines if line.startswith("tuner: ")]
        text = said[-1] if said else (self.lines[-1] if self.lines else "it said nothing")
        # What came by standard input has no file name that anybody knows.
        return text.replace("standard input: ", "job: ", 1)


def run(words: Sequence[str], *, timeout_s: float, folder: Optional[Path] = None, text: str = "",
        on_line: Optional[Callable[[str], None]] = None, accept: Sequence[int] = (0,)) -> Done:
    """Runs `tuner WORDS...` in `folder`, with `text` as its standard input. `on_line` gets each line of standard error.

    InvalidRequest if it ends with 2, DeadlineExceeded after `timeout_s`, ProgramMissing if it cannot start, and Error if its exit code
    is none of `accept`. An exception in between, as by Ctrl-C, interrupts the program: it stores what it has.
    """
    if not timeout_s > 0:
        raise errors.InvalidRequest(f"timeout_s: expected seconds above 0, found {timeout_s}")
    command = [find(), *words]
    try:
        # In a session of its own, so that Ctrl-C reaches it once: through _interrupt().
        process = subprocess.Popen(command, start_new_session=True, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", env=_environment())
    except OSError as error:
        raise errors.ProgramMissing(f"{command[0]}: cannot be started: {error.strerror}") from None
    reader = _Reader(process, text)
    try:
        deadline = time.monotonic() + timeout_s
        while reader.busy():
            left = deadline - time.monotonic()
            if left <= 0:
                _interrupt(process)
                raise errors.DeadlineExceeded(f"tuner {words[0]} is not done after {timeout_s:g} s; what it measured is stored, and the "
                                              "same call goes on there")
            line = reader.line(min(left, 0.1))
            if line is not None and on_line is not None:
                on_line(line)
        try:
            code = process.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise errors.DeadlineExceeded(f"tuner {words[0]} does not end after {timeout_s:g} s") from None
    finally:
        if process.poll() is None:
            _interrupt(process)
        reader.close()
    done = Done(code, reader.output(), reader.lines)
    if code == 127 or (code != 0 and "error while loading shared libraries" in " ".join(done.lines)):
        raise errors.ProgramMissing(f"{command[0]}: {done.message()}. Install the packages that deploy/python/README.md lists")
    if code in accept:
        return done
    if code == 2:
        raise errors.InvalidRequest(done.message())
    if code < 0:
        raise errors.Error(f"tuner {words[0]} was ended by {signal.Signals(-code).name}")
    raise errors.Error(done.message())


def _environment() -> Mapping[str, str]:
    """That of this process. A virtual environment's PYTHON variables say nothing to programs in C++."""
    environment: Dict[str, str] = dict(os.environ)
    environment["TERM"] = "dumb"
    return environment


def _interrupt(process: "subprocess.Popen[str]") -> None:
    """Ends it as Ctrl-C does, or for good if it takes too long."""
    for number, seconds in ((signal.SIGINT, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            continue


class _Reader:
    """Reads both streams of a program in threads, so that none of them fills its pipe."""

    def __init__(self, process: "subprocess.Popen[str]", text: str):
        self._process = process
        self._parts: List[str] = []
        self._bytes = 0
        self.lines: List[str] = []
        self._unseen: List[str] = []
        self._news = threading.Condition()
        self._threads = [threading.Thread(target=work, daemon=True)
                         for work in (lambda: self._write(text), self._read_output, self._read_lines)]
        for thread in self._threads:
            thread.start()

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text)
            self._process.stdin.close()
        except OSError:  # it ended before it read all; its message says why
            pass

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for part in iter(lambda: self._process.stdout.read(1 << 16), ""):  # type: ignore[union-attr]
            self._bytes += len(part)
            if self._bytes <= _MOST_OUTPUT:
                self._parts.append(part)

    def _read_lines(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._news:
                self._unseen.append(line.rstrip("\n"))
                self._news.notify()

    def busy(self) -> bool:
        return bool(self._unseen) or any(thread.is_alive() for thread in self._threads)

    def line(self, wait_s: float) -> Optional[str]:
        """The next line of standard error, or None after `wait_s`."""
        with self._news:
            if not self._unseen:
                self._news.wait(wait_s)
            if not self._unseen:
                return None
            line = self._unseen.pop(0)
        if line:
            self.lines.append(line)
            del self.lines[:-1000]
        return line or None

    def output(self) -> str:
        if self._bytes > _MOST_OUTPUT:
            raise errors.Error(f"the program printed more than {_MOST_OUTPUT} bytes")
        return "".join(self._parts)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(timeout=_GRACE_S)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
