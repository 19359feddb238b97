"""Where a daemon is, and by what right it is called: an address, or a credentials file as `tuner admin token` and
`tuner admin worker` write it (proto/daemon_access.h says what stands in one)."""

import dataclasses
from typing import Dict, List

from . import errors

_MOST_BYTES = 64 << 10
_WRITTEN_BY = ". Such a file is written by `tuner admin worker` or `tuner admin token`"


@dataclasses.dataclass(frozen=True)
class Access:
    address: str                            # HOST:PORT or unix:/path
    token: str = dataclasses.field(default="", repr=False)  # "": none
    authority: str = ""                     # PEM; "": plain text, no TLS
    certificate: str = ""                   # PEM, with its key; "": none
    key: str = dataclasses.field(default="", repr=False)


def is_address(text: str) -> bool:
    """Whether it is unix:/path or HOST:PORT, as far as the text tells."""
    if text.startswith("unix:"):
        return True
    host, _, port = text.rpartition(":")
    return bool(host) and "/" not in text and port.isascii() and port.isdigit()


def check_port(address: str) -> None:
    """InvalidRequest: a port that there is not. gRPC dials 99999 as 34463."""
    port = address.rpartition(":")[2]
    if not address.startswith("unix:") and not 1 <= int(port.lstrip("0")[:9] or 0) <= 65535:
        raise errors.InvalidRequest(f"{address}: expected a port from 1 to 65535, found {port}")


def find(daemon: str) -> Access:
    """InvalidRequest: neither an address nor a credentials file."""
    if is_address(daemon):
        check_port(daemon)
        return Access(daemon)
    try:
        with open(daemon, encoding="utf-8") as file:
            text = file.read(_MOST_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise errors.InvalidRequest(f"{daemon}: cannot be read: {reason}. Expected HOST:PORT, unix:/path or a "
                                    "credentials file") from None
    if len(text) > _MOST_BYTES:
        raise errors.InvalidRequest(f"{daemon}: expected a credentials file, found more than {_MOST_BYTES} bytes")
    return parse(text, daemon)


def parse(text: str, name: str) -> Access:
    """The text of a credentials file. InvalidRequest names the line."""
    words: Dict[str, str] = {}
    certificates: List[str] = []
    keys: List[str] = []
    block = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip(" \t\r")

        def wrong(expected: str) -> errors.InvalidRequest:
            return errors.InvalidRequest(f"{name}:{number}: expected {expected}{_WRITTEN_BY}")

        if block or line.startswith("-----BEGIN "):
            block += line + "\n"
            if not line.startswith("-----END "):
                continue
            (keys if "KEY" in line else certificates).append(block)
            block = ""
            if len(keys) > 1 or len(certificates) > 2:
                raise wrong("at most two certificates and one key")
        elif line and not line.startswith("#"):
            key, _, value = line.partition(":")
            value = value.strip(" \t")
            if key not in ("daemon", "token", "worker"):
                raise wrong("`daemon:`, `token:`, `worker:`, a comment or PEM")
            if key == "daemon" and not is_address(value):
                raise wrong("daemon: HOST:PORT")
            if key == "daemon":
                try:
                    check_port(value)
                except errors.InvalidRequest as refused:
                    raise errors.InvalidRequest(f"{name}:{number}: {refused}") from None
            if key != "daemon" and (not value or any(c in value for c in " \t\"")):
                raise wrong("token: a word" if key == "token" else "worker: a name")
            words[key] = value
    if block:
        raise errors.InvalidRequest(f"{name}: the file ends inside a PEM block; copy it once more")
    if "daemon" not in words:
        raise errors.InvalidRequest(f"{name}: expected a line `daemon: HOST:PORT`, found none")
    authority, certificate = (certificates + ["", ""])[:2]
    if bool(certificate) != bool(keys):
        raise errors.InvalidRequest(f"{name}: expected a certificate with its key, found one of them only")
    return Access(words["daemon"], words.get("token", ""), authority, certificate, keys[0] if keys else "")
