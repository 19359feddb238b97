"""Client of a tuner daemon: submit jobs, watch them, ask for what was tuned.

    import tuner

    with tuner.Client("127.0.0.1:7070") as client:
        for job in client.submit("conv2d.json", trials=64):
            client.wait(job, timeout_s=600, on_event=print)
        for answer in client.query("conv2d.json"):
            print(answer.kind, answer.template, answer.config, answer.time_ns)

Every call has a deadline. Errors are subclasses of tuner.Error with one line that says what to do.
"""

from .client import Answer, Client, Event, Job, Progress, Task, Worker
from .errors import DeadlineExceeded, Error, InvalidRequest, JobFailed, NotFound, Refused, Unavailable

__all__ = ["Answer", "Client", "DeadlineExceeded", "Error", "Event", "InvalidRequest", "Job", "JobFailed", "NotFound",
           "Progress", "Refused", "Task", "Unavailable", "Worker"]
