"""Client of a tuner daemon: submit jobs, watch them, ask for what was tuned.

    import tuner

    with tuner.Client("127.0.0.1:7070") as client:
        for job in client.submit("conv2d.json", trials=64):
            client.wait(job, timeout_s=600, on_event=print)
        for answer in client.query("conv2d.json"):
            print(answer.kind, answer.template, answer.config, answer.time_ns)

A daemon of another host: tuner.Client("alice.credentials"), with the file that `tuner admin token` wrote.

Every call has a deadline. Errors are subclasses of tuner.Error with one line that says what to do.
"""

from .client import Answer, Client, Event, Job, Progress, Task, Worker
from .errors import DeadlineExceeded, Denied, Error, InvalidRequest, JobFailed, NotFound, Refused, Unavailable

__all__ = ["Answer", "Client", "DeadlineExceeded", "Denied", "Error", "Event", "InvalidRequest", "Job", "JobFailed",
           "NotFound", "Progress", "Refused", "Task", "Unavailable", "Worker"]
