"""NVIDIA GPUs through NVML (`nvidia-ml-py`), every call guarded. Called from threads that may hang, never directly.

All of these happen: no library, no driver, a driver without one of the functions, a figure that a card does not
support, a card that falls off the bus, and bindings that raise `TypeError` on an answer of Windows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

import pynvml

from core.machine.devices.device import POWER_CAP, Device, DeviceProcess, DeviceSample
from core.machine.devices.driver_thread import Found, GpuDriver
from core.machine.devices.visible import visible_gpus
from core.machine.process_reading import program_name

_GONE: Final = {
    "NVMLError_GpuIsLost": "GPU is lost: it fell off the bus, and this machine must be restarted to use it",
    "NVMLError_NotFound": "GPU is no longer present",
    "NVMLError_GpuNotFound": "GPU is no longer present",
    "NVMLError_ResetRequired": "GPU must be reset, or this machine restarted, before it can be used",
    "NVMLError_Uninitialized": "the NVIDIA driver was stopped",
    "NVMLError_DriverNotLoaded": "the NVIDIA driver was stopped",
}
# NVML says "not available" as 2**64 - 1.
_PLAUSIBLE_BYTES: Final = 1 << 50
# Who uses a card changes slowly, and each look names processes of other users.
PROCESSES_EVERY_S: Final = 2.0
MOST_PROCESSES: Final = 64
_SLOWDOWN: Final = 0x0008
# nvml.h, nvmlClocksEventReasons. "idle" and a clock that a user set are not a problem, so they are not in it.
_REASONS: Final = (
    (0x0040, "too hot: the hardware halves the clock"),
    (0x0080, "power brake: the power supply asks for less"),
    (_SLOWDOWN, "hardware slowdown (too hot, or its power supply)"),
    (0x0020, "hot: the driver lowers the clock"),
    (0x0010, "waits for another card in its sync group"),
    (0x0004, POWER_CAP),
)
_TELLING: Final = 0x0040 | 0x0080

_SHORT_OF_GPU: Final = {
    "NVMLError_LibraryNotFound": "No NVIDIA driver is installed (its NVML library was not found).",
    "NVMLError_DriverNotLoaded": "The NVIDIA driver is installed but not running.",
    "NVMLError_LibRmVersionMismatch": "The NVIDIA driver was updated; restart this machine to use its GPUs.",
    "NVMLError_NoPermission": "You don't have permission to use the NVIDIA driver.",
    "NVMLError_FunctionNotFound": "The NVIDIA driver is too old to be asked for its GPUs.",
}


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """The reasons for a lowered clock, worst first."""
    # The slowdown's own cause is known: one sentence will do.
    if bits & _TELLING:
        bits &= ~_SLOWDOWN
    return tuple(text for bit, text in _REASONS if bits & bit)


def why_no_gpu(error: BaseException) -> str:
    """Explain an error of NVML's first call."""
    known = _SHORT_OF_GPU.get(type(error).__name__)
    return known or f"The NVIDIA driver does not work: {error}."


def find_gpus() -> Found:
    """List NVML's GPUs with their constant properties; raises `pynvml.NVMLError` where NVML cannot be used."""
    pynvml.nvmlInit()
    devices: list[Device] = []
    problems: list[str] = []
    for index in range(int(pynvml.nvmlDeviceGetCount())):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            device = _device(handle, pynvml.nvmlDeviceGetUUID(handle), index, "NVIDIA GPU")
        except (pynvml.NVMLError, TypeError) as error:
            problems.append(f"GPU {index} cannot be used: {_error_text(error)}.")
            continue
        devices.append(device)
    shown = visible_gpus(devices, os.environ, _mig_device)
    return Found(shown.devices, (*problems, *shown.problems), _asked(pynvml.nvmlSystemGetDriverVersion) or None)


def _device(handle: Any, uuid: str, index: int, unnamed: str) -> Device:
    name = _asked(pynvml.nvmlDeviceGetName, handle) or unnamed
    capability = _asked(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    counts_energy = _asked(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle) is not None
    capability = tuple(capability) if capability else None
    return Device(uuid, "cuda", index, name, _memory(handle)[1], capability, counts_energy=counts_energy)


def _mig_device(uuid: str) -> Device | None:
    """Find a slice of a GPU (MIG), which is in no list, by its UUID."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except (pynvml.NVMLError, TypeError):
        return None
    return _device(handle, uuid, 0, "MIG device")


class NvmlReader:
    """Reads one GPU. Used by one thread."""

    def __init__(self, device: Device, with_processes: bool) -> None:
        self._device = device
        self._with_processes = with_processes
        self._names: dict[int, str] = {}
        self._processes: tuple[DeviceProcess, ...] = ()
        self._drives_screen: bool | None = None
        self._next_look = 0.0
        self._handle: Any = None
        self._power_limit_w: float | None = None
        self._refusal = ""

    def read(self) -> DeviceSample:
        started = time.time()
        try:
            self._find()
            return self._read(started)
        except pynvml.NVMLError as error:
            self._handle = None  # it may come back under another handle
            gone = type(error).__name__ in _GONE
            text = _error_text(error) if gone else _no_figures(_error_text(error))
            return DeviceSample(self._device.uuid, started, error=text, is_unusable=gone)

    def _find(self) -> None:
        if self._handle is not None:
            return
        try:
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(self._device.uuid)
        except pynvml.NVMLError as error:
            if type(error).__name__ != "NVMLError_Uninitialized":
                raise
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(self._device.uuid)
        self._power_limit_w = _thousandth(self._figure(pynvml.nvmlDeviceGetEnforcedPowerLimit))

    def _read(self, started: float) -> DeviceSample:
        self._refusal = ""
        used, total = _memory(self._handle)
        utilization = self._value(pynvml.nvmlDeviceGetUtilizationRates)
        temperature = self._figure(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU)
        if temperature is None:  # newer drivers retire the old call
            temperature = self._figure(pynvml.nvmlDeviceGetTemperatureV, pynvml.NVML_TEMPERATURE_GPU)
        power_w = _thousandth(self._figure(pynvml.nvmlDeviceGetPowerUsage))
        energy_j = _thousandth(self._figure(pynvml.nvmlDeviceGetTotalEnergyConsumption))
        clock = self._figure(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)
        reasons = self._value(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        if reasons is None:  # the function's name in drivers before 535
            reasons = self._value(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        nothing = all(figure is None for figure in (used, utilization, temperature, power_w, clock))
        refusal = self._refusal
        self._read_use()
        return DeviceSample(
            uuid=self._device.uuid,
            ts=started,
            utilization_percent=None if utilization is None else float(utilization.gpu),
            memory_used_bytes=used,
            memory_total_bytes=total if total is not None else self._device.memory_bytes,
            temperature_celsius=temperature,
            power_w=power_w,
            power_limit_w=self._power_limit_w,
            energy_j=energy_j,
            fan_percent=self._figure(pynvml.nvmlDeviceGetFanSpeed),
            sm_clock_mhz=clock,
            throttle_reasons=throttle_reasons(int(reasons or 0)),
            error=_no_figures(refusal) if nothing else None,
            processes=self._processes,
            drives_screen=self._drives_screen,
        )

    def _read_use(self) -> None:
        """Read the processes on it, and whether a display is connected, from time to time."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + PROCESSES_EVERY_S
        active = self._value(pynvml.nvmlDeviceGetDisplayActive)
        if active is None:
            active = self._value(pynvml.nvmlDeviceGetDisplayMode)
        self._drives_screen = None if active is None else bool(active)
        if not self._with_processes:
            return
        # Not nvmlDeviceGetRunningProcessDetailList: the bindings raise where Windows hides processes' memory.
        listed = self._value(pynvml.nvmlDeviceGetComputeRunningProcesses) or []
        found = [(int(one.pid), _process_bytes(one.usedGpuMemory)) for one in listed]
        found.sort(key=lambda one: -(one[1] or 0))
        found = found[:MOST_PROCESSES]
        # A process is asked once: its name does not change, and asking costs a little.
        self._names = {pid: self._names.get(pid) or program_name(pid) for pid, _ in found}
        self._processes = tuple(DeviceProcess(pid, self._names[pid], used) for pid, used in found)

    def _figure(self, function: Callable[..., Any], *arguments: Any) -> float | None:
        value = self._value(function, *arguments)
        return None if value is None else float(value)

    def _value(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return _answer(function, self._handle, *arguments)
        except _NoAnswer as error:
            self._refusal = str(error)
            return None


class _NoAnswer(Exception):
    """The card or its driver does not have this figure."""


def _answer(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if type(error).__name__ in _GONE:
            raise
        raise _NoAnswer(_error_text(error)) from None
    except TypeError as error:  # nvidia-ml-py trips over "not available" in some answers of Windows drivers
        raise _NoAnswer("its driver's answer could not be read") from error


def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None for what this card or driver does not have; a card that is gone raises."""
    try:
        return _answer(function, *arguments)
    except _NoAnswer:
        return None


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000


def _memory(handle: Any) -> tuple[int | None, int | None]:
    """Used and total bytes. The second form of the call leaves out the driver's reserve; older ones lack it."""
    info = _asked(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if info is None:
        info = _asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
    if info is None:
        return None, None
    used, total = int(info.used), int(info.total)
    return used if used < _PLAUSIBLE_BYTES else None, total if 0 < total < _PLAUSIBLE_BYTES else None


def _process_bytes(used: int | None) -> int | None:
    return int(used) if used is not None and used < _PLAUSIBLE_BYTES else None


def _no_figures(why: str) -> str:
    return f"gives no figures ({why})"


def _error_text(error: BaseException) -> str:
    return _GONE.get(type(error).__name__) or str(error) or type(error).__name__


NVIDIA: Final = GpuDriver(
    "NVIDIA",
    find_gpus,
    lambda device, with_processes: NvmlReader(device, with_processes).read,
    why_no_gpu,
    lambda error: type(error).__name__ == "NVMLError_LibraryNotFound",
)
