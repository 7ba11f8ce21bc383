"""Names of the person and the machine, as this system knows them, for `core.doctor.anonymise`."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from core.doctor.anonymise import Redactor

_SECRET_VARIABLE: Final = re.compile(r"token|secret|passw|key|auth|credential", re.IGNORECASE)
_LEAST_SECRET: Final = 8
"""Letters: a shorter value of such a variable is a switch, such as "1" or "always"."""
_NO_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "user", "root", "workgroup"})
"""Names that tell nothing, and are words of the texts themselves."""


def redactor_here(environment: Mapping[str, str] = os.environ) -> Redactor:
    """Takes out of texts what names this person and this machine."""
    return Redactor(
        _known(_users(environment)), _homes(environment), _known(_machines(environment)), _secrets(environment)
    )


def _known(names: Iterator[str]) -> list[str]:
    return [name for name in names if name and name.lower() not in _NO_NAMES]


def _users(environment: Mapping[str, str]) -> Iterator[str]:
    for name in ("USERNAME", "USER", "LOGNAME", "SUDO_USER"):
        yield environment.get(name, "").strip()
    try:
        yield getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in the system's list: a container
        pass
    yield Path.home().name
    if sys.platform != "win32":
        import pwd

        try:
            yield pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0].strip()
        except KeyError:
            return


def _homes(environment: Mapping[str, str]) -> list[str]:
    homes = {environment.get(name, "").strip() for name in ("USERPROFILE", "HOME")} | {str(Path.home())}
    if sys.platform == "win32":
        homes |= {_short_path(home) for home in homes if home}
        temporary = Path(tempfile.gettempdir())  # often below the home's short name (JANEDO~1)
        homes |= {str(folder) for folder in temporary.parents if folder.parent.name.lower() == "users"}
    return [home for home in homes if len(Path(home).parts) > 1]


def _machines(environment: Mapping[str, str]) -> Iterator[str]:
    for name in ("COMPUTERNAME", "HOSTNAME", "USERDOMAIN", "USERDNSDOMAIN", "LOGONSERVER"):
        yield environment.get(name, "").strip().strip("\\")
    full = socket.gethostname()
    yield full
    yield full.partition(".")[0]


def _secrets(environment: Mapping[str, str]) -> list[str]:
    named = {value for name, value in environment.items() if _SECRET_VARIABLE.search(name)}
    return [value for value in named if len(value) >= _LEAST_SECRET and not value.startswith(("/", "\\"))]


if sys.platform == "win32":

    def _short_path(folder: str) -> str:
        """The 8.3 form of a folder, where the drive keeps one."""
        import ctypes

        buffer = ctypes.create_unicode_buffer(32_768)
        length = ctypes.WinDLL("kernel32").GetShortPathNameW(folder, buffer, len(buffer))
        return buffer.value if 0 < length < len(buffer) else folder
