"""Is somebody's kernel right, and how fast is it?"""

import dataclasses
import json
import os
from typing import Any, List, Optional, Tuple

from . import errors, programs
from .values import Path


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the judge says (docs/judge.md)."""
    verdict: str                                   # "right", "right, not timed", "wrong", "crashed", "refused", ...
    why: str                                       # empty if it is right
    ratio: float = 0.0                             # the other's time over its own; 0: not timed
    ratio_interval: Tuple[float, float] = (0.0, 0.0)  # 95 %
    time_ns: float = 0.0                           # of a call; 0: not timed
    against: str = ""                              # what it raced with
    raw: Any = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def right(self) -> bool:
        return self.verdict in ("right", "right, not timed")

    def __bool__(self) -> bool:
        return self.right


def judge(source: Path, *, job: Path, function: str = "",
          against: Optional[Path] = None, against_function: str = "", seed: int = 0, isolation: str = "strict",
          target: str = "", on_host: bool = False, timeout_s: float = 600.0) -> Verdict:
    """Judges the kernel of a source, which may cheat, by a job file that says what it has to compute."""
    words: List[str] = ["kernel", "judge", os.fspath(source), "--job", os.fspath(job), "--json", "--seed", str(seed), "--isolation",
                        isolation]
    for word, value in (("--function", function), ("--against", os.fspath(against) if against is not None else ""),
                        ("--against-function", against_function), ("--target", target)):
        if value:
            words += [word, value]
    if on_host:
        words.append("--on-host")
    done = programs.run(words, timeout_s=timeout_s, accept=(0, 1))
    try:
        read = json.loads(done.output)
        verdict = str(read["verdict"])
    except (ValueError, KeyError):
        raise errors.Error(done.message()) from None
    interval: Optional[Tuple[float, float]] = None
    if "ratio_low" in read:
        interval = (float(read["ratio_low"]), float(read["ratio_high"]))
    return Verdict(verdict, str(read.get("why", "")), float(read.get("ratio", 0.0)), interval or (0.0, 0.0),
                   float(read.get("time_ns", 0.0)), str(read.get("against", "")), read)
