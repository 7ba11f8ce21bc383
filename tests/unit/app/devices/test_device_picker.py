"""The list of devices: what is ticked trains, and what cannot train says why."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.devices.device_picker import DevicePicker
from app.devices.device_row import LINE_HEIGHT
from core.errors import ConfigError
from core.machine.devices import POWER_CAP, Device, DeviceProcess, DeviceSample
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
    assert box.accessibleName() == "GPU 0, NVIDIA GeForce RTX 4090"


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
    picker.show_samples([DeviceSample("GPU-a", 0.0, 46.0, 2**30)])
    picker.show_samples([DeviceSample("GPU-a", 1.0, error="gives no figures (Not Supported)")])
    assert row.warning.text() == "⚠ Gives no figures (Not Supported)"
    assert row.box.isEnabled() and uuids(picker) == ["GPU-a"]
    assert "46" not in row.box.accessibleDescription() and "– %" in row.box.accessibleDescription()


def eight(name: str = "NVIDIA H100 80GB HBM3") -> list[Device]:
    return [Device(f"GPU-{number}", "cuda", number, name, 80 << 30) for number in range(8)]


def test_eight_gpus_are_a_line_each_with_their_figures(picker: DevicePicker) -> None:
    picker.resize(388, 600)
    picker.show()
    picker.set_room(400)
    picker.set_devices([*eight(), *SLOTS], None)
    for number in range(8):
        picker.show_samples([DeviceSample(f"GPU-{number}", 1.0, 97.0 * (number == 3), number * 2**30, 80 * 2**30)])
    QGuiApplication.processEvents()
    rows = [picker.row(f"GPU-{number}") for number in range(8)]
    assert {row.height() for row in rows} == {LINE_HEIGHT} and all(row.isVisible() for row in rows)
    assert rows[1].box.text() == "GPU 1" and rows[1]._total.text() == "1.0 / 80 GiB"
    assert "% busy" in rows[1].figures.text() and rows[1].figures.isVisible() and not rows[1].status.isVisible()
    assert rows[3].status.full_text.startswith("in use") and not rows[3].figures.isVisible()
    assert rows[3].rect().contains(rows[3].status.geometry()) and rows[3].status.width() >= 100
    assert rows[3].status.text() == "in use", "by whom is not known"
    user = DeviceProcess(4182, "python", 69 << 30)
    picker.show_samples([DeviceSample("GPU-3", 1.0, 97.0, 70 << 30, 80 << 30, processes=(user,))])
    assert rows[3].status.text().startswith("python") and rows[3].status.full_text.startswith("in use by python")
    assert picker.fold.text() == "7 of 8 H100 80GB HBM3" and picker.cpu.sizeHint().height() < 48
    picker.fold.click()
    assert not rows[0].isVisible() and len(picker.selected()) == 7, "folded, they stay chosen"
    picker.set_room(800)
    assert not rows[0].isVisible(), "who folded it decides"


def test_the_cpu_folds_with_the_gpus_where_the_sheet_is_low(picker: DevicePicker) -> None:
    picker.show()
    picker.set_devices([*eight(), *SLOTS], None)
    for room, folded, shown in ((200, True, True), (1, True, False), (400, False, True)):
        picker.set_room(room)
        assert (picker.fold.isChecked(), picker.cpu.isVisible()) == (not folded, shown)
    picker.set_room(1)
    picker.fold.click()
    assert picker.cpu.isVisible(), "as far away as the GPUs"
    picker.select(["cpu:0"])
    picker.fold.click()
    assert picker.cpu.isVisible(), "it trains"


def test_few_gpus_stay_cards_where_there_is_room(picker: DevicePicker) -> None:
    picker.show()
    picker.set_devices([A, B], None)
    assert not picker.row("GPU-a").is_line and picker.fold.isHidden()
    picker.set_room(60)
    assert picker.row("GPU-a").is_line and picker.row("GPU-a").box.text().startswith("GPU 0 · RTX")
    picker.set_room(500)
    assert not picker.row("GPU-a").is_line and picker.row("GPU-a").warning.parent() is picker.row("GPU-a")


def test_figures_that_are_not_known_are_dashes(picker: DevicePicker) -> None:
    picker.set_devices([A], None)
    row = picker.row("GPU-a")
    picker.show_samples([DeviceSample("GPU-a", 0.0, 97.2, 2**34, 3 * 2**34, None, 288.4)])
    told = "97 % busy  – °C  288 W. memory 16 of 48 GiB. in use by a program that is not listed, 16 GiB"
    assert row.box.accessibleDescription() == told and row.warning.text() == ""


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


def test_cpu_devices_stay_on_offer_below_gpus_that_turn_up_late(picker: DevicePicker) -> None:
    picker.set_devices(SLOTS, "The NVIDIA driver has not answered yet.")
    assert uuids(picker) == ["cpu:0", "cpu:1"]
    picker.row("cpu:2").box.click()
    picker.set_devices([A, B, *SLOTS], None)
    assert uuids(picker) == ["GPU-a", "GPU-b"], "a choice among CPU devices alone was none against GPUs"
    assert [row.device.uuid for row in picker.rows()] == ["GPU-a", "GPU-b", "cpu:0", "cpu:1", "cpu:2"]
    picker.row("cpu:1").box.click()
    picker.set_devices([A, B, *SLOTS], "one more sentence")
    assert uuids(picker) == ["GPU-a", "GPU-b", "cpu:1"]
    assert picker.wished() == ["GPU-a", "GPU-b", "cpu:1"]


def test_nothing_is_wrong_while_devices_are_looked_for(picker: DevicePicker) -> None:
    picker.show()
    assert picker.is_looking
    picker.show_problem(ConfigError("devices", "No device is selected.", "Select one."))
    assert not picker.problem.isVisible() and picker._notice.text() == "Looking for devices…"
    picker.set_devices([], None)
    assert not picker.is_looking and picker.problem.isVisible()


def busy(device: Device, gib: float = 20) -> DeviceSample:
    python = DeviceProcess(123, "python", int(gib * 2**30))
    return DeviceSample(device.uuid, 1.0, 98.0, int(gib * 2**30), device.memory_bytes, 71, 288, processes=(python,))


def test_a_tip_says_what_each_process_holds_by_windows(picker: DevicePicker) -> None:
    python = DeviceProcess(123, "python", 2**30, shared_bytes=2**30)
    picker.set_devices([A, *SLOTS], None)
    picker.show_samples([dataclasses.replace(busy(A), processes=(python,))])
    assert "python (pid 123): 1.0 GiB + 1.0 GiB of this computer's memory" in picker.row("GPU-a").toolTip()


def idle(device: Device, **more: Any) -> DeviceSample:
    return DeviceSample(device.uuid, 1.0, 1.0, 2**28, device.memory_bytes, 41, 28, **more)


def test_a_card_says_who_uses_it_and_is_not_ticked(picker: DevicePicker, qtbot: QtBot) -> None:
    picker.resize(520, 400)
    picker.set_devices([A, B, *SLOTS], None)
    with qtbot.waitSignal(picker.selection_changed):
        picker.show_samples([busy(A), idle(B, drives_screen=True)])
    assert uuids(picker) == ["GPU-b"] and picker.wished() == [], "a default is not remembered"
    assert picker.row("GPU-a").status.full_text == "in use by python (pid 123), 20 GiB"
    assert picker.row("GPU-b").status.full_text == "free · drives the screen"
    assert "in use by python" in picker.row("GPU-a").box.accessibleDescription()


def test_a_default_that_becomes_busy_stays_ticked(picker: DevicePicker) -> None:
    """The run that a person started on it uses it; the next one is to train there too."""
    picker.set_devices([A, B, *SLOTS], None)
    picker.show_samples([idle(A), idle(B)])
    picker.show_samples([busy(A), busy(B)])
    assert uuids(picker) == ["GPU-a", "GPU-b"]
    picker.show_samples([busy(A), DeviceSample("GPU-b", 2.0, error="GPU is lost", is_unusable=True)])
    assert uuids(picker) == ["GPU-a"]


def test_where_no_gpu_is_free_none_is_ticked_and_it_says_so(picker: DevicePicker) -> None:
    picker.show()
    picker.set_devices([A, B, *SLOTS], None)
    picker.show_samples([busy(A), busy(B)])
    assert uuids(picker) == [] and "No GPU is free" in picker._notice.text()
    picker.row("GPU-b").box.click()
    assert uuids(picker) == ["GPU-b"] and not picker._notice.isVisible()


def test_chips_choose_all_free_or_none(picker: DevicePicker) -> None:
    picker.set_devices([A, B, *SLOTS], None)
    picker.show_samples([busy(A), idle(B)])
    picker.all.click()
    assert uuids(picker) == ["GPU-a", "GPU-b"]
    picker.free.click()
    assert uuids(picker) == ["GPU-b"]
    picker.none.click()
    assert uuids(picker) == []
    picker.set_devices(SLOTS, "No NVIDIA driver is installed.")
    picker.all.click()
    assert uuids(picker) == ["cpu:0", "cpu:1", "cpu:2"]


def test_a_cpu_build_of_pytorch_says_so_with_a_button(picker: DevicePicker, qtbot: QtBot) -> None:
    picker.show()
    picker.set_devices([A, *SLOTS], None, "torch 2.13.0+cpu is built for the CPU only.", None)
    assert uuids(picker) == ["cpu:0", "cpu:1"]
    picker.show_samples([idle(A)])
    assert picker.row("GPU-a").status.full_text == "needs a CUDA build of PyTorch"
    assert picker.get_cuda.isVisible() and "CUDA build" in picker._notice.text()
    with qtbot.waitSignal(picker.cuda_requested):
        picker.get_cuda.click()
    picker.set_devices([A, *SLOTS], None, None, "13.0")
    assert uuids(picker) == ["GPU-a"] and not picker.get_cuda.isVisible()


def test_the_processor_says_the_machines_load_once(picker: DevicePicker) -> None:
    picker.set_devices(SLOTS, None)
    picker.show_samples([DeviceSample(slot.uuid, 1.0, 37.0, 11 * 2**30, 24 * 2**30) for slot in SLOTS])
    assert picker.cpu.load.text() == "machine 37 %  11 / 24 GiB"
    assert picker.row("cpu:0").box.text() == "CPU 0"


def test_a_gpu_that_was_chosen_is_not_replaced_by_the_processor(picker: DevicePicker) -> None:
    picker.select(["GPU-b"])
    picker.set_devices(SLOTS, "The NVIDIA driver is installed but not running.")
    assert uuids(picker) == []
    picker.set_devices([A, B], None)
    assert uuids(picker) == ["GPU-b"]
