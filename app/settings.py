"""Settings that the window remembers between two starts: its geometry, splitters, folded parts, the last config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QByteArray, QSettings

ORGANISATION: Final = "Rankdeck"


def user_settings() -> Settings:
    """The person's own settings: the registry under Windows, a file below the config folder elsewhere."""
    return Settings(QSettings(ORGANISATION, ORGANISATION))


def settings_in(path: Path) -> Settings:
    """Settings in a file of their own (tests, screenshots, a portable copy)."""
    return Settings(QSettings(str(path), QSettings.Format.IniFormat))


class Settings:
    """Typed access to a `QSettings`; a value that cannot be understood counts as not there."""

    def __init__(self, store: QSettings) -> None:
        self._store = store

    def geometry(self) -> QByteArray | None:
        """The window's place and size, for `QWidget.restoreGeometry`."""
        return self._bytes("window/geometry")

    def set_geometry(self, value: QByteArray) -> None:
        """Remembers `QWidget.saveGeometry`."""
        self._store.setValue("window/geometry", value)

    def splitter(self, name: str) -> QByteArray | None:
        """The state of the splitter `name`, for `QSplitter.restoreState`."""
        return self._bytes(f"splitters/{name}")

    def set_splitter(self, name: str, value: QByteArray) -> None:
        """Remembers `QSplitter.saveState`."""
        self._store.setValue(f"splitters/{name}", value)

    def flag(self, name: str, default: bool) -> bool:
        """A switch, such as whether the setup panel is folded."""
        value = self._store.value(f"flags/{name}")
        # The ini format stores text; the registry keeps numbers.
        return default if value is None else str(value).lower() in ("true", "1")

    def set_flag(self, name: str, value: bool) -> None:
        """Remembers a switch."""
        self._store.setValue(f"flags/{name}", value)

    def last_setup(self) -> dict[str, Any] | None:
        """What the setup panel held when the window was closed; None before that."""
        return self.values("setup") or None

    def set_last_setup(self, value: dict[str, Any]) -> None:
        """Remembers what the setup panel holds."""
        self.set_values("setup", value)

    def values(self, name: str) -> dict[str, Any]:
        """A group of plain values; empty when there is none."""
        text = self._store.value(f"values/{name}")
        if not isinstance(text, str):
            return {}
        try:
            value = json.loads(text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def set_values(self, name: str, value: dict[str, Any]) -> None:
        """Remembers a group of plain values."""
        self._store.setValue(f"values/{name}", json.dumps(value))

    def text(self, name: str) -> str | None:
        """A remembered text, such as the run that was shown last."""
        value = self._store.value(f"texts/{name}")
        return value if isinstance(value, str) else None

    def set_text(self, name: str, value: str) -> None:
        """Remembers a text."""
        self._store.setValue(f"texts/{name}", value)

    def sync(self) -> None:
        """Writes everything now."""
        self._store.sync()

    def _bytes(self, key: str) -> QByteArray | None:
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) else None
