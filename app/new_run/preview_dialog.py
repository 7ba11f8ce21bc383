"""A dataset as the model will see it: counts, the first samples and documents."""

from __future__ import annotations

from html import escape
from typing import Final

from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QProgressBar, QTextBrowser, QWidget

from app.style.tones import blend, is_dark, muted, tone
from app.widgets.build import lay_row, named
from app.widgets.dialog import Dialog
from app.widgets.notice_bar import Step
from core.errors import RankdeckError
from core.formatting import count
from core.measure.preview_text import Found, document_title, fact_lines, sample_title, visible

SHOWN_IDS: Final = 24


class PreviewDialog(Dialog):
    """Shows the dataset; closing it ends the look."""

    def __init__(self, dataset: str, parent: QWidget | None = None) -> None:
        super().__init__(f"Preview of {dataset}", parent)
        self.doing = named(QLabel(), "Progress")
        self.bar = named(QProgressBar(minimum=0, maximum=0, textVisible=False), "Progress")
        self.text = named(QTextBrowser(), "Counts, first samples and documents")
        self.text.setTabChangesFocus(True)
        self.add_standard(QDialogButtonBox.StandardButton.Close)
        self._going = QWidget()
        lay_row(self._going, self.doing, self.bar, spacing=8, grow=self.bar)
        self.lay_out(self.notice, self._going, self.text, grow=self.text, size=(760, 620))
        self.show_progress("starting")

    @property
    def is_busy(self) -> bool:
        return not self._going.isHidden()

    def show_progress(self, phase: str) -> None:
        self.notice.clear()
        self.doing.setText(f"Looking: {phase}")
        self._going.show()

    def show_error(self, error: RankdeckError, step: Step | None = None) -> None:
        self._going.hide()
        self.notice.show_error(error, step)

    def show_found(self, found: Found) -> None:
        self._going.hide()
        base, accent = self.palette().color(QPalette.ColorRole.Base), tone(self.palette(), "info")
        grounds = (base.name(), blend(accent, base, 0.22 if is_dark(self.palette()) else 0.16).name())
        grey = muted(self.palette()).name()
        rows = "".join(
            f"<tr><td style='color:{grey}; padding-right:12px'>{name}</td>"
            f"<td><span style='white-space:pre-wrap'>{escape(value)}</span></td></tr>"
            for name, value in fact_lines(found)
        )
        parts = [f"<table cellspacing='2'>{rows}</table>"]
        parts += [_sample(sample, grounds, grey) for sample in found["first_samples"]]
        for number, document in enumerate(found["first_documents"], 1):
            head, text = escape(document_title(number, document)), escape(visible(document["text"]))
            parts.append(f"<p><b>{head}</b><br>{text} <span style='color:{grey}'>…</span></p>")
        self.text.setHtml("".join(parts))


def _sample(sample: Found, grounds: tuple[str, str], grey: str) -> str:
    """A sample, each token on a ground of its own, and the numbers of the first tokens."""
    tokens = "".join(
        f"<span style='background-color:{grounds[number % 2]}'>{escape(visible(piece, breaks=True))}</span>"
        for number, piece in enumerate(sample["pieces"])
    )
    shown, length = len(sample["pieces"]), sample["length"]
    rest = f"… the first {count(shown)} of {count(length)} tokens" if shown < length else ""
    ids = " ".join(str(number) for number in sample["ids"][:SHOWN_IDS])
    return (
        f"<p><b>{escape(sample_title(sample))}</b><br><span style='white-space:pre-wrap'>{tokens}</span> "
        f"<span style='color:{grey}'>{rest}<br>Token ids: {ids} …</span></p>"
    )
