"""Tune row of New run: the button that tunes, and what was found for such a run before."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.state.tune_text import TIP, EarlierText
from app.views.widgets.build import lay_row, muted_label
from app.views.widgets.buttons import chip


class TuneRow(QWidget):
    """Beside the estimate.

    Attributes:
        earlier: What was found; the foot places it.

    Signals:
        tune_requested: The button was clicked.
        settings_requested: ``dict``: settings found before, and their values.
    """

    tune_requested = Signal()
    settings_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tune = chip("&Tune…", TIP)
        self.tune.clicked.connect(self.tune_requested)
        self.earlier = muted_label()
        self.use = chip("&Use these", "Set these settings in the form")
        self.use.clicked.connect(lambda: self.settings_requested.emit(dict(self._changes)))
        self._changes: dict[str, object] = {}
        lay_row(self, self.use, self.tune, spacing=8)
        self.show_earlier(None)

    def show_tunable(self, why_not: str) -> None:
        """Whether the draft can be tuned; `why_not` is empty where it can, and else the button's tooltip."""
        self.tune.setEnabled(not why_not)
        self.tune.setToolTip(why_not or TIP)
        self.tune.setAccessibleDescription(why_not or TIP)

    def show_earlier(self, found: EarlierText | None) -> None:
        """Shows what was found before; nothing where nothing was."""
        self._changes = dict(found.changes) if found is not None else {}
        self.earlier.setText("" if found is None else found.text)
        self.earlier.setVisible(found is not None)
        self.use.setVisible(bool(self._changes))
