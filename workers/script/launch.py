"""Launch of the user's program: its arguments and environment, as torchrun would give them. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from core.config.mode import Mode
from core.paths import PACKAGE_FOLDER, SDK_FOLDER
from core.protocol.rank_context import ENV_RUN_DIR, ENV_RUN_MARK, RankContext
from core.recipes.user_script import UserScript

ENV_RUN_ID: Final = "RANKDECK_RUN_ID"
_OURS: Final = tuple(os.path.normcase(folder) for folder in (PACKAGE_FOLDER, SDK_FOLDER))


def is_alone(context: RankContext) -> bool:
    """True if its world is this one process: ranks of "independent" know nothing of each other."""
    return context.world_size == 1 or context.mode == Mode.INDEPENDENT


def script_environment(
    script: UserScript,
    context: RankContext,
    ours: Mapping[str, str],
    sdk: Mapping[str, str],
    *,
    run_id: str,
    max_restarts: int,
    own_port: int = 0,
    linux: bool,
) -> dict[str, str]:
    """The program's whole environment.

    Only the folder of the package `rankdeck` is added to its path, last: a `core` or `app` of the user's own
    stays theirs, and so does a `rankdeck.py`. Neither the host's token nor anything else of ours is passed on.

    Args:
        ours: The wrapper's own environment, as the launch plan made it.
        sdk: Variables by which the package `rankdeck` finds the wrapper.
        own_port: A free port, for ranks that have a world of their own.
        linux: The platform has a loopback interface named ``lo``.
    """
    env = {name: value for name, value in ours.items() if not name.startswith("RANKDECK_")}
    for name in ("PYTHONUTF8", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        # UTF-8 mode is ours: it would change how the program reads its files.
        env.pop(name, None)
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path and not _is_ours(path)]
    env["PYTHONPATH"] = os.pathsep.join([*paths, str(SDK_FOLDER)])
    env.setdefault("PYTHONIOENCODING", "utf-8")
    env.setdefault("PYTHONFAULTHANDLER", "1")
    # Rich draws its progress only where it believes in a terminal; without, a Lightning run shows one line at its end.
    for name, value in (("TTY_COMPATIBLE", "1"), ("TTY_INTERACTIVE", "1"), ("COLUMNS", "200"), ("NO_COLOR", "1")):
        env.setdefault(name, value)
    if not is_alone(context):
        env.setdefault("OMP_NUM_THREADS", str(context.threads))
    if not (script.plain and context.world_size == 1):
        port = str(own_port) if context.mode == Mode.INDEPENDENT else ours.get("MASTER_PORT", "")
        env |= _torchrun(context, port, run_id, max_restarts)
        if linux:
            env.setdefault("GLOO_SOCKET_IFNAME", "lo")
            env.setdefault("NCCL_SOCKET_IFNAME", "lo")
        else:
            env.setdefault("USE_LIBUV", "0")  # no Windows build of torch has it
    env[ENV_RUN_ID] = run_id
    env[ENV_RUN_DIR] = str(context.run_dir)
    env[ENV_RUN_MARK] = ours.get(ENV_RUN_MARK, "")
    return {**env, **sdk, **script.environment}


def _torchrun(context: RankContext, port: str, run_id: str, max_restarts: int) -> dict[str, str]:
    """torchrun's variables on one machine (torch.distributed.run, "Environment Variables")."""
    rank, world = ("0", "1") if is_alone(context) else (str(context.rank), str(context.world_size))
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
        "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": str(context.restarts),
        "TORCHELASTIC_MAX_RESTARTS": str(max_restarts),
        "TORCHELASTIC_RUN_ID": run_id or "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }


def _is_ours(path: str) -> bool:
    return os.path.normcase(os.path.abspath(path)) in _OURS  # noqa: PTH100
