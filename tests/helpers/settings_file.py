"""Settings in a file, so that a test has its own."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings

from app.settings import Settings


def settings_in(path: Path) -> Settings:
    return Settings(QSettings(str(path), QSettings.Format.IniFormat))
