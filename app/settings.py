"""Settings that the window remembers between two starts: its geometry, splitters, folded parts, the last config."""

from __future__ import annotations

import json
from typing import Any, Final

from PySide6.QtCore import QByteArray, QSettings

ORGANISATION: Final = "Rankdeck"
# Switches: news of runs outside the window, and an icon in the tray.
NOTIFICATIONS: Final = "notifications"
TRAY_ICON: Final = "tray_icon"


def user_settings() -> Settings:
    """The user's settings: the registry under Windows, a file below the config folder elsewhere."""
    return Settings(QSettings(ORGANISATION, ORGANISATION))


class Settings:
    """Typed access to a `QSettings`; a damaged value counts as missing."""

    def __init__(self, store: QSettings) -> None:
        self._store = store

    def layout(self, key: str) -> QByteArray:
        """A widget's saved geometry or state; empty, which restores nothing, where there is none."""
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()

    def set_layout(self, key: str, value: QByteArray) -> None:
        self._store.setValue(key, value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._store.value(f"flags/{name}")
        # The ini format stores text; the registry keeps numbers.
        return default if value is None else str(value).lower() in ("true", "1")

    def set_flag(self, name: str, value: bool) -> None:
        self._store.setValue(f"flags/{name}", value)

    def values(self, name: str) -> dict[str, Any]:
        """A group of plain values; empty where there is none."""
        text = self._store.value(f"values/{name}")
        if not isinstance(text, str):
            return {}
        try:
            value = json.loads(text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def set_values(self, name: str, value: dict[str, Any]) -> None:
        self._store.setValue(f"values/{name}", json.dumps(value))

    def text(self, name: str) -> str | None:
        value = self._store.value(f"texts/{name}")
        return value if isinstance(value, str) else None

    def set_text(self, name: str, value: str) -> None:
        self._store.setValue(f"texts/{name}", value)

    def sync(self) -> None:
        self._store.sync()
