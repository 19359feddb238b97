"""The exception for a gRPC call that failed."""

from typing import Any, Optional

import grpc

from .errors import DeadlineExceeded, Denied, Error, InvalidRequest, NotFound, Refused, Unavailable

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


def _tls_trouble(tls: bool, text: str) -> str:
    """What gRPC's words for a connection that cannot be made tell of TLS (proto/grpc_access.h); "": nothing."""
    if "failed to connect" not in text:  # one that was made and broke
        return ""
    closed = any(words in text for words in ("Socket closed", "wrong version number", "packet length too long"))
    if not tls:
        return "; who listens there may ask for TLS: give a credentials file, not an address" if closed else ""
    if "certificate verify failed" in text:
        return "; who listens there is no daemon that this credentials file vouches for"
    return "; who listens there ends the TLS handshake: it may not speak TLS" if closed else ""


def from_grpc(error: Any, address: str, listen: Optional[str] = None) -> Error:
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
