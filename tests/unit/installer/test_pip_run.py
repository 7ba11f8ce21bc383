"""What pip does and why it failed, as a person is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer.pip_run import PipActivity, explain_failure

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


def test_the_words_for_what_pip_does(tmp_path: Path) -> None:
    activity = PipActivity(tmp_path)
    said = []
    for line in (
        "Collecting torch==2.13.0+cu130\n",
        "  Downloading torch-2.13.0-cp311-win_amd64.whl (2500.1 MB)\n",
        "Collecting numpy>=1.26 (from -r x)\n",
        "Processing c:\\wheels\\psutil-7.2.2-cp37.whl\n",
        "Installing collected packages: numpy, psutil, torch\n",
        "a line that means nothing\n",
    ):
        activity.follow(line)
        said.append(activity.text())
    assert said == [
        "package 1: torch",
        "package 1: torch, 2500.1 MB",
        "package 2: numpy",
        "package 3: psutil",
        "unpacking 3 packages",
        "unpacking 3 packages",
    ]


def test_a_download_shows_how_far_it_is(tmp_path: Path) -> None:
    activity = PipActivity(tmp_path)
    activity.follow("Collecting torch==2.13.0\n")
    activity.follow("  Downloading https://mirror/torch-2.13.0-cp311.whl (200.0 MB)\n")
    (tmp_path / "pip-unpack-x").mkdir()
    (tmp_path / "pip-unpack-x" / "torch-2.13.0-cp311.whl").write_bytes(b"x" * 3_000_000)
    assert activity.text() == "package 1: torch, 3 MB of 200.0 MB"
