"""Shows how a search goes on: in a terminal one line that is written over, in a notebook one output that changes."""

import re
import shutil
import sys
from typing import Any, Callable, Optional, Union

from .values import Progress

#: What `progress=` may be: None shows it where somebody looks, True and False decide, a function gets each Progress.
Show = Union[None, bool, Callable[[Progress], None]]

_LINE = re.compile(r"(\d+)/(\d+) trials  (?:task (\d+)/\d+  )?(?:best ([0-9.]+) (ns|us|ms|s)\b)?")
_RATE = re.compile(r"([0-9.]+) trials/s")
_LEFT = re.compile(r"about (?:(\d+) h )?(?:(\d+) min ?)?(?:(\d+) s)? ?left")
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def parse(line: str) -> Optional[Progress]:
    """The Progress that a line of `tuner submit` tells; None if it tells something else."""
    found = _LINE.match(line)
    if found is None:
        return None
    done, total, task, best, unit = found.groups()
    rate, left = _RATE.search(line), _LEFT.search(line)
    hours, minutes, seconds = (int(part or 0) for part in left.groups()) if left else (0, 0, 0)
    return Progress(int(task) - 1 if task else 0, int(done), int(total), float(best) * _UNITS[unit] if best else 0.0, "",
                    float(rate.group(1)) if rate else 0.0, 3600.0 * hours + 60.0 * minutes + seconds)


def time_text(time_ns: float) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= scale:
            return f"{time_ns / scale:.4g} {unit}"
    return f"{time_ns:.4g} ns"


class View:
    """Takes the lines of a program while it runs."""

    def __init__(self, show: Show, what: str):
        self._what = what
        self._call: Optional[Callable[[Progress], None]] = show if callable(show) else None
        self._notebook: Any = None
        self._terminal = False
        self._drawn = False
        if show is None or show is True:
            self._notebook = _notebook_output(f"{what}: begins")
            self._terminal = self._notebook is None and (show is True or sys.stderr.isatty())
        self.latest: Optional[Progress] = None

    def line(self, line: str) -> None:
        progress = parse(line)
        if progress is not None:
            self.latest = progress
            if self._call is not None:
                self._call(progress)
        self._draw(self._text(progress) if progress is not None else f"{self._what}: {line.strip()}")

    def done(self, text: str) -> None:
        self._draw(f"{self._what}: {text}")
        if self._drawn and self._terminal:
            print(file=sys.stderr)
        self._drawn = False

    def close(self) -> None:
        """Leaves the line, whatever happened."""
        if self._drawn and self._terminal:
            print(file=sys.stderr)
        self._drawn = False

    def _text(self, p: Progress) -> str:
        width = 20
        filled = width * p.trials_done // max(1, p.trials_total)
        best = f"best {time_text(p.best_ns)}" if p.best_ns > 0 else "no right answer yet"
        rate = f", {p.trials_per_second:.0f} trials/s" if p.trials_per_second > 0 else ""
        return f"{self._what}: [{'#' * filled}{'.' * (width - filled)}] {p.trials_done}/{p.trials_total}, {best}{rate}"

    def _draw(self, text: str) -> None:
        if self._notebook is not None:
            self._notebook.update({"text/plain": text}, raw=True)
        elif self._terminal:
            # One column less: a full line would wrap in some terminals.
            width = max(20, shutil.get_terminal_size().columns - 1)
            print("\r\x1b[K" + text[:width], end="", file=sys.stderr, flush=True)
            self._drawn = True


def _notebook_output(text: str) -> Any:
    """A display that can be changed, if a notebook's kernel runs this; else None."""
    if "IPython" not in sys.modules:
        return None
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    shell = get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    return display({"text/plain": text}, raw=True, display_id=True)
