"""Data progress: the ledger's blocks as strips of chunks, which is what resuming starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QProgressBar, QSizePolicy, QWidget

from app.style.fonts import tabular
from app.style.palette import faint, rank_colour
from app.style.tones import rule
from app.widgets.build import bold_label, lay_column, muted_label, named, scrolled
from app.widgets.card import Card
from app.widgets.empty_note import WithNote
from app.widgets.notice_bar import NoticeBar
from core.formatting import count, percent

if TYPE_CHECKING:
    from app.shown_run.ledger_data import LedgerSnapshot
    from core.ledger.progress import BlockProgress

NOTHING: Final = "Data progress appears once the data is prepared: what is trained, in progress and remaining."
LEGEND: Final = "▮ trained, in the device's colour   ▨ in progress   ▯ remaining"
ROW: Final = 24
MARGIN: Final = 12
STRIP: Final = 16
MAX_CELL: Final = 40
# Strips of 10,000 blocks would fill 250 screens.
MOST_STRIPS: Final = 200
BAR_STEPS: Final = 1000
BAR_PX: Final = 6


class LedgerStrip(QWidget):
    """One strip a block, a cell a chunk: filled is done, striped in work (both in the device's colour), empty to do."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: Sequence[BlockProgress] = ()
        self._samples_per_block = 1
        self._widest = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Data progress")

    def set_blocks(self, blocks: Sequence[BlockProgress], samples_per_block: int = 1) -> None:
        self._blocks = blocks
        self._samples_per_block = samples_per_block
        self._widest = self._label(max((block.block_id for block in blocks), default=0))
        self.setFixedHeight(max(1, len(blocks)) * ROW + 4)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        first = max(0, event.rect().top() // ROW)
        last = min(len(self._blocks), event.rect().bottom() // ROW + 1)
        for row in range(first, last):
            self._paint_block(painter, row)

    def _paint_block(self, painter: QPainter, row: int) -> None:
        block = self._blocks[row]
        left, width = self._span(block)
        top = row * ROW + (ROW - STRIP) // 2
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        label = QRect(MARGIN, row * ROW, left - MARGIN - 8, ROW)
        painter.drawText(
            label,
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            self._label(block.block_id),
        )
        share = f"{len(block.done)} / {block.chunks}"
        rest = QRect(left + width + 8, row * ROW, self.width() - left - width - 8, ROW)
        painter.drawText(rest, Qt.AlignmentFlag.AlignVCenter, share)
        painter.fillRect(left, top, width, STRIP, rule(self.palette()))
        cell = width / max(1, block.chunks)
        gap = 1 if cell >= 4 else 0
        for chunk, rank in block.done.items():
            painter.fillRect(self._cell(left, top, cell, chunk, gap), rank_colour(rank, self.palette()))
        for chunk, rank in block.in_progress.items():
            self._paint_going(painter, self._cell(left, top, cell, chunk, gap), rank_colour(rank, self.palette()))
        if gap:
            painter.setPen(self.palette().color(QPalette.ColorRole.Base))
            for chunk in range(1, block.chunks):
                x = left + round(chunk * cell) - 1
                painter.drawLine(x, top, x, top + STRIP - 1)

    def _label(self, block_id: int) -> str:
        return count(block_id * self._samples_per_block)

    def _paint_going(self, painter: QPainter, area: QRect, colour: QColor) -> None:
        painter.fillRect(area, faint(colour, self.palette(), 0.35))
        painter.fillRect(area, QBrush(colour, Qt.BrushStyle.BDiagPattern))
        painter.setPen(colour)
        painter.drawRect(area.adjusted(0, 0, -1, -1))

    def _span(self, block: BlockProgress) -> tuple[int, int]:
        metrics = self.fontMetrics()
        left = MARGIN + metrics.horizontalAdvance(self._widest) + 8
        most = self.width() - left - metrics.horizontalAdvance("0000 / 0000") - 12
        return left, max(16, min(most, block.chunks * MAX_CELL))

    def _cell(self, left: int, top: int, cell: float, chunk: int, gap: int) -> QRect:
        start, end = left + round(chunk * cell), left + round((chunk + 1) * cell)
        return QRect(start, top, max(1, end - start - gap), STRIP)


class LedgerView(QWidget):
    """Epoch, checkpoint and the strips of the run that is shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.notice = NoticeBar()
        self.headline = bold_label()
        self.headline.setWordWrap(True)
        self.headline.setFont(tabular(self.headline.font()))
        self.bar = named(QProgressBar(maximum=BAR_STEPS, textVisible=False), "Share of the epoch that is trained")
        self.bar.setFixedHeight(BAR_PX)
        self.resume = muted_label()
        card = Card()
        lay_column(card, self.headline, self.bar, self.resume, spacing=8, margins=(16, 12, 16, 12))
        self.legend = muted_label(LEGEND)
        self.legend.setContentsMargins(MARGIN, 8, MARGIN, 4)
        self.strip = LedgerStrip()
        scroll, body = scrolled(self.strip), QWidget()
        lay_column(body, card, self.legend, scroll, margins=(0, 8, 0, 0), grow=scroll)
        self.page = WithNote(body, NOTHING)
        lay_column(self, self.notice, self.page, grow=self.page)

    def show_snapshot(self, snapshot: LedgerSnapshot | None) -> None:
        self.notice.clear()
        self.page.set_empty(snapshot is None)
        if snapshot is None:
            self.strip.set_blocks(())
            return
        done = snapshot.progress
        epochs = f" of {done.epochs}" if done.epochs else ""
        kept = "no checkpoint yet" if snapshot.checkpoint is None else f"checkpoint {snapshot.checkpoint} saved"
        trained = done.samples_done / max(1, done.samples_total)
        share = percent(trained)
        self.bar.setValue(round(BAR_STEPS * trained))
        skipped = f" · {count(done.samples_skipped)} skipped" if done.samples_skipped else ""
        self.headline.setText(
            f"Epoch {done.epoch + 1}{epochs}: {share} trained · {count(done.samples_trained)} samples trained in "
            f"total{skipped} · {kept}"
        )
        self.resume.setText(resume_text(snapshot))
        blocks = snapshot.blocks
        shown = blocks if len(blocks) <= MOST_STRIPS else list(filter(_is_begun, blocks))[:MOST_STRIPS]
        self.strip.set_blocks(shown, snapshot.samples_per_block)
        whole = sum(len(block.done) == block.chunks for block in blocks)
        rest = f"{count(whole)} of {count(len(blocks))} parts of the data are trained; those that are begun stand here."
        size = f"Each cell is {count(snapshot.chunk_size)} samples." if blocks else ""
        self.legend.setText("   ".join(filter(None, (LEGEND, size, rest if len(shown) < len(blocks) else ""))))
        self.strip.setAccessibleDescription(f"{self.headline.text()}. {self.resume.text()}")


def _is_begun(block: BlockProgress) -> bool:
    return bool(block.in_progress) or 0 < len(block.done) < block.chunks


def resume_text(snapshot: LedgerSnapshot) -> str:
    """Say where a resumed run would continue, and that it trains nothing twice."""
    done = snapshot.progress
    if done.finished:
        return "All of the data is trained. To train further, resume to a larger step."
    if snapshot.checkpoint is None:
        return "Nothing is saved yet: a resumed run would start from the beginning."
    samples = f"{count(done.samples_done)} of {count(done.samples_total)} samples of this epoch are done"
    return f"Resume continues from checkpoint {snapshot.checkpoint}; {samples}; none is trained twice."
