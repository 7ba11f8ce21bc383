"""Estimate of a run in every mode side by side, made of measured figures. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.config.batch import Batch
from core.config.mode import VARIANTS, Mode, ModeVariant
from core.config.run_config import RunConfig
from core.config.sync import DILOCO, resolve_synchronisation
from core.errors import RankdeckError
from core.formatting import listed, memory_size
from core.launch.mode import DEEPSPEED
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices.device import Device
from core.machine.devices.names import device_label
from core.measure.estimate.figures import Baselines, ModelFigures
from core.measure.estimate.free import Free, Verdict, verdict_on
from core.measure.estimate.memory import Layout, RankMemory, checkpoint_bytes, host_memory, rank_memory

# A checkpoint by the clock comes after a minute for the first time (`workers.training.commits`).
FIRST_SAVE_S: Final = 60.0
# So much longer may steps take beside other programs.
_BUSY: Final = 4.0
_SHARED_RANKS: Final = range(2, 9)
# Verdicts, the worst last.
SEVERITY: Final[tuple[Verdict, ...]] = ("fits", "unknown", "tight", "too_large")


@dataclass(frozen=True, slots=True)
class Need:
    """The need of a run for a GPU's memory, this computer's, or Windows' commit charge.

    Attributes:
        free_bytes: None is not known.
        place: "on GPU 1 · RTX 4090", "in this computer's memory".
        is_measured: It is the whole need, and not only that of the parameters.
        device: The memory's; None: the machine's.
        ranks: Number of CPU devices that need that much together.
        is_commit: It is Windows' commit charge: memory and page file.
    """

    bytes: int
    free_bytes: int | None
    place: str
    is_measured: bool
    device: Device | None = None
    ranks: int = 1
    is_commit: bool = False

    @property
    def verdict(self) -> Verdict:
        return verdict_on(self.bytes, self.free_bytes, complete=self.is_measured)

    @property
    def text(self) -> str:
        """Need and free memory: "needs 6.6 TB, 20 GiB free"."""
        free = "free memory not known" if self.free_bytes is None else f"{memory_size(self.free_bytes)} free"
        times = f"{self.ranks} × " if self.ranks > 1 else ""
        return f"needs {times}{memory_size(self.bytes // self.ranks)}, {free}"

    @property
    def severity(self) -> tuple[int, bool, float]:
        """A sort key, the worst last: by verdict as if all were measured, a device's before the machine's."""
        verdict = verdict_on(self.bytes, self.free_bytes, complete=True)
        share = self.bytes / max(1, self.free_bytes or 1)
        return SEVERITY.index(verdict), self.device is not None, share


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """One device's memory in one mode, and the need that it is part of; CPU devices share the machine's."""

    device: Device
    memory: RankMemory
    need: Need


@dataclass(frozen=True, slots=True)
class ModeEstimate:
    """The needs of a run in one mode.

    Attributes:
        reason: Why the mode cannot be used; empty where it can, and only then the rest means something.
        engine: "deepspeed", "torch" or "".
        devices: One a rank.
        needs: For each GPU's memory, the machine's, and on Windows memory and page file.
        host_bytes: RAM of one machine, over its ranks, with the copies of a checkpoint.
        commit_bytes: Windows' commit charge; None elsewhere.
        checkpoint_bytes, disk_bytes: Of one checkpoint; of all that are kept, with the best one.
    """

    variant: ModeVariant
    reason: str = ""
    engine: str = ""
    batch: Batch | None = None
    devices: tuple[DeviceNeed, ...] = ()
    needs: tuple[Need, ...] = ()
    host_bytes: int = 0
    commit_bytes: int | None = None
    checkpoint_bytes: int = 0
    disk_bytes: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst of all needs."""
        return max((need.verdict for need in self.needs), key=SEVERITY.index, default="unknown")

    @property
    def worst(self) -> Need:
        """The need that decides on the verdict."""
        return max(self.needs, key=lambda need: need.severity)

    @property
    def largest(self) -> int:
        """The memory of the largest rank."""
        return max((need.memory.total for need in self.devices), default=0)

    @property
    def largest_peak(self) -> int:
        """The largest peak that a rank will report: PyTorch does not count a GPU's CUDA context."""
        peaks = (
            need.memory.total - (need.memory.framework if need.device.kind == "cuda" else 0) for need in self.devices
        )
        return max(peaks, default=0)

    def sentence(self) -> str:
        if self.reason:
            return self.reason
        if self.verdict == "fits":
            return "Fits."
        if self.verdict == "unknown":
            return "Not known."
        names = dict.fromkeys(device_label(need.device) for need in self.devices if need.need.verdict == self.verdict)
        where = f"on {listed(list(names))}" if names else self.worst.place
        return f"Tight {where}." if self.verdict == "tight" else f"Does not fit {where}."


def estimate_modes(
    run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free
) -> tuple[ModeEstimate, ...]:
    return tuple(
        ModeEstimate(other.variant, reason=other.reason)
        if other.run is None
        else estimate_run(other.run, figures, baselines, free)
        for other in mode_runs(run)
    )


@dataclass(frozen=True, slots=True)
class ModeRun:
    """The same run in a mode, or the reason why the mode cannot be used."""

    variant: ModeVariant
    run: ResolvedRun | None
    reason: str = ""


def mode_runs(run: ResolvedRun) -> tuple[ModeRun, ...]:
    """Resolve a run in every mode: alone on its first device, else on all of them."""
    return tuple(_in_mode(run, variant) for variant in VARIANTS)


def mode_name(run: ResolvedRun) -> str:
    """Name the mode that a run was resolved to."""
    return run.mode.variant(run.config.zero_stage).name


def estimate_run(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> ModeEstimate:
    """Estimate a run in the mode that it was resolved to; `least_figures` give the needs of its parameters alone."""
    layout = run_layout(run, figures)
    ranks = range(run.world_size)
    memories = [rank_memory(figures, baselines, layout, rank) for rank in ranks]
    if figures.is_least:
        memories = [memory.least for memory in memories]
        host = sum(memory.total for memory in memories) if layout.on_cpu else 0
    else:
        host = sum(host_memory(figures, baselines, layout, rank) for rank in ranks)
    extra = baselines.extra_commit_bytes.get(layout.engine, 0) * run.world_size
    commit = host + extra if run.platform.name == "windows" else None
    measured, slots = figures.is_measured, sum(device.kind == "cpu" for device in run.devices)
    machine = Need(host, free.ram, "in this computer's memory", measured, ranks=slots or 1)
    promised: tuple[Need, ...] = ()
    if commit is not None:
        promised = (Need(commit, free.commit, "in memory and page file", measured, is_commit=True),)
    devices = [
        DeviceNeed(device, memory, Need(memory.total, free.devices.get(device.uuid), place, measured, device))
        if device.kind == "cuda"
        else DeviceNeed(device, memory, machine)
        for device, memory in zip(run.devices, memories, strict=True)
        for place in [f"on {device_label(device)}"]
    ]
    size = checkpoint_bytes(figures, layout)
    return ModeEstimate(
        run.mode.variant(run.config.zero_stage),
        engine=run.choice.engine,
        batch=run.batch,
        devices=tuple(devices),
        needs=(*(one.need for one in devices if one.need is not machine), machine, *promised),
        host_bytes=host,
        commit_bytes=commit,
        checkpoint_bytes=size,
        disk_bytes=size * (run.config.keep_checkpoints + 1),
    )


def run_layout(run: ResolvedRun, figures: ModelFigures) -> Layout:
    config, mode, ranks = run.config, run.mode, run.world_size
    on_cpu = run.devices[0].kind == "cpu"
    by_deepspeed = run.choice.engine == DEEPSPEED
    in_buckets = mode.reduces_gradients(config.zero_stage, by_torch=not by_deepspeed)
    plain = not on_cpu or config.gradient_exchange not in ("auto", "shared") or run.platform.name == "macos"
    rule = resolve_synchronisation(config) if mode.is_apart and ranks > 1 else None
    return Layout(
        mode,
        mode.stage(config.zero_stage),
        by_deepspeed,
        ranks,
        run.batch.micro,
        run.batch.accumulation,
        narrow=config.precision in ("bf16", "fp16") or (config.precision == "auto" and not on_cpu),
        on_cpu=on_cpu,
        shared_memory=in_buckets and not plain and ranks in _SHARED_RANKS,
        saves_beside=_saves_beside(config, run.batch, figures.seconds_per_sample),
        merges=mode.is_apart and ranks > 1 and rule is None,
        outer_copies=0 if rule is None else 3 if rule.method == DILOCO else 1,
    )


def _saves_beside(config: RunConfig, batch: Batch, sample_s: float | None) -> bool:
    """Whether checkpoints are written while further steps run: not where only the end is saved."""
    steps, every, every_s = config.steps, config.checkpoint_every_steps, config.checkpoint_every_s
    if every is not None and (steps is None or every < steps):
        return True
    if every_s is None:
        return False
    if steps is None or sample_s is None:
        return True
    seconds = steps * batch.accumulation * batch.micro * sample_s  # on a machine that does nothing else
    return _BUSY * seconds > min(every_s, FIRST_SAVE_S)


def _in_mode(run: ResolvedRun, variant: ModeVariant) -> ModeRun:
    devices = run.devices[:1] if variant.mode == Mode.SINGLE else run.devices
    changed = _for_mode(run.config, variant)
    try:
        other = resolve_on(changed, run.recipe, devices, run.platform)
    except RankdeckError as error:
        return ModeRun(variant, None, error.cause)
    if other.mode != variant.mode:
        return ModeRun(variant, None, "It needs at least two devices.")
    return ModeRun(variant, other)


def _for_mode(config: RunConfig, variant: ModeVariant) -> RunConfig:
    """Change the mode; settings that belong to one mode alone are left out in the others."""
    changes, mode = variant.settings, variant.mode
    if not mode.is_apart:
        changes |= {"sync_every": None}
    if config.zero_engine == DEEPSPEED and not mode.traits.by_deepspeed:
        changes["zero_engine"] = "auto"
    return config.replace(**changes)
