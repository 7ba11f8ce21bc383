"""The DeepSpeed dialog marks the line that is wrong."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.new_run.deepspeed_dialog import DeepSpeedDialog
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


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
