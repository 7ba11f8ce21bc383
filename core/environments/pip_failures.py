"""pip's failures as text, from its output: network, disk, permission, or a build that does not exist."""

from __future__ import annotations

import dataclasses
import re
from typing import Final

from core.environments.pip_environment import CERTIFICATE_VARIABLES, Fault, certificate_fault

# Pythons for which each tested version has a wheel, by the wheels' own names; `requires-python` says it too.
SUPPORTED: Final = "3.11 to 3.14"


_PYTHON_HINT: Final = f"Use a Python from {SUPPORTED}: packages often do not support the newest one yet."
# OpenSSL's words, and the error of Windows' own check, whose words are in the system's language.
_CERTIFICATE: Final = ("certificate verify failed", "certificate_verify_failed", "sslcertverificationerror")
_CONFLICT: Final = "resolutionimpossible"
# In this order: the first whose signs stand in the output.
_FAILURES: Final = (
    (("externally-managed-environment",), Fault(
        "This Python is managed by the operating system, which doesn't let pip change it.",
        "Run Rankdeck in its own environment: python installer/bootstrap.py run")),
    (("no module named 'encodings'", "init_fs_encoding", "could not find platform independent libraries"), Fault(
        "Python did not find its own files.", "Remove the variable PYTHONHOME, then try again.")),
    (("no space left on device", "errno 28", "not enough space on the disk", "winerror 112", "quota exceeded"),
     Fault("The disk is full.", "Free some space, then try again.")),
    (("could not find a suitable tls ca certificate bundle",), Fault(
        "The file of certificates that a variable names is not there.",
        f"Correct or remove {', '.join(CERTIFICATE_VARIABLES[:-1])} or {CERTIFICATE_VARIABLES[-1]}, then try again.")),
    (("proxyerror", "cannot connect to proxy", "proxy authentication required", "407 proxy"), Fault(
        "The proxy does not let pip through.",
        "Check the proxy in Windows' settings and in the variable HTTPS_PROXY, sign in to it, and try again.")),
    (("name resolution", "getaddrinfo failed", "new connection", "newconnectionerror", "network is unreachable",
      "connection refused", "read timed out", "connect timeout", "connection aborted", "connection reset",
      "sslerror", "max retries exceeded", "connection broken", "incompleteread"), Fault(
        "The package index could not be reached.",
        "Check the network and pip's proxy settings, then try again; downloads so far are kept.", True)),
    (("badzipfile", "is not a zip file", "has an invalid wheel", "do not match the hashes", "bad crc-32",
      " is invalid.", "zlib.error", "bad magic number", "invalidwheel"), Fault(
        "A package's file is damaged.",
        "Try again. If it comes from a folder of wheels, copy that file there again.")),
    (("no matching distribution found", "could not find a version"), Fault(
        "pip found no build of a package for this Python and platform.",
        _PYTHON_HINT, True)),
    ((_CONFLICT,), Fault(
        "No set of versions suits all packages.",
        "Take out settings of pip that hold back versions (pip config list), then try again.")),
    (("winerror 32]", "being used by another process"), Fault(
        "Another program holds a file of the environment.",
        "Close programs that use it, such as a run or an antivirus scan, and try again.")),
    (("permission denied", "winerror 5]", "read-only file system"), Fault(
        "A file could not be written.",
        "Close programs that use the environment, check that its folder can be written, and try again.")),
    (("no module named pip",), Fault(
        "This Python has no pip.", "Install pip with python -m ensurepip, then try again.")),
)  # fmt: skip


_NOT_FOUND: Final = re.compile(r"No matching distribution found for ([^\s;(]+)")
_CAUSES: Final = re.compile(r"The conflict is caused by:\r?\n((?:[ \t]+\S.*\r?\n)+)")
_BY_PERSON: Final = "The user requested"
_BY_CONSTRAINT: Final = f"{_BY_PERSON} (constraint)"
_ASKED: Final = re.compile(
    r"[ \t]+(?:(?P<by>The user requested(?: \(constraint\))?)|\S+ \S+ depends on) (?P<name>[\w.-]+)(?P<rest>\S*)"
)
_PIN: Final = re.compile(r"===?[\w.!+-]+")


def explain_pip(output: str) -> Fault:
    """Find the cause in pip's output, or in the end of it."""
    text = output.lower()
    if any(sign in text for sign in _CERTIFICATE):
        return dataclasses.replace(certificate_fault("the package index", text), missing=True)
    found = next((failure for signs, failure in _FAILURES if any(sign in text for sign in signs)), None)
    if found is not None and (wanted := _not_found(output)):
        if _CONFLICT in text:
            return Fault(
                f"pip found no {wanted} that its settings allow.",
                f"The index may lack it, or settings of pip hold it back (pip config list). {_PYTHON_HINT}",
                missing=True,
                requirement=wanted,
            )
        return dataclasses.replace(found, requirement=wanted)
    return found or Fault("", "Read the full output.")


def error_line(output: str) -> str:
    """The last error in pip's output; empty where there is none."""
    lines = [line.strip() for line in output.splitlines() if line.strip().startswith("ERROR:")]
    return lines[-1].removeprefix("ERROR:").strip() if lines else ""


def _not_found(output: str) -> str:
    """The requirement that pip found nothing for, "torch==2.13.0"; empty where it says none.

    Where a constraint pins the package, pip calls that a conflict: https://github.com/pypa/pip/issues/11569
    """
    found = _NOT_FOUND.search(output)
    if found:
        return found[1]
    block = _CAUSES.search(output)
    lines = block[1].splitlines() if block else []
    asked = [match for line in lines if (match := _ASKED.match(line))]
    if len(asked) != len(lines) or len({match["name"].lower() for match in asked}) != 1:
        return ""
    pins = {match["by"]: match["name"] + pin[0] for match in asked if (pin := _PIN.search(match["rest"]))}
    constraint = pins.get(_BY_CONSTRAINT)  # without one it is a conflict
    return pins.get(_BY_PERSON, constraint) if constraint else ""  # a build may be asked for: "+cu130"
