"""Why a card is slow, and why there is none, as sentences."""

from __future__ import annotations

import pytest

from core.machine.devices import POWER_CAP, amd
from core.machine.devices.nvml import throttle_reasons, why_no_gpu


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        (0, ()),
        (0x0001 | 0x0002, ()),  # idle, and a clock that a user set
        (0x0004, (POWER_CAP,)),
        (0x0008, ("hardware slowdown (too hot, or its power supply)",)),
        (0x0008 | 0x0040, ("too hot: the hardware halves the clock",)),
        (0x0008 | 0x0080, ("power brake: the power supply asks for less",)),
        (0x0004 | 0x0020 | 0x0008, ("hardware slowdown (too hot, or its power supply)",
                                    "hot: the driver lowers the clock", POWER_CAP)),
        (0x0010, ("waits for another card in its sync group",)),
    ],
)  # fmt: skip
def test_reasons_come_worst_first_and_a_known_cause_replaces_the_general_one(
    bits: int, reasons: tuple[str, ...]
) -> None:
    assert throttle_reasons(bits) == reasons


def test_a_known_error_has_its_own_sentence() -> None:
    error = type("NVMLError_DriverNotLoaded", (Exception,), {})("x")
    assert why_no_gpu(error) == "The NVIDIA driver is installed but not running."
    assert why_no_gpu(OSError("it broke")) == "The NVIDIA driver does not work: it broke."


def test_a_machine_without_an_amd_driver_needs_no_words() -> None:
    not_loaded = type("AmdSmiLibraryException", (Exception,), {"err_code": 34})
    assert (amd.why_no_gpu(amd.LibraryMissingError()), amd.why_no_gpu(not_loaded(34))) == ("", "")
    broken = type("AmdSmiLibraryException", (Exception,), {"err_code": 18, "err_info": "AMDSMI_STATUS_INIT_ERROR"})
    assert amd.why_no_gpu(broken(18)) == "The AMD driver does not work: AMDSMI_STATUS_INIT_ERROR."
