"""New run sheet: devices by UUID, modes with reasons, fields with their problems."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QRadioButton
from pytestqt.qtbot import QtBot

from app.draft.draft import Draft, check_draft, draft_from_config
from app.draft.mode_options import ModeOptions
from app.form.draft_fields import OF_MODE
from app.form.field_row import FieldRow
from app.new_run.new_run_sheet import NewRunSheet
from core.config.mode import Mode
from core.errors import ConfigError
from core.launch.deepspeed import own_text
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import find_recipes, get_recipe
from core.recipes.parameter_formula import ParameterCount
from tests.helpers.window_fixture import OFFSCREEN_NOISE, unfold

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
LINUX = Platform("linux", "2.13.0+cu130", "13.0", 8)
A = Device("GPU-a", "cuda", 0, "NVIDIA RTX 6000 Ada Generation", 48 * 2**30)
B = Device("GPU-b", "cuda", 1, "NVIDIA GeForce RTX 4090", 24 * 2**30)
MERGING = {"merge_policy": "none"}


@pytest.fixture
def panel(qtbot: QtBot) -> NewRunSheet:
    made = NewRunSheet(find_recipes())
    qtbot.addWidget(made)
    return made


def choose(row: FieldRow, value: str) -> None:
    """As a person picks an entry of a list."""
    assert isinstance(row.editor, QComboBox)
    row.editor.setCurrentIndex(row.editor.findData(value))


def test_a_recipe_that_makes_its_samples_shows_no_data_that_nobody_reads(panel: NewRunSheet) -> None:
    panel.show()
    panel.devices.set_devices([A, B], None)
    panel.data.show_found("653 files, 11 MB")
    panel.recipe.setCurrentIndex(panel.recipe.findData("clstm_ppo"))
    assert panel.data.line.text() == "" and panel.data.found.text() and not panel.data.found.isVisible()
    draft = panel.draft()
    checked = check_draft(draft, get_recipe("clstm_ppo"), [A, B], LINUX)
    assert checked.config is not None and checked.config.dataset_file == "none://"
    panel.data.set_path("prices.csv")
    assert panel.draft().dataset == "prices.csv"
    panel.data.set_path("")
    panel.recipe.setCurrentIndex(panel.recipe.findData("minigpt"))
    assert panel.data.line.text() == "stdlib://" and panel.data.found.isVisible()


def test_what_stands_under_zero_follows_stage_and_engine(panel: NewRunSheet) -> None:
    panel.show()
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, ("ddp", "independent", "zero", "fsdp")))
    assert not panel.mode.zero.isVisible() and not panel.mode.deepspeed.isVisible()
    panel.mode.radios["zero"].click()
    zero = panel.mode.zero
    assert zero.rows["zero_stage"].text() == "1" and panel.mode.deepspeed.isVisible()
    assert zero.rows["offload_optimizer"].editor.isVisible() and not zero.rows["offload_parameters"].editor.isVisible()
    choose(zero.rows["zero_stage"], "3")
    choose(zero.rows["zero_engine"], "torch")
    assert zero.rows["offload_parameters"].editor.isVisible() and not panel.mode.deepspeed.isVisible()
    held = panel.draft().mode_fields
    assert (held["zero_stage"], held["zero_engine"]) == ("3", "torch")


def test_fsdp_has_a_button_and_settings_of_its_own(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    panel.mode.set_options(ModeOptions(Mode.DDP, 2))
    radio, zero = panel.mode.radios["fsdp"], panel.mode.zero
    assert radio.text() == "&FSDP" and "fully sharded" in radio.accessibleDescription() == radio.toolTip()
    panel.mode.radios["zero"].click()
    panel.activateWindow()
    panel.mode.radios["zero"].setFocus()
    qtbot.waitUntil(panel.mode.radios["zero"].hasFocus)
    qtbot.keyClick(panel.mode.radios["zero"], Qt.Key.Key_Right)
    assert radio.isChecked() and panel.mode.mode() == panel.draft().mode == "fsdp"
    qtbot.keyClick(radio, Qt.Key.Key_Up)
    assert panel.mode.mode() == "zero" and all(
        isinstance(button, QRadioButton) for button in panel.mode.radios.values()
    )
    qtbot.keyClick(panel.mode.radios["zero"], Qt.Key.Key_Down)
    assert not zero.rows["zero_stage"].editor.isVisible() and not zero.rows["zero_engine"].editor.isVisible()
    assert zero.rows["offload_optimizer"].editor.isVisible() and zero.rows["offload_parameters"].editor.isEnabled()
    assert not panel.mode.deepspeed.isVisible() and not panel.mode.install.isVisible()
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, on_cpu=True))
    assert "CPU devices already keep" in zero.rows["offload_parameters"].editor.toolTip()
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, ("single", "ddp")))
    assert not radio.isEnabled() and radio.toolTip() == "This recipe doesn't support this mode."


def test_what_means_nothing_here_says_why(panel: NewRunSheet) -> None:
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, ("ddp", "zero"), on_cpu=True, deepspeed=False))
    panel.mode.radios["zero"].click()
    box, engine = panel.mode.zero.rows["offload_optimizer"].editor, panel.mode.zero.rows["zero_engine"].editor
    assert not box.isEnabled() and "CPU devices already keep everything" in box.toolTip()
    assert isinstance(engine, QComboBox) and engine.itemText(0) == "auto (PyTorch)"
    deepspeed = engine.model().index(engine.findData("deepspeed"), 0)
    assert not deepspeed.flags() & Qt.ItemFlag.ItemIsEnabled
    assert "not installed" in deepspeed.data(Qt.ItemDataRole.ToolTipRole)
    assert not panel.mode.deepspeed.isEnabled() and "not installed" in panel.mode.deepspeed.toolTip()
    assert panel.mode.install.text() == "Insta&ll DeepSpeed…", "the remedy is a button"
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, ("ddp", "zero"), deepspeed=True))
    assert box.isEnabled() and panel.mode.deepspeed.isEnabled() and engine.itemText(0) == "auto (DeepSpeed)"
    assert deepspeed.flags() & Qt.ItemFlag.ItemIsEnabled
    choose(panel.mode.zero.rows["zero_engine"], "torch")
    assert not box.isEnabled() and "stage 1 keeps" in box.toolTip()


def test_variables_are_typed_one_a_line(panel: NewRunSheet) -> None:
    recipe = get_recipe("minigpt")
    panel.devices.set_devices([A, B], None)
    panel.devices.select(("GPU-a", "GPU-b"))
    with_variables = "NCCL_DEBUG=INFO\n\nGREETING=a b"
    panel.set_field("env", with_variables)
    row = panel.form.rows["env"]
    assert isinstance(row.editor, QPlainTextEdit) and row.text() == with_variables
    checked = check_draft(panel.draft(), recipe, [A, B], LINUX)
    assert checked.config is not None and dict(checked.config.env) == {"NCCL_DEBUG": "INFO", "GREETING": "a b"}
    assert "--env" in checked.command and panel.form.rows["env"].text() == with_variables
    again = draft_from_config(checked.config, [A, B])
    panel.set_draft(again)
    assert panel.form.rows["env"].text() == "NCCL_DEBUG=INFO\nGREETING=a b"
    panel.set_field("env", "MASTER_PORT=1")
    checked = check_draft(panel.draft(), recipe, [A, B], LINUX)
    assert checked.config is None and "MASTER_PORT cannot be set" in checked.problems["env"].cause
    panel.show_checked(checked)
    assert "MASTER_PORT cannot be set" in row.problem.text()


def test_settings_of_other_modes_are_left_out(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    unfold(panel.form)
    panel.mode.set_options(ModeOptions(Mode.DDP, 2))

    def shown() -> set[str]:
        return {name for name in OF_MODE if panel.form.rows[name].editor.isVisible()}

    of_ddp = {"gradient_exchange", "find_unused_parameters", "broadcast_buffers", "gradient_as_bucket_view", "balance"}
    assert shown() == of_ddp
    panel.mode.radios["independent"].click()
    assert shown() == set()
    interval = panel.mode.merging.rows["sync_every"].editor
    assert isinstance(interval, QLineEdit) and interval.isVisible() and interval.placeholderText() == "never"
    qtbot.keyClicks(interval, "10")
    assert panel.draft().mode_fields["sync_every"] == "10"
    assert shown() == {"sync_method"}
    panel.mode.set_options(ModeOptions(Mode.DDP, 1))
    assert shown() == set()


def test_the_recommended_mode_is_shown_until_one_is_picked(panel: NewRunSheet) -> None:
    panel.mode.set_options(ModeOptions(Mode.INDEPENDENT, 2, ("single", "ddp", "independent")))
    assert panel.mode.radios["independent"].isChecked() and panel.mode.mode() == "auto"
    assert "Recommended" in panel.mode.radios["independent"].toolTip() and panel.mode._meaning.text().startswith(
        "Recommended."
    )
    assert not panel.mode.radios["zero"].isEnabled() and "doesn't support" in panel.mode.radios["zero"].toolTip()
    panel.mode.radios["ddp"].click()
    assert panel.mode.mode() == "ddp" and panel.draft().mode == "ddp"


def test_averaging_carries_its_warning_and_merging_is_only_for_independent(panel: NewRunSheet) -> None:
    panel.show()
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, ("ddp", "independent")))
    assert not panel.mode.merging.isVisible()
    panel.mode.radios["independent"].click()
    assert panel.mode.merging.isVisible() and not panel.mode._average_warning.isVisible()
    choose(panel.mode.merging.rows["merge_policy"], "average")
    assert panel.mode._average_warning.isVisible() and panel.draft().mode_fields["merge_policy"] == "average"


def test_a_refused_start_brings_its_field_into_sight(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.resize(360, 420)
    panel.show()
    row = panel.form.rows["text_column"]
    assert not row.editor.isVisible()
    panel.problems.refuse(ConfigError("text_column", "No row has a column 'body'.", "Choose another."))
    qtbot.waitUntil(lambda: not row.problem.visibleRegion().isEmpty())
    assert row.problem.text() == "✕ No row has a column 'body'. Choose another."
    assert panel.focusWidget() is row.editor
    panel.problems.refuse(ConfigError("devices", "None is ticked.", "Tick one."))  # no field of the form


def test_a_file_can_be_dropped(panel: NewRunSheet, tmp_path: Path, qtbot: QtBot) -> None:
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


def test_the_draft_comes_back_as_it_went(panel: NewRunSheet) -> None:
    panel.devices.set_devices([A, B], None)
    draft = Draft(dataset="a.txt", devices=("GPU-b",), mode="independent", mode_fields=MERGING)
    panel.set_draft(draft)
    panel.form.set_texts({"steps": "5"})
    held = panel.draft()
    assert held.fields["steps"] == "5"
    assert (held.dataset, held.devices, held.mode) == ("a.txt", ("GPU-b",), "independent")
    assert {name: held.mode_fields[name] for name in MERGING} == MERGING


def test_the_summary_shows_the_arithmetic_and_copies_the_command(panel: NewRunSheet) -> None:
    checked = check_draft(Draft(), get_recipe("minigpt"), [A, B], LINUX)
    panel.summary.show_checked(checked, 1234)
    assert panel.summary.arithmetic.text() == "Global batch 16 = 8 × 2 × 1"
    assert panel.summary.facts.full_text == "≈ 1,234 steps per epoch"
    panel.summary.show_parameters(ParameterCount(840_448, 840_448))
    assert panel.summary.facts.full_text == "0.84 M parameters · ≈ 1,234 steps per epoch"
    panel.summary.show_parameters(None)
    assert panel.summary.facts.full_text == "≈ 1,234 steps per epoch"
    panel.summary.copy.click()
    assert QGuiApplication.clipboard().text() == checked.command
    wrong = check_draft(Draft(fields={"lr": "x"}), get_recipe("minigpt"), [A, B], LINUX)
    panel.summary.show_checked(wrong, None)
    assert "Fix 1 setting to start" in panel.summary.fix.text() and not panel.summary.copy.isEnabled()
    assert "Fix the marked" in panel.summary.copy.toolTip()


def test_a_deepspeed_file_replaces_rankdecks_settings(panel: NewRunSheet, qtbot: QtBot, tmp_path: Path) -> None:
    panel.show()
    panel.mode.set_options(ModeOptions(Mode.DDP, 2, ("ddp", "zero")))
    panel.mode.radios["zero"].click()
    choose(panel.mode.zero.rows["zero_stage"], "2")
    path = tmp_path / "mine.json"
    path.write_text(own_text(2).replace('"stage": 2', '"stage": 1'), encoding="utf-8")
    panel.mode.take_deepspeed(path)
    assert panel.draft().mode_fields["deepspeed_config"] == "" and "stage" in panel.mode.deepspeed_problem.text()
    path.write_text(own_text(2).replace("25000000", "50000000"), encoding="utf-8")
    with qtbot.waitSignal(panel.draft_changed):
        panel.mode.take_deepspeed(path)
    assert "50000000" in panel.draft().mode_fields["deepspeed_config"]
    assert panel.mode.deepspeed_problem.text() == "" and panel.mode.deepspeed.text() == "Remove DeepSpeed file"
    panel.mode.deepspeed.click()
    assert panel.draft().mode_fields["deepspeed_config"] == ""
    panel.mode.take_deepspeed(tmp_path / "missing.json")
    assert "missing.json" in panel.mode.deepspeed_problem.text()
