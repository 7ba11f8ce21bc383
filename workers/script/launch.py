"""Launch of the user's program: its arguments and environment, as torchrun would give them. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.config.mode import Mode
from core.protocol.rank_context import ENV_RUN_DIR, ENV_RUN_MARK, RankContext
from core.recipes.user_script import UserScript

ENV_RUN_ID: Final = "RANKDECK_RUN_ID"
PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[2]
SDK_FOLDER: Final = PACKAGE_FOLDER / "workers" / "sdk"
_OURS: Final = tuple(os.path.normcase(folder) for folder in (PACKAGE_FOLDER, SDK_FOLDER))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the program stands among others of its kind.

    Attributes:
        rank, world_size: As the run counts.
        mode: The run's: ranks of "independent" know nothing of each other.
        restarts: How often the group was restarted.
        max_restarts: How often it may be.
        run_id: The run's name.
        own_port: A free port, for ranks that have a world of their own.
    """

    rank: int
    world_size: int
    mode: str
    restarts: int = 0
    max_restarts: int = 0
    run_id: str = ""
    own_port: int = 0

    @property
    def alone(self) -> bool:
        """Its world is this one process."""
        return self.world_size == 1 or self.mode == Mode.INDEPENDENT


def script_environment(
    script: UserScript,
    place: Place,
    context: RankContext,
    ours: Mapping[str, str],
    sdk: Mapping[str, str],
    linux: bool,
) -> dict[str, str]:
    """The program's whole environment.

    Only the folder of the package `rankdeck` is added to its path, last: a `core` or `app` of the user's own
    stays theirs, and so does a `rankdeck.py`. Neither the host's token nor anything else of ours is passed on.

    Args:
        script: What is started.
        place: Its place among the ranks.
        context: The wrapper's.
        ours: The wrapper's own environment, as the launch plan made it.
        sdk: Where the package `rankdeck` finds the wrapper.
        linux: The platform has a loopback interface named ``lo``.
    """
    env = {name: value for name, value in ours.items() if not name.startswith("RANKDECK_")}
    for name in ("PYTHONUTF8", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)  # UTF-8 mode is ours: it would change how the program reads its files
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path and not _is_ours(path)]
    env["PYTHONPATH"] = os.pathsep.join([*paths, str(SDK_FOLDER)])
    env.setdefault("PYTHONIOENCODING", "utf-8")
    env.setdefault("PYTHONFAULTHANDLER", "1")
    # Rich draws its progress only where it believes in a terminal; without, a Lightning run shows one line at its end.
    for name, value in (("TTY_COMPATIBLE", "1"), ("TTY_INTERACTIVE", "1"), ("COLUMNS", "200"), ("NO_COLOR", "1")):
        env.setdefault(name, value)
    if not place.alone:
        env.setdefault("OMP_NUM_THREADS", str(context.threads))
    if not (script.plain and place.world_size == 1):
        env |= _torchrun(place, ours)
        if linux:
            env.setdefault("GLOO_SOCKET_IFNAME", "lo")
            env.setdefault("NCCL_SOCKET_IFNAME", "lo")
        else:
            env.setdefault("USE_LIBUV", "0")  # no Windows build of torch has it
    env[ENV_RUN_ID] = place.run_id
    env[ENV_RUN_DIR] = str(context.run_dir)
    env[ENV_RUN_MARK] = ours.get(ENV_RUN_MARK, "")
    return {**env, **sdk, **script.environment}


def _torchrun(place: Place, ours: Mapping[str, str]) -> dict[str, str]:
    """What torchrun sets on one machine (torch.distributed.run, "Environment Variables")."""
    rank, world = ("0", "1") if place.alone else (str(place.rank), str(place.world_size))
    own_world = place.mode == Mode.INDEPENDENT
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": world,
        "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(place.own_port) if own_world else ours.get("MASTER_PORT", ""),
        "TORCHELASTIC_RESTART_COUNT": str(place.restarts),
        "TORCHELASTIC_MAX_RESTARTS": str(place.max_restarts),
        "TORCHELASTIC_RUN_ID": place.run_id or "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }


def _is_ours(path: str) -> bool:
    return os.path.normcase(os.path.abspath(path)) in _OURS  # noqa: PTH100
