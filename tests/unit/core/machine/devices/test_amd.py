"""Why an AMD card is slow, and why there is none, as sentences."""

from __future__ import annotations

import pytest

from core.machine.devices import POWER_CAP
from core.machine.devices.amd import UNNAMED_LIMIT, LibraryMissingError, throttle_reasons, why_no_gpu

NONE = dict.fromkeys(
    ("active_prochot_thrm", "active_ppt_pwr", "active_socket_thrm", "active_vr_thrm", "active_hbm_thrm"), False
)


@pytest.mark.parametrize(
    ("violations", "is_held", "reasons"),
    [
        ({}, "N/A", ()),
        ({}, False, ()),
        ({}, True, (UNNAMED_LIMIT,)),
        (NONE, True, ()),  # a card that says which limit holds it is believed
        (NONE | {"active_ppt_pwr": True}, "N/A", (POWER_CAP,)),
        (NONE | {"active_vr_thrm": "N/A"}, "N/A", ()),
        (
            NONE | {"active_ppt_pwr": True, "active_prochot_thrm": True},
            "N/A",
            ("too hot: the hardware lowers the clock", POWER_CAP),
        ),
    ],
)
def test_reasons_come_worst_first(violations: dict[str, object], is_held: object, reasons: tuple[str, ...]) -> None:
    assert throttle_reasons(violations, is_held) == reasons


def test_a_machine_without_an_amd_driver_needs_no_words() -> None:
    not_loaded = type("AmdSmiLibraryException", (Exception,), {"err_code": 34})
    assert (why_no_gpu(LibraryMissingError()), why_no_gpu(not_loaded(34))) == ("", "")
    broken = type("AmdSmiLibraryException", (Exception,), {"err_code": 18, "err_info": "AMDSMI_STATUS_INIT_ERROR"})
    assert why_no_gpu(broken(18)) == "The AMD driver does not work: AMDSMI_STATUS_INIT_ERROR."
