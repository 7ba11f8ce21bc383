"""What the installer chooses and says, as tables: torch's build, Qt's libraries, pip's failures, the progress line."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from installer import qt_libraries
from installer.console import ProgressLine, SetupError
from installer.pip_run import PipActivity, explain_failure
from installer.torch_build import NvidiaDriver, cuda_tag, parse_driver, pinned_torch_version, torch_sources

ROOT = Path(__file__).resolve().parents[3]
ADA = NvidiaDriver(580, 8.9)


def asked(system: str, driver: NvidiaDriver | None, index: str | None = None) -> list[tuple[str, str | None]]:
    """Requirement and the last part of the index, for each place that is tried."""
    sources = torch_sources(system, "2.13.0", driver, index)
    return [(source.requirement, source.index and source.index.rsplit("/", 1)[-1]) for source in sources]


@pytest.mark.windows
@pytest.mark.parametrize(
    ("system", "driver", "expected"),
    [
        ("win32", None, [("torch==2.13.0", None)]),
        ("win32", ADA, [("torch==2.13.0+cu130", None), ("torch==2.13.0+cu130", "cu130")]),
        ("win32", NvidiaDriver(560, 8.9), [("torch==2.13.0+cu126", None), ("torch==2.13.0+cu126", "cu126")]),
        ("linux", None, [("torch==2.13.0+cpu", None), ("torch==2.13.0+cpu", "cpu"), ("torch==2.13.0", None)]),
        ("linux", ADA, [("torch==2.13.0+cu130", None), ("torch==2.13.0+cu130", "cu130"), ("torch==2.13.0", None)]),
        ("darwin", None, [("torch==2.13.0", None)]),
    ],
)
def test_torch_is_the_build_for_this_machine(
    system: str, driver: NvidiaDriver | None, expected: list[tuple[str, str | None]]
) -> None:
    assert asked(system, driver) == expected


@pytest.mark.windows
def test_a_named_index_is_the_only_one_asked() -> None:
    assert asked("win32", ADA, "file:///mirror/here") == [("torch==2.13.0", "here")]


@pytest.mark.windows
@pytest.mark.parametrize(
    ("answer", "driver", "tag"),
    [
        ("580.65.06, 8.9\n580.65.06, 12.0\n", NvidiaDriver(580, 8.9), "cu130"),
        ("581.15, 6.1\n581.15, 8.9\n", NvidiaDriver(581, 6.1), "cu126"),
        ("551.86, 8.6\r\n", NvidiaDriver(551, 8.6), "cu126"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", NvidiaDriver(), "cu130"),
        ("580.65.06, [N/A]\n", NvidiaDriver(580, None), "cu130"),
        ("", NvidiaDriver(), "cu130"),
    ],
)
def test_what_nvidia_smi_says(answer: str, driver: NvidiaDriver, tag: str) -> None:
    assert parse_driver(answer) == driver
    assert cuda_tag(driver) == tag


@pytest.mark.windows
def test_the_pinned_torch_is_one_that_has_gloo_on_windows() -> None:
    version = pinned_torch_version((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert version.split(".")[:2] not in (["2", "8"], ["2", "9"], ["2", "10"])
    with pytest.raises(ValueError, match="no torch== line"):
        pinned_torch_version("numpy==2.4.6\n")


@pytest.mark.windows
def test_every_requirement_is_pinned_once() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==", 1) for line in lines if line and not line.startswith("#")]
    names = [name.lower().replace("_", "-") for name, _version in pins]
    platforms = [version.partition(";")[2] for _name, version in pins]
    assert len(pins) == len(set(zip(names, platforms, strict=True))), "once, or once a platform"
    twice = {name for name in names if names.count(name) > 1}
    assert all(place for name, place in zip(names, platforms, strict=True) if name in twice)
    assert all("==" in line and "://" not in line and "+" not in line for line in lines if line[:1].isalpha())
    assert {"torch", "pyside6-essentials", "numpy", "pytest", "ruff", "mypy", "hatchling"} <= set(names)


@pytest.mark.windows
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


@pytest.mark.windows
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


@pytest.mark.windows
def test_a_download_shows_how_far_it_is(tmp_path: Path) -> None:
    activity = PipActivity(tmp_path)
    activity.follow("Collecting torch==2.13.0\n")
    activity.follow("  Downloading https://mirror/torch-2.13.0-cp311.whl (200.0 MB)\n")
    (tmp_path / "pip-unpack-x").mkdir()
    (tmp_path / "pip-unpack-x" / "torch-2.13.0-cp311.whl").write_bytes(b"x" * 3_000_000)
    assert activity.text() == "package 1: torch, 3 MB of 200.0 MB"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.windows
def test_on_a_terminal_one_line_is_rewritten() -> None:
    stream = Terminal()
    with ProgressLine(stream) as progress:
        progress.say("creating .venv")
        progress.show("package 1: torch, with a long description")
        progress.say("ready")
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    last = text.rstrip("\n").split("\r")[-1]
    assert last.rstrip().endswith("ready")
    assert len(last) == len(text.split("\r")[2]), "the longer line before is painted over"


@pytest.mark.windows
def test_off_a_terminal_each_thing_is_said_once() -> None:
    stream = io.StringIO()
    with ProgressLine(stream) as progress:
        progress.say("creating .venv")
        for _ in range(5):
            progress.show("package 1: torch")
        progress.say("ready")
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == ["creating .venv", "ready"]


LDD = """\
/venv/PySide6/Qt/lib/libQt6Gui.so.6:
\tlinux-vdso.so.1 (0x00007ffd)
\tlibEGL.so.1 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)
/venv/PySide6/Qt/plugins/platforms/libqxcb.so:
\tlibEGL.so.1 => not found
\tlibxcb-cursor.so.0 => not found
"""


@pytest.mark.windows
def test_what_the_linker_does_not_find() -> None:
    missing = qt_libraries.parse_missing(LDD)
    assert missing == ["libEGL.so.1", "libxcb-cursor.so.0"]
    assert qt_libraries.packages_for([*missing, "libunheard.so.3"]) == ["libegl1", "libxcb-cursor0"]


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8", newline="\n")
    path.chmod(0o755)


@pytest.fixture
def bare_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose `ldd` misses libEGL until its `apt-get` has installed something."""
    if sys.platform == "win32":
        pytest.skip("Debian's programs are shell scripts here")
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs / "ldd", f'[ -e "{tmp_path}/installed" ] || echo "	libEGL.so.1 => not found"\n')
    write_program(
        programs / "apt-get", f'echo "$@" >> "{tmp_path}/apt"; [ "$1" = update ] || touch "{tmp_path}/installed"\n'
    )
    library = tmp_path / "PySide6" / "Qt" / "lib" / "libQt6Gui.so.6"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path


def test_missing_libraries_are_installed_when_root(bare_debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qt_libraries, "is_root", lambda: True)
    qt_libraries.ensure_qt_libraries(bare_debian, ProgressLine(io.StringIO()), bare_debian / "log")
    assert (bare_debian / "apt").read_text(encoding="utf-8").splitlines()[-1].endswith("install-recommends libegl1")


def test_missing_libraries_are_named_with_the_command_otherwise(
    bare_debian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qt_libraries, "is_root", lambda: False)
    with pytest.raises(SetupError) as caught:
        qt_libraries.ensure_qt_libraries(bare_debian, ProgressLine(io.StringIO()), bare_debian / "log")
    assert "libEGL.so.1" in caught.value.cause
    assert caught.value.next_step.endswith("sudo apt-get install -y --no-install-recommends libegl1")
    assert caught.value.exit_code == 3
    assert not (bare_debian / "apt").exists()


def test_apt_that_fails_is_told(bare_debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qt_libraries, "is_root", lambda: True)
    write_program(bare_debian / "bin" / "apt-get", "echo no such package; exit 100\n")
    with pytest.raises(SetupError, match="could not be installed") as caught:
        qt_libraries.ensure_qt_libraries(bare_debian, ProgressLine(io.StringIO()), bare_debian / "log")
    assert "100" in caught.value.cause
    assert "no such package" in (bare_debian / "log").read_text(encoding="utf-8")
