"""A dataset as the model will see it: counts, the first samples and documents."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final, TypeAlias

from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QProgressBar, QTextBrowser, QWidget

from app.new_run.data_field import data_text
from app.style.tones import blend, is_dark, muted, tone
from app.widgets.build import lay_row, named
from app.widgets.dialog import Dialog
from app.widgets.notice_bar import Step
from core.config.mode import mode_label
from core.errors import RankdeckError
from core.formatting import byte_size, count

# The result of `core.measure.data_preview.preview_data`.
Found: TypeAlias = Mapping[str, Any]
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
            for name, value in _fact_lines(found)
        )
        parts = [f"<table cellspacing='2'>{rows}</table>"]
        parts += [_sample(sample, grounds, grey) for sample in found["first_samples"]]
        for number, document in enumerate(found["first_documents"], 1):
            head, text = escape(_document_title(number, document)), escape(_visible(document["text"]))
            parts.append(f"<p><b>{head}</b><br>{text} <span style='color:{grey}'>…</span></p>")
        self.text.setHtml("".join(parts))


def _sample(sample: Found, grounds: tuple[str, str], grey: str) -> str:
    """A sample, each token on a ground of its own, and the numbers of the first tokens."""
    tokens = "".join(
        f"<span style='background-color:{grounds[number % 2]}'>{escape(_visible(piece, breaks=True))}</span>"
        for number, piece in enumerate(sample["pieces"])
    )
    shown, length = len(sample["pieces"]), sample["length"]
    title = f"Sample {sample['number']} ({_many(length, 'token')})"
    rest = f"… the first {count(shown)} of {count(length)} tokens" if shown < length else ""
    ids = " ".join(str(number) for number in sample["ids"][:SHOWN_IDS])
    return (
        f"<p><b>{escape(title)}</b><br><span style='white-space:pre-wrap'>{tokens}</span> "
        f"<span style='color:{grey}'>{rest}<br>Token ids: {ids} …</span></p>"
    )


def _fact_lines(found: Found) -> list[tuple[str, str]]:
    counts, epoch, tokenizer = found["counts"], found["epoch"], found["tokenizer"]
    about = "" if found["exact"] else "about "
    part = "" if found["exact"] else f" in the first {byte_size(found['looked_at_bytes'])}"
    kind = f"{tokenizer['kind']}, vocabulary {tokenizer['vocab_size']:,}"
    kept = "; cached, so runs start immediately" if found["tokenised"] else ""
    bad, split = counts["words"] or "none", f" for training, {found['val_samples']:,} for validation"
    lines = [
        ("Data", data_text(str(found["dataset"]), found["files"], found["size_bytes"])),
        ("Read as", "\n".join([found["form"], *found["remarks"]])),
        ("Rows", f"{_many(counts['rows'], 'row')}, {_many(counts['documents'], 'document')}{part}"),
        ("Bad rows", "\n".join([bad, *counts["examples"]])),
        ("Tokens", f"{about}{found['tokens']:,} ({kind}){kept}"),
        ("Samples", f"{about}{found['samples']:,} of {found['seq_len']:,} tokens{split}"),
        ("An epoch", f"{about}{_many(epoch['steps'], 'step')} ({_how(epoch)})"),
    ]
    if not tokenizer["from_recipe"]:
        lines.append(("", "The recipe doesn't report its tokens, so bytes are shown."))
    return lines


def _document_title(number: int, document: Found) -> str:
    split = f", cut into {document['samples']:,} samples" if document["split"] else ", whole in one sample"
    return f"Document {number}: {_many(document['bytes'], 'byte')}, {_many(document['tokens'], 'token')}{split}"


def _visible(text: str, *, breaks: bool = False) -> str:
    """A text with visible line ends and tabs; with `breaks` its lines still end."""
    return text.replace("\r", "␍").replace("\n", "↵\n" if breaks else "↵").replace("\t", "⇥")


def _how(epoch: Found) -> str:
    mode = mode_label(str(epoch["mode"]), str(epoch["mode"]))
    devices = len(epoch["devices"])
    on = f" on {devices} devices" if devices > 1 else ""
    return f"{mode}{on}, global batch {epoch['global_batch']:,}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
