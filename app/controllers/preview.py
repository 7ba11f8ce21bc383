"""Looks at a dataset before training: the process that does it is waited for in a thread, and can be cancelled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal

from app.bridge import Feed, Send
from app.controllers.background import unexpected
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.machine.devices import Device
from core.machine.platform import this_platform
from core.measure.data_preview import preview_data
from core.recipes.manifest import Recipe

SHOWN: Final = 5
_log = logging.getLogger(__name__)


class Previewing(Feed):
    """One look at a time; a new one ends the one before.

    Signals:
        progressed: What is being done.
        found: What `core.measure.data_preview.preview_data` gives.
        failed: Why there is nothing to show.
    """

    progressed = Signal(str)
    found = Signal(object)
    failed = Signal(object)

    def look(self, config: RunConfig, recipe: Recipe, available: Sequence[Device], *, read_all: bool = False) -> None:
        """Begins; what comes of it comes as signals.

        Args:
            config: What would be trained.
            recipe: Its recipe.
            available: This machine's devices.
            read_all: Make all tokens, and keep them, instead of estimating from the first 32 MB.
        """
        devices = tuple(available)

        def work(stopping: threading.Event, send: Send) -> None:
            def progress(text: str) -> None:
                send(text)

            outcome: object
            try:
                outcome = preview_data(
                    config,
                    recipe,
                    devices,
                    this_platform(),
                    documents=SHOWN,
                    read_all=read_all,
                    limit_s=None,  # the person sees how far it is, and can cancel
                    progress=progress,
                    cancelled=stopping.is_set,
                )
            except RankdeckError as error:
                outcome = error
            except Exception as error:
                _log.exception("the preview failed")
                outcome = unexpected(error)
            if not stopping.is_set():
                send(outcome)

        self._start("preview", work)

    def cancel(self) -> None:
        """Ends the look, if there is one; nothing more is said of it."""
        self.close(wait=False)

    def _on_item(self, item: object) -> None:
        if isinstance(item, str):
            self.progressed.emit(item)
            return
        self.close(wait=False)
        if isinstance(item, RankdeckError):
            self.failed.emit(item)
        else:
            self.found.emit(item)
