"""Choice of devices by UUID, independent of the driver's order and of the devices that are present."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from core.machine.devices import Device, DeviceSample
from core.machine.devices.defaults import default_devices, in_use_by, reasons_against, usable_gpus


class DeviceChoice:
    """A person's choice of devices; before it, that of `core.machine.devices.defaults`.

    It decides again when devices come or go, not when a card becomes busy, which may be this window's own run.

    Attributes:
        wanted: The person's choice; None before it.
    """

    def __init__(self) -> None:
        self.devices: Sequence[Device] = ()
        self.samples: dict[str, DeviceSample] = {}
        self.cuda_build: str | None = ""
        self.wanted: set[str] | None = None
        self._chosen_without_gpu = False
        self._defaults: tuple[str, ...] = ()
        self._judged: dict[str, DeviceSample] = {}

    def set_devices(self, devices: Sequence[Device], cuda_build: str | None) -> None:
        self.devices, self.cuda_build = list(devices), cuda_build
        there = {device.uuid for device in devices}
        self.samples = {uuid: sample for uuid, sample in self.samples.items() if uuid in there}
        self._decide()

    def take_samples(self, samples: Iterable[DeviceSample]) -> None:
        """Decide again once a GPU has its first figures. A lost one stays chosen: it may come back."""
        self.samples |= {sample.uuid: sample for sample in samples}
        new = {
            uuid: sample
            for uuid, sample in self.samples.items()
            if uuid not in self._judged and not sample.is_unusable and _says_something(sample)
        }
        if new:
            self._judged |= new
            self._decide()

    def _decide(self) -> None:
        self._defaults = default_devices(self.devices, self._judged, cuda_build=self.cuda_build)
        if self._chosen_without_gpu and self.usable:
            self.wanted, self._chosen_without_gpu = None, False

    @property
    def usable(self) -> list[Device]:
        return usable_gpus(self.devices, self.samples, self.cuda_build)

    @property
    def free(self) -> list[Device]:
        """GPUs that can train and are not used by other programs, as far as that is known."""
        return [gpu for gpu in self.usable if gpu.uuid not in self.samples or not in_use_by(self.samples[gpu.uuid])]

    def reasons_against(self) -> dict[str, str]:
        return reasons_against(self.devices, self.samples, cuda_build=self.cuda_build)

    def choose(self, uuids: Collection[str], *, without_gpu: bool = False) -> None:
        """Take over a person's choice; `without_gpu`: no GPU was known, so that one that comes later is chosen."""
        self.wanted, self._chosen_without_gpu = set(uuids), without_gpu

    def is_wished(self, device: Device) -> bool:
        return device.uuid in (self._defaults if self.wanted is None else self.wanted)

    def wished_beside(self, shown: Collection[str]) -> set[str]:
        """The chosen devices that are not shown."""
        return (self.wanted or set()) - set(shown)


def _says_something(sample: DeviceSample) -> bool:
    """Whether a sample has figures that show if the GPU is free."""
    return sample.utilization_percent is not None or sample.memory_used_bytes is not None
