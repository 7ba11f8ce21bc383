"""Reads processes that may end at any moment, or that this user may not see: then there is nothing to read."""

from __future__ import annotations

from typing import Final

import psutil

# What psutil raises for such a process: Wine's answer is a plain OSError, a pid may be no pid of this system.
UNREADABLE: Final = (psutil.Error, OSError, ValueError, OverflowError)


def descendants(root: int | psutil.Process) -> list[psutil.Process]:
    """The children of a process, and theirs; empty where it cannot be read."""
    try:
        process = psutil.Process(root) if isinstance(root, int) else root
        return process.children(recursive=True)
    except UNREADABLE:
        return []


def program_name(pid: int) -> str:
    """The `plain_name` of a process's program; empty where it cannot be read."""
    try:
        return plain_name(psutil.Process(pid).name())
    except UNREADABLE:
        return ""


def plain_name(program: str) -> str:
    """A program's usual name: ``python`` for python3.12 and python.exe."""
    name = program.strip()
    if name.lower().endswith(".exe"):
        name = name[:-4]
    beginning = name.rstrip("0123456789.")
    return beginning if beginning.lower() in ("python", "pythonw") else name
