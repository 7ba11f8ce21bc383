"""The environment of Rankdeck's own programs: hosts, ranks, checks, previews, exports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from core.paths import PACKAGE_FOLDER, SDK_FOLDER, model_variables
from core.protocol.rank_context import ENV_RANK, ENV_RUN_MARK

PYTHONHOME: Final = "PYTHONHOME"
PYTHONPATH: Final = "PYTHONPATH"


def program_environment(inherited: Mapping[str, str], own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make the environment of a process of ours.

    Returns:
        `inherited` without `PYTHONHOME` and, over it, `own`, with this package and `rankdeck` in front of the person's
        `PYTHONPATH`, texts in UTF-8, and Hugging Face's downloads in the folder that was chosen for them.
    """
    # It names the files of one Python, and training may have another.
    kept = {name: value for name, value in inherited.items() if name.upper() != PYTHONHOME}
    env = {**model_variables(inherited), **kept, **(own or {})}
    # Absolute, because the program runs in another folder.
    theirs = [os.path.abspath(folder) for folder in env.get(PYTHONPATH, "").split(os.pathsep) if folder]  # noqa: PTH100
    folders = dict.fromkeys([str(PACKAGE_FOLDER), str(SDK_FOLDER), *theirs])
    return {**env, PYTHONPATH: os.pathsep.join(folders), "PYTHONUTF8": "1"}


def host_environment() -> dict[str, str]:
    env = program_environment(os.environ, {"PYTHONUNBUFFERED": "1"})
    # A run that is started from within a run is not the other's to end.
    for name in (ENV_RUN_MARK, ENV_RANK):
        env.pop(name, None)
    return env
