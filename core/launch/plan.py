"""The launch plan, a pure function: config, devices and platform → program, environment and files of each rank.

Nothing here asks the machine anything, so every platform's plan can be tested on any.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PureWindowsPath
from typing import Final, Literal

from core.config.distributed import DistributedConfig, LaunchMethod
from core.errors import ConfigError
from core.launch.environment import REMOVED, cpu_threads, defaults_of_rank, hash_seed, of_rank, of_script
from core.launch.mode import check_gloo
from core.launch.resolved import ResolvedRun
from core.launch.seats import NodeSeats
from core.launch.stop_rules import stop_rules
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.processes.program_environment import program_environment
from core.protocol.rank_context import LOOPBACK, RankContext

# What ranks without a host measure: a bare process, a model's memory, times of steps, trials, the link.
MeasureKind = Literal["bare", "figures", "times", "trial", "link"]
_MEASURE: Final = ("-m", "workers.programs.measure_main")


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """The place of one attempt, and the way from its ranks to the host and each other.

    Attributes:
        attempt: Counted from 1.
        rendezvous: A file that does not exist yet, in which the ranks find each other.
        port: The host's listener on 127.0.0.1.
        checkpoint: The folder of the checkpoint to resume from, or None.
        host_pid: 0 if it is not known.
        halvings, restarts: How often this host has halved the micro-batch, and restarted failed ranks.
        master_port: A free port at which the ranks of a self-contained program find each other.
        seats: The machine of each rank; None: all are on this one.
    """

    run_dir: Path
    attempt: int
    rendezvous: PurePath
    port: int
    token: str
    checkpoint: Path | None
    python: str
    host_pid: int = 0
    halvings: int = 0
    restarts: int = 0
    master_port: int = 0
    launch_method: LaunchMethod = "spawn"
    seats: NodeSeats | None = None


@dataclass(frozen=True, slots=True)
class RankCommand:
    """The process of one rank.

    Attributes:
        env: Variables on top of the host's own.
        default_env: Variables that the host's own environment may replace.
        removed_env: Patterns (``KUBERNETES_*``) of variables that it must not inherit.
    """

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    removed_env: tuple[str, ...]
    cwd: Path
    log: Path
    device: Device
    default_env: Mapping[str, str] = field(default_factory=dict)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        return rank_environment(inherited, self.env, self.default_env, self.removed_env)


def rank_environment(
    inherited: Mapping[str, str], env: Mapping[str, str], default_env: Mapping[str, str], removed_env: Sequence[str]
) -> dict[str, str]:
    """Return a rank's environment: inherited without `removed_env`, over `default_env`, under `env`."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not any(fnmatchcase(name.upper(), pattern) for pattern in removed_env)
    }
    return program_environment({**default_env, **kept}, env)


def plan_launch(run: ResolvedRun, site: LaunchSite) -> tuple[RankCommand, ...]:
    recipe = run.recipe
    program = (str(recipe.folder / recipe.program),) if recipe.program else ("-m", "workers.programs.rank_main")
    return _ranks_of(run, site, program, shards=run.mode.is_sharded)


def plan_measuring(run: ResolvedRun, folder: Path, python: str, kind: MeasureKind) -> tuple[RankCommand, ...]:
    """Plan ranks without a host that measure (`workers.programs.measure_main`), in a run's environment.

    Args:
        run: The run to measure.
        folder: For questions, answers and logs.
        python: The interpreter.
        kind: The question.
    """
    site = LaunchSite(folder, 0, rendezvous=folder, port=0, token="", checkpoint=None, python=python)
    # Those of a run without a backend are connected too, while they are measured.
    gloo = {"GLOO_SOCKET_IFNAME": "lo"} if run.platform.name == "linux" else {}
    # A model's figures serve all modes, so they are measured as in those that shard nothing.
    ranks = _ranks_of(run, site, (*_MEASURE, kind), shards=kind == "trial" and run.mode.is_sharded)
    return tuple(replace(rank, default_env={**gloo, **rank.default_env}) for rank in ranks)


def _ranks_of(run: ResolvedRun, site: LaunchSite, program: tuple[str, ...], *, shards: bool) -> tuple[RankCommand, ...]:
    config, devices, platform, recipe = run.config, run.devices, run.platform, run.recipe
    launched = {"launch_method": site.launch_method}

    def environment(rank: int) -> dict[str, str]:
        context = _context(run, site, rank).to_env()
        place = run.distributed(rank).replace(**launched, master_port=site.master_port)
        place = place if site.seats is None else site.seats.placed(place)
        if recipe.self_contained:
            return {**of_script(place, devices, platform, together=run.mode.is_connected), **context}
        seeded = {"PYTHONHASHSEED": hash_seed(config)}
        return {**of_rank(place, devices, platform, shards=shards), **seeded, **context, **config.env}

    def default(device: Device) -> dict[str, str]:
        return defaults_of_rank(config, device, own_program=not recipe.self_contained)

    return _commands(devices, (site.python, *program), environment, site.run_dir, site.run_dir / "logs", default)


def _commands(
    devices: Sequence[Device],
    argv: tuple[str, ...],
    environment: Callable[[int], Mapping[str, str]],
    cwd: Path,
    logs: Path,
    default: Callable[[Device], Mapping[str, str]] = lambda _: {},
) -> tuple[RankCommand, ...]:
    return tuple(
        RankCommand(rank, argv, environment(rank), REMOVED, cwd, logs / f"rank{rank}.log", device, default(device))
        for rank, device in enumerate(devices)
    )


def _context(run: ResolvedRun, site: LaunchSite, rank: int) -> RankContext:
    rules = stop_rules(run.config, run.recipe)
    here, seats = file_url(site.rendezvous, run.platform), site.seats
    is_remote = seats is not None and seats.ranks[rank].is_remote
    ranks_here = run.world_size if seats is None else seats.ranks[rank].local_size
    return RankContext(
        rank=rank,
        world_size=run.world_size,
        device=_torch_device(run.devices[rank]),
        mode=run.mode.value,
        engine=run.choice.engine,
        compiles=run.compiles,
        backend=run.backend,
        rendezvous=((seats.rendezvous if seats is not None else "") or here) if run.backend else "",
        threads=cpu_threads(run.platform, ranks_here),
        run_dir=site.run_dir,
        recipe_dir=run.recipe.folder,
        attempt=site.attempt,
        micro_batch=0 if run.recipe.self_contained else run.batch.micro,
        grad_accum_steps=0 if run.recipe.self_contained else run.batch.accumulation,
        halvings=site.halvings,
        restarts=site.restarts,
        checkpoint=site.checkpoint,
        host_address=seats.address if seats is not None and is_remote else LOOPBACK,
        port=seats.listen_port if seats is not None and is_remote else site.port,
        token=site.token,
        host_pid=site.host_pid,
        best_metric=rules.metric if rules.any else "",
        best_is_higher=rules.any and rules.is_higher_better,
    )


def _torch_device(device: Device) -> str:
    return "cuda:0" if device.kind == "cuda" else "cpu"  # CUDA_VISIBLE_DEVICES shows it one GPU only


def link_backend(devices: Sequence[Device], platform: Platform) -> str:
    """Return the backend of devices whose link is measured.

    Raises:
        ConfigError: There are fewer than two devices.
        PreflightError: This torch build cannot connect them.
    """
    if len(devices) < 2:
        raise ConfigError("devices", "A link test needs two devices.", "Choose at least two.", option="--devices cpux2")
    check_gloo(platform)
    return "nccl" if platform.has_nccl and all(device.kind == "cuda" for device in devices) else "gloo"


def plan_link_test(devices: Sequence[Device], platform: Platform, folder: Path, python: str) -> tuple[RankCommand, ...]:
    """Plan ranks without a host that measure how fast these devices sum tensors."""
    backend = link_backend(devices, platform)
    return plan_bare_ranks(devices, platform, folder, folder, (python, *_MEASURE, "link"), backend)


def plan_bare_ranks(
    devices: Sequence[Device],
    platform: Platform,
    folder: Path,
    rendezvous: PurePath,
    argv: tuple[str, ...],
    backend: str,
) -> tuple[RankCommand, ...]:
    """Plan ranks without a host that run a program of ours, one on each device.

    Args:
        devices: One rank each.
        platform: This machine.
        folder: Their working folder, for logs too.
        rendezvous: As in `LaunchSite`.
        argv: Their program.
        backend: Empty: they are not connected.
    """
    world = len(devices)
    threads, url = cpu_threads(platform, world), file_url(rendezvous, platform) if backend else ""

    def environment(rank: int) -> dict[str, str]:
        device = _torch_device(devices[rank])
        context = RankContext(rank, world, device, backend=backend, rendezvous=url, threads=threads, run_dir=folder)
        place = DistributedConfig(world, rank, rank, devices_per_node=world, backend=backend)
        return {**of_rank(place, devices, platform), **context.to_env()}

    return _commands(devices, argv, environment, folder, folder)


def file_url(path: PurePath, platform: Platform) -> str:
    """Return the ``file://`` address of a file for torch's rendezvous.

    Under Windows torch decodes percent signs (``file:///C:/My%20Runs/x``); elsewhere it takes the path as it stands.
    """
    if platform.name == "windows":
        text = PureWindowsPath(path).as_posix()
        return "file:" + urllib.parse.quote(text if text.startswith("//") else f"///{text}", safe="/:")
    return f"file://{path.as_posix()}"
