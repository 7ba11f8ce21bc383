"""A device's properties (`Device`) and one sample of its figures (`DeviceSample`, `HostSample`)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final, Literal

DeviceKind = Literal["cuda", "cpu"]
# For windows, videos and a browser's tabs that are opened while a run trains: without it the card is full then, and
# under Windows the run's memory moves to the machine's, tens of times slower.
SCREEN_RESERVE_BYTES: Final = 512 << 20
# Among the warnings of a sample. Normal for a busy card: a note, not a warning.
POWER_CAP: Final = "power cap: the card draws all it may"


@dataclass(frozen=True, slots=True)
class Device:
    """A device for one rank. Chosen, stored and passed on by `uuid`, which no reordering changes.

    Attributes:
        uuid: ``GPU-…`` as its driver gives it, or ``cpu:0``, ``cpu:1`` … for slots of the processor.
        kind: ``cuda``, as torch names AMD's GPUs too, or ``cpu``.
        index: Its place in the driver's order (that of the PCI bus), or among the GPUs that `CUDA_VISIBLE_DEVICES`
            leaves visible, as torch counts them; AMD's are counted after NVIDIA's. Or the CPU device's number.
        memory_bytes: Its own memory, or the machine's for a CPU device; None when the driver does not say.
        compute_capability: (8, 9) for an RTX 4090; None for a CPU device, or when the driver does not say.
        hidden_by: The variable and its value that hide it from CUDA programs; nothing trains on a hidden GPU.
        counts_energy: Its driver counts the energy that it uses.
        is_unclear: It is hidden because it is not known which GPU a number in that variable means.
        is_amd: It is AMD's: a ROCm build of torch trains on it, and no other.
        rocm_index: Its place in ROCm's own list, which names it where it has no UUID; None for other makers.
    """

    uuid: str
    kind: DeviceKind
    index: int
    name: str
    memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    hidden_by: str = ""
    is_unclear: bool = False
    counts_energy: bool = False
    is_amd: bool = False
    rocm_index: int | None = None

    @property
    def model(self) -> tuple[str, int | None]:
        """Its model: devices of one model are equally fast. CPU devices are slots of one processor."""
        return (self.name, self.memory_bytes) if self.kind == "cuda" else ("cpu", None)


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process that computes on a GPU.

    Attributes:
        name: Its program ("python"); empty where it cannot be read, as for processes outside a container.
        memory_bytes: Its part of the GPU's memory; None where the driver does not say (Windows' WDDM).
        run: The name of our run that it belongs to; empty for any other process, and until one asked.
        shared_bytes: Its part of the machine's memory for the GPU, by Windows; None elsewhere.
    """

    pid: int
    name: str = ""
    memory_bytes: int | None = None
    run: str = ""
    shared_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """One reading of a device. A figure that it does not support, or did not answer, is None.

    Attributes:
        ts: Unix time of the reading in seconds.
        energy_j: Energy used since its driver was loaded.
        throttle_reasons: Reasons for a lowered clock, as text.
        error: The reason for missing figures: "GPU is lost", "has not answered for 6 s" …
        is_unusable: Nothing can train on it just now: it is gone, or its driver does not answer. A card that merely
            gives no figures can.
        processes: The largest first; empty for a CPU device, and unless a monitor is asked for them.
        rank_bytes: Its rank's part of the memory, by Windows' counters; None elsewhere.
        rank_shared_bytes: Its rank's part of the machine's memory for the GPU.
        is_whole_machine: A CPU device's figures are those of the machine: no process is known to train on it.
        drives_screen: A display is connected to it; None when the driver does not say.
    """

    uuid: str
    ts: float
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy_j: float | None = None
    fan_percent: float | None = None
    sm_clock_mhz: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    error: str | None = None
    is_unusable: bool = False
    processes: tuple[DeviceProcess, ...] = ()
    drives_screen: bool | None = None
    rank_bytes: int | None = None
    rank_shared_bytes: int | None = None
    is_whole_machine: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a `device` line of metrics.jsonl, without those that are None."""
        values = dataclasses.asdict(self)
        del values["is_unusable"]  # `error` says it
        del values["is_whole_machine"]  # such figures stand in the line of the host
        # Other people's programs do not belong in a run's folder.
        del values["processes"], values["drives_screen"]
        values["throttle_reasons"] = list(self.throttle_reasons)
        return {name: value for name, value in values.items() if value is not None}

    @property
    def screen_reserve_bytes(self) -> int:
        """Memory of the card to leave to the screen, beyond its present use; 0 for a card that drives none."""
        return SCREEN_RESERVE_BYTES if self.drives_screen else 0


@dataclass(frozen=True, slots=True)
class HostSample:
    """One reading of the machine itself.

    Attributes:
        cpu_percent: Share of all cores that was busy since the reading before; None at the first.
        memory_used_bytes: Memory that programs cannot get without something being pushed out.
    """

    ts: float
    cpu_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
