"""The documentation: a list of pages, and the page that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtWidgets import QDialog, QListWidget, QSplitter, QTextBrowser, QWidget

from app.state.docs_pages import DocsPage, anchor, link_target
from app.views.widgets.build import lay_column, named

SIZE: Final = (980, 720)
PANES: Final = (260, 720)
LINE_GAP: Final = 3


class DocsDialog(QDialog):
    """A window of its own. Links between pages are followed here, all others in the browser.

    Args:
        pages: All of them; the first is shown.
    """

    def __init__(self, pages: Sequence[DocsPage], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Documentation – Rankdeck")
        self._pages = list(pages)
        self._current = self._pages[0].path
        self.list = named(QListWidget(), "Pages of the documentation")
        self.list.setSpacing(LINE_GAP)
        self.list.addItems([page.title for page in self._pages])
        self.text = named(QTextBrowser(), "Page")
        self.text.setOpenLinks(False)
        self.text.document().setDocumentMargin(16)
        self.text.anchorClicked.connect(self._on_link_clicked)
        self.list.currentRowChanged.connect(self._on_row_changed)
        panes = QSplitter()
        panes.addWidget(self.list)
        panes.addWidget(self.text)
        panes.setStretchFactor(1, 1)
        panes.setSizes(list(PANES))
        lay_column(self, panes)
        self.resize(*SIZE)
        self.list.setCurrentRow(0)

    def show_page(self, path: Path, heading: str = "") -> None:
        """Shows a page, at one of its headings or from the top."""
        row = next((row for row, page in enumerate(self._pages) if page.path == path), -1)
        if row >= 0 and row != self.list.currentRow():
            self.list.setCurrentRow(row)
        elif path != self._current:
            self._read(path)
        self._go_to(heading)

    def _on_row_changed(self, row: int) -> None:
        self._read(self._pages[row].path)

    def _read(self, path: Path) -> None:
        self._current = path
        self.text.setSearchPaths([str(path.parent)])
        try:
            self.text.setMarkdown(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            self.text.setPlainText(f"{path} cannot be read: {error}.")

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
            QDesktopServices.openUrl(link)
