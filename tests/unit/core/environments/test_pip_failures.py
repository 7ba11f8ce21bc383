"""Why pip failed, from what it printed."""

from __future__ import annotations

import pytest

from core.environments.pip_failures import error_line, explain_pip


@pytest.mark.parametrize(
    ("output", "cause", "missing"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "The disk is full.", False),
        ("[WinError 112] There is not enough space on the disk", "The disk is full.", False),
        (
            "SSLCertVerificationError('A required certificate is not within its validity period when verifying it')",
            "certificate of the package index is not valid on",
            True,
        ),
        (
            "SSLCertVerificationError: certificate verify failed: self-signed",
            "certificate of the package index was not accepted",
            True,
        ),
        ("Failed to establish a new connection: [Errno 11001] getaddrinfo failed", "could not be reached", True),
        ("ERROR: No matching distribution found for torch==2.13.0+cu130", "found no build", True),
        ("PermissionError: [WinError 5] Access is denied", "could not be written", False),
        (
            "[WinError 32] The process cannot access the file because it is being used by another process",
            "holds",
            False,
        ),
        ("PermissionError: [Errno 13] Permission denied: '/opt/x'", "could not be written", False),
        (
            "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407 Proxy'))",
            "proxy does not",
            False,
        ),
        (
            "OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /x.pem",
            "file of certificates",
            False,
        ),
        (
            "ERROR: torch-2.13.0-py3-none-any.whl has an invalid wheel, torch has no .dist-info",
            "file is damaged",
            False,
        ),
        ("zipfile.BadZipFile: File is not a zip file", "file is damaged", False),
        ("ERROR: Wheel 'torch' located at /w/torch-2.13.0-py3-none-any.whl is invalid.", "file is damaged", False),
        ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "file is damaged", False),
        ("Fatal Python error: init_fs_encoding: failed to get the Python codec", "did not find its own files", False),
        ("error: externally-managed-environment", "managed by the operating system", False),
        ("/usr/bin/python: No module named pip", "has no pip", False),
        ("ERROR: ResolutionImpossible: for help visit", "No set of versions", False),
        ("something new", "", False),
    ],
)
def test_a_cause_is_found_with_a_next_step(output: str, cause: str, missing: bool) -> None:
    failure = explain_pip(f"Collecting torch\n{output}\n")
    assert cause in failure.cause and bool(cause) == bool(failure.cause)
    assert failure.missing == missing
    assert failure.next_step.endswith((".", "bootstrap.py run"))


def test_pips_own_words_are_its_last_error() -> None:
    assert error_line("Collecting x\nERROR: first\n  ERROR: second \nmore\n") == "second"
    assert error_line("nothing") == ""


CONFLICT = """ERROR: Cannot install {what} because these package versions have conflicting dependencies.

The conflict is caused by:
{causes}

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("causes", "requirement"),
    [
        (("The user requested torch==2.13.0", "The user requested (constraint) torch==2.13.0"), "torch==2.13.0"),
        (
            ("The user requested torch==2.13.0+cu130", "The user requested (constraint) torch==2.13.0"),
            "torch==2.13.0+cu130",
        ),
        (("The user requested torch>=2.7", "The user requested (constraint) torch<=3,==2.13.0"), "torch==2.13.0"),
        (
            (
                "torch 2.13.0 depends on filelock",
                "filelock-user 1.0 depends on filelock>=3 and <5",
                "The user requested (constraint) filelock==4.2.11",
            ),
            "filelock==4.2.11",
        ),
        (("a 1.0 depends on b<2", "c 1.0 depends on b>=2"), ""),
        (("a 1.0 depends on b==2", "The user requested (constraint) b==3"), "b==3"),
        (("a 1.0 depends on b<2", "The user requested (constraint) c==2"), ""),
    ],
)
def test_a_pinned_version_that_is_not_there_is_no_conflict(
    causes: tuple[str, ...], requirement: str, newline: str
) -> None:
    output = CONFLICT.format(what="it", causes="\n".join(f"    {cause}" for cause in causes))
    failure = explain_pip(output.replace("\n", newline))
    assert failure.requirement == requirement and failure.missing == bool(requirement)
    wanted = f"no {requirement} that its settings allow" if requirement else "No set of versions"
    assert wanted in failure.cause


def test_what_was_not_found_is_named() -> None:
    failure = explain_pip("ERROR: No matching distribution found for numpy>=2 (from torch)")
    assert (failure.requirement, failure.missing) == ("numpy>=2", True)
