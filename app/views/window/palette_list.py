"""List of the command palette: its entries as a Qt model, and the painter of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.state.fuzzy_match import matched
from app.views.style.control_drawing import veil
from app.views.style.fonts import tabular
from app.views.style.tones import muted, tone

if TYPE_CHECKING:
    from app.state.palette_entries import PaletteEntry

ENTRY: Final = Qt.ItemDataRole.UserRole
ROW: Final = 36
MARGIN: Final = 12
GAP: Final = 16
KIND_WIDTH: Final = 104
BAR: Final = 3
Index = QModelIndex | QPersistentModelIndex


class PaletteModel(QAbstractListModel):
    """The entries that fit what was typed, the best first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[PaletteEntry] = []
        self.query = ""

    def show(self, entries: Sequence[PaletteEntry], query: str) -> None:
        """Takes over what was found; only rows that look different now are drawn again."""
        before, drawn = self._entries, self.query
        shared = min(len(before), len(entries))
        if len(before) > shared:
            self.beginRemoveRows(QModelIndex(), shared, len(before) - 1)
            self._entries = before[:shared]
            self.endRemoveRows()
        self._entries, self.query = list(entries[:shared]), query
        for row, (old, new) in enumerate(zip(before[:shared], entries, strict=False)):
            if old is not new or matched(drawn, old.title) != matched(query, new.title):
                self.dataChanged.emit(self.index(row), self.index(row))
        if len(entries) > shared:
            self.beginInsertRows(QModelIndex(), shared, len(entries) - 1)
            self._entries = list(entries)
            self.endInsertRows()

    def entry(self, row: int) -> PaletteEntry | None:
        """The entry of a row."""
        return self._entries[row] if 0 <= row < len(self._entries) else None

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The title, the sentence for screen readers, the reason as a tooltip, or the entry itself (`ENTRY`)."""
        entry = self.entry(index.row()) if index.isValid() else None
        if entry is None:
            return None
        if role == ENTRY:
            return entry
        if role == Qt.ItemDataRole.DisplayRole:
            return entry.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return entry.spoken
        return entry.why_not or None if role == Qt.ItemDataRole.ToolTipRole else None


class PaletteDelegate(QStyledItemDelegate):
    """Paints an entry: its title with the matched letters bold; key, state or reason; what it is."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(200, max(ROW, option.fontMetrics.height() + MARGIN))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry: PaletteEntry = index.data(ENTRY)
        model = index.model()
        query = model.query if isinstance(model, PaletteModel) else ""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_ground(painter, option)
        area = option.rect.adjusted(MARGIN, 0, -MARGIN, 0)
        kind = QRect(area.right() - KIND_WIDTH + 1, area.top(), KIND_WIDTH, area.height())
        painter.setFont(option.font)
        painter.setPen(muted(option.palette))
        painter.drawText(kind, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, entry.kind)
        rest = area.adjusted(0, 0, -KIND_WIDTH - GAP, 0)
        used = _paint_title(painter, option, entry, query, rest)
        _paint_detail(painter, option, entry, rest.adjusted(used + GAP, 0, 0, 0))
        painter.restore()


def _paint_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    if not is_chosen and not option.state & QStyle.StateFlag.State_MouseOver:
        return
    box = QRectF(option.rect).adjusted(4, 1, -4, -1)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(veil(option.palette, 0.07 if is_chosen else 0.04))
    painter.drawRoundedRect(box, 4, 4)
    if is_chosen:
        painter.setBrush(tone(option.palette, "accent"))
        painter.drawRoundedRect(QRectF(box.left(), box.center().y() - 8, BAR, 16), BAR / 2, BAR / 2)


def _paint_title(painter: QPainter, option: QStyleOptionViewItem, entry: PaletteEntry, query: str, area: QRect) -> int:
    """Paints runs of matched and other letters; returns the width that they took."""
    room = area.width() if entry.why_not == "" else area.width() * 3 // 5
    metrics = QFontMetrics(option.font)
    title = metrics.elidedText(entry.title, Qt.TextElideMode.ElideMiddle, room)
    group = QPalette.ColorGroup.Disabled if entry.why_not else QPalette.ColorGroup.Active
    painter.setPen(option.palette.color(group, QPalette.ColorRole.Text))
    bold = QFont(option.font)
    bold.setBold(True)
    marked = set(matched(query, title))
    left = area.left()
    for text, is_marked in _runs(title, marked):
        font = bold if is_marked else option.font
        width = QFontMetrics(font).horizontalAdvance(text)
        painter.setFont(font)
        painter.drawText(QRect(left, area.top(), width, area.height()), Qt.AlignmentFlag.AlignVCenter, text)
        left += width
    return left - area.left()


def _paint_detail(painter: QPainter, option: QStyleOptionViewItem, entry: PaletteEntry, area: QRect) -> None:
    font = tabular(option.font)
    text = QFontMetrics(font).elidedText(
        entry.why_not or entry.detail, Qt.TextElideMode.ElideRight, max(0, area.width())
    )
    painter.setFont(font)
    painter.setPen(muted(option.palette))
    painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)


def _runs(text: str, marked: set[int]) -> list[tuple[str, bool]]:
    """The text in pieces that are all marked or all not."""
    pieces: list[tuple[str, bool]] = []
    for place, letter in enumerate(text):
        is_marked = place in marked
        if pieces and pieces[-1][1] is is_marked:
            pieces[-1] = (pieces[-1][0] + letter, is_marked)
        else:
            pieces.append((letter, is_marked))
    return pieces
