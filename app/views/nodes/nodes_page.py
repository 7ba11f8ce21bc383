"""Page of a run that waits for other machines: who is there, who was refused and why, and how to start the others."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.state.nodes_text import STATES, key_text, line_text, node_text, waiting_text, waiting_title
from app.views.style.icons import icon
from app.views.widgets.build import (
    bold_label,
    code_box,
    icon_button,
    lay_column,
    lay_row,
    muted_label,
    named,
    page_title,
    scrolled,
)
from app.views.widgets.buttons import OutlinedButton
from app.views.widgets.card import Badge, Card
from app.views.widgets.notice_bar import NoticeBar
from app.views.widgets.page import Page
from core.errors import RankdeckError
from core.launch.nodes.status import NodesStatus, NodeStatus

COPIED_MS: Final = 1500
LINE_ROWS: Final = 4
BEGINNING: Final = "Starting the command on this computer…"
_EDGES: Final = (16, 10, 12, 10)


class NodeCard(Card):
    """One machine that is there, or was refused."""

    def __init__(self, node: NodeStatus) -> None:
        state, tone = STATES[node.state]
        super().__init__(edge=tone if tone != "success" else "")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.badge = Badge(state, tone)
        self.about = QLabel(node_text(node), wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.about.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.about.setVisible(bool(self.about.text()))
        title = " · ".join(part for part in (node.name, node.address) if part)
        head = lay_row(None, bold_label(title), self.badge, None, spacing=8)
        lay_column(self, head, self.about, spacing=4, margins=_EDGES)


class NodesPage(Page):
    """It starts and reaches nothing itself.

    Signals:
        cancel_requested: The run is not to be started.
    """

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Waiting for other machines")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.cards: list[NodeCard] = []
        self._shown: tuple[NodeStatus, ...] = ()
        self.title = page_title("")
        self.text = muted_label()
        self.cancel = named(OutlinedButton("&Cancel"), "Cancel", "Do not start this run")
        self.cancel.clicked.connect(self.cancel_requested)
        self.line = code_box("Command for each other machine")
        self.line.setFixedHeight(self.line.fontMetrics().lineSpacing() * LINE_ROWS + 12)
        tip = "Copy the command for the other machines"
        self.copy = icon_button("copy", tip, self._on_copy_clicked, "Copy the command")
        self._back = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._back.timeout.connect(lambda: self.copy.setIcon(icon("copy")))
        self.key = muted_label()
        self.key.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notice = NoticeBar()
        self._lay_out()
        self.begin()

    def begin(self) -> None:
        self.title.setText("Several machines")
        self.text.setText(BEGINNING)
        self.cancel.setEnabled(True)
        self.notice.clear()
        self._others.hide()
        self._fill(())

    def show_status(self, status: NodesStatus) -> None:
        self.title.setText(waiting_title(status))
        self.text.setText(waiting_text(status))
        self._fill(status.nodes)
        text = line_text(status)
        if text != self.line.toPlainText():
            self.line.setPlainText(text)
        self.key.setText(key_text(status))
        self._others.setVisible(status.phase == "waiting")

    def show_error(self, error: RankdeckError) -> None:
        self.notice.show_error(error)

    def show_cancelling(self) -> None:
        self.cancel.setEnabled(False)
        self.text.setText("Cancelling…")

    def _fill(self, nodes: tuple[NodeStatus, ...]) -> None:
        if nodes == self._shown:
            return
        self._shown = nodes
        for card in self.cards:
            self._nodes.removeWidget(card)
            card.deleteLater()
        self.cards = [NodeCard(node) for node in nodes]
        for card in self.cards:
            self._nodes.addWidget(card)

    def _lay_out(self) -> None:
        close = icon_button("close", "Close this page (Esc); it keeps waiting", self.close_requested.emit, "Close")
        close.setAutoRaise(True)
        head = Card()
        head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        row = lay_row(None, self.title, None, self.cancel, close, spacing=8)
        lay_column(head, row, self.text, self.notice, spacing=4, margins=(16, 8, 8, 10))
        self._nodes = QVBoxLayout()
        self._nodes.setSpacing(8)
        self._others = Card()
        self._others.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        line = lay_row(None, self.line, self.copy, spacing=4, grow=self.line)
        line.setAlignment(self.copy, Qt.AlignmentFlag.AlignTop)
        title = bold_label("On each other machine", self.line)
        lay_column(self._others, title, line, self.key, spacing=8, margins=_EDGES)
        body = QWidget()
        lay_column(body, head, self._nodes, self._others, None, spacing=8, margins=(8, 8, 8, 8))
        lay_column(self, scrolled(body))

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.line.toPlainText())
        self.copy.setIcon(icon("state-finished", "success"))
        self._back.start()
