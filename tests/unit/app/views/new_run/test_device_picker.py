"""The list of devices: what is ticked trains, and what cannot train says why."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.views.new_run.device_picker import DevicePicker, short_uuids
from core.machine.devices import POWER_CAP, Device, DeviceSample
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
A = Device("GPU-a", "cuda", 0, "NVIDIA RTX 6000 Ada Generation", 48 * 2**30)
B = Device("GPU-b", "cuda", 1, "NVIDIA GeForce RTX 4090", 24 * 2**30)
SLOTS = [Device(f"cpu:{n}", "cpu", n, f"CPU {n}", 2**34) for n in range(3)]


@pytest.fixture
def picker(qtbot: QtBot) -> DevicePicker:
    made = DevicePicker()
    qtbot.addWidget(made)
    made.resize(320, 400)
    return made


def uuids(picker: DevicePicker) -> list[str]:
    return [device.uuid for device in picker.selected()]


def test_ticks_stay_on_their_uuid_when_the_driver_counts_anew(picker: DevicePicker) -> None:
    picker.set_devices([A, B], None)
    picker.row("GPU-a").box.click()
    assert uuids(picker) == ["GPU-b"]
    swapped = [Device("GPU-b", "cuda", 0, B.name, B.memory_bytes), Device("GPU-a", "cuda", 1, A.name, A.memory_bytes)]
    picker.set_devices(swapped, None)
    assert uuids(picker) == ["GPU-b"]
    assert [row.device.uuid for row in picker.rows()] == ["GPU-b", "GPU-a"]
    box = picker.row("GPU-b").box
    assert box.text() == "GPU 0 · RTX 4090" and "GPU-b" in box.toolTip()
    assert box.accessibleName() == "GPU 0, NVIDIA GeForce RTX 4090, GPU-b"


def test_a_card_that_is_not_listed_any_more_stays_in_sight_and_does_not_train(
    picker: DevicePicker, qtbot: QtBot
) -> None:
    picker.set_devices([A, B], None)
    with qtbot.waitSignal(picker.selection_changed):
        picker.set_devices([B], None)
    row = picker.row("GPU-a")
    assert uuids(picker) == ["GPU-b"] and "Lost" in row.warning.text() and not row.box.isEnabled()
    picker.show_samples([DeviceSample("GPU-a", 0.0, 12.0)])  # an answer from before: it is still not listed
    assert not row.box.isEnabled()
    picker.set_devices([A, B], None)
    assert uuids(picker) == ["GPU-a", "GPU-b"] and row.warning.text() == "" and row.box.isEnabled()


def test_a_card_that_cannot_be_used_loses_its_tick_and_gets_it_back(picker: DevicePicker, qtbot: QtBot) -> None:
    picker.set_devices([A, B], None)
    lost = DeviceSample("GPU-b", 0.0, error="GPU is lost", is_unusable=True)
    with qtbot.waitSignal(picker.selection_changed):
        picker.show_samples([lost])
    row = picker.row("GPU-b")
    assert uuids(picker) == ["GPU-a"] and row.warning.text() == "⚠ GPU is lost"
    assert not row.box.isEnabled() and not row.box.isChecked() and "GPU is lost" in row.box.toolTip()
    assert "GPU is lost" in row.box.accessibleDescription()
    with qtbot.assertNotEmitted(picker.selection_changed):
        picker.set_devices([A, B], "one more sentence")  # listing it anew does not bring it back
    picker.row("GPU-a").box.click()  # choosing among the others forgets nothing
    assert picker.wished() == ["GPU-b"]
    picker.show_samples([DeviceSample("GPU-b", 1.0, 12.0)])
    assert uuids(picker) == ["GPU-b"] and row.warning.text() == "" and "12 %" in row.box.accessibleDescription()


def test_a_card_that_gives_no_figures_says_so_and_can_be_ticked(picker: DevicePicker) -> None:
    picker.set_devices([A], None)
    row = picker.row("GPU-a")
    picker.show_samples([DeviceSample("GPU-a", 0.0, 50.0, 2**34)])
    picker.show_samples([DeviceSample("GPU-a", 1.0, error="gives no figures (Not Supported)")])
    assert (
        row.warning.text() == "⚠ Gives no figures (Not Supported)"
        and row.box.isEnabled()
        and uuids(picker) == ["GPU-a"]
    )
    assert "50" not in row.box.accessibleDescription() and "– %" in row.box.accessibleDescription()


def test_figures_that_are_not_known_are_dashes(picker: DevicePicker) -> None:
    picker.set_devices([A], None)
    row = picker.row("GPU-a")
    picker.show_samples([DeviceSample("GPU-a", 0.0, 97.2, 2**34, 3 * 2**34, None, 288.4)])
    assert row.box.accessibleDescription() == "97 %  – °C  288 W. memory 16 of 48 GiB" and row.warning.text() == ""


def test_throttling_says_why_and_does_not_come_and_go(picker: DevicePicker) -> None:
    picker.set_devices([A], None)
    row = picker.row("GPU-a")
    picker.show_samples([DeviceSample("GPU-a", 0.0, 97.0, throttle_reasons=("too hot", "hardware slowdown"))])
    assert row.warning.text() == "⚠ Too hot" and "hardware slowdown" in row.box.toolTip()
    picker.show_samples([DeviceSample("GPU-a", 1.0, 97.0)])
    assert row.warning.text() == "⚠ Too hot"
    for second in range(10):
        picker.show_samples([DeviceSample("GPU-a", 2.0 + second, 97.0, throttle_reasons=(POWER_CAP,))])
    assert row.warning.text() == "" and POWER_CAP in row.box.toolTip()


def test_a_name_is_shown_as_it_stands(picker: DevicePicker) -> None:
    picker.set_devices([Device("GPU-odd", "cuda", 0, "NVIDIA <b>R&D</b>", 2**30)], None)
    picker.grab()
    box = picker.row("GPU-odd").box
    assert box.text() == "GPU 0 · <b>R&&D</b>" and "&lt;b&gt;R&amp;D" in box.toolTip()


def test_cpu_slots_make_room_for_gpus_that_turn_up_late(picker: DevicePicker) -> None:
    picker.set_devices(SLOTS, "The NVIDIA driver has not answered yet.")
    assert uuids(picker) == ["cpu:0", "cpu:1"]
    picker.row("cpu:2").box.click()
    picker.set_devices([A, B], None)
    assert [row.device.uuid for row in picker.rows()] == uuids(picker) == ["GPU-a", "GPU-b"]


def test_a_gpu_that_was_chosen_is_not_replaced_by_the_processor(picker: DevicePicker) -> None:
    picker.select(["GPU-b"])
    picker.set_devices(SLOTS, "The NVIDIA driver is installed but not running.")
    assert uuids(picker) == []
    picker.set_devices([A, B], None)
    assert uuids(picker) == ["GPU-b"]


def test_short_uuids_tell_cards_apart() -> None:
    alike = ["GPU-51500000-0000-4000-8000-000000000001", "GPU-51500000-0000-4000-8000-000000000002"]
    other = "GPU-6ada6000-1111-4aaa-8aaa-0000000000a1"
    assert list(short_uuids([*alike, other]).values()) == ["GPU-515…0001", "GPU-515…0002", "GPU-6ada6000"]
