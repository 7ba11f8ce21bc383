"""Filter line of the runs: words and settings to find runs by, with errors below it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLabel, QWidget

from app.widgets.build import lay_column, muted_label, search_line
from core.run_folder.record import OF_STATE
from core.run_folder.run_filter import Term, filter_problem, parse_filter

HINT: Final = "Filter, e.g. state:failed lr>1e-4"
HELP: Final = (
    "Words of a run's name, note or tags; NAME:TEXT, NAME=VALUE and NAME>NUMBER of its state and settings.\n"
    "For example: night · tag:draft · state:failed · mode:ddp · lr>1e-4 · loss<2\n"
    "All must match; ! before one means that it must not."
)
# A term is not whole while it is typed.
CHECK_AFTER_MS: Final = 250


class FilterLine(QWidget):
    """The line, with a hint below it while there is one.

    Signals:
        changed: The terms (tuple of `Term`).
        settings_wanted: A term asks for runs' settings.
    """

    changed = Signal(object)
    settings_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._terms: tuple[Term, ...] = ()
        self.line = search_line(HINT, "Filter the runs")
        self.line.setToolTip(HELP)
        self.hint: QLabel = muted_label()
        self.hint.hide()
        lay_column(self, self.line, self.hint, spacing=4)
        self._timer = QTimer(self, singleShot=True, interval=CHECK_AFTER_MS)
        self._timer.timeout.connect(self._show_hint)
        self.line.textChanged.connect(self._on_text_changed)

    @property
    def is_filtering(self) -> bool:
        return bool(self._terms)

    def _on_text_changed(self, text: str) -> None:
        self._terms = parse_filter(text)
        if any(term.name and term.name not in OF_STATE for term in self._terms):
            self.settings_wanted.emit()
        self.changed.emit(self._terms)
        self.hint.setVisible(False)
        self._timer.start()

    def _show_hint(self) -> None:
        hint = filter_problem(self.line.text())
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))
        self.line.setAccessibleDescription(hint)
