"""Fixtures of tests that open the window."""

from __future__ import annotations

from tests.helpers.window_fixture import open_sheet, open_window

__all__ = ["open_sheet", "open_window"]
