"""Setup: devices by UUID, modes with reasons, fields with their problems."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication, QStandardItemModel
from pytestqt.qtbot import QtBot

from app.models.draft import Draft, check_draft
from app.views.setup_panel import SetupPanel
from core.devices import Device, DeviceSample
from core.errors import ConfigError
from core.platforms import Platform
from core.recipes import find_recipes, get_recipe
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
LINUX = Platform("linux", "2.13.0", None, 8)
A = Device("GPU-a", "cuda", 0, "NVIDIA RTX 6000 Ada Generation", 48 * 2**30)
B = Device("GPU-b", "cuda", 1, "NVIDIA GeForce RTX 4090", 24 * 2**30)


@pytest.fixture
def panel(qtbot: QtBot) -> SetupPanel:
    made = SetupPanel(find_recipes())
    qtbot.addWidget(made)
    return made


def uuids(panel: SetupPanel) -> list[str]:
    return [device.uuid for device in panel.devices.selected()]


def test_ticks_stay_on_their_uuid_when_the_driver_counts_anew(panel: SetupPanel) -> None:
    panel.devices.set_devices([A, B], None)
    panel.devices.row("GPU-a").box.click()
    assert uuids(panel) == ["GPU-b"]
    swapped = [Device("GPU-b", "cuda", 0, B.name, B.memory_bytes), Device("GPU-a", "cuda", 1, A.name, A.memory_bytes)]
    panel.devices.set_devices(swapped, None)
    assert uuids(panel) == ["GPU-b"]
    assert panel.devices.row("GPU-b").box.accessibleName() == "0  GeForce RTX 4090"
    assert "GPU-b" in panel.devices.row("GPU-b").box.toolTip()


def test_a_lost_card_stays_in_sight_and_does_not_train(panel: SetupPanel, qtbot: QtBot) -> None:
    panel.devices.set_devices([A, B], None)
    with qtbot.waitSignal(panel.draft_changed):
        panel.devices.set_devices([A], None)
    row = panel.devices.row("GPU-b")
    assert uuids(panel) == ["GPU-a"] and "lost" in row.warning and not row.box.isEnabled()
    panel.devices.set_devices([A, B], None)
    assert uuids(panel) == ["GPU-a", "GPU-b"] and row.warning == ""
    panel.devices.show_samples([DeviceSample("GPU-b", 0.0, error="GPU is lost")])
    assert uuids(panel) == ["GPU-a"] and "GPU is lost" in row.warning


def test_figures_that_are_not_known_are_dashes_and_throttling_says_why(panel: SetupPanel) -> None:
    panel.devices.set_devices([A], None)
    row = panel.devices.row("GPU-a")
    panel.devices.show_samples([DeviceSample("GPU-a", 0.0, 97.2, 2**34, 3 * 2**34, None, 288.4)])
    assert "97 %  – °C  288 W" in row.box.accessibleDescription() and row.warning == ""
    panel.devices.show_samples([DeviceSample("GPU-a", 0.0, 97.0, throttle_reasons=("too hot", "power limit"))])
    assert row.warning == "⚠ too hot, power limit"


def test_devices_chosen_before_they_are_known_are_ticked_when_they_turn_up(panel: SetupPanel) -> None:
    panel.set_draft(Draft(devices=("GPU-b",)))
    panel.devices.set_devices([A, B], None)
    assert uuids(panel) == ["GPU-b"]


def test_later_stages_are_there_and_say_why_not(panel: SetupPanel) -> None:
    stage = panel.mode.stage
    model = stage.model()
    assert isinstance(model, QStandardItemModel)
    assert [model.item(row).isEnabled() for row in range(3)] == [True, False, False]
    assert "not in this version" in stage.itemData(1, Qt.ItemDataRole.ToolTipRole)


def test_the_recommended_mode_is_shown_until_one_is_picked(panel: SetupPanel) -> None:
    panel.mode.set_surroundings("independent", 2, ("single", "ddp", "independent"))
    assert panel.mode.radio("independent").isChecked() and panel.mode.mode() == "auto"
    assert "(recommended)" in panel.mode.radio("independent").text()
    assert not panel.mode.radio("zero").isEnabled() and "cannot" in panel.mode.radio("zero").toolTip()
    panel.mode.radio("ddp").click()
    assert panel.mode.mode() == "ddp" and panel.draft().mode == "ddp"


def test_averaging_carries_its_warning_and_merging_is_only_for_independent(panel: SetupPanel) -> None:
    panel.show()
    panel.mode.set_surroundings("ddp", 2, ("ddp", "independent"))
    assert not panel.mode.merge.isVisible()
    panel.mode.radio("independent").click()
    assert panel.mode.merge.isVisible() and not panel.mode._average_warning.isVisible()
    panel.mode.merge.setCurrentIndex(panel.mode.merge.findData("average"))
    assert panel.mode._average_warning.isVisible() and panel.draft().merge_policy == "average"


def test_a_problem_under_more_unfolds_it(panel: SetupPanel) -> None:
    assert not panel.form.more.isChecked()
    panel.show_problems({"seed": ConfigError("seed", "Seed (seed): -1 is below 0.", "Give more.")})
    assert panel.form.more.isChecked()
    assert panel.form.row("seed").problem.text() == "✕ -1 is below 0. Give more."
    panel.show_problems({})
    assert panel.form.row("seed").problem.isHidden()


def test_a_file_can_be_dropped(panel: SetupPanel, tmp_path: Path, qtbot: QtBot) -> None:
    file = tmp_path / "ein Täxt.txt"
    file.write_text("x", encoding="utf-8")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    drop = QDropEvent(
        QPointF(QPoint(5, 5)), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    with qtbot.waitSignal(panel.draft_changed):
        panel.data.dropEvent(drop)
    assert Path(panel.draft().dataset) == file


def test_the_draft_comes_back_as_it_went(panel: SetupPanel) -> None:
    panel.devices.set_devices([A, B], None)
    draft = Draft(dataset="a.txt", devices=("GPU-b",), mode="independent", merge_policy="none", merge_every="4")
    panel.set_draft(draft)
    panel.form.set_texts({"steps": "5"})
    held = panel.draft()
    assert held.fields["steps"] == "5"
    assert (held.dataset, held.devices, held.mode, held.merge_policy, held.merge_every) == (
        "a.txt",
        ("GPU-b",),
        "independent",
        "none",
        "4",
    )


def test_the_summary_shows_the_arithmetic_and_copies_the_command(panel: SetupPanel) -> None:
    checked = check_draft(Draft(), get_recipe("minigpt"), [A, B], LINUX)
    panel.summary.show_checked(checked, 1234)
    assert panel.summary.arithmetic == "Global batch 16 = 8 × 2 × 1"
    assert panel.summary.epoch == "≈ 1,234 steps an epoch"
    panel.summary.copy.click()
    assert QGuiApplication.clipboard().text() == checked.command
    wrong = check_draft(Draft(fields={"lr": "x"}), get_recipe("minigpt"), [A, B], LINUX)
    panel.summary.show_checked(wrong, None)
    assert "1 setting needs a look" in panel.summary.arithmetic and not panel.summary.copy.isEnabled()
    assert "first correct" in panel.summary.copy.toolTip()
