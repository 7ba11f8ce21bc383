"""The system libraries that Qt's wheels expect on Linux. The dynamic linker says which are missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from installer.console import ProgressLine, SetupError, run_logged

# What a window needs: Qt's own libraries, and the plug-ins for a screen (xcb) and for none (offscreen).
CHECKED: Final = (
    *(f"lib/libQt6{name}.so.6" for name in ("Core", "DBus", "Gui", "Network", "OpenGL", "Svg", "Widgets", "XcbQpa")),
    "plugins/platforms/libqoffscreen.so",
    "plugins/platforms/libqxcb.so",
    "plugins/xcbglintegrations/libqxcb-glx-integration.so",
)
# Debian's packages of all libraries that these files load; apt-get skips those that are there.
DEBIAN_PACKAGES: Final = (
    "libegl1", "libgl1", "libdbus-1-3", "libfontconfig1", "libfreetype6", "libglib2.0-0", "libgssapi-krb5-2",
    "libx11-6", "libx11-xcb1", "libxcb1", "libxcb-cursor0", "libxcb-glx0", "libxcb-icccm4", "libxcb-image0",
    "libxcb-keysyms1", "libxcb-randr0", "libxcb-render0", "libxcb-render-util0", "libxcb-shape0", "libxcb-shm0",
    "libxcb-sync1", "libxcb-util1", "libxcb-xfixes0", "libxcb-xkb1", "libxkbcommon0", "libxkbcommon-x11-0", "zlib1g",
    "libzstd1",
)  # fmt: skip
_LDD_LIMIT_S: Final = 60.0
_APT_LIMIT_S: Final = 900.0


def missing_libraries(site_packages: Path) -> list[str]:
    """List libraries such as ``libEGL.so.1`` that Qt asks for and the dynamic linker does not find."""
    ldd = shutil.which("ldd")
    qt = site_packages / "PySide6" / "Qt"
    files = [str(qt / name) for name in CHECKED if (qt / name).is_file()]
    if ldd is None or not files:
        return []
    answer = subprocess.run([ldd, *files], capture_output=True, text=True, timeout=_LDD_LIMIT_S, check=False)
    return parse_missing(answer.stdout)


def parse_missing(ldd_output: str) -> list[str]:
    return sorted(set(re.findall(r"^\s*(\S+) => not found", ldd_output, re.MULTILINE)))


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def is_debian() -> bool:
    """Debian, Ubuntu and their derivatives."""
    return shutil.which("apt-get") is not None


def apt_command(packages: Sequence[str]) -> str:
    return f"sudo apt-get update && sudo apt-get install -y --no-install-recommends {' '.join(packages)}"


def apt_install(packages: Sequence[str], progress: ProgressLine, log: Path) -> None:
    """Install Debian packages, as root; raises `SetupError`."""
    progress.say(f"installing {' '.join(packages)} (apt-get)")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Packages that were left unpacked, or lists that are old, are the two usual obstacles: so update first.
    commands = (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])
    code = [run_logged(command, log, _APT_LIMIT_S, environment) for command in commands][-1]
    if code:
        raise SetupError(
            "System packages could not be installed",
            f"apt-get failed with code {code}; its output is in {log}.",
            f"Run this and read its output: {apt_command(packages)}",
            exit_code=3,
        )


def ensure_qt_libraries(site_packages: Path, progress: ProgressLine, log: Path) -> None:
    """Install missing libraries when root on Debian, otherwise raise `SetupError` with the command."""
    missing = missing_libraries(site_packages)
    if missing and is_debian() and is_root():
        apt_install(DEBIAN_PACKAGES, progress, log)
        missing = missing_libraries(site_packages)
    if not missing:
        return
    cause = f"The window cannot be opened without {', '.join(missing)}."
    step = "Install the packages that contain them, then try again."
    if is_debian():
        step = f"Run: {apt_command(DEBIAN_PACKAGES)}"
    raise SetupError("System libraries for the window are missing", cause, step, exit_code=3)
