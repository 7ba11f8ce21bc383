"""Wine, in which tests marked `windows` run on Linux: what it lacks is skipped there, and runs on a real Windows."""

from __future__ import annotations

import sys
from typing import Final

import pytest


def _is_wine() -> bool:
    if sys.platform != "win32":
        return False
    import ctypes

    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")  # https://wiki.winehq.org/Developer_FAQ


UNDER_WINE: Final = _is_wine()


# Tests that train wait so many times as long: importing PyTorch takes minutes there beside other programs.
PATIENCE: Final = 5.0 if UNDER_WINE else 1.0


def not_under_wine(cause: str) -> pytest.MarkDecorator:
    """Skips a test under Wine.

    Args:
        cause: What Wine lacks or does otherwise. docs/windows-tests.md lists each of these (`tests/test_docs.py`).
    """
    return pytest.mark.skipif(UNDER_WINE, reason=f"Wine: {cause}")
