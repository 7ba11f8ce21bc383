"""Dialog that sets up PyTorch: the build with its reason, the folder, optional packages, and the progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QProgressBar, QPushButton, QWidget

from app.widgets.build import Part, bold_label, label_grid, lay_column, lay_row, muted_label, named
from app.widgets.buttons import PrimaryButton
from app.widgets.dialog import Dialog, Role
from app.widgets.elided_label import ElidedLabel
from app.widgets.tone_label import ToneLabel
from core.environments.places import Places, places_on
from core.environments.wanted import Extra
from core.errors import RankdeckError, sentences
from core.formatting import byte_size
from core.machine.drives import drive_of
from core.machine.torch_builds import BuildChoice

if TYPE_CHECKING:
    from core.environments.make import Progress

WIDTH: Final = 600
ABOUT: Final = (
    "Training needs PyTorch, which is not part of this installation. It gets a Python of its own; nothing else on this "
    "PC is changed. It is used only after it has passed a test."
)
ABOUT_ANOTHER: Final = (
    "Another one is made beside it. The present one stays as it is, and trains until the new one works."
)
_STEPS: Final = 1000
_BOX_INDENT: Final = 24
_LEFT: Final = "Stopped. What has arrived is kept; continue whenever you like."


@dataclass(frozen=True, slots=True)
class Offered:
    """Choices that the dialog offers.

    Attributes:
        build: The build of PyTorch, and why.
        extras: Optional packages.
        places: The folders in use now.
        free: Free bytes where environments are kept now; None where that is not known.
        present: Differences of the environment in use; empty where there is none, or it does not differ.
    """

    build: BuildChoice
    extras: tuple[Extra, ...]
    places: Places
    free: int | None = None
    present: str = ""


class EnvironmentDialog(Dialog):
    """Asks once, then shows the progress.

    Signals:
        start_requested: Places, the names of extras, and a folder of wheels or None.
        stop_requested: The environment that is being made is to stop.
    """

    start_requested = Signal(object, object, object)
    stop_requested = Signal()

    def __init__(self, offered: Offered, parent: QWidget | None = None) -> None:
        super().__init__("Set up PyTorch", parent)
        self.setMinimumWidth(WIDTH)
        self.places = offered.places
        self.wheels: Path | None = None
        self._offered = offered
        self._is_going = False
        about = sentences(offered.present, ABOUT_ANOTHER) if offered.present else ABOUT
        self.about = QLabel(about, wordWrap=True)
        advice = ToneLabel()
        advice.say(offered.build.advice, "warning")
        self.form = self._make_form()
        self.bar = named(QProgressBar(minimum=0, maximum=_STEPS, textVisible=False), "Progress")
        self.status = muted_label()
        self.start = PrimaryButton("&Start")
        self.start.clicked.connect(self._on_start_clicked)
        self.buttons.addButton(self.start, Role.ActionRole)
        self.stop = self.add_button("&Close", Role.RejectRole)
        self.stop.setAutoDefault(False)
        build = lay_column(None, bold_label(offered.build.title), muted_label(offered.build.reason), advice, spacing=4)
        self.lay_out(self.notice, self.about, build, self.form, self.bar, self.status)
        self.bar.hide()
        self.status.hide()
        self.start.setDefault(True)
        self.start.setFocus()

    def _make_form(self) -> QWidget:
        self.other = _button("Ch&ange…", self._on_other_clicked)
        self.place_rows = {
            name: ElidedLabel(mode=Qt.TextElideMode.ElideMiddle) for name in ("PyTorch", "Models", "Runs")
        }
        grid = label_grid(None)
        for row, (title, label) in enumerate(self.place_rows.items()):
            grid.addWidget(muted_label(title, wraps=False), row, 0)
            grid.addWidget(named(label, f"Folder: {title}"), row, 1)
        self._show_places()
        self.extras = {extra.name: QCheckBox(extra.title) for extra in self._offered.extras}
        self.offline = _button("&Take wheels from a folder…", self._on_offline_clicked)
        self.offline.setToolTip("For a PC without a network: a folder that holds all wheels. Nothing is downloaded.")
        self.from_folder = muted_label()
        self.from_folder.hide()
        form, packages = QWidget(), bold_label("Optional packages")
        packages.setContentsMargins(0, 8, 0, 0)
        lay_column(
            form, lay_row(None, bold_label("Folders"), None, self.other), grid, packages,
            *self._extra_rows(), lay_row(None, self.offline, None), self.from_folder,
            spacing=6,
        )  # fmt: skip
        return form

    def _extra_rows(self) -> list[Part]:
        rows = list[Part]()
        for extra in self._offered.extras:
            box, note = self.extras[extra.name], extra.note
            box.setChecked(bool(note))
            box.setAccessibleDescription(note)
            rows.append(box)
            if note:
                below = muted_label(note)
                below.setIndent(_BOX_INDENT)
                rows.append(below)
        return rows

    # --- progress ----------------------------------------------------------------------------------------

    def show_progress(self, progress: Progress) -> None:
        if self._is_going:
            self.status.setText(progress.text)
            self.bar.setMaximum(_STEPS if progress.total else 0)
            self.bar.setValue(round(_STEPS * progress.done / progress.total) if progress.total else 0)

    def show_stopped(self) -> None:
        """Show that making the environment has stopped and can be continued."""
        self._end(_LEFT)

    def show_error(self, error: RankdeckError) -> None:
        # What went wrong matters more, and the dialog must fit on a low screen.
        self.about.hide()
        self.notice.show_error(error)
        self._end(_LEFT)

    def show_done(self, text: str) -> None:
        self.notice.say("success", "PyTorch is set up", text)
        self._end("")
        for part in (self.start, self.status, self.about, self.form):
            part.hide()
        self._grow()
        self.stop.setFocus()

    def reject(self) -> None:
        """Pause the making of the environment, or close the dialog."""
        if self._is_going:
            self.stop.setEnabled(False)  # until its programs have ended
            self.status.setText("Stopping…")
            self.stop_requested.emit()
        else:
            super().reject()

    def _on_start_clicked(self) -> None:
        self._is_going = True
        self.notice.clear()
        self.bar.setMaximum(0)
        self.status.setText("Starting…")
        self.stop.setText("&Pause")
        self._show_going()
        extras = tuple(name for name, box in self.extras.items() if box.isChecked())
        self.start_requested.emit(self.places, extras, self.wheels)

    def _end(self, text: str) -> None:
        self._is_going = False
        self.status.setText(text)
        self.start.setText("&Continue")
        self.stop.setText("&Close")
        self.stop.setEnabled(True)
        self._show_going()

    def _show_going(self) -> None:
        """Show the progress, or the form: a wrong folder is what stops it most often."""
        self.form.setVisible(not self._is_going)
        self.start.setEnabled(not self._is_going)
        self.start.setVisible(not self._is_going)
        self.bar.setVisible(self._is_going)
        self.status.setVisible(bool(self.status.text()))
        self._grow()

    # --- choices -----------------------------------------------------------------------------------------

    def _on_other_clicked(self) -> None:
        start = str(self.places.environments)
        if chosen := QFileDialog.getExistingDirectory(self, "Folder for PyTorch, models and runs", start):
            self.choose_folder(Path(chosen))

    def choose_folder(self, folder: Path) -> None:
        """Keep PyTorch, models and runs below a folder."""
        self.places = places_on(folder, self._offered.places)
        self._show_places()

    def _show_places(self) -> None:
        places, now, free = self.places, self._offered.places, self._offered.free
        room = (
            f" ({byte_size(free)} free on {drive_of(now.environments)})" if free is not None and places == now else ""
        )
        runs = ""
        if places.runs != now.runs:
            runs = " (from the next start of Rankdeck)"
        elif places != now:
            runs = " (there are runs, which stay)"
        self.place_rows["PyTorch"].set_full_text(f"{places.environments}{room}")
        self.place_rows["Models"].set_full_text(str(places.models))
        self.place_rows["Runs"].set_full_text(f"{places.runs}{runs}")

    def _on_offline_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of wheels")
        self.choose_wheels(Path(chosen) if chosen else None)

    def choose_wheels(self, folder: Path | None) -> None:
        """Take everything from a folder; None: from the package index."""
        self.wheels = folder
        self.from_folder.setText("" if folder is None else f"Everything is taken from {folder}; nothing is downloaded.")
        self.from_folder.setVisible(folder is not None)
        self._grow()

    def _grow(self) -> None:
        """Fit the dialog's height to its contents, which a dialog does not do by itself."""
        layout, form = self.layout(), self.form.layout()
        if layout is not None and form is not None:
            form.activate()
            layout.activate()
            self.resize(self.width(), layout.totalHeightForWidth(self.width()))


def _button(text: str, on_click: object) -> QPushButton:
    button = QPushButton(text)
    button.setAutoDefault(False)
    button.clicked.connect(on_click)
    return button
