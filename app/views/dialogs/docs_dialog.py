"""The documentation: a list of pages, and the page that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QGuiApplication, QShortcut, QTextBlockFormat, QTextCursor, QTextDocument, QTextTable
from PySide6.QtWidgets import QDialog, QListWidget, QSplitter, QTextBrowser, QWidget

from app.state.docs_pages import DocsPage, anchor, link_target, pages_with
from app.views.widgets.build import lay_column, muted_label, named, search_line
from app.views.widgets.first_size import set_first_size
from app.views.widgets.notice_bar import NoticeBar
from app.views.widgets.open_outside import open_link

SIZE: Final = (980, 720)
PANES: Final = (260, 720)
LINE_GAP: Final = 3
LINE_HEIGHT: Final = 120
"""Percent of the font's own."""
CELL_PADDING: Final = 5


def _loosen(document: QTextDocument) -> None:
    """Gives lines air, and tables hairlines instead of Qt's bevels."""
    cursor = QTextCursor(document)
    cursor.select(QTextCursor.SelectionType.Document)
    spaced = QTextBlockFormat()
    spaced.setLineHeight(LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    cursor.mergeBlockFormat(spaced)
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            form = frame.format()
            form.setBorderCollapse(True)
            form.setCellPadding(CELL_PADDING)
            frame.setFormat(form)


class DocsDialog(QDialog):
    """A window of its own. Links between pages are followed here, all others in the browser.

    What is searched for (Ctrl+F) leaves the pages that hold it, and is marked on the page; Enter goes to the next
    place, Shift+Enter to the one before.

    Args:
        pages: All of them; the first is shown.
    """

    def __init__(self, pages: Sequence[DocsPage], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Documentation – Rankdeck")
        self._pages = list(pages)
        self._current = self._pages[0].path
        self.notice = NoticeBar()
        self.search = search_line("Search the documentation", "Search the documentation")
        self.found = muted_label("No page has it.")
        self.found.hide()
        self.list = named(QListWidget(), "Pages of the documentation")
        self.list.setSpacing(LINE_GAP)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # titles are elided
        self.list.addItems([page.title for page in self._pages])
        self.text = named(QTextBrowser(), "Page")
        self.text.setOpenLinks(False)
        self.text.document().setDocumentMargin(16)
        self.text.anchorClicked.connect(self._on_link_clicked)
        self.list.currentRowChanged.connect(self._on_row_changed)
        self.search.textChanged.connect(self._on_search_changed)
        self.search.returnPressed.connect(self._on_return_pressed)
        QShortcut("Ctrl+F", self, self.search.setFocus)
        panes = QSplitter()
        side = QWidget()
        lay_column(side, self.search, self.found, self.list, spacing=8, margins=(8, 8, 8, 8), grow=self.list)
        panes.addWidget(side)
        panes.addWidget(self.text)
        panes.setStretchFactor(1, 1)
        panes.setSizes(list(PANES))
        lay_column(self, self.notice, panes, grow=panes)
        set_first_size(self, *SIZE)
        self.list.setCurrentRow(0)

    def show_page(self, path: Path, heading: str = "") -> None:
        """Shows a page, at one of its headings or from the top."""
        row = next((row for row, page in enumerate(self._pages) if page.path == path), -1)
        if row >= 0 and row != self.list.currentRow():
            self.list.setCurrentRow(row)
        elif path != self._current:
            self._read(path)
        self._go_to(heading)

    def find_next(self, backwards: bool = False) -> bool:
        """Marks the next place on the page that holds what is searched for, going round; False if none does."""
        text = self.search.text().strip()
        flags = QTextDocument.FindFlag.FindBackward if backwards else QTextDocument.FindFlag(0)
        if not text or self.text.find(text, flags):
            return bool(text)
        end = QTextCursor.MoveOperation.End if backwards else QTextCursor.MoveOperation.Start
        self.text.moveCursor(end)
        return self.text.find(text, flags)

    def _on_row_changed(self, row: int) -> None:
        self._read(self._pages[row].path)

    def _on_search_changed(self, text: str) -> None:
        holding = pages_with(self._pages, text)
        for row, page in enumerate(self._pages):
            self.list.item(row).setHidden(page not in holding)
        self.found.setVisible(not holding)
        shown = next((row for row, page in enumerate(self._pages) if page in holding), -1)
        if shown >= 0 and self.list.currentItem().isHidden():
            self.list.setCurrentRow(shown)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
        self.find_next()

    def _on_return_pressed(self) -> None:
        self.find_next(bool(QGuiApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier))

    def _read(self, path: Path) -> None:
        self._current = path
        self.text.setSearchPaths([str(path.parent)])
        try:
            self.text.setMarkdown(path.read_text(encoding="utf-8"))
            _loosen(self.text.document())
        except (OSError, UnicodeDecodeError) as error:
            self.text.setPlainText(f"{path} cannot be read: {error}.")
        self.notice.clear()

    def _go_to(self, heading: str) -> None:
        block = self.text.document().begin()
        while heading and block.isValid():
            if block.blockFormat().headingLevel() and anchor(block.text()) == heading:
                self.text.moveCursor(QTextCursor.MoveOperation.End)  # so that the heading is scrolled to the top
                self.text.setTextCursor(QTextCursor(block))
                return
            block = block.next()

    def _on_link_clicked(self, link: QUrl) -> None:
        target = link_target(self._current, link.toString())
        if target is not None:
            self.show_page(*target)
        elif link.scheme() in ("http", "https", "mailto"):
            open_link(link, self.notice)
