"""Arguments of the window: `--window RUN` opens it with a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

WINDOW: Final = "--window"


def with_full_paths(arguments: Sequence[str]) -> list[str]:
    """The arguments as a process with another current folder understands them."""
    return [str(Path(argument).absolute()) if _is_path(argument) else argument for argument in arguments]


def run_to_show(arguments: Sequence[str]) -> Path | None:
    """The run that the window is to show; None if none is named, or it is not there."""
    if not arguments or arguments[0] != WINDOW:
        return None
    path = next((Path(argument) for argument in arguments[1:2] if _is_path(argument)), None)
    return path.absolute() if path is not None and path.is_dir() else None


def _is_path(argument: str) -> bool:
    return bool(argument) and not argument.startswith("-") and Path(argument).exists()
