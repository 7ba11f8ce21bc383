"""Dialog that sets up PyTorch: where, with what, how far it is, and what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QProgressBar,
    QPushButton,
    QWidget,
)

from app.state.environment_text import ABOUT, EXTRAS
from app.views.widgets.build import bold_label, lay_column, lay_row, muted_label, named
from app.views.widgets.buttons import primary_button
from app.views.widgets.elided_label import ElidedLabel
from app.views.widgets.notice_bar import NoticeBar
from core.errors import RankdeckError

WIDTH: Final = 560
_STEPS: Final = 1000
_LEFT: Final = "Stopped. Continue whenever you like."


class EnvironmentDialog(QDialog):
    """Asks once, then shows how far it is.

    Args:
        folder: Where environments are kept.
        build: Which PyTorch it will be, as text.

    Signals:
        start_requested: A folder, the names of extras, and a folder of wheels or None.
        stop_requested: What is being made is to stop.
    """

    start_requested = Signal(object, object, object)
    stop_requested = Signal()

    def __init__(self, folder: Path, build: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Set up PyTorch")
        self.setMinimumWidth(WIDTH)
        self.folder = folder
        self.wheels: Path | None = None
        self._is_going = False
        self.notice = NoticeBar()
        self.place = ElidedLabel()
        self.place.set_full_text(str(folder))
        self.change = QPushButton("C&hange…")
        self.change.setAutoDefault(False)
        self.change.clicked.connect(self._on_change_clicked)
        self.extras = {extra.name: QCheckBox(extra.title) for extra in EXTRAS}
        self.offline = QPushButton("&Take wheels from a folder…")
        self.offline.setToolTip("For a PC without a network: a folder that holds all wheels. Nothing is downloaded.")
        self.offline.setAutoDefault(False)
        self.offline.clicked.connect(self._on_offline_clicked)
        self.from_folder = muted_label()
        self.from_folder.hide()
        self.bar = named(QProgressBar(minimum=0, maximum=_STEPS, textVisible=False), "Progress")
        self.status = muted_label(" ")
        self.start = primary_button("&Start")
        self.start.clicked.connect(self._on_start_clicked)
        self.stop = QPushButton("&Close")
        self.stop.setAutoDefault(False)
        self.stop.clicked.connect(self.reject)
        self._lay_out(build)

    def _lay_out(self, build: str) -> None:
        buttons = QDialogButtonBox()
        buttons.addButton(self.start, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.stop, QDialogButtonBox.ButtonRole.RejectRole)
        where = lay_row(None, self.place, self.change, spacing=8, grow=self.place)
        offline = lay_row(None, self.offline, None)
        extras = lay_column(None, *self.extras.values(), spacing=2)
        lay_column(
            self, self.notice, QLabel(ABOUT, wordWrap=True), muted_label(build), bold_label("Where"), where,
            bold_label("What else"), extras, offline, self.from_folder, self.bar, self.status, None, buttons,
            spacing=8, margins=(16, 16, 16, 12),
        )  # fmt: skip
        self.bar.hide()
        self.start.setDefault(True)

    @property
    def chosen_extras(self) -> tuple[str, ...]:
        """The ticked ones."""
        return tuple(name for name, box in self.extras.items() if box.isChecked())

    def show_progress(self, text: str, share: int | None) -> None:
        """A step; `share` in thousandths, None where it is not known."""
        if self._is_going:
            self.status.setText(text)
            self.bar.setMaximum(0 if share is None else _STEPS)
            self.bar.setValue(0 if share is None else share)

    def show_stopped(self) -> None:
        """What was being made has stopped; it can be continued."""
        self._end(_LEFT)

    def show_error(self, error: RankdeckError) -> None:
        """Why it stopped."""
        self._end(_LEFT)
        self.notice.show_error(error)
        self._grow()

    def show_done(self, text: str) -> None:
        """It is ready."""
        self._end(text)
        self.start.hide()
        self._let_choose(False)
        self.stop.setFocus()

    def reject(self) -> None:
        """Stops what is going on; closes the dialog otherwise."""
        if self._is_going:
            self.stop.setEnabled(False)  # until its programs have ended
            self.status.setText("Stopping…")
            self.stop_requested.emit()
        else:
            super().reject()

    def _on_start_clicked(self) -> None:
        self._is_going = True
        self.notice.clear()
        self.start.setEnabled(False)
        self.stop.setText("&Pause")
        self._let_choose(False)
        self.bar.show()
        self._grow()
        self.start_requested.emit(self.folder, self.chosen_extras, self.wheels)

    def _end(self, text: str) -> None:
        self._is_going = False
        self.bar.hide()
        self.status.setText(text)
        self.start.setText("&Continue")
        self.start.setEnabled(True)
        self.stop.setText("&Close")
        self.stop.setEnabled(True)
        self._let_choose(True)  # a wrong folder is what stops it most often

    def _let_choose(self, may_choose: bool) -> None:
        for widget in (self.change, self.offline, *self.extras.values()):
            widget.setEnabled(may_choose)

    def _on_change_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Where PyTorch is kept", str(self.folder))
        if chosen:
            self.folder = Path(chosen)
            self.place.set_full_text(chosen)

    def _on_offline_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of wheels")
        self.choose_wheels(Path(chosen) if chosen else None)

    def choose_wheels(self, folder: Path | None) -> None:
        """Takes everything from a folder; None: from the package index."""
        self.wheels = folder
        self.from_folder.setText("" if folder is None else f"Everything is taken from {folder}; nothing is downloaded.")
        self.from_folder.setVisible(folder is not None)
        self._grow()

    def _grow(self) -> None:
        """Makes room for what is shown now; a dialog does not grow by itself."""
        layout = self.layout()
        if layout is not None:
            layout.activate()
            needed = layout.totalHeightForWidth(self.width())
            if needed > self.height():
                self.resize(self.width(), needed)
