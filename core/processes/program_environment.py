"""The environment of Rankdeck's own programs: hosts, ranks, checks, previews, exports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from core.paths import PACKAGE_FOLDER, SDK_FOLDER

PYTHONPATH: Final = "PYTHONPATH"


def program_environment(inherited: Mapping[str, str], own: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a process of ours is started with: a recipe is code of the person's and finds their modules everywhere.

    Args:
        inherited: The environment of the process that starts it.
        own: What it gets on top; wins.

    Returns:
        Both, with this package and `rankdeck` in front of the person's `PYTHONPATH`, and texts in UTF-8.
    """
    env = {**inherited, **(own or {})}
    return {**env, PYTHONPATH: _python_path(env.get(PYTHONPATH, "")), "PYTHONUTF8": "1"}


def _python_path(theirs: str) -> str:
    """Ours, then theirs. Their folders are made absolute, because the program runs in another one."""
    folders = [os.path.abspath(folder) for folder in theirs.split(os.pathsep) if folder]  # noqa: PTH100
    return os.pathsep.join(dict.fromkeys([str(PACKAGE_FOLDER), str(SDK_FOLDER), *folders]))
