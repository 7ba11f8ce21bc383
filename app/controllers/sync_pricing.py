"""Measures the link between the ticked devices, remembers it, and keeps the price of a sync interval current."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.background import Operation, OperationRunner
from app.run_data.run_series import RunSeries
from app.state.sync_price import price_text
from core.errors import RankdeckError
from core.machine.devices import Device
from core.machine.platform import this_platform
from core.measure.link import Link, keep_link, known_link, measure_link


class Pricing(QObject):
    """The price of synchronising.

    Args:
        runner: Where the measuring happens; it takes about five seconds.
        runs_dir: Where measurements are kept.

    Signals:
        price_changed: What to show below the sync interval; empty while nothing is known.
        measuring_changed: Whether the test runs.
        failed: Why it could not be measured.
    """

    price_changed = Signal(str)
    measuring_changed = Signal(bool)
    failed = Signal(object)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._runs_dir = runs_dir
        self._devices: tuple[Device, ...] = ()
        self._every: int | None = None
        self._run = RunSeries()
        self._link: Link | None = None
        self._closed = False

    def update(self, devices: Sequence[Device], every: int | None) -> None:
        """Takes over what is ticked and the sync interval."""
        self._every = every
        if self._uuids(devices) != self._uuids(self._devices):
            self._devices, self._link = tuple(devices), None
            self._look_up()
        self._say()

    def show_run(self, run: RunSeries) -> None:
        """Predicts from this run from now on."""
        self._run = run
        self._say()

    def measure(self) -> None:
        """Starts the test; the outcome comes as signals."""
        devices, folder = self._devices, self._runs_dir
        self.measuring_changed.emit(True)

        def work() -> Link:
            platform = this_platform()
            link = measure_link(devices, platform, cancelled=lambda: self._closed)
            keep_link(link, devices, platform, folder)
            return link

        def done(link: Link) -> None:
            self.measuring_changed.emit(False)
            if self._uuids(devices) == self._uuids(self._devices):
                self._link = link
            self._say()

        self._runner.run(Operation(work, done, self._on_failed))

    def close(self) -> None:
        """Ends a test that is under way."""
        self._closed = True

    def _look_up(self) -> None:
        devices, folder = self._devices, self._runs_dir

        def found(link: Link | None) -> None:
            self._link = link
            self._say()

        if len(devices) > 1:
            self._runner.run(
                Operation(
                    lambda: known_link(devices, this_platform(), folder), found, self.failed.emit, topic="known link"
                )
            )

    def _on_failed(self, error: RankdeckError) -> None:
        self.measuring_changed.emit(False)
        if not self._closed:
            self.failed.emit(error)

    def _say(self) -> None:
        self.price_changed.emit(price_text(self._link, self._every, self._run))

    @staticmethod
    def _uuids(devices: Sequence[Device]) -> frozenset[str]:
        return frozenset(device.uuid for device in devices)
