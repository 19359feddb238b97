"""What can go wrong, by what the caller can do about it. Each text is one line for people."""


class Error(Exception):
    """The base of all; its text is one line for people."""


class InvalidRequest(Error):
    """The job file, a target or an option is wrong: the text names the place. Mend it and call again."""


class NotFound(Error):
    """There is no such job, trial or kernel."""


class Unavailable(Error):
    """No daemon answers there, or it is going down. Trying again later may work."""


class DeadlineExceeded(Error):
    """The call's time limit passed first. What was submitted goes on in the daemon."""


class Refused(Error):
    """The daemon cannot do it now: the job has ended already, its disk is full..."""


class Denied(Error):
    """The daemon does not know who calls, or this caller may not: the token has ended, was revoked, lacks the role. The
    text says which. Ask the farm's administrator for other credentials."""


class JobFailed(Error):
    """A job ended without being finished: `job_id`, `state` ("failed", "cancelled") and why."""

    def __init__(self, job_id: str, state: str, message: str):
        super().__init__(f"job {job_id} {state}" + (f": {message}" if message else ""))
        self.job_id = job_id
        self.state = state


class ProgramMissing(Error):
    """The programs of tuner, or something that they need, are not installed. The text says what to do."""


class CallError(InvalidRequest, TypeError):
    """A kernel was called with too few or too many arrays, or with a name that it does not have."""


class ArrayError(InvalidRequest, ValueError):
    """An array does not fit the kernel. The subclasses say why."""


class DTypeError(ArrayError, TypeError):
    """It has elements of another type, or is no array at all."""


class ShapeError(ArrayError):
    """It has another shape."""


class StridesError(ArrayError):
    """Its rows do not lie one after the other."""


class AlignmentError(ArrayError):
    """Its memory does not begin on a 64-byte border."""


class DeviceError(ArrayError):
    """Its memory is that of a GPU or another device."""


class ReadOnlyError(ArrayError):
    """It is an output, and may not be written."""
