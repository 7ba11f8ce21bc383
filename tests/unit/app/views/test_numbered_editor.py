"""The editor with line numbers, and the DeepSpeed dialog that marks the wrong line."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.views.dialogs.deepspeed_dialog import DeepSpeedDialog
from app.views.widgets.numbered_editor import NumberedEditor
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_the_gutter_is_as_wide_as_its_numbers(qtbot: QtBot) -> None:
    editor = NumberedEditor("one\ntwo")
    qtbot.addWidget(editor)
    editor.resize(300, 200)
    editor.show()
    narrow = editor.gutter_px
    assert editor.viewportMargins().left() == narrow
    editor.setPlainText("line\n" * 1200)
    assert editor.gutter_px > narrow and editor.viewportMargins().left() == editor.gutter_px
    before = editor.grab().toImage()
    editor.mark_line(1)
    assert editor.grab().toImage() != before, "the marked line looks different"
    editor.mark_line(None)
    assert editor.grab().toImage() == before


def test_the_line_of_an_error_is_marked(qtbot: QtBot) -> None:
    dialog = DeepSpeedDialog(2, "")
    qtbot.addWidget(dialog)
    dialog.show()
    assert dialog.editor.wrong_line is None
    lines = dialog.editor.toPlainText().splitlines()
    lines[2] = "  broken"
    dialog.editor.setPlainText("\n".join(lines))
    assert dialog.editor.wrong_line == 3 and not dialog.use.isEnabled()
    (mark,) = dialog.editor.extraSelections()
    assert mark.cursor.blockNumber() == 2
    dialog.back.click()
    assert dialog.editor.wrong_line is None and not dialog.editor.extraSelections()
