"""The check of this machine in the whole window: opened, self-tests with real processes, fixes, diagnostics."""

from __future__ import annotations

import contextlib
import shutil
import zipfile
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from app.machine.doctor_page import DoctorPage
from app.main import Rankdeck
from core.doctor.finding import SELF_TESTS, Finding, Topic
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows, pytest.mark.timeout(300)]
SOON_MS = 30_000
TESTED_MS = 200_000
OTHER = Topic("x", "X", "Software", "It matters.")


def opened(rankdeck: Rankdeck, qtbot: QtBot) -> DoctorPage:
    """The page, once its quick checks are over."""
    rankdeck.window.actions_.doctor.trigger()
    page = rankdeck.machine_check.page
    assert page is not None
    qtbot.waitUntil(page.run_tests.isEnabled, timeout=SOON_MS)
    assert len(page.findings) > 15
    return page


def command_lines() -> list[str]:
    """Of the processes below this one; those that have ended and are only not reaped yet have none."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(child.cmdline()))
    return found


def test_the_page_opens_closes_and_is_let_go(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    window = rankdeck.window
    window.welcome.doctor.click()
    page = rankdeck.machine_check.page
    assert page is not None and window.pages.currentWidget() is page
    page.close_requested.emit()
    assert window.pages.currentWidget() is window.welcome and rankdeck.machine_check.page is None
    assert any(entry.title == "Check this machine" for entry in rankdeck.palette.entries())
    assert opened(rankdeck, qtbot) is not page


def test_a_folder_that_is_missing_is_made_by_its_button(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    rankdeck = open_window()
    shutil.rmtree(runs_dir)
    page = opened(rankdeck, qtbot)
    assert page.rows["writing"].finding.level == "not_tried"
    page.rows["writing"].fix.click()
    qtbot.waitUntil(lambda: page.rows["writing"].finding.level == "ok", timeout=SOON_MS)
    assert runs_dir.is_dir()


def test_a_command_is_copied(open_window: OpenWindow, qtbot: QtBot) -> None:
    page = opened(open_window(), qtbot)
    page.fix_requested.emit(OTHER.warn("old", "Update.", "copy_command", "pip install x"))
    assert QApplication.clipboard().text() == "pip install x"


@pytest.mark.slow
def test_self_tests_run_beside_the_window(open_window: OpenWindow, qtbot: QtBot) -> None:
    pytest.importorskip("torch", reason="computes for real")
    rankdeck = open_window()
    page = opened(rankdeck, qtbot)
    page.run_tests.click()
    assert page.cancel.isVisible() and page.cancel.isEnabled()
    qtbot.waitUntil(lambda: "compute_cpu:0" in page.rows, timeout=TESTED_MS)
    page.cancel.click()
    qtbot.waitUntil(page.run_tests.isEnabled, timeout=SOON_MS)
    tested: dict[str, Finding] = {f.topic.id: f for f in page.findings if f.topic.group == SELF_TESTS}
    assert tested["compute_cpu:0"].level == "ok"
    assert tested["link_nccl"].level == "not_tried"
    assert page.rows["mode_ddp"].finding.level == "ok", "what was cancelled has not failed"
    assert not any("self_test_main" in line for line in command_lines())


def test_leaving_the_page_ends_the_self_tests(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    page = opened(rankdeck, qtbot)
    page.run_tests.click()
    page.close_requested.emit()
    assert rankdeck.machine_check.page is None
    qtbot.waitUntil(lambda: not rankdeck.machine_check.testing.is_going, timeout=SOON_MS)


def test_diagnostics_are_saved(
    open_window: OpenWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankdeck = open_window()
    page, notice = opened(rankdeck, qtbot), rankdeck.window.notice
    chosen = [tmp_path / "missing" / "d", tmp_path / "d"]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(chosen.pop(0)), ""))
    page.diagnostics.click()
    qtbot.waitUntil(lambda: notice.kind == "error" and not notice.isHidden(), timeout=SOON_MS)
    page.diagnostics.click()
    qtbot.waitUntil(lambda: notice.kind == "success", timeout=SOON_MS)
    assert notice.title == "Diagnostics saved" and str(tmp_path / "d.zip") in notice.text
    with zipfile.ZipFile(tmp_path / "d.zip") as archive:
        assert {"about.txt", "doctor.json", "versions.json"} <= set(archive.namelist())
