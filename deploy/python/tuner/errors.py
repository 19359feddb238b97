"""What can go wrong, by what the caller can do about it."""

import grpc


class Error(Exception):
    """The base of all; its text is one line for people."""


class InvalidRequest(Error):
    """The job file, a target or an option is wrong: the text names the place. Mend it and call again."""


class NotFound(Error):
    """There is no such job or trial."""


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

    def __init__(self, job_id, state, message):
        super().__init__(f"job {job_id} {state}" + (f": {message}" if message else ""))
        self.job_id = job_id
        self.state = state


_BY_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.FAILED_PRECONDITION: Refused,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Refused,
    grpc.StatusCode.UNAUTHENTICATED: Denied,
    grpc.StatusCode.PERMISSION_DENIED: Denied,
}


def _tls_trouble(tls, text):
    """What gRPC's words for a connection that cannot be made tell of TLS (proto/grpc_access.h); "": nothing."""
    if "failed to connect" not in text:  # one that was made and broke
        return ""
    closed = any(words in text for words in ("Socket closed", "wrong version number", "packet length too long"))
    if not tls:
        return "; who listens there may ask for TLS: give a credentials file, not an address" if closed else ""
    if "certificate verify failed" in text:
        return "; who listens there is no daemon that this credentials file vouches for"
    return "; who listens there ends the TLS handshake: it may not speak TLS" if closed else ""


def from_grpc(error, address, listen=None):
    """The exception for a failed call; `listen`: what a daemon there would listen on."""
    code, text = error.code(), (error.details() or "").strip()
    kind = _BY_CODE.get(code, Error)
    if code == grpc.StatusCode.UNAVAILABLE:
        trouble = _tls_trouble((listen or "").startswith("tls:"), text)
        text = f"{address}: {text or 'no answer'}{trouble}. Is a daemon there? tuner serve --listen {listen or address}"
    elif code == grpc.StatusCode.DEADLINE_EXCEEDED:
        text = f"{address}: no answer within the time limit ({text})"
    elif code == grpc.StatusCode.UNIMPLEMENTED:
        text = f"{address}: is no tuner daemon of this version: {text}"
    elif kind is Error:
        text = f"{address}: {code.name}: {text}"
    return kind(text)
