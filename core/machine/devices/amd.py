"""AMD GPUs through AMD's `amdsmi`, where it is installed; the same values as `nvml` gives for NVIDIA's. Linux only.

`amdsmi` belongs to a ROCm installation (`pip install /opt/rocm/share/amd_smi`, or the package of the same version from
PyPI) and calls its `libamd_smi.so`. Names and units here are those of `amdsmi_interface.py` in ROCm 6.1 to 7.0: memory
in MiB, power in W, power caps in µW, energy as a count of units whose µJ it says, "N/A" for what a card lacks.
Nothing of this has run on a card: tests answer with recorded values (tests/helpers/recorded_amdsmi).
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.machine.devices.device import POWER_CAP, Device, DeviceProcess, DeviceSample
from core.machine.devices.gpu_driver import Found, GpuDriver
from core.machine.devices.gpu_processes import ProcessNames
from core.machine.devices.visible_amd import visible_amd_gpus

PROCESSES_EVERY_S: Final = 2.0
MOST_PROCESSES: Final = 64
_LIBRARY: Final = "libamd_smi.so"
# ROCm's name for every card whose driver gives it no number of its own.
_NO_UUID: Final = "gpu-xx"
_NOT_PRESENT: Final = 31
_NOT_LOADED: Final = 34
_NOT_STARTED: Final = 32
# `amdsmi_status_t` of errors after which nothing can train on the card.
_GONE: Final = {
    _NOT_PRESENT: "GPU is no longer present",
    _NOT_STARTED: "the AMD driver was stopped",
    _NOT_LOADED: "the AMD driver was stopped",
}
# Keys of `amdsmi_get_violation_status`, which has answers for Instinct MI300 and newer, worst first.
_VIOLATIONS: Final = (
    ("active_prochot_thrm", "too hot: the hardware lowers the clock"),
    ("active_vr_thrm", "its voltage regulators are hot: the driver lowers the clock"),
    ("active_hbm_thrm", "its memory is hot: the driver lowers the clock"),
    ("active_socket_thrm", "hot: the driver lowers the clock"),
    ("active_ppt_pwr", POWER_CAP),
)
# `amdsmi` makes one truth value of the bits in `indep_throttle_status`, which older and Radeon cards have.
UNNAMED_LIMIT: Final = "the driver lowers the clock (heat, current or power; this card does not say which)"


class LibraryMissingError(Exception):
    """`amdsmi` is installed, and the library that it calls is not."""


def is_installed() -> bool:
    """Whether AMD's GPUs can be asked for at all."""
    return sys.platform == "linux" and importlib.util.find_spec("amdsmi") is not None


def why_no_gpu(error: BaseException) -> str:
    """Why AMD's driver cannot be used, from what `find_gpus` raised; empty where there is none to use."""
    if isinstance(error, LibraryMissingError) or getattr(error, "err_code", None) == _NOT_LOADED:
        return ""
    return f"The AMD driver does not work: {_error_text(error)}."


def throttle_reasons(violations: Mapping[str, Any], is_held: object) -> tuple[str, ...]:
    """Why the clock is held down, worst first.

    Args:
        violations: What `amdsmi_get_violation_status` answers; empty where the card has no answer.
        is_held: `indep_throttle_status` of `amdsmi_get_gpu_metrics_info`; "N/A" where it is not known.
    """
    known = tuple(text for key, text in _VIOLATIONS if violations.get(key) is True)
    return known or ((UNNAMED_LIMIT,) if is_held is True and not violations else ())


def find_gpus() -> Found:
    """Starts `amdsmi` and lists its GPUs, in ROCm's order.

    Raises:
        LibraryMissingError: ROCm's library is missing.
        Exception: `amdsmi` cannot be used (an `AmdSmiException`, or what importing it raised).
    """
    smi = _loaded()
    smi.amdsmi_init()
    devices: list[Device] = []
    addresses: dict[int | None, str] = {}
    problems: list[str] = []
    driver = None
    for place, handle in enumerate(smi.amdsmi_get_processor_handles()):
        try:
            device = _device(smi, handle, place)
            addresses[device.rocm_index] = _bus_name(smi, handle)
            devices.append(device)
            driver = driver or _text(_asked(smi.amdsmi_get_gpu_driver_info, handle), "driver_version")
        except (smi.AmdSmiException, ValueError) as error:  # a serial number that is none
            problems.append(f"AMD GPU {place} cannot be used: {_error_text(error)}.")
    devices.sort(key=lambda device: device.index)
    uses = Counter(device.uuid for device in devices)  # the partitions of an Instinct card may share one
    named = [d if uses[d.uuid] == 1 else replace(d, uuid=addresses[d.rocm_index]) for d in devices]
    shown = visible_amd_gpus(named, os.environ)
    return Found(shown.devices, (*problems, *shown.problems), driver)


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
    asic = _asked(smi.amdsmi_get_gpu_asic_info, handle) or {}
    numbers = _enumeration(smi, handle)
    rocm_index = int(numbers["hip_id"]) if isinstance(numbers.get("hip_id"), int) else place
    memory = _mebibytes(_asked(smi.amdsmi_get_gpu_vram_usage, handle), "vram_total")
    return Device(
        uuid=_uuid(smi, handle),
        kind="cuda",
        index=rocm_index,
        name=_text(asic, "market_name") or "AMD GPU",
        memory_bytes=memory or None,
        counts_energy=_energy_j(_asked(smi.amdsmi_get_energy_count, handle)) is not None,
        is_amd=True,
        architecture=_text(asic, "target_graphics_version") or "",
        rocm_index=rocm_index,
    )


def _enumeration(smi: Any, handle: Any) -> Mapping[str, Any]:
    """The numbers that HIP gives it; empty before ROCm 6.4, which has no such function."""
    function = getattr(smi, "amdsmi_get_gpu_enumeration_info", None)
    return (_asked(function, handle) if function is not None else None) or {}


def _uuid(smi: Any, handle: Any) -> str:
    """As ROCm's variables take it; the serial number is the same one, as torch.cuda uses it before ROCm 6.4.

    A card without is named by its place on the PCI bus: stable, and chosen by its number (`Device.rocm_index`).
    """
    hip_uuid = _text(_enumeration(smi, handle), "hip_uuid")
    if hip_uuid and hip_uuid.lower() != _NO_UUID:
        return hip_uuid
    serial = _text(_asked(smi.amdsmi_get_gpu_asic_info, handle), "asic_serial")
    if not hip_uuid and serial and int(serial, 16):
        return f"GPU-{serial.removeprefix('0x').lower():0>16}"
    return _bus_name(smi, handle)


def _bus_name(smi: Any, handle: Any) -> str:
    return f"AMD-{smi.amdsmi_get_gpu_device_bdf(handle)}"


class AmdReader:
    """Reads one GPU. Used by one thread.

    Args:
        device: The GPU.
        with_processes: Read which processes compute on it, too.

    Attributes:
        asking: The function that is being called now, to name what hangs.
    """

    def __init__(self, device: Device, *, with_processes: bool = False) -> None:
        self._device = device
        self._with_processes = with_processes
        self._names = ProcessNames()
        self._processes: tuple[DeviceProcess, ...] = ()
        self._next_look = 0.0
        self._handle: Any = None
        self._power_limit_w: float | None = None
        self._has_violations = True
        self._refusal = ""
        self._smi: Any = None
        self.asking = ""

    def read(self) -> DeviceSample:
        """All figures now; those that the card does not support are None. A card that is gone has an error."""
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
        finally:
            self.asking = ""

    def _find(self) -> None:
        if self._handle is not None:
            return
        self.asking = "amdsmi_get_processor_handles"
        self._smi.amdsmi_init()
        self._handle = next(filter(self._is_it, self._smi.amdsmi_get_processor_handles()), None)
        if self._handle is None:
            raise self._smi.AmdSmiLibraryException(_NOT_PRESENT)
        self._power_limit_w = _part(self._value("amdsmi_get_power_cap_info"), "power_cap", 1e-6)

    def _is_it(self, handle: Any) -> bool:
        try:
            name = _bus_name if self._device.uuid.startswith("AMD-") else _uuid
            return name(self._smi, handle) == self._device.uuid
        except (self._smi.AmdSmiException, ValueError):  # another card that is gone
            return False

    def _read(self, started: float) -> DeviceSample:
        self._refusal = ""
        memory = self._value("amdsmi_get_gpu_vram_usage")
        utilization = _part(self._value("amdsmi_get_gpu_activity"), "gfx_activity")
        temperature = self._temperature()
        power = self._value("amdsmi_get_power_info")
        power_w = _part(power, "current_socket_power")  # of Instinct MI300 and newer; others have the average
        power_w = _part(power, "average_socket_power") if power_w is None else power_w
        clock = self._value("amdsmi_get_clock_info", self._smi.AmdSmiClkType.GFX)
        clock_mhz = _part(clock, "clk" if "clk" in (clock or {}) else "cur_clk")  # its name before ROCm 6.2
        used = _mebibytes(memory, "vram_used")
        nothing = all(figure is None for figure in (used, utilization, temperature, power_w, clock_mhz))
        refusal = self._refusal
        self._read_use()
        return DeviceSample(
            uuid=self._device.uuid,
            ts=started,
            utilization_percent=utilization,
            memory_used_bytes=used,
            memory_total_bytes=_mebibytes(memory, "vram_total") or self._device.memory_bytes,
            temperature_celsius=temperature,
            power_w=power_w,
            power_limit_w=self._power_limit_w,
            energy_j=_energy_j(self._value("amdsmi_get_energy_count")),
            fan_percent=self._fan_percent(),
            sm_clock_mhz=clock_mhz,
            throttle_reasons=self._throttle_reasons(),
            error=f"gives no figures ({refusal})" if nothing else None,
            processes=self._processes,
        )

    def _temperature(self) -> float | None:
        """At the edge, as monitors show it; Instinct cards have only that of the hottest spot."""
        kinds, now = self._smi.AmdSmiTemperatureType, self._smi.AmdSmiTemperatureMetric.CURRENT
        for kind in (kinds.EDGE, kinds.JUNCTION):
            value = self._value("amdsmi_get_temp_metric", kind, now)
            if value is not None:
                return float(value)
        return None

    def _fan_percent(self) -> float | None:
        speed, most = self._value("amdsmi_get_gpu_fan_speed", 0), self._value("amdsmi_get_gpu_fan_speed_max", 0)
        return 100.0 * float(speed) / float(most) if speed is not None and most else None

    def _throttle_reasons(self) -> tuple[str, ...]:
        violations = None
        if self._has_violations and hasattr(self._smi, "amdsmi_get_violation_status"):
            violations = self._value("amdsmi_get_violation_status")
            self._has_violations = violations is not None  # where it has an answer it waits 100 ms for it
        metrics = {} if violations else self._value("amdsmi_get_gpu_metrics_info") or {}
        return throttle_reasons(violations or {}, metrics.get("indep_throttle_status"))

    def _read_use(self) -> None:
        """Who computes on it, from time to time."""
        now = time.monotonic()
        if not self._with_processes or now < self._next_look:
            return
        self._next_look = now + PROCESSES_EVERY_S
        found = _processes(self._value("amdsmi_get_gpu_process_list") or [])[:MOST_PROCESSES]
        names = self._names.read([pid for pid, _ in found])
        self._processes = tuple(DeviceProcess(pid, names.get(pid, ""), used) for pid, used in found)

    def _value(self, name: str, *arguments: Any) -> Any:
        self.asking = name
        try:
            return _answer(getattr(self._smi, name), self._handle, *arguments)
        except _NoAnswer as error:
            self._refusal = str(error)
            return None


class _NoAnswer(Exception):
    """The card or its driver does not have this figure."""


def _answer(function: Callable[..., Any], *arguments: Any) -> Any:
    smi = importlib.import_module("amdsmi")
    try:
        return function(*arguments)
    except smi.AmdSmiException as error:
        if getattr(error, "err_code", None) in _GONE:
            raise
        raise _NoAnswer(_error_text(error)) from None


def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None for what this card or driver does not have; a card that is gone raises."""
    try:
        return _answer(function, *arguments)
    except _NoAnswer:
        return None


def _error_text(error: BaseException) -> str:
    known = _GONE.get(getattr(error, "err_code", None) or 0)
    return known or str(getattr(error, "err_info", "")) or str(error) or type(error).__name__


def _part(answer: Mapping[str, Any] | None, key: str, factor: float = 1.0) -> float | None:
    """A number in an answer; None for "N/A"."""
    value = (answer or {}).get(key)
    return float(value) * factor if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(answer: Mapping[str, Any] | None, key: str) -> str | None:
    value = (answer or {}).get(key)
    return value if isinstance(value, str) and value not in ("", "N/A") else None


def _mebibytes(answer: Mapping[str, Any] | None, key: str) -> int | None:
    value = _part(answer, key)
    return None if value is None else int(value) << 20


def _energy_j(answer: Mapping[str, Any] | None) -> float | None:
    """From a counter and what a count is worth, in µJ; the counter was called "power" before ROCm 6.2."""
    counts = _part(answer, "energy_accumulator" if "energy_accumulator" in (answer or {}) else "power")
    worth = _part(answer, "counter_resolution")
    return None if counts is None or not worth else counts * worth * 1e-6


def _processes(listed: Sequence[Any]) -> list[tuple[int, int | None]]:
    """Processes and their bytes of the card's memory, the largest first; ROCm 6.0 lists handles, which say nothing."""
    found = []
    for one in listed:
        if isinstance(one, Mapping) and isinstance(one.get("pid"), int):
            used = _part(one.get("memory_usage"), "vram_mem")
            found.append((one["pid"], None if used is None else int(used)))
    return sorted(found, key=lambda one: -(one[1] or 0))


AMD: Final = GpuDriver(
    "AMD",
    find_gpus,
    lambda device, with_processes: AmdReader(device, with_processes=with_processes),
    why_no_gpu,
    lambda error: not why_no_gpu(error),
)
