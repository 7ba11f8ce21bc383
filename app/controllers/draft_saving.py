"""Saves drafts of Setup as they are edited: a window that is killed loses nothing that was set."""

from __future__ import annotations

import dataclasses
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.settings import Settings
from app.state.setup_form import Draft
from app.views.setup.setup_panel import SetupPanel

SAVE_AFTER_MS: Final = 400
CURRENT: Final = "setup"
OTHERS: Final = "drafts"


class DraftSaving(QObject):
    """Writes the draft that is shown, and those of other recipes, soon after each edit."""

    def __init__(self, setup: SetupPanel, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._setup = setup
        self._settings = settings
        self._later = QTimer(self, singleShot=True, interval=SAVE_AFTER_MS)
        self._later.timeout.connect(self.save)

    def open(self) -> None:
        """Shows what was saved, and saves edits from then on."""
        setup, saved = self._setup, self._settings.values(CURRENT)
        setup.drafts.restore(self._settings.values(OTHERS))
        if saved:
            draft = Draft.from_dict(saved)
            setup.open_draft(draft, keep_devices=not draft.devices)
        setup.draft_changed.connect(self._later.start)

    def save(self) -> None:
        """Writes the drafts. QSettings brings them to the disk when the event loop is idle."""
        self._later.stop()
        setup = self._setup
        wished = dataclasses.replace(setup.draft(), devices=tuple(setup.devices.wished()))
        self._settings.set_values(CURRENT, dataclasses.asdict(wished))
        self._settings.set_values(OTHERS, setup.drafts.as_dict())

    def close(self) -> None:
        """Saves for the last time."""
        self.save()
