"""Dialog that sets up PyTorch: build with its reason, drive, extras, size, progress and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QWidget,
)

from app.machine.environment_text import (
    ABOUT,
    ABOUT_ANOTHER,
    SIZES_WAIT,
    Offered,
    PlaceChoice,
    choice_text,
    chosen_place,
    extra_notes,
    place_choices,
    place_lines,
)
from app.widgets.build import Part, bold_label, lay_column, lay_row, muted_label, named, narrow
from app.widgets.buttons import PrimaryButton
from app.widgets.elided_label import ElidedLabel
from app.widgets.notice_bar import NoticeBar
from app.widgets.steady import ComboBox
from app.widgets.tone_label import ToneLabel
from core.environments.extras import Extra
from core.environments.places import Places
from core.errors import RankdeckError, sentences

WIDTH: Final = 600
CHOICE_PAUSE_MS: Final = 400
_STEPS: Final = 1000
_BOX_INDENT: Final = 24
# Letters that fit beside a check box.
_SHORT_NOTE: Final = 48
_LEFT: Final = "Stopped. What has arrived is kept; continue whenever you like."


class EnvironmentDialog(QDialog):
    """Asks once, then shows how far it is.

    Args:
        offered: What can be chosen.

    Signals:
        choice_changed: Places, the names of extras and a folder of wheels or None: how large is that?
        start_requested: The same, to be made.
        stop_requested: What is being made is to stop.
    """

    choice_changed = Signal(object, object, object)
    start_requested = Signal(object, object, object)
    stop_requested = Signal()

    def __init__(self, offered: Offered, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Set up PyTorch")
        self.setMinimumWidth(WIDTH)
        self.wheels: Path | None = None
        self._offered = offered
        self._is_going = False
        self._asks = QTimer(self, singleShot=True, interval=CHOICE_PAUSE_MS)
        self._asks.timeout.connect(self._on_choice_settled)
        self.notice = NoticeBar()
        self._make_drive(offered)
        self._make_extras(offered)
        self.offline = QPushButton("&Take wheels from a folder…")
        self.offline.setToolTip("For a PC without a network: a folder that holds all wheels. Nothing is downloaded.")
        self.offline.setAutoDefault(False)
        self.offline.clicked.connect(self._on_offline_clicked)
        self.from_folder = muted_label()
        self.from_folder.hide()
        self.summary = muted_label()
        self.sizes = QLabel(SIZES_WAIT, wordWrap=True)
        self.too_large = ToneLabel()
        self.bar = named(QProgressBar(minimum=0, maximum=_STEPS, textVisible=False), "Progress")
        self.status = muted_label()
        self.start = PrimaryButton("&Start")
        self.start.clicked.connect(self._on_start_clicked)
        self.stop = QPushButton("&Close")
        self.stop.setAutoDefault(False)
        self.stop.clicked.connect(self.reject)
        self._lay_out(offered)
        self._asks.start(0)

    def _make_drive(self, offered: Offered) -> None:
        self._choices = place_choices(offered)
        self.drive = named(ComboBox(), "Drive for PyTorch, models and runs")
        self.drive.addItems([choice.text for choice in self._choices])
        narrow(self.drive, 24)
        self.drive.currentIndexChanged.connect(self._on_drive_chosen)
        self.other = QPushButton("&Other folder…")
        self.other.setAutoDefault(False)
        self.other.clicked.connect(self._on_other_clicked)
        middle = Qt.TextElideMode.ElideMiddle
        self.place_rows = {title: ElidedLabel(mode=middle) for title in ("PyTorch", "Models", "Runs")}
        self._show_places()

    def _make_extras(self, offered: Offered) -> None:
        self.extras = {extra.name: QCheckBox(extra.title) for extra in offered.extras}
        for extra in offered.extras:
            box = self.extras[extra.name]
            box.setEnabled(not extra.unavailable)
            box.setChecked(extra.is_needed)
            box.toggled.connect(lambda _: self._asks.start())

    def _lay_out(self, offered: Offered) -> None:
        buttons = QDialogButtonBox()
        buttons.setContentsMargins(0, 8, 0, 0)
        buttons.addButton(self.start, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.stop, QDialogButtonBox.ButtonRole.RejectRole)
        about = sentences(offered.present, ABOUT_ANOTHER) if offered.present else ABOUT
        self.about = QLabel(about, wordWrap=True)
        advice = ToneLabel()
        advice.say(offered.build.advice, "warning")
        self.form = QWidget()
        lay_column(
            self.form, _heading("Drive for PyTorch, models and runs"),
            lay_row(None, self.drive, self.other, None, spacing=8), self._place_grid(),
            _heading("Optional packages"), *self._extra_rows(offered.extras),
            lay_row(None, self.offline, None), self.from_folder, spacing=6,
        )  # fmt: skip
        lay_column(
            self, self.notice, self.about, _heading(offered.build.title),
            muted_label(offered.build.reason), advice, self.form, self.summary, self.sizes, self.too_large,
            self.bar, self.status, None, buttons, spacing=6, margins=(16, 16, 16, 12),
        )  # fmt: skip
        for part in (self.summary, self.bar, self.status):
            part.hide()
        self.start.setDefault(True)
        self.start.setFocus()

    def _place_grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        for row, (title, label) in enumerate(self.place_rows.items()):
            grid.addWidget(muted_label(title, wraps=False), row, 0)
            grid.addWidget(named(label, f"Folder: {title}"), row, 1)
        return grid

    def _extra_rows(self, extras: tuple[Extra, ...]) -> list[Part]:
        notes, rows = extra_notes(extras), list[Part]()
        for extra in extras:
            box, note = self.extras[extra.name], notes.get(extra.name, "")
            box.setAccessibleDescription(note)
            if len(note) > _SHORT_NOTE:
                below = muted_label(note)
                below.setIndent(_BOX_INDENT)
                rows += [box, below]
            else:
                rows.append(lay_row(None, box, muted_label(note, wraps=False), None, spacing=12))
        return rows

    @property
    def choice(self) -> tuple[Places, tuple[str, ...], Path | None]:
        """The choice: places, extras, and a folder of wheels or None."""
        return self._choices[self.drive.currentIndex()].places, self.chosen_extras, self.wheels

    @property
    def chosen_extras(self) -> tuple[str, ...]:
        """The ticked ones."""
        return tuple(name for name, box in self.extras.items() if box.isChecked())

    def show_sizes(self, text: str, problem: str = "") -> None:
        """How large what is chosen is; `problem`: why it cannot be made there."""
        self.sizes.setText(text)
        self.sizes.show()
        self.too_large.say(problem, "warning")
        self._grow()

    def show_progress(self, text: str, share: int | None) -> None:
        """A step; `share` in thousandths, None where it is not known."""
        if self._is_going:
            self.status.setText(text)
            self.bar.setMaximum(0 if share is None else _STEPS)
            self.bar.setValue(0 if share is None else share)

    def show_stopped(self) -> None:
        """Shows that making the environment has stopped and can be continued."""
        self._end(_LEFT)
        self._grow()

    def show_error(self, error: RankdeckError) -> None:
        """Why it stopped."""
        self._end(_LEFT)
        self.about.hide()  # what went wrong matters more, and the dialog must fit on a low screen
        self.notice.show_error(error)
        self._grow()

    def show_done(self, text: str) -> None:
        """It is ready."""
        self._end("")
        self.notice.say("success", "PyTorch is set up", text)
        for part in (self.start, self.status, self.sizes, self.about):
            part.hide()
        self._let_choose(False)
        self._grow()
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
        self._asks.stop()
        self.sizes.setVisible(self.sizes.text() != SIZES_WAIT)  # they are no longer asked for
        self.notice.clear()
        self.start.setEnabled(False)
        self.start.hide()
        self.stop.setText("&Pause")
        self._let_choose(False)
        self.bar.setMaximum(0)
        self.status.setText("Starting…")
        self.bar.show()
        self.status.show()
        self._grow()
        self.start_requested.emit(*self.choice)

    def _end(self, text: str) -> None:
        self._is_going = False
        self.bar.hide()
        self.status.setText(text)
        self.start.setText("&Continue")
        self.start.setEnabled(True)
        self.start.show()
        self.stop.setText("&Close")
        self.stop.setEnabled(True)
        self._let_choose(True)  # a wrong folder is what stops it most often
        if text and self.sizes.text() == SIZES_WAIT:
            self._asks.start()

    def _let_choose(self, may_choose: bool) -> None:
        """Shows the form, or the choice made in it."""
        self.form.setVisible(may_choose)
        self.summary.setText(choice_text(self.choice[0], self._offered.extras, self.chosen_extras, self.wheels))
        self.summary.setVisible(not may_choose)
        if not may_choose:
            self.too_large.say("", "warning")

    def _on_choice_settled(self) -> None:
        self.show_sizes(SIZES_WAIT)
        self.choice_changed.emit(*self.choice)

    def _on_drive_chosen(self) -> None:
        self._show_places()
        self._asks.start()

    def _on_other_clicked(self) -> None:
        places = self.choice[0]
        chosen = QFileDialog.getExistingDirectory(self, "Folder for PyTorch, models and runs", str(places.environments))
        if chosen:
            self.choose_folder(Path(chosen))

    def choose_folder(self, folder: Path) -> None:
        """Adds a folder to the drives and chooses it."""
        choice: PlaceChoice = chosen_place(folder, None, self._offered.places)
        self._choices.append(choice)
        self.drive.addItem(choice.text)
        self.drive.setCurrentIndex(len(self._choices) - 1)

    def _show_places(self) -> None:
        places = self._choices[self.drive.currentIndex()].places
        for title, text in place_lines(places, self._offered.places):
            self.place_rows[title].set_full_text(text)

    def _on_offline_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of wheels")
        self.choose_wheels(Path(chosen) if chosen else None)

    def choose_wheels(self, folder: Path | None) -> None:
        """Takes everything from a folder; None: from the package index."""
        self.wheels = folder
        self.from_folder.setText("" if folder is None else f"Everything is taken from {folder}; nothing is downloaded.")
        self.from_folder.setVisible(folder is not None)
        self._asks.start()
        self._grow()

    def _grow(self) -> None:
        """Makes room for what is shown now, and takes it back; a dialog does neither by itself."""
        layout, form = self.layout(), self.form.layout()
        if layout is not None and form is not None:
            form.activate()
            layout.activate()
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))


def _heading(text: str) -> QLabel:
    label = bold_label(text)
    label.setContentsMargins(0, 8, 0, 0)
    return label
