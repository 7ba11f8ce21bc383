"""AMD GPUs through AMD's `amdsmi`, where it is installed: names, memory and load. Linux only.

`amdsmi` belongs to a ROCm installation (`pip install /opt/rocm/share/amd_smi`, or the package of the same version from
PyPI) and calls its `libamd_smi.so`. Names and units here are those of `amdsmi_interface.py` in ROCm 6.4 to 7.0: memory
in MiB, "N/A" for what a card lacks.
Nothing of this has run on a card: tests answer with recorded values (tests/helpers/recorded_amdsmi).
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from core.machine.devices.device import Device, DeviceSample
from core.machine.devices.driver_thread import Found, GpuDriver
from core.machine.devices.visible import visible_amd_gpus

_LIBRARY: Final = "libamd_smi.so"
# ROCm's name for every card whose driver gives it no number of its own.
_NO_UUID: Final = "gpu-xx"
_NOT_PRESENT: Final = 31
_NOT_LOADED: Final = 34
# `amdsmi_status_t` of errors after which nothing can train on the card.
_GONE: Final = {
    _NOT_PRESENT: "GPU is no longer present",
    32: "the AMD driver was stopped",
    _NOT_LOADED: "the AMD driver was stopped",
}


class LibraryMissingError(Exception):
    """`amdsmi` is installed, and the library that it calls is not."""


def is_installed() -> bool:
    return sys.platform == "linux" and importlib.util.find_spec("amdsmi") is not None


def why_no_gpu(error: BaseException) -> str:
    """Explain an error of `find_gpus`; empty where the machine has no AMD driver."""
    if isinstance(error, LibraryMissingError) or getattr(error, "err_code", None) == _NOT_LOADED:
        return ""
    return f"The AMD driver does not work: {_error_text(error)}."


def find_gpus() -> Found:
    """Start `amdsmi` and list its GPUs, in ROCm's order.

    Raises:
        LibraryMissingError: ROCm's library is missing.
        Exception: `amdsmi` cannot be used (an `AmdSmiException`, or what importing it raised).
    """
    smi = _loaded()
    smi.amdsmi_init()
    devices: list[Device] = []
    problems: list[str] = []
    for place, handle in enumerate(smi.amdsmi_get_processor_handles()):
        try:
            devices.append(_device(smi, handle, place))
        except smi.AmdSmiException as error:
            problems.append(f"AMD GPU {place} cannot be used: {_error_text(error)}.")
    shown = visible_amd_gpus(sorted(devices, key=lambda device: device.index), os.environ)
    return Found(shown.devices, (*problems, *shown.problems), None)


def _loaded() -> Any:
    """The module. Without its library it would print so and fail by half, thus that is looked for first."""
    spec = importlib.util.find_spec("amdsmi")
    if spec is None or spec.origin is None:
        raise LibraryMissingError
    rocm = [os.environ[name] for name in ("ROCM_HOME", "ROCM_PATH") if os.environ.get(name)]
    folders = [Path(spec.origin).parent, *(Path(root, "lib") for root in (*rocm, "/opt/rocm"))]
    for library in (_LIBRARY, *(folder / _LIBRARY for folder in folders)):
        try:
            ctypes.CDLL(str(library))
        except OSError:
            continue
        return importlib.import_module("amdsmi")
    raise LibraryMissingError


def _device(smi: Any, handle: Any, place: int) -> Device:
    numbers = _asked(smi.amdsmi_get_gpu_enumeration_info, handle) or {}
    rocm_index = int(numbers["hip_id"]) if isinstance(numbers.get("hip_id"), int) else place
    return Device(
        uuid=_uuid(smi, handle),
        kind="cuda",
        index=rocm_index,
        name=_text(_asked(smi.amdsmi_get_gpu_asic_info, handle), "market_name") or "AMD GPU",
        memory_bytes=_mebibytes(_asked(smi.amdsmi_get_gpu_vram_usage, handle), "vram_total") or None,
        is_amd=True,
        rocm_index=rocm_index,
    )


def _uuid(smi: Any, handle: Any) -> str:
    """The UUID as ROCm's variables take it.

    A card without one is named by its place on the PCI bus, and chosen by its number (`Device.rocm_index`).
    """
    hip_uuid = _text(_asked(smi.amdsmi_get_gpu_enumeration_info, handle), "hip_uuid")
    return hip_uuid if hip_uuid and hip_uuid.lower() != _NO_UUID else f"AMD-{smi.amdsmi_get_gpu_device_bdf(handle)}"


class AmdReader:
    """Reads one GPU. Used by one thread."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._handle: Any = None
        self._smi: Any = None

    def read(self) -> DeviceSample:
        started = time.time()
        smi = self._smi = self._smi or _loaded()
        try:
            self._find()
            return self._read(started)
        except smi.AmdSmiException as error:
            self._handle = None
            is_gone = getattr(error, "err_code", None) in _GONE
            text = _error_text(error) if is_gone else f"gives no figures ({_error_text(error)})"
            return DeviceSample(self._device.uuid, started, error=text, is_unusable=is_gone)

    def _find(self) -> None:
        if self._handle is not None:
            return
        self._smi.amdsmi_init()
        self._handle = next(filter(self._is_it, self._smi.amdsmi_get_processor_handles()), None)
        if self._handle is None:
            raise self._smi.AmdSmiLibraryException(_NOT_PRESENT)

    def _is_it(self, handle: Any) -> bool:
        try:
            return _uuid(self._smi, handle) == self._device.uuid
        except self._smi.AmdSmiException:  # another card that is gone
            return False

    def _read(self, started: float) -> DeviceSample:
        memory = _asked(self._smi.amdsmi_get_gpu_vram_usage, self._handle)
        utilization = _part(_asked(self._smi.amdsmi_get_gpu_activity, self._handle), "gfx_activity")
        used = _mebibytes(memory, "vram_used")
        return DeviceSample(
            uuid=self._device.uuid,
            ts=started,
            utilization_percent=utilization,
            memory_used_bytes=used,
            memory_total_bytes=_mebibytes(memory, "vram_total") or self._device.memory_bytes,
            error="gives no figures" if used is None and utilization is None else None,
        )


def _asked(function: Callable[[Any], Any], handle: Any) -> Any:
    """The answer, or None for what this card or driver does not have; a card that is gone raises."""
    smi = importlib.import_module("amdsmi")
    try:
        return function(handle)
    except smi.AmdSmiException as error:
        if getattr(error, "err_code", None) in _GONE:
            raise
        return None


def _error_text(error: BaseException) -> str:
    known = _GONE.get(getattr(error, "err_code", None) or 0)
    return known or str(getattr(error, "err_info", "")) or str(error) or type(error).__name__


def _part(answer: Mapping[str, Any] | None, key: str) -> float | None:
    value = (answer or {}).get(key)  # "N/A" where the card lacks it
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(answer: Mapping[str, Any] | None, key: str) -> str | None:
    value = (answer or {}).get(key)
    return value if isinstance(value, str) and value not in ("", "N/A") else None


def _mebibytes(answer: Mapping[str, Any] | None, key: str) -> int | None:
    value = _part(answer, key)
    return None if value is None else int(value) << 20


AMD: Final = GpuDriver(
    "AMD", find_gpus, lambda device, _: AmdReader(device).read, why_no_gpu, lambda error: not why_no_gpu(error)
)
