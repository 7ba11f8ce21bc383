"""Messages for NVML's error codes."""

from __future__ import annotations

from typing import Final

POWER_CAP: Final = "power cap: the card draws all it may"
"""Normal for a busy card: a note, not a warning."""
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
    """Why the clock is held down, worst first; empty when nothing holds it."""
    if bits & _TELLING:  # the slowdown's own cause is known: one sentence will do
        bits &= ~_SLOWDOWN
    return tuple(text for bit, text in _REASONS if bits & bit)


def why_no_gpu(error: BaseException) -> str:
    """Why NVML cannot be used, from the error of its first call."""
    known = _SHORT_OF_GPU.get(type(error).__name__)
    return known or f"The NVIDIA driver does not work: {error}."
