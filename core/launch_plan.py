"""The launch plan, a pure function: config, devices and platform → program, environment and files of each rank.

Nothing here asks the machine anything, so every platform's plan can be tested on any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PureWindowsPath
from typing import Final

from core import rank_environment
from core.config import RunConfig
from core.config.dial import synchronisation_of
from core.devices.model import Device
from core.devices.resolve import resolve_devices
from core.errors import ConfigError, PreflightError
from core.extras import MissingPackageError
from core.platforms import Platform
from core.recipes import Recipe

ENV_RECIPE_DIR: Final = "RANKDECK_RECIPE_DIR"
ENV_THREADS: Final = "RANKDECK_THREADS"
"""Processor threads of a rank, for programs of the user's own, whose OMP_NUM_THREADS is not ours to set."""
PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[1]
"""The folder that holds `core` and `workers`."""

GOOD_TORCH: Final = "2.13.0"
DEEPSPEED: Final = "deepspeed"
TORCH: Final = "torch"
CONNECTED_MODES: Final = ("ddp", "zero", "fsdp")
"""Modes whose ranks exchange tensors while they train."""
SHARDING_MODES: Final = ("zero", "fsdp")
"""Modes in which each rank holds a part of the state only."""

_WITHOUT_GLOO_ON_WINDOWS: Final = ((2, 8), (2, 9), (2, 10))

# Left over from another launcher or a container tool, these would lead torch astray: Docker Desktop and Kubernetes
# publish names that 127.0.0.1 then resolves to, and an elastic agent's store is not ours.
_REMOVED: Final = (
    "KUBERNETES_*", "DOCKER_HOST", "MASTER_PORT", "TORCHELASTIC_*", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_*",
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """Where one attempt is started, and how its ranks reach the host and each other.

    Attributes:
        run_dir: The run's folder.
        attempt: Number of this attempt, from 1.
        rendezvous: A file that does not exist yet, new for each attempt, where the ranks find each other. Its folder
            comes from `core.platforms.rendezvous_folder`.
        port: The host's listener on 127.0.0.1.
        token: What a rank must say to it.
        generation: The committed generation to go on from, or None.
        python: The interpreter.
        host_pid: The host's process id; 0 when it is not known.
        master_port: Where the ranks of a self-contained program find each other; a port that is free.
    """

    run_dir: Path
    attempt: int
    rendezvous: PurePath
    port: int
    token: str
    generation: int | None
    python: str
    host_pid: int = 0
    master_port: int = 0


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
        engine: Who shards in the modes zero and fsdp: ``deepspeed`` or ``torch``; empty in other modes.
        self_contained: See `core.recipes.Recipe`.
    """

    mode: str
    world_size: int
    lanes: int
    backend: str
    ranks: tuple[RankCommand, ...]
    notes: tuple[str, ...] = ()
    engine: str = ""
    self_contained: bool = False


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
    """The mode for these devices: one of single, ddp, independent, zero, fsdp.

    Raises:
        ConfigError: No device, or a mode that these devices cannot be used in, or settings that contradict each other.
        PreflightError: This torch build cannot do it, or a package that was asked for is missing.
    """
    mode, _ = _resolve(config, devices, platform)
    resolve_engine(config, mode, platform, devices)
    return mode


def resolve_engine(
    config: RunConfig, mode: str, platform: Platform, devices: Sequence[Device]
) -> tuple[str, tuple[str, ...]]:
    """Who shards in a sharding mode, decided before anything is started.

    `auto` is DeepSpeed where it can be imported, else PyTorch's own; mode fsdp is always PyTorch's. The answer reaches
    the ranks in ``RANKDECK_ENGINE``, and `workers.strategies.make_strategy` builds what it names.

    Returns:
        ``deepspeed``, ``torch``, or an empty text in modes that shard nothing; and what a person should know.

    Raises:
        ConfigError: The engine cannot do what else was asked.
        MissingPackageError: DeepSpeed was asked for and is not installed.
    """
    if mode not in SHARDING_MODES:
        return "", ()
    if mode == "fsdp" and config.zero_engine == DEEPSPEED:
        raise ConfigError(
            "zero_engine",
            "Mode fsdp is PyTorch's own way of sharding, and the engine DeepSpeed was asked for.",
            "Choose mode zero with stage 3 for DeepSpeed, or leave the engine to auto.",
        )
    if mode == "zero" and config.zero_engine == DEEPSPEED and platform.deepspeed_version is None:
        instead = "choose the engine torch, which needs nothing more."
        raise MissingPackageError(("deepspeed",), "The engine DeepSpeed", instead)
    notes: tuple[str, ...] = ()
    if mode == "zero" and config.zero_engine != TORCH and platform.deepspeed_version is not None:
        if config.zero_engine == DEEPSPEED or config.precision != "fp16" or devices[0].kind == "cuda":
            return DEEPSPEED, ()
        notes = ("DeepSpeed does not train in fp16 on the CPU, so PyTorch's own engine is used.",)
    return TORCH, notes + _torch_offload(config, 3 if mode == "fsdp" else config.zero_stage)


def _torch_offload(config: RunConfig, stage: int) -> tuple[str, ...]:
    """What PyTorch's engine makes of the wish for offload.

    Raises:
        ConfigError: This stage cannot do it.
    """
    if config.offload_parameters and stage < 3:
        raise ConfigError(
            "offload_parameters",
            f"Stage {stage} keeps whole weights on each device, so they cannot stay on the CPU.",
            "Choose stage 3, or leave the weights on the device.",
        )
    if config.offload_optimizer and stage == 1:
        raise ConfigError(
            "offload_optimizer",
            "PyTorch's own stage 1 keeps the optimizer's state on the device.",
            "Choose stage 2 or 3, or the engine DeepSpeed, or leave the optimizer on the device.",
        )
    if config.offload_optimizer and not config.offload_parameters:
        return ("PyTorch's engine keeps each device's share of the weights on the CPU too, beside the optimizer.",)
    return ()


def plan_launch(
    config: RunConfig, devices: Sequence[Device], platform: Platform, recipe: Recipe, site: LaunchSite
) -> LaunchPlan:
    """What to start.

    Args:
        config: What was asked; `mode` may be "auto".
        devices: What was chosen, one rank each, in rank order.
        platform: The machine.
        recipe: What is trained.
        site: Where, and how the ranks reach the host and each other.

    Raises:
        ConfigError, PreflightError: See `resolve_mode`; also a recipe that cannot be trained so.
    """
    platform = platform_of(recipe, platform)
    mode, notes = _resolve(config, devices, platform)
    engine, engine_notes = resolve_engine(config, mode, platform, devices)
    if mode not in recipe.modes:
        raise ConfigError(
            "mode",
            f"{recipe.title} cannot be trained in mode {mode!r}.",
            f"Choose one of: {', '.join(recipe.modes)}.",
        )
    backend = "" if recipe.self_contained else _backend(config, mode, devices, platform)
    if recipe.self_contained:
        shared = _user_environment(platform, len(devices), site.master_port)
    else:
        shared = _shared_environment(platform, len(devices), backend)
    if recipe.self_contained and mode == "ddp":
        shared |= _all_visible(devices)
    shared |= {
        **_site_environment(site),
        rank_environment.ENV_MODE: mode,
        rank_environment.ENV_ENGINE: engine,
        rank_environment.ENV_BACKEND: backend,
        rank_environment.ENV_RENDEZVOUS: file_url(site.rendezvous, platform) if backend else "",
        ENV_RECIPE_DIR: str(recipe.folder),
    }
    commands = _rank_commands(devices, platform, recipe, site, shared)
    lanes = len(devices) if mode == "independent" else 1
    notes = (*notes, *engine_notes)
    return LaunchPlan(mode, len(devices), lanes, backend, commands, notes, engine, recipe.self_contained)


def _site_environment(site: LaunchSite) -> dict[str, str]:
    return {
        rank_environment.ENV_PORT: str(site.port),
        rank_environment.ENV_TOKEN: site.token,
        rank_environment.ENV_RUN_DIR: str(site.run_dir),
        rank_environment.ENV_ATTEMPT: str(site.attempt),
        rank_environment.ENV_GENERATION: "" if site.generation is None else str(site.generation),
        rank_environment.ENV_HOST_PID: str(site.host_pid) if site.host_pid else "",
    }


def _rank_commands(
    devices: Sequence[Device], platform: Platform, recipe: Recipe, site: LaunchSite, shared: Mapping[str, str]
) -> tuple[RankCommand, ...]:
    program = (str(recipe.folder / recipe.program),) if recipe.program else ("-m", "workers.rank_main")
    return tuple(
        RankCommand(
            rank=rank,
            argv=(site.python, *program),
            env={
                **_rank_environment(rank, len(devices), device, platform),
                **({} if recipe.self_contained else _memory_environment(device, platform)),
                **shared,
            },
            removed_env=_REMOVED,
            cwd=site.run_dir,
            log=site.run_dir / "logs" / f"rank{rank}.log",
            device=device,
        )
        for rank, device in enumerate(devices)
    )


def plan_link_test(
    devices: Sequence[Device], platform: Platform, folder: Path, rendezvous: PurePath, python: str, seconds: float
) -> LaunchPlan:
    """Ranks without a host that measure how fast tensors are summed over these devices (`workers.link_test`).

    Args:
        devices: Two or more, one rank each.
        platform: The machine.
        folder: Their working directory; gets their logs.
        rendezvous: As in `LaunchSite`.
        python: The interpreter.
        seconds: How long to measure.

    Raises:
        ConfigError: There are fewer than two devices.
        PreflightError: This torch build cannot connect them.
    """
    if len(devices) < 2:
        raise ConfigError(
            "devices", "One device has nobody to talk to.", "Choose at least two, for example --devices cpu:2."
        )
    check_gloo(platform)
    backend = "nccl" if platform.has_nccl and all(device.kind == "cuda" for device in devices) else "gloo"
    shared = _shared_environment(platform, len(devices), backend)
    shared |= {rank_environment.ENV_BACKEND: backend, rank_environment.ENV_RENDEZVOUS: file_url(rendezvous, platform)}
    commands = tuple(
        RankCommand(
            rank=rank,
            argv=(python, "-m", "workers.link_test", f"{seconds:g}"),
            env={**shared, **_rank_environment(rank, len(devices), device, platform)},
            removed_env=_REMOVED,
            cwd=folder,
            log=folder / f"rank{rank}.log",
            device=device,
        )
        for rank, device in enumerate(devices)
    )
    return LaunchPlan("link test", len(devices), len(devices), backend, commands)


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
        elif config.sync_every is not None:
            mode, notes = "independent", ("No mode was chosen: synchronising now and then is independent training's.",)
        elif platform.name == "windows":
            mode, notes = "independent", ("No mode was chosen: under Windows several devices train independently.",)
        else:
            mode, notes = "ddp", ("No mode was chosen: several devices train together (DDP).",)
    elif not several and mode in SHARDING_MODES:
        raise _nothing_to_share(config, devices[0])
    elif not several and mode != "single":
        mode = "single"
    if mode in CONNECTED_MODES:
        if len({device.kind for device in devices}) > 1:
            raise ConfigError(
                "devices",
                f"Mode {mode} needs devices of one kind, and GPUs and CPU slots were chosen.",
                "Leave out one kind, or choose mode independent.",
            )
        check_gloo(platform)
    rule = synchronisation_of(config) if mode == "independent" else None
    if rule is not None:
        check_gloo(platform)
        notes = (*notes, f"The devices' weights are brought together {rule.words}.")
    return mode, (*notes, *not_as_asked(config, mode))


def not_as_asked(config: RunConfig, mode: str) -> tuple[str, ...]:
    """What was asked about the mode and comes to something else in `mode`, the one that `resolve_mode` found."""
    notes = []
    if mode == "single" and config.mode not in ("auto", "single"):
        notes.append(f"With one device, mode {config.mode} is the same as training on it alone.")
    if config.sync_every is not None and mode == "single":
        notes.append("With one device there is nothing to synchronise.")
    elif config.sync_every is not None and mode != "independent":
        notes.append(
            f"In mode {mode} the devices are in step at all times, so synchronising now and then means nothing."
        )
    return tuple(notes)


def _nothing_to_share(config: RunConfig, device: Device) -> ConfigError:
    what = "Mode fsdp shares" if config.mode == "fsdp" else f"ZeRO stage {config.zero_stage} shares"
    return ConfigError(
        "devices",
        f"{what} a model's state out among devices, and only one was chosen ({device.uuid}).",
        "Choose at least two devices, for example --devices cpu:2, or mode single.",
    )


def _backend(config: RunConfig, mode: str, devices: Sequence[Device], platform: Platform) -> str:
    meets = mode == "independent" and config.sync_every is not None
    if mode not in CONNECTED_MODES and not meets:
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
        rank_environment.ENV_DEVICE: "cuda:0" if device.kind == "cuda" else "cpu",
    }


def platform_of(recipe: Recipe, platform: Platform) -> Platform:
    """The machine as this recipe's ranks see it: a self-contained program has an interpreter and a torch of its own."""
    if not recipe.self_contained:
        return platform
    return replace(platform, torch_version=None, cuda_build=None, deepspeed_version=None)


def _memory_environment(device: Device, platform: Platform) -> dict[str, str]:
    """What keeps a CPU rank from giving its memory back after each step and asking for it again in the next.

    A page that comes back from the system is cleared first, and comes one by one (docs/decisions/0025). On GPUs torch
    keeps memory by itself; other systems' allocators have no such settings.
    """
    if platform.name != "linux" or device.kind != "cpu":
        return {}
    return {
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # bytes; what is larger goes back at once, or holes would grow
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
        "THP_MEM_ALLOC_ENABLE": "1",  # torch's own: large tensors in pages of 2 MiB
    }


def _user_environment(platform: Platform, world_size: int, master_port: int) -> dict[str, str]:
    """For ranks that start a program of the user's own: what that program finds there is theirs to say."""
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(master_port),
        "PYTHONUNBUFFERED": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        ENV_THREADS: str(max(1, platform.physical_cores // world_size)),
    }


def _all_visible(devices: Sequence[Device]) -> dict[str, str]:
    """A program made for torchrun picks its card by LOCAL_RANK, so it must see the ticked ones, in rank order."""
    uuids = [device.uuid for device in devices if device.kind == "cuda"]
    return {"CUDA_VISIBLE_DEVICES": ",".join(uuids)} if uuids else {}


def _version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None
