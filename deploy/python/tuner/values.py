"""What jobs, answers and workers are, as plain values."""

import dataclasses
import os
from typing import Any, Dict, List, Optional, Tuple, Union

Path = Union[str, "os.PathLike[str]"]
#: A job file: its path, or its contents as a dict (one entry) or a list of them.
JobFile = Union[Path, Dict[str, Any], List[Dict[str, Any]]]


@dataclasses.dataclass(frozen=True)
class Task:
    """A workload on a target, by their canonical names."""
    workload: str
    target: str
    algorithms: str = ""
    uses: int = 1
    constants: str = ""            # "cold": its times mean constants that are not in a cache; empty: warm


@dataclasses.dataclass(frozen=True)
class Job:
    """A submitted job, or one of those a daemon lists."""
    id: str
    tasks: Tuple[Task, ...]
    state: str                     # "queued", "running", "finished", "cancelled", "failed"
    already_finished: bool = False  # the same search was finished before: nothing runs
    continued: bool = False         # the stored job of the same search goes on
    raw: Any = dataclasses.field(default=None, repr=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Progress:
    task_index: int
    trials_done: int    # of the job, all tasks
    trials_total: int
    best_ns: float      # of the task; 0: none yet
    best_config: str
    trials_per_second: float
    eta_s: float


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened to a job."""
    seq: int                      # grows; events that are only progress share it with the one before them
    state: str
    message: str                  # for people; may be empty
    progress: Optional[Progress]
    answer: Optional["Answer"]    # when a task is finished: what was tuned
    raw: Any = dataclasses.field(default=None, repr=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Answer:
    """The configuration a task gets.

    `kind` says how it is known: "exact" (tuned), "same-family", "nearest", "portable", "default"; "none" when the
    daemon knows nothing at all. `time_ns` and its 95 % interval were measured for the task itself; 0 unless exact. The
    interval is (0, 0) if the time is not certified.
    """
    kind: str
    workload: str
    target: str
    template: str
    template_version: int
    config: Dict[str, int]
    time_ns: float = 0.0
    time_interval_ns: Tuple[float, float] = (0.0, 0.0)
    trial: str = ""
    predicted: float = 0.0  # speed as a fraction of what tuning would reach; 0: not known
    note: str = ""          # what is lost and how to mend it; empty when there is nothing to say
    raw: Any = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def found(self) -> bool:
        """Whether the task itself was tuned."""
        return self.kind == "exact"


@dataclasses.dataclass(frozen=True)
class Worker:
    id: str
    host: str
    targets: Tuple[str, ...]
    trials_done: int
    silent_s: float
