"""The system libraries that Qt's wheels expect on Linux, and the Debian packages that hold them.

What is missing is asked of the dynamic linker, file by file, rather than guessed from a list of packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from installer.console import ProgressLine, SetupError

# What a window needs: Qt's own libraries, and the plug-ins for a screen (xcb) and for none (offscreen).
CHECKED: Final = (
    *(f"lib/libQt6{name}.so.6" for name in ("Core", "DBus", "Gui", "Network", "OpenGL", "Svg", "Widgets", "XcbQpa")),
    "plugins/platforms/libqoffscreen.so",
    "plugins/platforms/libqxcb.so",
    "plugins/xcbglintegrations/libqxcb-glx-integration.so",
)
DEBIAN_PACKAGES: Final = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
_LDD_LIMIT_S: Final = 60.0
_APT_LIMIT_S: Final = 900.0


def missing_libraries(site_packages: Path) -> list[str]:
    """Names such as ``libEGL.so.1`` that Qt asks for and the dynamic linker does not find, sorted."""
    ldd = shutil.which("ldd")
    qt = site_packages / "PySide6" / "Qt"
    files = [str(qt / name) for name in CHECKED if (qt / name).is_file()]
    if ldd is None or not files:
        return []
    answer = subprocess.run([ldd, *files], capture_output=True, text=True, timeout=_LDD_LIMIT_S, check=False)
    return parse_missing(answer.stdout)


def parse_missing(ldd_output: str) -> list[str]:
    """Reads ldd's ``libEGL.so.1 => not found`` lines."""
    return sorted(set(re.findall(r"^\s*(\S+) => not found", ldd_output, re.MULTILINE)))


def packages_for(libraries: list[str]) -> list[str]:
    """Debian's packages that hold these libraries; one that is not known is left out."""
    return sorted({DEBIAN_PACKAGES[name] for name in libraries if name in DEBIAN_PACKAGES})


def is_root() -> bool:
    """Whether system packages can be installed from here."""
    return sys.platform != "win32" and os.geteuid() == 0


def is_debian() -> bool:
    """Debian, Ubuntu and what is made of them."""
    return shutil.which("apt-get") is not None


def apt_command(packages: list[str]) -> str:
    """The command that the user can run."""
    return f"sudo apt-get update && sudo apt-get install -y --no-install-recommends {' '.join(packages)}"


def apt_install(packages: list[str], progress: ProgressLine, log: Path) -> None:
    """Installs Debian packages; needs root.

    Raises:
        SetupError: apt-get failed; its output is in `log`.
    """
    progress.say(f"installing {' '.join(packages)} (apt-get)")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Packages that were left unpacked, or lists that are old, are the two usual obstacles: so update first.
    commands = (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])
    with log.open("ab") as output:
        for command in commands:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                timeout=_APT_LIMIT_S,
                check=False,
            ).returncode
    if code:
        raise SetupError(
            "System packages could not be installed",
            f"apt-get failed with code {code}; its output is in {log}.",
            f"Run this and read its output: {apt_command(packages)}",
            exit_code=3,
        )


def ensure_qt_libraries(site_packages: Path, progress: ProgressLine, log: Path) -> None:
    """Makes sure that Qt can be loaded: installs what is missing when root on Debian, otherwise says how.

    Raises:
        SetupError: Something is missing and cannot be installed from here.
    """
    missing = missing_libraries(site_packages)
    packages = packages_for(missing)
    if packages and is_debian() and is_root():
        apt_install(packages, progress, log)
        missing = missing_libraries(site_packages)
        packages = packages_for(missing)
    if not missing:
        return
    cause = f"The window cannot be opened without {', '.join(missing)}."
    step = "Install the packages that contain them, then try again."
    if packages and is_debian():
        step = f"Run: {apt_command(packages)}"
    raise SetupError("System libraries for the window are missing", cause, step, exit_code=3)
