"""Why there is no AMD card, as sentences."""

from __future__ import annotations

from core.machine.devices.amd import LibraryMissingError, why_no_gpu


def test_a_machine_without_an_amd_driver_needs_no_words() -> None:
    not_loaded = type("AmdSmiLibraryException", (Exception,), {"err_code": 34})
    assert (why_no_gpu(LibraryMissingError()), why_no_gpu(not_loaded(34))) == ("", "")
    broken = type("AmdSmiLibraryException", (Exception,), {"err_code": 18, "err_info": "AMDSMI_STATUS_INIT_ERROR"})
    assert why_no_gpu(broken(18)) == "The AMD driver does not work: AMDSMI_STATUS_INIT_ERROR."
