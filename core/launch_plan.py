"""The launch plan, a pure function: config, devices and platform → program, environment and files of each rank.

Nothing here asks the machine anything, so every platform's plan can be tested on any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PureWindowsPath
from typing import Final

from core import protocol
from core.config import RunConfig
from core.devices.model import Device
from core.devices.resolve import resolve_devices
from core.errors import ConfigError, PreflightError, UsageError
from core.platforms import Platform
from core.recipes import Recipe

ENV_RECIPE_DIR: Final = "RANKDECK_RECIPE_DIR"
PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[1]
"""The folder that holds `core` and `workers`."""

GOOD_TORCH: Final = "2.13.0"
_WITHOUT_GLOO_ON_WINDOWS: Final = ((2, 8), (2, 9), (2, 10))

# Left over from another launcher or a container tool, these would lead torch astray: Docker Desktop and Kubernetes
# publish names that 127.0.0.1 then resolves to, and an elastic agent's store is not ours.
_REMOVED: Final = (
    "KUBERNETES_*", "DOCKER_HOST", "MASTER_PORT", "TORCHELASTIC_*", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_*",
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RankCommand:
    """One rank's process.

    Attributes:
        rank: Its number, from 0.
        argv: Program and arguments.
        env: Variables that it gets on top of the host's own.
        removed_env: Patterns (``KUBERNETES_*``) of variables that it must not inherit.
        cwd: Its working directory.
        log: Gets its standard output and standard error.
        device: What it trains on.
    """

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    removed_env: tuple[str, ...]
    cwd: Path
    log: Path
    device: Device

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The rank's whole environment: what is inherited, less `removed_env`, plus `env`."""
        kept = {
            name: value
            for name, value in inherited.items()
            if not any(fnmatchcase(name.upper(), pattern) for pattern in self.removed_env)
        }
        return {**kept, **self.env}


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """All ranks of one attempt.

    Attributes:
        mode: The mode that is really used, never "auto".
        world_size: Number of ranks.
        lanes: Independent consumers of chunks (`core.ledger`): the ranks in independent mode, else one.
        backend: ``nccl``, ``gloo``, or empty when ranks do not talk to each other.
        ranks: Their processes.
        notes: What a person should know about how the request was understood.
    """

    mode: str
    world_size: int
    lanes: int
    backend: str
    ranks: tuple[RankCommand, ...]
    notes: tuple[str, ...] = ()


def choose_devices(config: RunConfig, available: Sequence[Device]) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """The devices that a config means on this machine, and what a person should know about how it was understood.

    Raises:
        ConfigError: See `core.devices.resolve_devices`.
    """
    devices = resolve_devices(config.devices, available)
    if config.mode != "single" or len(devices) < 2 or config.devices != ("auto",):
        return tuple(devices), ()
    others = "the other one stays" if len(devices) == 2 else f"the other {len(devices) - 1} stay"
    first = devices[0]
    return (first,), (f"Mode single trains on one device: {first.uuid} ({first.name}) is taken, {others} free.",)


def resolve_mode(config: RunConfig, devices: Sequence[Device], platform: Platform) -> str:
    """The mode for these devices: one of single, ddp, independent, zero.

    Raises:
        ConfigError: No device, or a mode that these devices cannot be used in.
        UsageError: A mode that cannot be used yet.
        PreflightError: This torch build cannot do it.
    """
    return _resolve(config, devices, platform)[0]


def plan_launch(
    config: RunConfig,
    devices: Sequence[Device],
    platform: Platform,
    run_dir: Path,
    attempt: int,
    rendezvous: PurePath,
    port: int,
    token: str,
    generation: int | None,
    python: str,
    recipe: Recipe,
    host_pid: int = 0,
) -> LaunchPlan:
    """What to start.

    Args:
        config: What was asked; `mode` may be "auto".
        devices: What was chosen, one rank each, in rank order.
        platform: The machine.
        run_dir: The run's folder.
        attempt: Number of this attempt, from 1.
        rendezvous: A file that does not exist yet, new for each attempt, where the ranks find each other. Its folder
            comes from `core.platforms.rendezvous_folder`.
        port: The host's listener on 127.0.0.1.
        token: What a rank must say to it.
        generation: The committed generation to go on from, or None.
        python: The interpreter.
        recipe: What is trained.
        host_pid: The host's process id; 0 when it is not known.

    Raises:
        ConfigError, UsageError, PreflightError: See `resolve_mode`; also a recipe that cannot be trained so.
    """
    mode, notes = _resolve(config, devices, platform)
    if mode not in recipe.modes:
        raise ConfigError(
            "mode",
            f"{recipe.title} cannot be trained in mode {mode!r}.",
            f"Choose one of: {', '.join(recipe.modes)}.",
        )
    backend = _backend(mode, devices, platform)
    shared = _shared_environment(platform, len(devices), backend)
    shared |= {
        protocol.ENV_PORT: str(port),
        protocol.ENV_TOKEN: token,
        protocol.ENV_RUN_DIR: str(run_dir),
        protocol.ENV_ATTEMPT: str(attempt),
        protocol.ENV_MODE: mode,
        protocol.ENV_BACKEND: backend,
        protocol.ENV_RENDEZVOUS: file_url(rendezvous, platform) if backend else "",
        protocol.ENV_GENERATION: "" if generation is None else str(generation),
        protocol.ENV_HOST_PID: str(host_pid) if host_pid else "",
        ENV_RECIPE_DIR: str(recipe.folder),
    }
    program = (str(recipe.folder / recipe.program),) if recipe.program else ("-m", "workers.rank_main")
    commands = tuple(
        RankCommand(
            rank=rank,
            argv=(python, *program),
            env={**shared, **_rank_environment(rank, len(devices), device, platform)},
            removed_env=_REMOVED,
            cwd=run_dir,
            log=run_dir / "logs" / f"rank{rank}.log",
            device=device,
        )
        for rank, device in enumerate(devices)
    )
    lanes = len(devices) if mode == "independent" else 1
    return LaunchPlan(mode, len(devices), lanes, backend, commands, notes)


def file_url(path: PurePath, platform: Platform) -> str:
    """The ``file://`` address of a file, as torch's rendezvous reads it on this platform.

    Under Windows torch decodes percent signs (``file:///C:/My%20Runs/x``); elsewhere it takes the path as it stands.
    """
    if platform.name == "windows":
        return PureWindowsPath(path).as_uri()
    return f"file://{path.as_posix()}"


def check_gloo(platform: Platform) -> None:
    """Refuses torch builds for Windows that lack gloo.

    Raises:
        PreflightError: This is one; names a good one.
    """
    if platform.name == "windows" and _version(platform.torch_version) in _WITHOUT_GLOO_ON_WINDOWS:
        raise PreflightError(
            f"torch {platform.torch_version} for Windows was built without gloo, so its devices cannot be connected.",
            f"Install torch {GOOD_TORCH}, or choose parallel-independent, which does not need it.",
            title="This torch build cannot connect devices",
        )


def _resolve(config: RunConfig, devices: Sequence[Device], platform: Platform) -> tuple[str, tuple[str, ...]]:
    if not devices:
        raise ConfigError("devices", "No device was chosen.", "Choose at least one, for example cpu:2 or cuda:0.")
    _refuse_what_comes_later(config)
    several = len(devices) > 1
    mode = config.mode
    notes: tuple[str, ...] = ()
    if mode == "single" and several:
        raise ConfigError(
            "devices",
            f"Mode single trains on one device, and {len(devices)} were chosen.",
            "Choose one device, or another mode: ddp or independent.",
        )
    if mode == "auto":
        if not several:
            mode = "single"
        elif platform.name == "windows":
            mode, notes = "independent", ("No mode was chosen: under Windows several devices train independently.",)
        else:
            mode, notes = "ddp", ("No mode was chosen: several devices train together (DDP).",)
    elif not several and mode != "single":
        mode, notes = "single", (f"With one device, mode {mode} is the same as training on it alone.",)
    if mode in ("ddp", "zero"):
        if len({device.kind for device in devices}) > 1:
            raise ConfigError(
                "devices",
                f"Mode {mode} needs devices of one kind, and GPUs and CPU slots were chosen.",
                "Leave out one kind, or choose mode independent.",
            )
        check_gloo(platform)
    return mode, notes


def _refuse_what_comes_later(config: RunConfig) -> None:
    if config.mode == "zero" and config.zero_stage > 1:
        raise UsageError(
            f"ZeRO stage {config.zero_stage} is not in this version: it shards the optimizer's state (stage 1) only.",
            "Choose stage 1, or mode ddp.",
        )
    if config.mode == "fsdp":
        raise UsageError(
            "Mode fsdp is not in this version.",
            "Choose mode zero with stage 1, which shards the optimizer's state, or mode ddp.",
        )


def _backend(mode: str, devices: Sequence[Device], platform: Platform) -> str:
    if mode not in ("ddp", "zero"):
        return ""
    return "nccl" if platform.has_nccl and all(device.kind == "cuda" for device in devices) else "gloo"


def _shared_environment(platform: Platform, world_size: int, backend: str) -> dict[str, str]:
    threads = max(1, platform.physical_cores // world_size)
    env = {
        "MASTER_ADDR": "127.0.0.1",
        "PYTHONPATH": str(PACKAGE_FOLDER),
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
        "PYTHONFAULTHANDLER": "1",  # a crash in native code leaves a traceback in the rank's log
        "OMP_NUM_THREADS": str(threads),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    if platform.name == "windows":
        env["USE_LIBUV"] = "0"  # no Windows build of torch has it
    if platform.name == "linux" and backend:
        env["GLOO_SOCKET_IFNAME"] = "lo"
    if backend == "nccl":
        env["NCCL_SOCKET_IFNAME"] = "lo"
    return env


def _rank_environment(rank: int, world_size: int, device: Device, platform: Platform) -> dict[str, str]:
    # Each rank sees its own card only, named by UUID: the card that was ticked, whatever order CUDA counts in.
    # Windows cannot tell an empty variable from none, so there "no card" is written -1.
    no_card = "-1" if platform.name == "windows" else ""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "CUDA_VISIBLE_DEVICES": device.uuid if device.kind == "cuda" else no_card,
        protocol.ENV_DEVICE: "cuda:0" if device.kind == "cuda" else "cpu",
    }


def _version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None
