"""pip's failures as text: what its output says of network, disk, permission, or a build that does not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PipFailure:
    """Why pip failed.

    Attributes:
        cause: One sentence; empty where its output does not tell.
        next_step: One sentence.
        missing: The index has no such version; another one may have it.
    """

    cause: str
    next_step: str
    missing: bool = False


_CERTIFICATE: Final = ("certificate verify failed", "certificate_verify_failed")
_NETWORK: Final = (
    "name resolution", "getaddrinfo failed", "new connection", "newconnectionerror", "network is unreachable",
    "connection refused", "proxyerror", "read timed out", "connect timeout", "connection aborted", "connection reset",
    "sslerror", "max retries exceeded", "connection broken",
)  # fmt: skip
_DISK: Final = ("no space left on device", "errno 28", "not enough space on the disk", "winerror 112", "quota exceeded")
_NO_BUILD: Final = ("no matching distribution found", "could not find a version")
_PERMISSION: Final = ("permission denied", "winerror 5]", "winerror 32]", "read-only file system")
_CONFLICT: Final = ("resolutionimpossible",)
_NO_PIP: Final = ("no module named pip",)
_FAILURES: Final = (
    (_DISK, PipFailure("The disk is full.", "Free some space, then try again.")),
    (_CERTIFICATE, PipFailure(
        "The package index's certificate was not accepted.",
        "Check the date of this machine. Behind a proxy that reads TLS, set SSL_CERT_FILE to its certificate.", True)),
    (_NETWORK, PipFailure(
        "The package index could not be reached.",
        "Check the network and pip's proxy settings, then try again; downloads so far are kept.", True)),
    (_NO_BUILD, PipFailure(
        "pip found no build of a package for this Python and platform.",
        "Try Python 3.11, 3.12 or 3.13: packages often do not support the newest Python yet.", True)),
    (_CONFLICT, PipFailure(
        "No set of versions suits all packages.",
        "Take out settings of pip that hold back versions (pip config list), then try again.")),
    (_PERMISSION, PipFailure(
        "A file could not be written.",
        "Close programs that use the environment, check that its folder can be written, and try again.")),
    (_NO_PIP, PipFailure("This Python has no pip.", "Install pip with python -m ensurepip, then try again.")),
)  # fmt: skip


def explain_pip(output: str) -> PipFailure:
    """Finds the cause in what pip printed."""
    text = output.lower()
    found = next((failure for signs, failure in _FAILURES if any(sign in text for sign in signs)), None)
    return found or PipFailure("", "Read the full output.")
