"""Defers slow look-ups until the first picture: their threads would hold it up by a third."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, SignalInstance

from app.runs.run_list import RunList
from app.shown_run.run_data import RunData
from app.shown_run.shown_run_controller import ShownRunController
from core.run_folder.store import RunEntry

# After the first plot: all plots are drawn once more when the run is read to its end.
SOON_MS: Final = 200
# The longest wait, whatever the shown run does: on a slow or busy computer New run would be made before the charts.
LATEST_MS: Final = 5000


class DeferredStartController(QObject):
    """Waits for the first plot of the shown run, or for the news that there is none.

    Signals:
        due: Devices, recipes, packages and data can be looked for now; emitted once.
    """

    due = Signal()

    def __init__(
        self,
        drawn: SignalInstance,
        data: RunData,
        runs: RunList,
        showing: ShownRunController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._data = data
        self._showing = showing
        self._timer = QTimer(self, singleShot=True, interval=LATEST_MS)
        self._timer.timeout.connect(self.due)
        drawn.connect(self._hurry)
        runs.listed.connect(self._on_listed)
        data.changed.connect(self._on_data_changed)

    def start(self) -> None:
        self._timer.start()

    def close(self) -> None:
        self._timer.stop()

    def _hurry(self) -> None:
        if self._timer.isActive() and self._timer.interval() != SOON_MS:
            self._timer.start(SOON_MS)

    def _on_listed(self, _entries: Sequence[RunEntry]) -> None:
        if self._showing.run_dir is None:
            self._hurry()

    def _on_data_changed(self, *_: object) -> None:
        if self._data.is_caught_up and not self._data.series.ranks():
            self._hurry()
