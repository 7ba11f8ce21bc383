"""A `QtBot` whose waits are bounds for a hang, not measures of speed: a busy machine does not fail them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pytestqt.qtbot import QtBot

HANG_MS: Final = 30_000


class PatientBot(QtBot):
    """Waits at least `HANG_MS` for a state, whatever limit a test names."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = HANG_MS) -> None:
        super().waitUntil(callback, timeout=max(timeout, HANG_MS))
