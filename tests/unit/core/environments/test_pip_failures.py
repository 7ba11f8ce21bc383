"""Why pip failed, from what it printed."""

from __future__ import annotations

import pytest

from core.environments.pip_failures import explain_pip

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("output", "cause", "missing"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "The disk is full.", False),
        ("[WinError 112] There is not enough space on the disk", "The disk is full.", False),
        ("SSLCertVerificationError: certificate verify failed: self-signed", "certificate was not accepted", True),
        ("Failed to establish a new connection: [Errno 11001] getaddrinfo failed", "could not be reached", True),
        ("ERROR: No matching distribution found for torch==2.13.0+cu130", "found no build", True),
        ("PermissionError: [WinError 5] Access is denied", "could not be written", False),
        ("/usr/bin/python: No module named pip", "has no pip", False),
        ("ERROR: ResolutionImpossible: for help visit", "No set of versions", False),
        ("something new", "", False),
    ],
)
def test_a_cause_is_found_with_a_next_step(output: str, cause: str, missing: bool) -> None:
    failure = explain_pip(f"Collecting torch\n{output}\n")
    assert cause in failure.cause and bool(cause) == bool(failure.cause)
    assert failure.missing == missing
    assert failure.next_step.endswith(".")
