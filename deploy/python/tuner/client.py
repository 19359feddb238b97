"""The client. Messages are turned into plain values here; `raw` keeps each message for what these leave out."""

import json
import os
import time
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union, cast

import grpc

from . import access, errors, grpc_errors
from .values import Answer, Event, Job, JobFile, Path, Progress, Task, Worker

try:
    from ._proto import tuning_pb2, tuning_pb2_grpc
except ModuleNotFoundError as missing:
    if not (missing.name or "").endswith("_proto"):
        raise
    raise ImportError("the stubs of the tuner's protos are not made: python3 deploy/python/make_stubs.py, or "
                      "pip install ./deploy/python") from None

_STATES = {
    tuning_pb2.QUEUED: "queued",
    tuning_pb2.JOB_RUNNING: "running",
    tuning_pb2.FINISHED: "finished",
    tuning_pb2.CANCELLED: "cancelled",
    tuning_pb2.JOB_FAILED: "failed",
}
_ENDED = ("finished", "cancelled", "failed")
_MAX_MESSAGE_BYTES = 64 << 20


#: What the daemon takes (proto/convert.h). Others may not fit the message, which would say so in words of its own.
_RANGES = {"trials": (1, 10_000_000), "seed": (0, 2**64 - 1)}


def _set(request: Any, field: str, value: int) -> None:
    """A number out of range is the caller's mistake, in the daemon's words."""
    low, high = _RANGES[field]
    try:
        if low <= value <= high:
            setattr(request, field, value)
            return
    except (ValueError, TypeError):
        pass
    raise errors.InvalidRequest(f"submit.{field}: expected an integer from {low} to {high}, found {value}")


class Client:
    """A connection to a daemon, opened with the first call. Safe to use from several threads."""

    def __init__(self, address: Path = "127.0.0.1:7070", timeout_s: float = 30.0):
        """`address`: HOST:PORT, unix:/path, or a credentials file as `tuner admin token` writes it. `timeout_s`: of each
        call that does not say otherwise. InvalidRequest: the file cannot be read."""
        if not timeout_s > 0:
            raise ValueError(f"timeout_s: expected seconds above 0, found {timeout_s}")
        found = access.find(os.fspath(address))
        self._address = found.address
        self._listen = ("tls:" if found.authority else "") + found.address
        self._timeout_s = timeout_s
        #: Of each call. The daemon takes it on TLS, and from other users on a Unix socket.
        self._metadata = (("authorization", "Bearer " + found.token),) if found.token else None
        options: List[Tuple[str, Union[str, int]]] = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.keepalive_time_ms", 20_000), ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.max_reconnect_backoff_ms", 2_000)]
        if found.authority:
            # The daemon is known by its certificate, whatever name or address it is dialled by.
            options += [("grpc.ssl_target_name_override", "tuner-daemon"), ("grpc.use_local_subchannel_pool", 1)]
            self._channel = grpc.secure_channel(found.address, grpc.ssl_channel_credentials(
                found.authority.encode(), found.key.encode() or None, found.certificate.encode() or None), options)
        else:
            self._channel = grpc.insecure_channel(found.address, options=options)
        self._jobs = tuning_pb2_grpc.JobsStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # --- jobs ---

    def submit(self, job: JobFile, *, target: str = "", trials: Optional[int] = None, search: Optional[str] = None,
               seed: Optional[int] = None, stop_below_percent: Optional[float] = None,
               time_limit_s: Optional[float] = None, fresh: bool = False,
               timeout_s: Optional[float] = None) -> List[Job]:
        """Submits a job file; what is given here goes before what it says. Returns at once, with one job for each set
        of entries that is searched and measured alike. The same search again continues the stored job up to `trials`.

        A call that breaks is repeated until its time limit; that never makes a second job.
        """
        deadline = _Deadline(self._timeout_s if timeout_s is None else timeout_s)
        submitted = []
        for request in self._read(job, target, deadline):
            request.request_id = str(uuid.uuid4())
            request.fresh = fresh
            if trials is not None:
                _set(request, "trials", trials)
            if search is not None:
                request.search = search
            if seed is not None:
                _set(request, "seed", seed)
            if stop_below_percent is not None:
                request.stop.below = stop_below_percent / 100
            if time_limit_s is not None:
                request.stop.time_limit_s = time_limit_s
            reply = self._repeat(self._jobs.Submit, request, deadline)
            submitted.append(Job(reply.job_id, tuple(map(_task, request.tasks)),
                                 "finished" if reply.already_finished else "queued", reply.already_finished,
                                 reply.continued, reply))
        return submitted

    def watch(self, job: Union[str, Job], *, after_seq: int = 0, timeout_s: float = 3600.0,
              reconnect_s: float = 60.0) -> Iterator[Event]:
        """The job's events after `after_seq`, then live until it ends; the last one tells how. A connection that breaks is made again, without
        losing an event, for `reconnect_s`. DeadlineExceeded after `timeout_s`; the job itself goes on."""
        job_id = job.id if isinstance(job, Job) else job
        deadline, alive = _Deadline(timeout_s), time.monotonic()
        state = ""
        while True:
            try:
                request = tuning_pb2.WatchRequest(job_id=job_id, after_seq=after_seq)
                for message in self._jobs.Watch(request, timeout=deadline.left(), metadata=self._metadata):
                    after_seq, alive = max(after_seq, message.seq), time.monotonic()
                    state = _STATES.get(message.state, state)
                    yield _event(message)
                return
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise errors.DeadlineExceeded(f"{job_id} is still {state or 'open'} after {timeout_s:g} s and goes on. To "
                                                  f"see what it waits for: tuner jobs; to end it: tuner cancel {job_id}") from None
                lost = error.code() == grpc.StatusCode.UNAVAILABLE
                if not lost or time.monotonic() - alive > reconnect_s or deadline.left() <= 0:
                    raise grpc_errors.from_grpc(error, self._address, self._listen) from None
            self._pause(deadline)

    def wait(self, job: Union[str, Job], *, timeout_s: float = 3600.0,
             on_event: Optional[Callable[[Event], None]] = None) -> None:
        """Until the job is finished. JobFailed when it ends otherwise, DeadlineExceeded after `timeout_s`."""
        if isinstance(job, Job) and job.already_finished:
            return
        job_id = job.id if isinstance(job, Job) else job
        last = None
        for event in self.watch(job_id, timeout_s=timeout_s):
            last = event
            if on_event is not None:
                on_event(event)
        if last is None or last.state not in _ENDED:  # the end of the stream is the end of the job
            state = {j.id: j.state for j in self.jobs()}.get(job_id, "unknown")
            if state != "finished":
                raise errors.JobFailed(job_id, state, "the daemon ended the stream")
        elif last.state != "finished":
            raise errors.JobFailed(job_id, last.state, last.message)

    def cancel(self, job: Union[str, Job]) -> str:
        """Ends a job; its records stay. Returns its state."""
        job_id = job.id if isinstance(job, Job) else job
        reply = self._call(self._jobs.Cancel, tuning_pb2.CancelRequest(job_id=job_id))
        return _STATES.get(reply.state, "unknown")

    def jobs(self) -> List[Job]:
        reply = self._call(self._jobs.List, tuning_pb2.ListRequest())
        return [Job(j.job_id, tuple(map(_task, j.tasks)), _STATES.get(j.state, "unknown"), raw=j) for j in reply.jobs]

    def workers(self) -> List[Worker]:
        reply = self._call(self._jobs.ListWorkers, tuning_pb2.ListWorkersRequest())
        return [Worker(w.worker_id, w.host, tuple(w.targets), w.trials_done, w.silent_s) for w in reply.workers]

    # --- what was tuned ---

    def query(self, job: Union[JobFile, Task, Sequence[Task]], *, target: str = "",
              timeout_s: Optional[float] = None) -> List[Answer]:
        """The configuration of each task of a job file, or of tasks, in order."""
        deadline = _Deadline(self._timeout_s if timeout_s is None else timeout_s)
        if isinstance(job, Task):
            tasks = [job]
        elif isinstance(job, (list, tuple)) and job and all(isinstance(t, Task) for t in job):
            tasks = list(cast(Sequence[Task], job))
        else:
            tasks = [_task(t) for request in self._read(cast(JobFile, job), target, deadline) for t in request.tasks]
        answers = []
        for task in tasks:
            spec = tuning_pb2.TaskSpec(workload_key=task.workload, target=task.target, algorithms=task.algorithms,
                                       uses=task.uses, constants=task.constants)
            reply = self._repeat(self._jobs.Query, tuning_pb2.QueryRequest(task=spec), deadline)
            answers.append(_answer(task, reply))
        return answers

    # --- calls ---

    def _read(self, job: JobFile, target: str, deadline: "_Deadline") -> List[Any]:
        """SubmitRequests of a job file. The daemon reads it: there is one reader of job files, and it says what is
        wrong with one in the same words everywhere."""
        if isinstance(job, (dict, list)):
            name, text = "job", json.dumps(job)
        elif isinstance(job, (str, os.PathLike)):
            name = os.fspath(job)
            try:
                with open(name, encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError) as error:
                raise errors.InvalidRequest(f"{name}: cannot be read: {error}") from None
        else:
            raise TypeError(f"a job file: expected a path, a dict or a list, found {type(job).__name__}")
        request = tuning_pb2.ReadJobFileRequest(text=text, name=name, target=target)
        return list(self._repeat(self._jobs.ReadJobFile, request, deadline).jobs)

    def _call(self, method: Any, request: Any) -> Any:
        return self._repeat(method, request, _Deadline(self._timeout_s))

    def _repeat(self, method: Any, request: Any, deadline: "_Deadline") -> Any:
        """Calls until the daemon answers or the time is over; only for calls that may be made twice."""
        unreachable = None
        while True:
            try:
                return method(request, timeout=deadline.left(), metadata=self._metadata)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.UNAVAILABLE:
                    unreachable = error
                elif unreachable is None or error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise grpc_errors.from_grpc(error, self._address, self._listen) from None
                # That nobody was there says more than that the time was over at the last try.
                if error is not unreachable or deadline.left() < 0.3:
                    raise grpc_errors.from_grpc(unreachable, self._address, self._listen) from None
            self._pause(deadline)

    def _pause(self, deadline: "_Deadline") -> None:
        """Until a call is made again: until there is a connection, at least 0.2 and at most 3 seconds. gRPC connects
        while somebody waits for that; a client that only sleeps between calls meets a restarted daemon by chance."""
        begun = time.monotonic()
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=min(3.0, deadline.left()))
        except grpc.FutureTimeoutError:
            pass
        finally:
            ready.cancel()
        if time.monotonic() - begun < 0.2:
            deadline.sleep(0.2)


class _Deadline:
    def __init__(self, seconds: float):
        if not seconds > 0:
            raise ValueError(f"timeout_s: expected seconds above 0, found {seconds}")
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, self.left()))


def _task(spec: Any) -> Task:
    return Task(spec.workload_key, spec.target, spec.algorithms, max(1, spec.uses),
                "cold" if spec.constants == "cold" else "")


def _config(text: str) -> Dict[str, int]:
    pairs = (word.partition("=") for word in text.split())
    return {name: int(value) for name, _, value in pairs}


def _event(message: Any) -> Event:
    progress = None
    if message.HasField("progress"):
        p = message.progress
        progress = Progress(p.task_index, p.trials_done, p.trials_total, p.best_ns, p.best_config, p.trials_per_second,
                            p.eta_s)
    answer = None
    if message.HasField("tuned"):
        answer = _tuned(message.tuned, message)
    return Event(message.seq, _STATES.get(message.state, "unknown"), message.message, progress, answer, message)


def _tuned(t: Any, raw: Any) -> Answer:
    return Answer("exact", t.workload_key, t.target, t.template_name, t.template_version, _config(t.config), t.time_ns,
                  (t.time_low_ns, t.time_high_ns), t.trial_name or t.trial_id, 1.0, "", raw)


def _answer(task: Task, reply: Any) -> Answer:
    # Older daemons answer with what was tuned, or not at all.
    if "answer" not in reply.DESCRIPTOR.fields_by_name or not reply.HasField("answer"):
        if reply.found:
            return _tuned(reply.tuned, reply)
        return Answer("none", task.workload, task.target, "", 0, {}, note="nothing tuned for this task", raw=reply)
    a = reply.answer
    kind = a.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number[a.kind].name.lower().replace("_", "-")
    exact = kind == "exact" and a.HasField("tuned")
    return Answer(kind, task.workload, task.target, a.template_name, a.template_version, _config(a.config),
                  a.tuned.time_ns if exact else 0.0,
                  (a.tuned.time_low_ns, a.tuned.time_high_ns) if exact else (0.0, 0.0),
                  (a.tuned.trial_name or a.tuned.trial_id) if exact else "", a.predicted, a.note, reply)
