"""The person's own code among the files of a traceback: not the standard library, not an installed package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final

_INSTALLED: Final = re.compile(r"(^|[/\\])(site-packages|dist-packages)[/\\]|[/\\]lib(64)?[/\\](pypy|python)\d")
_WINDOWS_LIBRARY: Final = re.compile(r"^[A-Za-z]:\\(.*\\)?Lib\\")


class OwnCode:
    """Tells a project's own files from those of its environment.

    Args:
        folders: Where the project lies; none when that is not known.
        python: Its interpreter.
    """

    def __init__(self, folders: Sequence[PurePath], python: str) -> None:
        self._folders = [_parts(str(folder)) for folder in folders]
        program = _path(python)
        prefix = program.parent.parent if program.parent.name.lower() in ("bin", "scripts") else program.parent
        self._libraries = [(*_parts(str(prefix)), name) for name in ("lib", "lib64")]

    def is_inside(self, file: str) -> bool:
        """It lies in the project."""
        if self._is_installed(file):
            return False
        return not _path(file).is_absolute() or any(_starts_with(_parts(file), folder) for folder in self._folders)

    def may_be(self, file: str) -> bool:
        """It lies elsewhere, and not where an environment keeps its files: perhaps a package in development."""
        return not self._is_installed(file) and not _WINDOWS_LIBRARY.match(file)

    def _is_installed(self, file: str) -> bool:
        if file.startswith("<") or _INSTALLED.search(file):
            return True
        return any(_starts_with(_parts(file), library) for library in self._libraries)


def _path(text: str) -> PurePath:
    return PureWindowsPath(text) if "\\" in text or text[1:2] == ":" else PurePosixPath(text)


def _parts(text: str) -> tuple[str, ...]:
    path = _path(text)
    return tuple(part.lower() for part in path.parts) if isinstance(path, PureWindowsPath) else path.parts


def _starts_with(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return bool(folder) and parts[: len(folder)] == folder
