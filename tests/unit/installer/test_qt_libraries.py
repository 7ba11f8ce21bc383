"""Which system libraries Qt lacks, and how they come in."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from installer import qt_libraries
from installer.console import ProgressLine, SetupError

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
    assert qt_libraries.parse_missing(LDD) == ["libEGL.so.1", "libxcb-cursor.so.0"]


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
    assert (bare_debian / "apt").read_text(encoding="utf-8").splitlines()[-1].count("install-recommends libegl1") == 1


def test_missing_libraries_are_named_with_the_command_otherwise(
    bare_debian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qt_libraries, "is_root", lambda: False)
    with pytest.raises(SetupError) as caught:
        qt_libraries.ensure_qt_libraries(bare_debian, ProgressLine(io.StringIO()), bare_debian / "log")
    assert "libEGL.so.1" in caught.value.cause
    assert "sudo apt-get install -y --no-install-recommends libegl1" in caught.value.next_step
    assert caught.value.exit_code == 3
    assert not (bare_debian / "apt").exists()


def test_apt_that_fails_is_told(bare_debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qt_libraries, "is_root", lambda: True)
    write_program(bare_debian / "bin" / "apt-get", "echo no such package; exit 100\n")
    with pytest.raises(SetupError, match="could not be installed") as caught:
        qt_libraries.ensure_qt_libraries(bare_debian, ProgressLine(io.StringIO()), bare_debian / "log")
    assert "100" in caught.value.cause
    assert "no such package" in (bare_debian / "log").read_text(encoding="utf-8")
