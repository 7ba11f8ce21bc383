"""What pip does and why it failed, as a person is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer.pip_run import activity, explain_failure

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("line", "words", "missing"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full", False),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "reached", True),
        ("socket.gaierror: [Errno 11001] getaddrinfo failed", "reached", True),
        ("ERROR: No matching distribution found for torch==2.13.0+cu130", "no build", True),
        ("PermissionError: [WinError 5] Access is denied: 'python.exe'", "could not be written", False),
        ("ERROR: something new", "ended with an error", False),
    ],
)
def test_a_failure_of_pip_in_words(tmp_path: Path, line: str, words: str, missing: bool) -> None:
    log = tmp_path / "bootstrap.log"
    error = explain_failure(["Collecting torch", line], log)
    assert words in error.cause
    assert line in error.cause
    assert str(log) in str(error)
    assert error.next_step.endswith(".")
    assert (error.missing, error.exit_code) == (missing, 1)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Collecting torch==2.13.0+cu130\n", "asking for torch"),
        ("  Downloading torch-2.13.0-cp311.whl (2500.1 MB)\n", "downloading torch-2.13.0-cp311.whl (2500.1 MB)"),
        ("  Downloading https://mirror/torch-2.13.0.whl#sha256=a\n", "downloading torch-2.13.0.whl"),
        ("Processing c:\\wheels\\psutil-7.2.2-cp37.whl\n", "asking for psutil"),
        ("Installing collected packages: numpy, psutil, torch\n", "unpacking 3 packages"),
        ("a line that means nothing\n", ""),
    ],
)
def test_a_line_of_pip_tells_its_action(line: str, text: str) -> None:
    assert activity(line) == text
