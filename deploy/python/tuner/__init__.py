"""Tune kernels and call them with arrays; talk to a daemon; search.

    import tuner

    kernel = tuner.tune("conv2d", data=(1, 64, 56, 56), weight=(64, 64, 3, 3), padding=1, trials=64)
    y = kernel(x, w)                          # numpy arrays, torch tensors, DLPack capsules; nothing is copied

    stencil = tuner.kernel("stencil.json")    # a kernel of your own
    net = tuner.compile("model.onnx")         # a model
    tuner.judge("theirs.c", job="job.json")   # is somebody's kernel right, and fast?
    tuner.open("tuner.db").query("conv2d.json")

    space = tuner.Space({"TILE": [8, 16, 32]})  # the search alone, for an objective of your own

    with tuner.Client("127.0.0.1:7070") as client:  # a daemon
        for job in client.submit("conv2d.json", trials=64):
            client.wait(job, timeout_s=600, on_event=print)

Errors are subclasses of tuner.Error with one line that says what to do. Each part is loaded when it is first used: a client needs no
numpy, and a kernel no gRPC.
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from .errors import (AlignmentError, ArrayError, CallError, DeadlineExceeded, Denied, DeviceError, DTypeError, Error, InvalidRequest,
                     JobFailed, NotFound, ProgramMissing, ReadOnlyError, Refused, ShapeError, StridesError, Unavailable)
from .values import Answer, Event, Job, Progress, Task, Worker

if TYPE_CHECKING:
    from ._kernels import Kernel, Operand
    from .arrays import aligned, empty, zeros
    from .client import Client
    from .database import Database, Records, open
    from .judging import Verdict, judge
    from .space import RecordedSpace, Search, Space, strategies
    from .tuning import compile, kernel, load, load_model, tune

_WHERE = {"Client": "client", "Kernel": "_kernels", "Operand": "_kernels", "Database": "database", "Records": "database",
          "open": "database", "Verdict": "judging", "judge": "judging", "RecordedSpace": "space", "Search": "space",
          "Space": "space", "strategies": "space", "aligned": "arrays", "empty": "arrays", "zeros": "arrays", "compile": "tuning",
          "kernel": "tuning", "load": "tuning", "load_model": "tuning", "tune": "tuning"}

__all__ = ["AlignmentError", "Answer", "ArrayError", "CallError", "Client", "DTypeError", "Database", "DeadlineExceeded", "Denied",
           "DeviceError", "Error", "Event", "InvalidRequest", "Job", "JobFailed", "Kernel", "NotFound", "Operand", "ProgramMissing",
           "Progress", "ReadOnlyError", "RecordedSpace", "Records", "Refused", "Search", "ShapeError", "Space", "StridesError",
           "Task", "Unavailable", "Verdict", "Worker", "aligned", "compile", "empty", "judge", "kernel", "load", "load_model", "open",
           "strategies", "tune", "zeros"]


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'tuner' has no attribute {name!r}")
    value = getattr(importlib.import_module("." + module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
