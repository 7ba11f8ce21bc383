"""Faults of this machine that keep packages away: certificates, its clock, variables that name what is not there.

Shared with the setup of a checkout, which runs before anything is installed: only the standard library is imported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CERTIFICATE_VARIABLES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
PROXY_VARIABLES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_OUT_OF_DATE: Final = ("not yet valid", "has expired")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong.

    Attributes:
        cause: One sentence.
        next_step: One sentence.
    """

    cause: str
    next_step: str


def certificate_fault(server: str, message: str, now: float | None = None) -> Fault:
    """Why a server's certificate was not accepted: most often the clock, or a proxy that reads what is sent.

    Args:
        server: In the middle of a sentence: "the package index", "files.example.org".
        message: What TLS said.
        now: Unix seconds; None: now.
    """
    if any(sign in message.lower() for sign in _OUT_OF_DATE):
        date = time.strftime("%Y-%m-%d", time.localtime(now))
        return Fault(
            f"The certificate of {server} is not valid on {date}, which is the date of this PC.",
            "Set the clock of this PC, then try again.",
        )
    return Fault(
        f"The certificate of {server} was not accepted.",
        "Behind a proxy that reads TLS, set SSL_CERT_FILE to the proxy's certificate. Check the clock of this PC too.",
    )


def variable_faults(environ: Mapping[str, str]) -> list[Fault]:
    """Variables that keep every download from succeeding.

    Args:
        environ: The variables.
    """
    found = []
    for name in CERTIFICATE_VARIABLES:
        value = environ.get(name, "").strip()
        if value and not Path(value).exists():
            found.append(
                Fault(
                    f"The variable {name} names a file of certificates that is not there: {value}",
                    f"Correct or remove {name}, then try again.",
                )
            )
    return found


def proxy_text(environ: Mapping[str, str]) -> str:
    """The proxy that is set, as the rest of a sentence; empty where none is. A password in it is not shown."""
    for name in (*PROXY_VARIABLES, *(name.lower() for name in PROXY_VARIABLES)):
        value = environ.get(name, "").strip()
        if value:
            return f"{name} is set to {value.rpartition('@')[2].removeprefix('http://')}."
    return ""
