"""Opening with the desktop's programs: a failure says what, why and what to do, and offers the path."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.widgets.notice_bar import NoticeBar
from app.widgets.open_outside import open_link, open_path
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


@pytest.fixture
def notice(qtbot: QtBot) -> NoticeBar:
    made = NoticeBar()
    qtbot.addWidget(made)
    return made


@pytest.mark.parametrize("opens", [True, False])
def test_a_folder_that_no_program_opens(
    opens: bool, notice: NoticeBar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[QUrl] = []

    def open_url(url: QUrl) -> bool:
        asked.append(url)
        return opens

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    open_path(tmp_path, notice)
    assert [Path(url.toLocalFile()) for url in asked] == [tmp_path]
    if opens:
        assert notice.isHidden()
        return
    assert notice.title == "The folder could not be opened"
    assert notice.text == (
        f"No program of this desktop opened {tmp_path}. Copy the path and open it in your file manager."
    )
    button = notice.findChild(QPushButton, "step")
    assert isinstance(button, QPushButton) and button.text() == "Copy &path"
    button.click()
    assert QGuiApplication.clipboard().text() == str(tmp_path)


def test_a_folder_that_is_gone(notice: NoticeBar, tmp_path: Path) -> None:
    open_path(tmp_path / "gone", notice)
    assert notice.text.startswith(f"{tmp_path / 'gone'} is not there. It was moved or removed.")


def test_a_page_without_a_browser(notice: NoticeBar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _url: False)
    open_link(QUrl("https://pytorch.org/docs"), notice)
    assert notice.title == "The page could not be opened" and "No browser opened https://pytorch.org" in notice.text
    button = notice.findChild(QPushButton, "step")
    assert isinstance(button, QPushButton)
    button.click()
    assert QGuiApplication.clipboard().text() == "https://pytorch.org/docs"
