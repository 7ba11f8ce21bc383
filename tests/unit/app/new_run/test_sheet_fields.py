"""New run sheet: defaults and what differs from them, Advanced, problems with their remedies, notices, its edges."""

from __future__ import annotations

import dataclasses
import itertools
import json

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.draft.draft import Draft, check_draft, draft_from_config
from app.draft.memory_text import BalanceText
from app.draft.mode_options import ModeOptions
from app.form.draft_fields import grouped_fields
from app.form.field_row import ChangedDot
from app.new_run.new_run_sheet import NewRunSheet
from app.widgets.notice_bar import Step
from app.widgets.tab_order import chain_tabs
from core.config.mode import Mode
from core.errors import ConfigError, RankdeckError
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import find_recipes, get_recipe
from tests.helpers.window_fixture import OFFSCREEN_NOISE, unfold

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
LINUX = Platform("linux", "2.13.0+cu130", "13.0", 8)
A = Device("GPU-a", "cuda", 0, "NVIDIA RTX 6000 Ada Generation", 48 * 2**30)
B = Device("GPU-b", "cuda", 1, "NVIDIA GeForce RTX 4090", 24 * 2**30)


@pytest.fixture
def panel(qtbot: QtBot) -> NewRunSheet:
    made = NewRunSheet(find_recipes())
    qtbot.addWidget(made)
    return made


def dot_of(panel: NewRunSheet, name: str) -> ChangedDot:
    return panel.form.rows[name].dot


def test_defaults_are_placeholders_and_a_dot_marks_what_differs(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    panel.devices.set_devices([A, B], None)
    panel.show_checked(check_draft(panel.draft(), get_recipe("minigpt"), [A, B], LINUX))
    row = panel.form.rows["lr"]
    line = row.editor
    assert isinstance(line, QLineEdit) and (line.text(), line.placeholderText()) == ("", "0.002")
    assert not dot_of(panel, "lr").isVisible() and not panel.header.reset.isVisible()
    qtbot.keyClicks(line, "0.01")
    assert dot_of(panel, "lr").isVisible() and "0.002" in dot_of(panel, "lr").toolTip()
    assert panel.draft().fields["lr"] == "0.01" and panel.header.reset.isVisible()
    line.setText("2e-3")
    line.textEdited.emit("2e-3")
    assert not dot_of(panel, "lr").isVisible(), "the same number in other digits"
    panel.set_field("lr", "0.01")
    qtbot.mouseClick(dot_of(panel, "lr"), Qt.MouseButton.LeftButton)
    assert line.text() == "" and not dot_of(panel, "lr").isVisible()


def test_a_pretrained_model_brings_its_own_defaults(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    panel.devices.set_devices([A, B], None)
    recipe = get_recipe("hf_causal_lm")
    panel.set_draft(Draft(recipe="hf_causal_lm", dataset="stdlib://", devices=("GPU-a",)))
    line, rate = panel.form.rows["model"].editor, panel.form.rows["lr"].editor
    assert isinstance(line, QLineEdit) and isinstance(rate, QLineEdit)
    assert rate.placeholderText() == "0.001"
    line.clear()
    qtbot.keyClicks(line, "owner/name")
    checked = check_draft(panel.draft(), recipe, [A], LINUX)
    panel.show_checked(checked)
    assert (rate.text(), rate.placeholderText()) == ("", "2e-05") and not dot_of(panel, "lr").isVisible()
    assert checked.run is not None and (checked.run.config.lr, checked.run.config.seq_len) == (2e-5, 1024)
    qtbot.keyClicks(rate, "0.001")
    assert dot_of(panel, "lr").isVisible(), "it is not the default any more"
    checked = check_draft(panel.draft(), recipe, [A], LINUX)
    assert checked.run is not None and checked.run.config.lr == 1e-3


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_typed_number_stays_when_the_defaults_change(panel: NewRunSheet, qtbot: QtBot, is_saved: bool) -> None:
    panel.show()
    recipe = get_recipe("hf_causal_lm")
    panel.set_draft(Draft(recipe="hf_causal_lm", dataset="stdlib://", devices=("GPU-a",)))
    for name in ("seq_len", "lr", "weight_decay"):
        row = panel.form.rows[name]
        row.editor.setFocus()
        qtbot.keyClicks(row.editor, row.default)
        assert not row.is_changed
    typed = {name: panel.draft().fields[name] for name in ("seq_len", "lr", "weight_decay")}
    assert all(typed.values())
    panel.set_field("model", "owner/name")
    panel.set_field("training", "lora")
    if is_saved:
        saved = json.loads(json.dumps(dataclasses.asdict(panel.draft())))
        panel.reset()
        assert panel.draft().fields["lr"] == ""
        panel.open_draft(Draft.from_dict(saved))
    assert {name: panel.draft().fields[name] for name in typed} == typed
    assert panel.header.reset.isVisible()
    checked = check_draft(panel.draft(), recipe, [A], LINUX)
    assert checked.config is not None
    asked = {**checked.config.as_dict(), **checked.config.options}
    assert {name: panel.form.rows[name].spec.text(asked[name]) for name in typed} == typed
    for name in typed:
        panel.form.rows[name].reset()
    checked = check_draft(panel.draft(), recipe, [A], LINUX)
    assert checked.config is not None
    assert (checked.config.lr, checked.config.options["weight_decay"]) == (2e-4, 0.0)


def test_a_copied_runs_defaults_are_not_taken_for_typed(panel: NewRunSheet) -> None:
    recipe = get_recipe("hf_causal_lm")
    asked = Draft("hf_causal_lm", devices=("GPU-a",), fields={"steps": "7", "model": "owner/name"})
    checked = check_draft(asked, recipe, [A], LINUX)
    assert checked.config is not None
    panel.copy_run(draft_from_config(checked.config, [A]), "night run")
    rows = panel.form.rows
    assert (rows["steps"].text(), rows["lr"].text(), rows["lr"].default) == ("7", "", "2e-05")
    panel.set_field("model", "gpt2")
    assert (rows["lr"].text(), rows["lr"].default) == ("", "0.001")


def test_reset_puts_the_recipes_defaults_back_and_keeps_the_devices(panel: NewRunSheet) -> None:
    panel.show()
    panel.devices.set_devices([A, B], None)
    panel.devices.select(("GPU-b",))
    panel.copy_run(Draft(devices=("GPU-b",), fields={"steps": "7", "precision": "bf16"}, mode="zero"), "night run")
    assert panel.header.copied.full_text == "Copy of night run" and panel.form.rows["steps"].text() == "7"
    panel.run_name.setText("mine")
    panel.header.reset.click()
    draft = panel.draft()
    assert (draft.fields["steps"], draft.fields["precision"], draft.mode, draft.name) == ("", "auto", "auto", "")
    assert draft.devices == ("GPU-b",) and panel.header.copied.full_text == "" and not panel.header.reset.isVisible()


def test_rare_settings_are_searched_and_counted(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    advanced, rows = panel.form.advanced, panel.form.rows
    assert advanced.changed.text() == ""
    panel.set_field("weight_decay", "0.2")
    panel.set_field("seed", "7")
    panel.set_field("steps", "7")
    assert advanced.changed.text() == "2 changed", "only those that are folded away"
    panel.form.more.click()
    qtbot.keyClicks(advanced.search, "largest norm")
    assert not rows["clip_norm"].editor.isVisible() and advanced.none_found.isVisible()
    advanced.search.clear()
    qtbot.keyClicks(advanced.search, "norm larger")
    assert rows["clip_norm"].editor.isVisible() and not rows["seed"].editor.isVisible()
    panel.problems.show({"seed": ConfigError("seed", "Seed (seed): -1 is below 0.", "Give more.")})
    assert rows["seed"].editor.isVisible() and advanced.search.text() == "", "what is wrong is not hidden by a search"


def test_each_group_of_advanced_folds_and_counts_its_changes(panel: NewRunSheet) -> None:
    panel.show()
    panel.form.more.click()
    rows = panel.form.rows
    folds = {fold.title: fold for fold in panel.form.advanced.folds}
    assert len(folds) > 5 and not any(fold.page.isVisible() for fold in folds.values())
    panel.set_field("weight_decay", "0.2")
    panel.set_field("seed", "7")
    assert folds["Optimizer"].changed.text() == folds["System"].changed.text() == "1 changed"
    assert folds["Data"].changed.text().endswith("settings")
    folds["Optimizer"].toggle.click()
    assert rows["weight_decay"].editor.isVisible() and not rows["seed"].editor.isVisible()
    panel.problems.go_to("samples_per_block")
    assert rows["samples_per_block"].editor.isVisible(), "what is asked for is unfolded"
    panel.what.choose("hf_causal_lm")
    kept = {fold.title for fold in panel.form.advanced.folds if fold.page.isVisible()}
    assert kept == {"Optimizer", "Data"}


def test_fields_without_effect_say_why_and_cannot_be_typed_into(panel: NewRunSheet) -> None:
    panel.show()
    panel.what.choose("hf_causal_lm")
    panel.set_field("model", "owner/name")
    recipe = get_recipe("hf_causal_lm")
    panel.show_checked(check_draft(panel.draft(), recipe, [A], LINUX))
    layers, reason = panel.form.rows["n_layer"].editor, "A pretrained model brings its own."
    assert isinstance(layers, QLineEdit) and not layers.isEnabled()
    assert layers.placeholderText() == reason and reason in layers.toolTip()
    panel.set_field("model", "llama")
    panel.show_checked(check_draft(panel.draft(), recipe, [A], LINUX))
    assert layers.isEnabled() and layers.placeholderText() == "4"


def test_no_two_fields_of_a_recipe_have_one_label() -> None:
    for recipe in find_recipes():
        labels = [spec.label for specs in grouped_fields(recipe).values() for spec in specs]
        assert len(labels) == len(set(labels)), recipe.name


def test_a_notice_covers_the_form_and_moves_nothing(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.resize(360, 560)
    panel.show()
    qtbot.waitExposed(panel)
    QGuiApplication.processEvents()  # rows of devices become lines where the sheet is low
    before = panel.form.rows["steps"].editor.mapTo(panel, QPoint(0, 0))
    error = RankdeckError("The disk at /data/runs has 12 MB free; this run needs at least 400 MB.", "Free some space.")
    panel.notice.show_error(error, Step("Choose another folder…", lambda: None))
    QGuiApplication.processEvents()
    assert panel.form.rows["steps"].editor.mapTo(panel, QPoint(0, 0)) == before
    text = panel.notice._text
    needed = text.heightForWidth(text.width())
    assert text.width() >= 200 and text.height() >= needed, "no word is cut"
    assert panel.notice.parentWidget() is not None and panel.notice.geometry().bottom() < panel.height()
    panel.notice.clear()
    assert panel.form.rows["steps"].editor.mapTo(panel, QPoint(0, 0)) == before


def test_a_problem_offers_what_mends_it(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    panel.what.choose("hf_causal_lm")
    done: list[str] = []
    panel.problems.remedies = lambda error: [Step("Allow the download", lambda: done.append(error.cause))]
    panel.problems.show({"model": ConfigError("model", "It is not here.", "Allow it.", allows="allow_download")})
    (button,) = panel.form.rows["model"].remedies.buttons
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert done == ["It is not here."]
    panel.problems.show({})
    assert not panel.form.rows["model"].remedies.isVisible()


def test_start_is_one_big_button_at_the_foot(qtbot: QtBot) -> None:
    action = QAction("&Start")
    panel = NewRunSheet(find_recipes(), action)
    qtbot.addWidget(panel)
    button = panel.summary.start
    assert button is not None
    with qtbot.waitSignal(action.triggered):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    action.setEnabled(False)
    assert not button.isEnabled()
    without = NewRunSheet(find_recipes())
    qtbot.addWidget(without)
    assert without.summary.start is None


def test_the_cross_closes_and_every_control_has_a_name(panel: NewRunSheet, qtbot: QtBot) -> None:
    panel.show()
    with qtbot.waitSignal(panel.close_requested):
        qtbot.mouseClick(panel.header.cross, Qt.MouseButton.LeftButton)
    unfold(panel.form)
    for editor in panel.findChildren(QWidget):
        if isinstance(editor, QLineEdit | QComboBox | QAbstractButton) and editor.isVisibleTo(panel):
            named = editor.accessibleName() or getattr(editor, "text", str)() or editor.objectName() == "qt_spinbox"
            assert named or editor.parentWidget() in panel.findChildren(QComboBox), editor


def test_nothing_is_cut_off_in_a_narrow_sheet(panel: NewRunSheet) -> None:
    panel.resize(360, 560)
    panel.show()
    panel.devices.set_devices([A, B], None)
    panel.mode.set_options(ModeOptions(Mode.DDP, 2))
    scroll = panel.findChild(QScrollArea)
    assert isinstance(scroll, QScrollArea) and (content := scroll.widget()) is not None
    for recipe in find_recipes():
        panel.what.choose(recipe.name)
        unfold(panel.form)
        QGuiApplication.processEvents()
        assert content.minimumSizeHint().width() <= scroll.viewport().width(), recipe.name
        assert panel.minimumSizeHint().width() <= 360, recipe.name


def test_tab_goes_down_the_sheet(panel: NewRunSheet) -> None:
    panel.resize(440, 900)
    panel.show()
    panel.devices.set_devices([A, B], None)
    panel.mode.set_options(ModeOptions(Mode.DDP, 2))
    for recipe in find_recipes():
        panel.what.choose(recipe.name)
        chain_tabs(panel)
        unfold(panel.form)
        QGuiApplication.processEvents()
        tops = tab_stops(panel)
        assert len(tops) > 20 and all(second >= first - 12 for first, second in itertools.pairwise(tops)), recipe.name


def tab_stops(panel: NewRunSheet) -> list[int]:
    """How far down each control in the form is, in the order of Tab."""
    tops: list[int] = []
    form = panel._scroll.widget()
    widget: QWidget = panel.header.cross
    while (widget := widget.nextInFocusChain()) is not panel.header.cross:
        by_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.isVisible()
        if by_tab and not panel.summary.isAncestorOf(widget) and form is not None and form.isAncestorOf(widget):
            tops.append(widget.mapTo(form, QPoint(0, widget.height() // 2)).y())
    return tops


def test_one_click_shares_the_work_by_speed(panel: NewRunSheet) -> None:
    panel.show()
    assert panel.balance.isHidden()
    panel.balance.show_balance(BalanceText("Timing steps…"))
    assert panel.balance.balance.isVisible() and panel.balance.measure.isHidden()
    panel.balance.show_balance(BalanceText("They differ.", can_measure=True))
    assert panel.balance.balance.isVisible() and panel.balance.measure.isVisible()
    panel.balance.show_balance(BalanceText("Measured.", "1.6 × the speed"))
    panel.balance.balance.click()
    assert panel.draft().fields["balance"] == "measured"
    panel.balance.show_balance(None)
    assert panel.balance.isHidden()
