"""pip's environment: its variables, its sources of packages, and faults of this machine that keep packages away.

Shared with the setup of a checkout, which runs before anything is installed: only the standard library is imported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# A folder of wheels to set a checkout up from, without a network.
ENV_WHEELS: Final = "RANKDECK_WHEELS"
# These have a new Python look for its own files, or for packages, in another one.
PYTHON_VARIABLES: Final = frozenset({"PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV"})
# These would send packages somewhere else than into the environment that pip was called for.
_PIP_VARIABLES: Final = frozenset({"PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV"})
CERTIFICATE_VARIABLES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
PROXY_VARIABLES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_OUT_OF_DATE: Final = ("not yet valid", "has expired", "validity period")


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Remove variables that lead a new Python or its pip astray."""
    unwanted = PYTHON_VARIABLES | _PIP_VARIABLES
    return {name: value for name, value in environ.items() if name.upper() not in unwanted}


def wheels_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of wheels that a person named for the setup of a checkout."""
    text = environ.get(ENV_WHEELS, "").strip()
    return Path(text).expanduser().absolute() if text else None


def without_python_home(environ: Mapping[str, str]) -> dict[str, str]:
    """Remove PYTHONHOME: our Python finds its files by itself. A person's modules stay on its path."""
    return {name: value for name, value in environ.items() if name.upper() != "PYTHONHOME"}


def source_options(wheels: Path | None, index: str | None) -> list[str]:
    """pip's options for the source of packages.

    Args:
        wheels: A folder that has all of them; nothing else is asked then.
        index: A package index; None: as this machine's pip is set.
    """
    if wheels is not None:
        return ["--no-index", "--find-links", str(wheels)]
    return ["--index-url", index] if index else []


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why packages cannot be had.

    Attributes:
        cause: Empty where pip's output does not tell.
        missing: The index has no such version; another one may have it.
        requirement: The requirement without a match, such as "torch==2.13.0"; empty where pip does not say.
    """

    cause: str
    next_step: str
    missing: bool = False
    requirement: str = ""


def certificate_fault(server: str, message: str, now: float | None = None) -> Fault:
    """Explain a refused certificate: most often the clock, or a proxy that reads TLS.

    Args:
        server: In the middle of a sentence: "the package index", "files.example.org".
        message: The error of TLS.
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
    """Find variables that keep every download from succeeding."""
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
    """Name the proxy that is set, in a sentence; empty where none is. A password in it is not shown."""
    for name in (*PROXY_VARIABLES, *(name.lower() for name in PROXY_VARIABLES)):
        value = environ.get(name, "").strip()
        if value:
            return f"{name} is set to {value.rpartition('@')[2].removeprefix('http://')}."
    return ""
